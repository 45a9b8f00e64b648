"""Which experiments of CATv1 are there, as rows for the model sheet? The command `list_models`."""

import argparse
import re
import sys

from veff.errors import InputError
from veff.models import catv1

COLUMNS = ("accession", "assay", "biosample", "count r", "description")


def main() -> None:
    """Print the experiments that are asked for, best published performance first."""
    parser = argparse.ArgumentParser(
        prog="list_models", description="Search CATv1, and print rows for the model sheet."
    )
    parser.add_argument(
        "words", nargs="*", help="in accession, assay, biosample or description; all, in any case"
    )
    parser.add_argument("--assay", default="", help="DNase or ATAC")
    parser.add_argument("--biosample", default="", help="its whole name, such as K562")
    parser.add_argument("--organ", default="", help="a word of the biosample: heart, lung, ...")
    parser.add_argument("--life-stage", default="", help=", ".join(catv1.STAGES))
    parser.add_argument("--folds", default="all", help="of the rows: all, or 0 (default: all)")
    parser.add_argument("--revision", default="main", help="of CATv1 on the hub (default: main)")
    asked = parser.parse_args()
    facets = {facet: getattr(asked, facet) for facet in catv1.FACETS}
    try:
        found = catv1.search(asked.words, facets, asked.revision)
    except InputError as error:
        sys.exit(f"error: {error}")
    if not found:
        wanted = [*asked.words, *filter(None, facets.values())]
        sys.exit(f"CATv1 has no experiment with {' and '.join(wanted)}")
    rows = [COLUMNS]
    for one in found:
        r = "" if one.count_pearson is None else f"{one.count_pearson:.3f}"
        rows.append((one.accession, one.assay, one.biosample, r, one.summary))
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        cells = (cell.ljust(width) for cell, width in zip(row, widths, strict=True))
        print("  ".join(cells).rstrip())
    print("\nFor the model sheet:\n\nexperiment\tcatv1\tfolds")
    for one in found:
        name = re.sub(r"[^\w.+-]+", "_", f"{one.biosample}.{one.assay}.{one.accession}")
        print(f"{name}\t{one.accession}\t{asked.folds}")


if __name__ == "__main__":
    main()
