"""What does a haplotype do beyond its alleles, and how do the chromosomes of a sample differ?

The parts that the scoring jobs wrote of the plan's virtual alleles become the tables of the run.
"""

import json
import logging
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from veff.atomic import write_json
from veff.haplotypes import judging
from veff.haplotypes.largest import Largest
from veff.haplotypes.planning import NONE, SAMPLED, UNSCORED
from veff.inputs.classes import PAIR
from veff.outputs import collect
from veff.scoring import columns
from veff.scoring.columns import EXPERIMENT, SCORES, SPREAD, Column
from veff.scoring.null import Nulls
from veff.tables import parquet, write_parquet

SCORED_AS = ["scored_as", "scored_ref", "scored_alt"]  # of an allele: what its class goes by
PLACE = {
    "haplotype": Column(pa.int64(), "number of the haplotype, from 0, along the genome"),
    "locus": Column(pa.int64(), "number of the locus, from 0; its haplotypes exclude each other"),
    "contig": Column(pa.string(), "contig, as the reference names it"),
    "start": Column(pa.int64(), "first base that an allele changes, 1-based", "bp"),
    "end": Column(pa.int64(), "last base that an allele changes, 1-based", "bp"),
    "distance": Column(pa.int64(), "from the first allele's start to the last one's", "bp"),
    "alleles": Column(
        pa.list_(pa.int64()), "allele_id of each allele, in order, of duplicates the scored one"
    ),
    "variants": Column(
        pa.string(), "the alleles, trimmed: position:reference>alternate, - for an empty one"
    ),
    "background": Column(
        pa.list_(pa.int64()), "allele_id of what else the chromosomes have in both windows"
    ),
    "chromosomes": Column(pa.int64(), "chromosomes that are known to carry it"),
    "unphased": Column(
        pa.int64(), "samples that have its one allele on one of two chromosomes, unknown which"
    ),
    "frequency": Column(
        pa.float64(),
        "of its carriers among the chromosomes with known alleles",
        "0 to 1",
        "(chromosomes + unphased) / chromosomes with a known allele",
    ),
    "n_samples": Column(pa.int64(), "samples that carry it"),
    "samples": Column(pa.list_(pa.string()), "their names, the first 50"),
}
TOGETHER = {
    "single_logfc": Column(
        pa.list_(pa.float64()), "logfc of each allele alone in the same window", "log2"
    ),
    "sum_logfc": Column(pa.float64(), "of the alleles alone", "log2", "sum(single_logfc)"),
    "interaction": Column(
        pa.float64(), "what the alleles do beyond their sum", "log2", "logfc - sum_logfc"
    ),
    "interaction_pval": Column(
        pa.float64(),
        "of abs(interaction) among pairs of random SNVs at a like distance; null for one allele",
        "0 to 1",
        "(1 + #{abs(null) >= abs(interaction)}) / (1 + n)",
    ),
}
P_VALUES = {
    f"{name}.pval": Column(
        pa.float64(),
        f"p-value of {name}: of one allele under the experiment's null of its class, of two SNVs "
        "among pairs of random SNVs at a like distance; null for other haplotypes",
        "0 to 1",
        columns.ONE_SIDED_P if name in columns.ONE_SIDED else columns.TWO_SIDED_P,
    )
    for name in judging.JUDGED
}
OF_EXPERIMENT = {name: EXPERIMENT[name] for name in ("experiment", "group")}
COLUMNS = {
    **PLACE,
    **OF_EXPERIMENT,
    "n_padded": EXPERIMENT["n_padded"],
    **SCORES,
    **TOGETHER,
    **P_VALUES,
    **SPREAD,
}
IMBALANCE = {
    "locus": PLACE["locus"],
    "sample": Column(SAMPLED.field("sample").type, "of the input"),
    "n_unphased": Column(
        pa.int32(), "alleles of the locus that the sample has on an unknown chromosome: left out"
    ),
    "haplotype_1": Column(pa.int64(), "that its first chromosome carries; null for none"),
    "haplotype_2": Column(pa.int64(), "that its second chromosome carries; null for none"),
    **OF_EXPERIMENT,
    "counts_1": Column(
        pa.float64(), "of the first chromosome, over the output window of the locus", "reads"
    ),
    "counts_2": Column(
        pa.float64(), "of the second chromosome, over the output window of the locus", "reads"
    ),
    "log_ratio": Column(
        pa.float64(),
        "the predicted allelic imbalance; null where one is beyond max_haplotypes",
        "log2",
        "(h_2 - h_1) / ln(2)",
    ),
}


def schema(columns: dict[str, Column]) -> pa.Schema:
    return pa.schema({name: column.kind for name, column in columns.items()})


def write(
    planned: Path,
    sampled: Path,
    alleles: Path,
    answers: list[list[str]],
    experiments: list[str],
    *,
    nulls: Nulls | None = None,
    partitioned: bool = False,
    metadata: dict | None = None,
    haplotypes: Path,
    imbalance: Path,
    of_alleles: Path,
    shown: Path,
) -> None:
    """Write both tables, experiment after experiment, and which interactions are the largest.

    `planned` and `sampled` are what `planning.plan` wrote, `alleles` those of the input; `answers`
    the part files, a list a bundle, each in the order of the chunks; `experiments` says in which
    order they come. By the `nulls` of alleles and of pairs p-values are computed.
    `partitioned` is as in `tables.parquet`, `metadata` goes into the schemas. `of_alleles` becomes
    what `Largest.of_alleles` gives, `shown` JSON for the report.
    """
    rows, both = map(pq.read_table, (planned, sampled))
    kinds = judging.kinds(rows, pq.read_table(alleles, columns=SCORED_AS))
    judged_by = {PAIR if kind == "" else kind for kind in kinds.tolist()} if nulls else ()
    largest = Largest(rows)
    said = {"veff": json.dumps(metadata or {})}
    with (
        parquet(haplotypes, schema(COLUMNS).with_metadata(said), partitioned) as put,
        parquet(imbalance, schema(IMBALANCE).with_metadata(said), partitioned) as put_both,
    ):
        for answer in collect.by_experiment(answers, experiments):
            name = answer["experiment"][0].as_py()
            own = {kind: nulls[name, kind] for kind in judged_by}
            groups = list(_groups(answer))
            found = [_together(rows, kinds, own, scored) for scored in groups]
            for one in found:
                largest.add(one)
            put(pa.concat_tables(found))
            put_both(pa.concat_tables(_imbalance(both, scored) for scored in groups))
            logging.info("%s: %d haplotypes", name, len(rows))
    write_parquet(of_alleles, [largest.of_alleles(alleles)])
    write_json(shown, largest.shown(haplotypes))


def _groups(answer: pa.Table) -> Iterator[pa.Table]:
    """The answers of each signal group, in the order of the virtual alleles' numbers."""
    for group in pc.unique(answer["group"]).to_pylist():
        scored = answer.filter(pc.equal(answer["group"], group)).sort_by("allele_id")
        if not np.array_equal(scored["allele_id"].to_numpy(), np.arange(len(scored))):
            raise RuntimeError(
                f"{answer['experiment'][0]}: windows of haplotypes are missing among the parts; "
                "remove the parts and run again, and report this"
            )
        yield scored.combine_chunks()


def _together(
    planned: pa.Table, kinds: np.ndarray, nulls: dict[str, pa.Table], scored: pa.Table
) -> pa.Table:
    """The rows of `COLUMNS` of one group."""
    alone, total, interaction = _beyond(planned, scored)
    rows = scored.take(planned["joint"])
    group = scored["group"][0]
    of_group = {kind: null.filter(pc.equal(null["group"], group)) for kind, null in nulls.items()}
    p_values = judging.judged(
        {name: rows[name].to_numpy() for name in judging.JUDGED},
        interaction,
        planned["distance"].to_numpy(),
        kinds,
        of_group,
    )
    own = {
        "single_logfc": alone,
        "sum_logfc": total,
        "interaction": interaction,
        **{name: pa.array(values, from_pandas=True) for name, values in p_values.items()},
    }
    found = {
        name: planned[name] if name in PLACE else own[name] if name in own else rows[name]
        for name in COLUMNS
    }
    return pa.table(found, schema=schema(COLUMNS))


def _beyond(planned: pa.Table, scored: pa.Table) -> tuple[pa.ListArray, np.ndarray, np.ndarray]:
    """What each of several alleles does alone, their sum, and what they do together beyond it."""
    logfc = scored["logfc"].to_numpy()
    singles = planned["singles"].combine_chunks()
    alone = logfc[singles.values.to_numpy()]
    total = np.add.reduceat(alone, singles.offsets.to_numpy()[:-1]) if len(alone) else alone
    together = logfc[planned["joint"].to_numpy()]
    return pa.ListArray.from_arrays(singles.offsets, pa.array(alone)), total, together - total


def _imbalance(both: pa.Table, scored: pa.Table) -> pa.Table:
    """The rows of `IMBALANCE` of one group."""
    first, second = (both[name].fill_null(NONE).to_numpy() for name in ("whole_1", "whole_2"))
    counts_1, effect_1 = _chromosome(first, second, scored)
    counts_2, effect_2 = _chromosome(second, first, scored)
    own = {"counts_1": counts_1, "counts_2": counts_2, "log_ratio": effect_2 - effect_1}
    own = {name: pa.array(values, from_pandas=True) for name, values in own.items()}
    of = {name: pa.repeat(scored[name][0], len(both)) for name in OF_EXPERIMENT}
    columns = {
        name: own[name] if name in own else of[name] if name in of else both[name]
        for name in IMBALANCE
    }
    return pa.table(columns, schema=schema(IMBALANCE))


def _chromosome(
    whole: np.ndarray, other: np.ndarray, scored: pa.Table
) -> tuple[np.ndarray, np.ndarray]:
    """The counts of a chromosome, and its effect; NaN where it was not scored. One without alleles
    is the reference, which the other one was compared with."""
    # Behind the last row, where `UNSCORED` points to, stands NaN.
    ref, alt, logfc = (
        np.append(scored[name].to_numpy(), np.nan)
        for name in ("ref_counts", "alt_counts", "logfc")
    )
    none = whole == NONE
    effect = np.where(none, np.where(other == UNSCORED, np.nan, 0), logfc[whole])
    return np.where(none, ref[other], alt[whole]), effect
