"""Phased genotypes on a small genome, planned, scored and put together as a run does."""

import random
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pysam
import pysam.bcftools

from tiny import GEOMETRY, Tiny
from veff import tables
from veff.haplotypes import collecting, planning
from veff.inputs import preparing
from veff.inputs.reference import Reference
from veff.models.architecture import Geometry
from veff.scoring import score
from veff.scoring.edits import VIRTUAL, Edit
from veff.scoring.how import How

HEADER = (
    "##fileformat=VCFv4.2\n"
    '##FORMAT=<ID=GT,Number=1,Type=String,Description="Genotype">\n'
    '##FORMAT=<ID=PS,Number=1,Type=Integer,Description="Phase set">\n'
    "##contig=<ID=one>\n##contig=<ID=two>\n"
    "#CHROM\tPOS\tID\tREF\tALT\tQUAL\tFILTER\tINFO\tFORMAT\t"
)


@dataclass(frozen=True)
class Planned:
    """What was prepared and planned; the plan's tables are read when they are asked for."""

    reference: Reference
    vcf: Path
    folder: Path
    summary: dict

    def table(self, name: str) -> pa.Table:
        return pq.read_table(self.folder / name)

    def rows(self, name: str) -> list[dict]:
        return self.table(name).to_pylist()

    def scored(self, *experiments, nulls=None) -> tuple[pa.Table, pa.Table, pa.Table]:
        """The haplotypes, the imbalance, and the scores of the alleles alone."""
        answers, scores = (
            [one for one, _ in score.score(table, self.reference, experiments, how, batch_size=8)]
            for how in [How(device="cpu")]
            for table in (self.table("virtual"), self.table("scoreable"))
        )
        tables.write_parquet(self.folder / "part", answers)
        names = ("haplotypes", "imbalance", "of_alleles")
        out = {name: self.folder / f"{name}.parquet" for name in names}
        collecting.write(
            self.folder / "planned",
            self.folder / "sampled",
            self.folder / "alleles",
            [[self.folder / "part"]],
            [one.name for one in experiments],
            nulls=nulls,
            shown=self.folder / "shown.json",
            **out,
        )
        haplotypes, imbalance, _ = map(pq.read_table, out.values())
        return haplotypes, imbalance, pa.concat_tables(scores)


def plan(
    tiny: Tiny,
    folder: Path,
    rows: list[tuple],
    names: list[str] | None = None,
    samples: str | list[str] = "all",
    **how,
) -> Planned:
    """Of rows (contig, 1-based pos, ref, alt, genotypes), whose genotypes may be 'GT:PS'."""
    folder.mkdir(exist_ok=True)
    vcf = write_vcf(folder / "phased.vcf", rows, names)
    return planned(tiny.reference, vcf, folder, samples, **how)


def write_vcf(path: Path, rows: list[tuple], names: list[str] | None = None) -> Path:
    """Of rows as `plan` takes them."""
    names = names or [f"s{i}" for i in range(len(rows[0][4]))]
    text = [HEADER + "\t".join(names)]
    for contig, pos, ref, alt, cells in rows:
        form = "GT:PS" if any(":" in cell for cell in cells) else "GT"
        text.append("\t".join([contig, str(pos), ".", ref, alt, ".", ".", ".", form, *cells]))
    path.write_text("\n".join(text) + "\n")
    return path


def planned(
    reference: Reference,
    vcf: Path,
    folder: Path,
    samples: str | list[str],
    geometry: Geometry = GEOMETRY,
    max_haplotypes: int = 64,
) -> Planned:
    """Of a file."""
    alleles, scoreable = folder / "alleles", folder / "scoreable"
    preparing.prepare(vcf, reference, alleles, scoreable, chunk_size=1000, max_allele_length=50)
    out = (folder / name for name in ("virtual", "planned", "sampled", "phasing"))
    summary = planning.plan(
        vcf,
        alleles,
        scoreable,
        reference,
        samples=samples,
        max_haplotypes=max_haplotypes,
        span=geometry.output_length // 2,
        input_length=geometry.input_length,
        chunk_size=1000,
        out=planning.Out(*out),
    )
    return Planned(reference, vcf, folder, summary)


def consensus(fasta: Path, vcf: Path, sample: str, number: int) -> str:
    """Chromosome one of a sample, by bcftools."""
    packed = f"{vcf}.gz"
    pysam.tabix_compress(str(vcf), packed, force=True)
    pysam.tabix_index(packed, preset="vcf", force=True)
    text = pysam.bcftools.consensus("-H", str(number), "-s", sample, "-f", str(fasta), packed)
    return "".join(text.split(">one")[1].split(">")[0].split())


def one_by_one(alleles: pa.Table) -> pa.Table:
    """Alleles of a prepared table as virtual ones."""
    rows = [
        {
            "allele_id": row["allele_id"],
            "contig": row["contig"],
            "centre": row["start"],
            "background": [],
            "edits": [{key: row[key] for key in Edit._fields}],
        }
        for row in alleles.to_pylist()
    ]
    return pa.Table.from_pylist(rows, VIRTUAL)


def alleles(tiny: Tiny, seed: int, first: int = 400, n: int = 25) -> list[tuple]:
    """SNVs, indels and what is both, some across others, as (contig, pos, ref, alt)."""
    rng = random.Random(seed)
    bases, pos, rows = tiny.contigs["one"], first, []
    for _ in range(n):
        pos += rng.choice([1, 2, 3, 7, 20, 90])
        ref = bases[pos - 1 : pos - 1 + rng.choice([1, 1, 1, 2, 5, 9])]
        alt = "".join(rng.choices("ACGT", k=rng.choice([1, 1, 1, 3, 8])))
        if len(ref) != len(alt) and rng.random() < 0.8:
            alt = ref[0] + alt[1:]
        if ref != alt:
            rows.append(("one", pos, ref, alt))
    return rows


def with_genotypes(rows: list[tuple], seed: int, samples: int, unphased: float = 0) -> list[tuple]:
    rng = random.Random(seed)

    def cell() -> str:
        mark = "/" if rng.random() < unphased else "|"
        return mark.join(rng.choices("01", (0.6, 0.4), k=2))

    return [(*row, [cell() for _ in range(samples)]) for row in rows]
