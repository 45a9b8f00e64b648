"""Which motif is drawn under an allele's attributions, and where?"""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow.dataset as ds

from veff.motifs import verdicts
from veff.motifs.motifset import MotifSet
from veff.scoring import explain
from veff.scoring.explain import Explanation


@dataclass(frozen=True)
class Mark:
    """A motif beside one of the two sequences: `matrix` [4, width] as it reads on that strand,
    `offset` bp from the allele to its first base; `row` is 0 by the reference, 1 the alternate."""

    name: str
    verdict: str
    matrix: np.ndarray
    offset: int
    row: int


class Marks:
    """The motifs to draw, of hits (`hits.write`) of a set."""

    def __init__(self, hits: Path, motifs: MotifSet):
        self._hits = ds.dataset(hits)
        self._matrices = dict(zip(motifs.names, motifs.matrices, strict=True))

    def of(self, one: Explanation) -> Mark | None:
        """The first motif with a verdict, where it fits better; None where there is none."""
        mine = ds.field("allele_id") == one.allele["allele_id"]
        rows = self._hits.to_table(filter=mine & ds.field("motif").is_valid()).to_pandas()
        judged = verdicts.judge(rows, verdicts.by_allele(explain.table([one])))
        judged = judged[judged["verdict"] != verdicts.NONE]
        if judged.empty:
            return None
        best = judged.iloc[0]
        row = int(best["alt_pval"] < best["ref_pval"])
        matrix = self._matrices[best["motif"]]
        return Mark(
            name=best["motif"],
            verdict=best["verdict"],
            matrix=matrix if best["strand"] == "+" else matrix[::-1, ::-1],
            offset=int(best["alt_offset"] if row else best["ref_offset"]),
            row=row,
        )
