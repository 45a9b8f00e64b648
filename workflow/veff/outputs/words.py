"""What does an allele do, in one sentence that is no more certain than its numbers?"""

import math
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq

from veff import tables
from veff.names import cut
from veff.outputs import summary

CHANCE = 0.05  # a larger p-value over all experiments is what chance does
SMALL = 0.01  # a smaller change is called none
PUT = {
    "gained": "creates",
    "lost": "destroys",
    "strengthened": "strengthens",
    "weakened": "weakens",
}
BIOSAMPLES = ("top_biosample", "n_biosamples", "n_biosamples_significant")
BIOSAMPLES += ("n_biosamples_within_noise",)
SCHEMA = pa.schema([("allele_id", pa.int64()), ("words", pa.string())])


@dataclass(frozen=True)
class Facts:
    """What is known of an allele, from the fields of that name; None where it is not known.

    `motif`, `verdict`, `attributed` and `effect_kept` are of its first row in `motifs.parquet`.
    """

    chrom: str
    pos: int
    ref: str
    alt: str
    experiment: str
    logfc: float
    folds_agree: int
    n_folds: int
    n_experiments: int
    max_pval: float | None = None
    n_significant: int | None = None
    top_biosample: str | None = None
    n_biosamples: int | None = None
    n_biosamples_significant: int | None = None
    n_biosamples_within_noise: int | None = None
    motif: str | None = None
    verdict: str | None = None
    attributed: bool = False
    effect_kept: bool | None = None


def sentence(facts: Facts) -> str:
    """The sentence. p-values are rounded up, changes down."""
    change = 2**facts.logfc - 1
    agree = 2 * facts.folds_agree > facts.n_folds
    certain = agree and facts.max_pval is not None and facts.max_pval <= CHANCE
    allele = f"{cut(facts.ref, 20)}>{cut(facts.alt, 20)} at {cut(facts.chrom, 20)}:{facts.pos}"
    what = _change(change, agree, certain)
    said = f"{allele} {what} in {cut(facts.experiment)} ({_support(facts)})"
    if facts.verdict in PUT and abs(change) >= SMALL:
        by = "" if facts.attributed else ", by its sequence alone,"
        said += f", where it{by} {PUT[facts.verdict]} the motif {cut(facts.motif)}"
        if facts.effect_kept is False:
            said += " (an effect that rests on more than its neighbourhood)"
    if facts.max_pval is None:
        said += "; no random alleles say how unusual that is"
    elif facts.max_pval > CHANCE:
        said += "; random alleles of its class do as much by chance"
    else:
        said += _elsewhere(facts)
    return f"{said}."


def _change(change: float, agree: bool, certain: bool) -> str:
    if abs(change) < SMALL:
        return "hardly changes the predicted reads"
    size = abs(change)
    amount = f"{1 + change:.3g}-fold" if change >= 1 else f"by about {math.floor(size * 100)} %"
    if not agree:
        return f"changes the predicted reads {amount}, in a direction that folds disagree on,"
    verbs = ("raises", "raise") if change > 0 else ("lowers", "lower")
    return f"{verbs[0] if certain else f'may {verbs[1]}'} the predicted reads {amount}"


def _elsewhere(facts: Facts) -> str:
    """In how many others; in biosamples where several experiments are of one."""
    pooled = facts.n_biosamples is not None and 1 < facts.n_biosamples < facts.n_experiments
    n, of = facts.n_significant, f"{facts.n_experiments:,}"
    if pooled:
        n, of = facts.n_biosamples_significant, f"{facts.n_biosamples:,} biosamples"
    said = "" if n is None or facts.n_experiments == 1 else f"; it is significant in {n:,} of {of}"
    if pooled and facts.n_biosamples_within_noise == 1:
        said += f"; beyond noise, it is largest in {cut(facts.top_biosample)}"
    elif pooled and facts.n_biosamples_within_noise is not None:
        said += (
            f"; {facts.n_biosamples_within_noise:,} biosamples share the first place within noise"
        )
    return said


def _support(facts: Facts) -> str:
    one = facts.n_folds == 1
    folds = "one model" if one else f"{facts.folds_agree} of {facts.n_folds} folds"
    if facts.max_pval is None:
        return f"{folds}, no p-value"
    over = f" over all {facts.n_experiments:,}" if facts.n_experiments > 1 else ""
    return f"{folds}, p ≤ {_up(facts.max_pval)}{over}"


def _up(p: float) -> str:
    """A p-value with one digit, rounded up."""
    unit = 10.0 ** math.floor(math.log10(p))
    return f"{min(math.ceil(round(p / unit, 9)) * unit, 1):.1g}"


def write(out: Path, summary_: Path, scores: Path, motifs: Path | None, n: int) -> None:
    """Write a table of the `n` alleles with the largest effects and their sentences."""
    rows = summary.largest(summary_, n)
    ids = pa.array([row["allele_id"] for row in rows], pa.int64())
    wanted = ds.field("allele_id").isin(ids)
    names = ["allele_id", "experiment", "logfc", "folds_agree", "n_folds"]
    answers: dict[tuple, dict] = {}
    for row in tables.dataset(scores).to_table(columns=names, filter=wanted).to_pylist():
        key = row["allele_id"], row["experiment"]
        if key not in answers or abs(row["logfc"]) > abs(answers[key]["logfc"]):
            answers[key] = row
    first: dict[int, dict] = {}
    if motifs:
        for row in pq.read_table(motifs, filters=wanted).to_pylist():
            first.setdefault(row["allele_id"], row)
    found = []
    for row in rows:
        answer = answers[row["allele_id"], row["max_experiment"]]
        motif = first.get(row["allele_id"], {})
        facts = Facts(
            **{name: row[name] for name in ("chrom", "pos", "ref", "alt", "n_experiments")},
            **{name: answer[name] for name in ("experiment", "logfc", "folds_agree", "n_folds")},
            **{name: row[name] for name in ("max_pval", "n_significant", *BIOSAMPLES)},
            **{name: motif.get(name) for name in ("motif", "verdict", "effect_kept")},
            attributed=motif.get("experiment") is not None,
        )
        found.append({"allele_id": row["allele_id"], "words": sentence(facts)})
    tables.write_parquet(out, [pa.Table.from_pylist(found, SCHEMA)])
