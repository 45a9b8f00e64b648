"""Search CATv1's experiments, and print rows for the model sheet.

    python workflow/list_models.py K562 DNase

prints the experiments whose accession, biosample, assay or description have all the words, best
published performance first.
"""

import argparse
import re
import sys

from veff.errors import InputError
from veff.models import catv1

COLUMNS = ("accession", "assay", "biosample", "count r", "description")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("words", nargs="+", help="all of them must be found, in any case")
    parser.add_argument("--revision", default="main", help="of CATv1 on the hub (default: main)")
    arguments = parser.parse_args()
    try:
        found = catv1.search(arguments.words, arguments.revision)
    except InputError as error:
        sys.exit(f"error: {error}")
    if not found:
        sys.exit(f"CATv1 has no experiment with {' and '.join(arguments.words)}")
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
        print(f"{name}\t{one.accession}\tall")


if __name__ == "__main__":
    main()
