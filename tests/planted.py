"""A run and a table of measured effects, of which every count is known.

The predictions are drawn beside the measured effects, with a planted correlation; the table is
written as a study might: with the reference allele as effect allele, on the other strand, with
rows twice, without values, or about alleles that the run does not have.
"""

from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from veff import tables
from veff.inputs import preparing, reference
from veff.scoring import columns

COMPLEMENT = str.maketrans("ACGT", "TGCA")
BASES = np.array(list("ACGT"))
R = 0.6
SHARES = {"flipped": 0.20, "strand_flipped": 0.05, "palindromic": 0.15}
HEADINGS = "chromosome\tposition\teffect_allele\tother_allele\tbeta\tlabel\teaf\tgnomad\n"
LOST = {"no_value": 0.02, "not_in_run": 0.03, "duplicate": 0.02}


@dataclass(frozen=True)
class Planted:
    """The run's tables and folder of the reference, the table, and its counts."""

    reference: reference.Reference
    alleles: Path
    scores: Path
    folds: Path
    table: Path
    counts: dict[str, int]


def plant(folder: Path, n: int, length: int = 2_000_000, spacing: int = 40) -> Planted:
    """`n` rows at most, of SNVs that stand `spacing` bp apart in two contigs of `length` bp."""
    rng = np.random.default_rng(5)
    genome = {name: rng.integers(4, size=length) for name in ("chr1", "chr2")}
    (folder / "ref.fa").write_text(
        "".join(f">{name}\n{''.join(BASES[codes])}\n" for name, codes in genome.items())
    )
    reference.build(folder / "ref.fa", folder)
    site = np.arange(n)
    contig, pos = np.divmod(site * spacing + 20, length)
    assert contig.max() < 2
    ref = np.where(contig == 0, genome["chr1"][pos], genome["chr2"][pos])
    palindromic = rng.random(n) < SHARES["palindromic"]
    # The complement of a base is 3 less it; of the two others one is drawn.
    other = (ref + np.where(rng.random(n) < 0.5, 1, 2)) % 4
    other = np.where(other == 3 - ref, (ref + 3) % 4, other)
    alt = np.where(palindromic, 3 - ref, other)
    fate = rng.choice(
        ["", "no_value", "not_in_run", "duplicate"], n, p=[1 - sum(LOST.values()), *LOST.values()]
    )
    listed = fate != "not_in_run"
    names = np.array(["chr1", "chr2"])[contig]
    columns_of = (names, pos, BASES[ref], BASES[alt])
    lines = [
        f"{c}\t{p + 1}\t{r}\t{a}\n"
        for c, p, r, a in zip(*(one[listed] for one in columns_of), strict=True)
    ]
    (folder / "variants.tsv").write_text("chrom\tpos\tref\talt\n" + "".join(lines))
    opened = reference.Reference.open(folder)
    alleles = folder / "alleles.parquet"
    preparing.prepare(
        folder / "variants.tsv", opened, alleles, folder / "scoreable.parquet", chunk_size=n
    )
    predicted, measured = rng.multivariate_normal([0, 0], [[1, R], [R, 1]], n).T
    write_scores(folder, predicted[listed])

    flipped = rng.random(n) < SHARES["flipped"]
    strand = rng.random(n) < SHARES["strand_flipped"]
    # Of half of the palindromic SNVs the frequencies say which strand is meant.
    told = palindromic & (rng.random(n) < 0.5)
    alt_frequency = np.where(told, np.where(rng.random(n) < 0.5, 0.2, 0.8), 0.5)
    effect_allele, other_allele = np.where(flipped, (ref, alt), (alt, ref))
    letters = [BASES[np.where(strand, 3 - one, one)] for one in (effect_allele, other_allele)]
    beta = np.where(flipped, -measured, measured)
    frequency = np.where(flipped, 1 - alt_frequency, alt_frequency)
    rows, used = [], Counter()
    for i in range(n):
        value = "NA" if fate[i] == "no_value" else f"{beta[i]:.6f}"
        row = (
            f"{names[i]}\t{pos[i] + 1}\t{letters[0][i]}\t{letters[1][i]}\t{value}\t"
            f"{int(abs(measured[i]) > 1) if value != 'NA' else 'NA'}\t{frequency[i]}\t"
            f"{alt_frequency[i]}\n"
        )
        rows += [row] * (2 if fate[i] == "duplicate" else 1)
        if fate[i] in ("", "duplicate"):
            undirected = palindromic[i] and not told[i]
            used["rows_undirected" if undirected else "rows_aligned"] += 1
            used["rows_palindromic"] += int(palindromic[i])
            used["rows_flipped"] += int(flipped[i] and not undirected)
            used["rows_strand_flipped"] += int(strand[i] and not undirected)
    lost = {f"rows_lost_{name}": int((fate == name).sum()) for name in sorted(LOST)}
    (folder / "truth.tsv").write_text(HEADINGS + "".join(rows))
    counts = {"rows": len(rows), **used, "rows_lost": sum(lost.values()), **lost}
    return Planted(
        opened,
        alleles,
        folder / "scores.parquet",
        folder / "folds.parquet",
        folder / "truth.tsv",
        counts,
    )


def write_scores(folder: Path, logfc: np.ndarray) -> None:
    """The scores of an experiment of one fold: this logfc, and others of no use."""
    n = len(logfc)
    none = np.random.default_rng(6).normal(size=n)
    table = pa.table(
        {
            "allele_id": np.arange(n),
            "experiment": pa.repeat("e", n),
            "group": pa.repeat(pa.scalar(0, pa.int32()), n),
            "fold": pa.repeat(pa.scalar(0, pa.int32()), n),
            **dict.fromkeys(columns.SCORES, none),
            "logfc": logfc,
        }
    )
    tables.write_parquet(folder / "scores.parquet", [table])
    pq.write_table(table, folder / "folds.parquet")
