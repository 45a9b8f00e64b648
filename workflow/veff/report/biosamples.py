"""In which biosamples do the alleles of the largest effects act most?"""

from itertools import groupby
from pathlib import Path

import pyarrow.dataset as ds

from veff.names import cut
from veff.report.kept import Kept

N_ALLELES = 100  # of the largest effects
N_ROWS = 50  # biosamples of an allele, from the first on
TEXTS = ("biosample", "organ", "life_stage", "assays")
NUMBERS = ("pooled_logfc", "pooled_se", "pooled_pval", "rank", "significant")
NUMBERS += ("within_noise_of_best",)


def largest(kept: Kept, path: Path | None) -> dict[int, list[dict]]:
    """The first rows of the table of biosamples, of each of the first alleles, by its place on the
    page; {} of one biosample alone."""
    if path is None:
        return {}
    ids = kept.alleles["allele_id"].slice(0, N_ALLELES).combine_chunks()
    place = {allele: i for i, allele in enumerate(ids.to_pylist())}
    table = ds.dataset(path).to_table(
        columns=["allele_id", *TEXTS, *NUMBERS],
        filter=ds.field("allele_id").isin(ids) & (ds.field("rank") <= N_ROWS),
    )
    found = {}
    for allele, rows in groupby(table.to_pylist(), lambda row: row["allele_id"]):
        rows = list(rows)[:N_ROWS]
        found[place[allele]] = [
            {key: cut(row[key] or "") for key in TEXTS} | {key: row[key] for key in NUMBERS}
            for row in rows
        ]
    return found if any(len(rows) > 1 for rows in found.values()) else {}
