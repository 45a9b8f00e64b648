"""In which biosamples does an allele act most, and how many share the first place?"""

import tempfile
from collections.abc import Iterator
from itertools import product
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import scipy  # which imports its statistics, for a second, when these are first asked for

from veff import tables
from veff.inputs import classes
from veff.models.biosamples import Biosample
from veff.scoring import columns
from veff.scoring.adjusted import ALPHA, q_value
from veff.scoring.columns import Column
from veff.scoring.null import Nulls
from veff.scoring.pooling import Pool, speaking

CHANCE = 0.05  # that the truly first biosample is not among those that share the first place
ROWS = 1 << 20  # alleles x biosamples in memory at once

# What is read of each experiment's answers.
NEEDED = ["allele_id", "experiment", "group", "logfc", "logfc_sd", "n_folds"]
COLUMNS = {
    "allele_id": columns.ALLELE["allele_id"],
    "biosample": Column(
        pa.string(), "as the model sheet names it; without a name, the experiment's own"
    ),
    "organ": Column(pa.string(), "of the biosample, as the model sheet has it"),
    "life_stage": Column(pa.string(), "of the biosample, as the model sheet has it"),
    "n_experiments": Column(pa.int32(), "of the biosample", "experiments"),
    "assays": Column(
        pa.string(),
        "that these experiments are of, as the model sheet has it, with commas between",
    ),
    "pooled_logfc": Column(
        pa.float64(), "mean of the assays, of each the mean of its experiments' logfc", "log2"
    ),
    "pooled_pval": Column(
        pa.float64(),
        "how often a random allele of the class has as large a sum of the experiments' signed "
        "z-values; missing without nulls",
        "0 to 1",
        "(1 + #{abs(Z of a null allele) >= abs(Z)}) / (1 + n)",
    ),
    "pooled_se": Column(
        pa.float64(),
        "standard error of pooled_logfc, from replicates and folds; missing where there is one "
        "fold and one experiment of an assay",
        "log2",
    ),
    "max_experiment": Column(pa.string(), "of the biosample, with the largest absolute logfc"),
    "max_logfc": Column(pa.float64(), "logfc in that experiment", "log2"),
    "max_pval": Column(
        pa.float64(),
        "how often the largest absolute logfc of a random allele of the class over the "
        "biosample's experiments is as large; missing without nulls",
        "0 to 1",
        "(1 + #{largest of a null allele >= observed}) / (1 + n)",
    ),
    "significant": Column(
        pa.bool_(),
        "pooled_pval passes Benjamini-Hochberg at fdr over the alleles of this run, or, without "
        f"fdr, is below {ALPHA}; missing without nulls",
    ),
    "rank": Column(pa.int32(), "1 + the number of biosamples with a larger absolute pooled_logfc"),
    "within_noise_of_best": Column(
        pa.bool_(),
        "shares the first place: pooled_logfc is no more smaller than that of rank 1 than noise "
        f"explains, so that with {1 - CHANCE:.0%} confidence the truly first is among these; "
        "missing where a pooled_se is",
        "",
        f"abs(x_1) - abs(x) <= t(1 - {CHANCE} / (n - 1)) sqrt(se^2 + se_1^2)",
    ),
}
SUMMARY = {
    "top_biosample": Column(
        pa.string(), "the biosample with the largest absolute pooled_logfc; it may share its place"
    ),
    "n_biosamples": Column(pa.int32(), "in which the allele was scored", "biosamples"),
    "n_biosamples_significant": Column(
        pa.int32(), "in which it is significant; missing without nulls", "biosamples"
    ),
    "n_biosamples_within_noise": Column(
        pa.int32(),
        "that share the first place, top_biosample among them; missing where that of one is not "
        "known",
        "biosamples",
    ),
    "tau": Column(
        pa.float64(),
        "specificity of absolute pooled_logfc (Yanai 2005): 0 all alike, 1 in one biosample alone",
        "0 to 1",
        "sum(1 - x / max(x)) / (n - 1)",
    ),
    "specificity_entropy": Column(
        pa.float64(),
        "Shannon entropy of absolute pooled_logfc over biosamples (Schug 2005): 0 in one alone, "
        "log2(n) all alike",
        "bits",
        "-sum(p log2(p)), p = x / sum(x)",
    ),
}
SCHEMA = columns.schema(COLUMNS)
OF_ALLELES = columns.schema(SUMMARY)
DISTINCT = "pooled_logfc", "pooled_se", "max_logfc"
# What is known of an allele in a biosample before it is compared with the others.
POOLED = {
    **dict.fromkeys(("pooled_logfc", "pooled_pval", "pooled_se", "max_logfc", "max_pval"), "f8"),
    **dict.fromkeys(("max_experiment", "freedom"), "i4"),
    "significant": "?",
}


def write(
    out: Path,
    schema: pa.Schema,
    samples: list[Biosample],
    answers: Iterator[pa.Table],
    alleles: pa.Table,
    *,
    nulls: Nulls | None,
    fdr: float | None,
) -> pa.Table:
    """Write a row an allele and biosample, by allele and rank; the columns of `SUMMARY`, a row
    an allele, are returned.

    `answers` are the rows of one experiment after the other, of `NEEDED` and by allele, in the
    order in which `samples` have them. `alleles` has a row for each `allele_id`, from 0 on;
    `schema` is `SCHEMA`, with metadata. What is known of one biosample is put aside on disk, so
    that memory holds one experiment at a time, and then `ROWS` of all biosamples.
    """
    ids = alleles.filter(pc.is_valid(alleles["scored_as"]))["allele_id"].to_numpy()
    distinct = (alleles["status"].to_numpy(zero_copy_only=False) == "ok")[ids]
    kinds = classes.numbers(alleles)[ids]
    step = max(1, ROWS // len(samples))
    of_alleles = [OF_ALLELES.empty_table()]
    with (
        tempfile.TemporaryFile(dir=out.parent) as aside,
        tables.parquet(out, schema, False, DISTINCT) as put,
    ):
        for sample in samples if len(ids) else ():
            pooled = _pooled(sample, answers, kinds, distinct, nulls, fdr)
            for name, kind in POOLED.items():
                pooled[name].astype(kind, copy=False).tofile(aside)
        for first in range(0, len(ids), step):
            block = ids[first : first + step]
            rows = {name: np.empty((len(samples), len(block)), POOLED[name]) for name in POOLED}
            begin = 0  # of what the next array is cut from
            for i, name in product(range(len(samples)), POOLED):
                size = rows[name].itemsize
                aside.seek(begin + first * size)
                rows[name][i] = np.fromfile(aside, POOLED[name], len(block))
                begin += len(ids) * size
            compared, about = _compared(samples, block, rows, judged=nulls is not None)
            put(compared.cast(schema))
            of_alleles.append(about)
    place = np.full(len(alleles), -1)
    place[ids] = np.arange(len(ids))
    return pa.concat_tables(of_alleles).take(pa.array(place, mask=place < 0))


def _pooled(
    sample: Biosample,
    answers: Iterator[pa.Table],
    kinds: np.ndarray,
    distinct: np.ndarray,
    nulls: Nulls | None,
    fdr: float | None,
) -> dict[str, np.ndarray]:
    """What the biosample's experiments, the next of the answers, say of each allele: `POOLED`."""
    pool = Pool(kinds)
    parts = zip(sample.experiments, sample.assays, sample.weights, strict=True)
    for name, assay, weight in parts:
        rows = speaking(next(answers))
        pool.add(rows, assay, weight)
        for kind in nulls.classes if nulls is not None else ():
            key = name, kind
            pool.judge(rows, weight, nulls.identity(key), nulls[key])
    p = pool.p_value()
    by_alpha = nulls is None or fdr is None
    return {
        "pooled_logfc": pool.logfc,
        "pooled_pval": p,
        "pooled_se": pool.noise(),
        "max_logfc": pool.max_logfc,
        "max_pval": pool.max_p_value(),
        "max_experiment": pool.max_experiment,
        "freedom": pool.freedom(),
        "significant": p < ALPHA if by_alpha else q_value(p, distinct) <= fdr,
    }


def _compared(
    samples: list[Biosample], ids: np.ndarray, rows: dict[str, np.ndarray], judged: bool
) -> tuple[pa.Table, pa.Table]:
    """The rows of alleles, by rank, and what they say of each allele (`SUMMARY`).

    `rows` are `POOLED`, each [biosamples, alleles].
    """
    n = len(samples)
    order = np.argsort(-np.abs(rows["pooled_logfc"]), axis=0, kind="stable")
    place = order * len(ids) + np.arange(len(ids))
    rows = {name: values.take(place) for name, values in rows.items()}
    size = np.abs(rows["pooled_logfc"])
    # Of equal sizes the first has the rank of all.
    new = np.vstack([np.ones((1, len(ids)), bool), size[1:] < size[:-1]])
    rank = np.maximum.accumulate(np.where(new, np.arange(1, n + 1)[:, None], 0))
    by_noise = _by_noise(rows["pooled_se"], rows["freedom"])
    within, unknown = size[0] - size <= by_noise, np.isnan(by_noise)
    within[0], unknown[0] = True, False

    def by_allele(values: np.ndarray, kind=None, mask: np.ndarray | None = None) -> pa.Array:
        return pa.array(values.T.ravel(), kind, mask=None if mask is None else mask.T.ravel())

    ranked = by_allele(order)

    def told(values: list, kind: pa.DataType, which: pa.Array = ranked) -> pa.Array:
        return pa.array(values, kind).take(which)

    unjudged = np.full(order.shape, not judged)
    first = np.cumsum([0, *(len(one.experiments) for one in samples)])[:-1]
    experiments = [name for one in samples for name in one.experiments]
    values = {
        "allele_id": np.repeat(ids, n),
        "biosample": told([one.name for one in samples], pa.string()),
        "organ": told([one.organ for one in samples], pa.string()),
        "life_stage": told([one.life_stage for one in samples], pa.string()),
        "n_experiments": told([len(one.experiments) for one in samples], pa.int32()),
        "assays": told([_assays(one) for one in samples], pa.string()),
        "pooled_logfc": by_allele(rows["pooled_logfc"]),
        "pooled_pval": by_allele(rows["pooled_pval"], mask=unjudged),
        "pooled_se": by_allele(rows["pooled_se"], mask=np.isnan(rows["pooled_se"])),
        "max_experiment": told(
            experiments, pa.string(), by_allele(first[order] + rows["max_experiment"])
        ),
        "max_logfc": by_allele(rows["max_logfc"]),
        "max_pval": by_allele(rows["max_pval"], mask=unjudged),
        "significant": by_allele(rows["significant"], mask=unjudged),
        "rank": by_allele(rank, pa.int32()),
        "within_noise_of_best": by_allele(within, mask=unknown),
    }
    about = {
        "top_biosample": values["biosample"].take(np.arange(len(ids)) * n),
        "n_biosamples": np.full(len(ids), n, np.int32),
        "n_biosamples_significant": _count(rows["significant"], unjudged),
        "n_biosamples_within_noise": _count(within, unknown),
        "tau": _known(tau(size)),
        "specificity_entropy": _known(scipy.stats.entropy(size, base=2)),
    }
    return pa.table(values, schema=SCHEMA), pa.table(about, schema=OF_ALLELES)


def _by_noise(se: np.ndarray, freedom: np.ndarray) -> np.ndarray:
    """How much smaller than the first the others can be by noise, of [biosamples, alleles].

    The first looks larger than it is, the more so the more there are to be first: what the others
    fall short by is compared with Student's t, one-sided, at `CHANCE` over their number. So the
    truly first is among those within (selection of a subset, Gupta 1965; degrees of freedom by
    Welch 1947).
    """
    variance = se**2
    of_difference = variance + variance[0]
    with np.errstate(divide="ignore", invalid="ignore"):
        welch = of_difference**2 / (variance**2 / freedom + variance[0] ** 2 / freedom[0])
    whole = np.nan_to_num(welch, nan=1).astype(int).clip(1)
    level = CHANCE / max(len(se) - 1, 1)
    return scipy.stats.t.isf(level, np.arange(whole.max() + 1))[whole] * np.sqrt(of_difference)


def tau(size: np.ndarray) -> np.ndarray:
    """Yanai's tau of sizes [biosamples, alleles]: sum(1 - x / max(x)) / (n - 1); NaN for one
    biosample, or where all sizes are 0."""
    with np.errstate(invalid="ignore"):
        return (1 - size / size.max(0)).sum(0) / (len(size) - 1 or np.nan)


def _assays(sample: Biosample) -> str | None:
    return ",".join(dict.fromkeys(filter(None, sample.assays))) or None


def _known(values: np.ndarray) -> pa.Array:
    return pa.array(values, mask=np.isnan(values))


def _count(which: np.ndarray, unknown: np.ndarray) -> pa.Array:
    """How many of each column, missing where any is not known."""
    return pa.array(which.sum(0), pa.int32(), mask=unknown.any(0))
