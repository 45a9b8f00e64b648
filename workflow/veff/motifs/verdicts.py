"""Which motif is gained, lost, strengthened or weakened, as far as the model uses it?"""

from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from veff import tables
from veff.motifs import hits
from veff.motifs.hits import HIT
from veff.scoring import columns
from veff.scoring.columns import Column

ALPHA = 0.05  # a larger p-value is no verdict
LEAST = 1  # nor is a smaller change of the score, in bits
USED = 10  # times the share of an average stretch of the window: what the model uses
NONE = "none"
VERDICTS = ("gained", "lost", "strengthened", "weakened", NONE)
SHARE = "abs(sum of the attribution over the motif's place) / sum of abs over the window"
COLUMNS = {
    **columns.ALLELE,
    **{name: column for name, column in hits.COLUMNS.items() if name != "allele_id"},
    "experiment": Column(
        pa.string(), "the experiment of the allele's largest effect, where that was attributed"
    ),
    "ref_share": Column(
        pa.float64(), "share of the reference's attribution at its best fit", "0 to 1", SHARE
    ),
    "alt_share": Column(
        pa.float64(), "share of the alternate's attribution at its best fit", "0 to 1", SHARE
    ),
    "weighted_change": Column(
        pa.float64(),
        "change of the score weighted by attribution; a placement that is no hit, or that the "
        "model does not use, counts as 0",
        "log2 odds",
        "alt_share * alt_score - ref_share * ref_score",
    ),
    "verdict": Column(
        pa.string(),
        f"{', '.join(VERDICTS)}: by which sequence has a hit (p < {HIT:g}) that the model uses; "
        f"none too where change is below {LEAST} bit, or pval (without attributions max_pval, or "
        f"effect_pval) above {ALPHA}",
    ),
    "effect_pval": Column(
        pa.float64(), "of the allele's largest effect: max_pval of the summary", "0 to 1"
    ),
    "logfc": Column(pa.float64(), "of the allele in that experiment", "log2"),
    "transplanted_logfc": Column(
        pa.float64(), "of the same change in shuffled flanks, mean over the shuffles", "log2"
    ),
    "effect_kept": Column(
        pa.bool_(), "whether transplanted_logfc has the sign of logfc and at least half its size"
    ),
}
SCHEMA = columns.schema(COLUMNS)


def write(out: Path, summary: Path, found: Path, attributions: Path | None) -> None:
    """Write `motifs.parquet`: the alleles' hits (`hits.Finder`) with their verdicts.

    `attributions` are those of the largest effects (`explain.table`).
    An allele that touches no hit has a row without a motif. An allele's first row is what to
    look at: those with a verdict come first, and of these the one that matters most.
    """
    rows = pq.read_table(found)
    ids = pc.unique(rows["allele_id"])
    names = [*columns.ALLELE, "max_pval"]
    known = pq.read_table(summary, columns=names, filters=pc.field("allele_id").isin(ids))
    known = known.rename_columns([*columns.ALLELE, "effect_pval"]).to_pandas()
    explained = {} if attributions is None else by_allele(pq.read_table(attributions))
    effects = known.set_index("allele_id")["effect_pval"].dropna()
    judged = pd.concat(
        [
            judge(rows.filter(pc.is_valid(rows["motif"])).to_pandas(), explained, effects),
            rows.filter(pc.is_null(rows["motif"])).to_pandas().assign(verdict=NONE),
        ]
    ).sort_values("allele_id", kind="stable")
    table = judged.merge(known, on="allele_id", how="left")
    tables.write_parquet(
        out, [pa.Table.from_pandas(table, SCHEMA, preserve_index=False).select(SCHEMA.names)]
    )


def by_allele(attributions: pa.Table) -> dict[int, list[dict]]:
    """For each allele that was explained, the rows of its reference and its alternate."""
    found: dict[int, list[dict]] = {}
    for row in attributions.to_pylist():
        found.setdefault(row["allele_id"], []).append(row)
    return found


def judge(
    rows: pd.DataFrame,
    explained: dict[int, list[dict]],
    effects: Mapping[int, float] = MappingProxyType({}),
) -> pd.DataFrame:
    """Hits with the columns of `COLUMNS` that depend on attributions, and in their order.

    `effects` are p-values of alleles' largest effects, as far as there are any: where there is no
    attribution, they say whether the model uses what changed.
    """
    n = len(rows)
    experiment = np.full(n, None, object)
    share, logfc = np.full((2, n), np.nan), np.full((2, n), np.nan)
    average = np.full(n, np.nan)
    for i, (allele, *offsets, width) in enumerate(
        zip(rows["allele_id"], rows["ref_offset"], rows["alt_offset"], rows["width"], strict=True)
    ):
        for j, one in enumerate(explained.get(allele, ())):
            values = np.asarray(one["attribution"])
            first = len(values) // 2 + offsets[j]
            share[j, i] = abs(values[first : first + width].sum()) / max(
                np.abs(values).sum(), 1e-30
            )
            average[i] = width / len(values)
            experiment[i] = one["experiment"]
            logfc[:, i] = one["logfc"], one["transplanted_logfc"]
    score = rows[["ref_score", "alt_score"]].to_numpy().T
    counts = rows[["ref_pval", "alt_pval"]].to_numpy().T < HIT
    attributed = ~np.isnan(average)
    counts &= ~attributed | (share >= USED * average)
    effect = rows["allele_id"].map(effects).astype(float)
    p = np.where(attributed, rows["pval"], np.fmax(rows["max_pval"], effect)).astype(float)
    verdict = np.select(
        [
            (np.abs(rows["change"]) < LEAST) | (p > ALPHA) | ~counts.any(0),
            ~counts[0],
            ~counts[1],
            rows["change"] > 0,
        ],
        [NONE, "gained", "lost", "strengthened"],
        "weakened",
    )
    weighted = np.where(counts, share * score, 0)
    weighted = np.where(attributed, weighted[1] - weighted[0], np.nan)
    sizes = np.abs(logfc)
    kept = (np.sign(logfc[0]) == np.sign(logfc[1])) & (sizes[1] >= sizes[0] / 2)
    judged = rows.assign(
        experiment=experiment,
        ref_share=share[0],
        alt_share=share[1],
        weighted_change=weighted,
        verdict=verdict,
        logfc=logfc[0],
        transplanted_logfc=logfc[1],
        effect_kept=np.where(attributed, kept, None),
    )
    matters = np.where(attributed, np.abs(weighted), np.abs(rows["evidence"]))
    order = np.lexsort((-matters, verdict == NONE, rows["allele_id"]))
    return judged.iloc[order]
