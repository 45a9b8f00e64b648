"""The one shortest and leftmost form of a change: by hand, by brute force and by bcftools."""

import gzip
import random
import shutil
import subprocess

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from project import SHARED
from veff.inputs import alignment, records
from veff.inputs.alignment import Texts
from veff.inputs.preparing import prepare
from veff.inputs.records import Malformed
from veff.inputs.reference import Reference, build


class Plain:
    """A genome of one contig, in memory."""

    def __init__(self, bases):
        self.bases = np.frombuffer(bases.encode(), np.uint8)

    def at(self, contig, start):
        assert (contig == 0).all()
        assert (start >= 0).all()
        return self.bases[start]


def aligned(bases, *alleles):
    """(start, ref, alt) of alleles of a contig in their shortest, leftmost form."""
    start, ref, alt = zip(*alleles, strict=True)
    found = alignment.align(
        Plain(bases),
        np.zeros(len(start), np.int64),
        np.array(start),
        Texts.of(pa.array(ref)),
        Texts.of(pa.array(alt)),
        np.ones(len(start), bool),
    )
    assert [len(one) for one in found.ref.to_pylist()] == found.ref_len.tolist()
    assert [len(one) for one in found.alt.to_pylist()] == found.alt_len.tolist()
    return list(
        zip(found.start.tolist(), found.ref.to_pylist(), found.alt.to_pylist(), strict=True)
    )


def edited(bases, start, ref, alt):
    assert bases[start : start + len(ref)] == ref
    return bases[:start] + alt + bases[start + len(ref) :]


def brute_force(bases, start, ref, alt):
    """Of all changes that give the same sequence, the shortest, and of those the leftmost.

    Lengths of REF and ALT differ by the same in all of them, so one of them decides.
    """
    target = edited(bases, start, ref, alt)
    grown = len(target) - len(bases)
    for n in range(max(0, -grown), len(bases) + 1):
        for place in range(len(bases) - n + 1):
            new = target[place : place + n + grown]
            if bases[:place] + new + bases[place + n :] == target:
                return place, bases[place : place + n], new
    raise AssertionError


@pytest.mark.parametrize(
    ("allele", "expected"),
    [
        ((3, "A", "C"), (3, "A", "C")),
        ((3, "ACG", "A"), (4, "CG", "")),  # nothing to move over
        ((6, "TT", "T"), (6, "T", "")),
        ((9, "T", ""), (6, "T", "")),  # the right end of a run goes to its left end
        ((9, "T", "TTT"), (6, "", "TT")),
        ((14, "CAG", ""), (11, "CAG", "")),  # two repeats of three
        ((12, "AGC", ""), (11, "CAG", "")),  # and between them
        ((13, "", "GCA"), (11, "", "CAG")),
        ((2, "GACG", "GTCG"), (3, "A", "T")),
        ((3, "AC", "GT"), (3, "AC", "GT")),
        ((1, "G", ""), (0, "G", "")),  # as far as the contig's start
        ((2, "", "GGG"), (0, "", "GGG")),
    ],
)
def test_changes_of_a_contig_by_hand(allele, expected):
    #        0         1
    #        0123456789012345678
    bases = "GGGACGTTTTACAGCAGTA"
    edited(bases, *allele)
    assert aligned(bases, allele) == [expected]
    assert brute_force(bases, *allele) == expected


def test_the_empty_allele_of_lists_and_lower_case_are_read():
    assert aligned("GGGACGTTTTACAG", (7, "-", "t"), (8, "t", "-")) == [(6, "", "T"), (6, "T", "")]


repeats = st.text("AC", min_size=1, max_size=12) | st.lists(
    st.sampled_from(["A", "CA", "CAG", "G"]), min_size=1, max_size=6
).map("".join)


@settings(max_examples=300, deadline=None)
@given(repeats, st.data())
def test_any_change_of_a_repeat_becomes_what_brute_force_finds(bases, data):
    alleles = []
    for _ in range(data.draw(st.integers(1, 4))):
        start = data.draw(st.integers(0, len(bases)))
        ref = bases[start : data.draw(st.integers(start, len(bases)))]
        alleles.append((start, ref, data.draw(st.text("AC", max_size=5))))
    expected = [brute_force(bases, *one) for one in alleles if edited(bases, *one) != bases]
    found = aligned(bases, *alleles)
    assert [one for one in found if one[1:] != ("", "")] == expected


def test_a_long_repeat_is_crossed_whole():
    bases = "G" + "CA" * 40_000 + "T"
    alleles = [(80_001 - 2 * n, "CA"[-2:] * n, "") for n in (1, 2, 50)]
    alleles += [(80_001, "", "CACA"), (80_000, "", "AC"), (80_000, "A", "")]
    assert aligned(bases, *alleles) == [
        (1, "CA", ""),
        (1, "CACA", ""),
        (1, "CA" * 50, ""),
        (1, "", "CACA"),
        (1, "", "CA"),
        (80_000, "A", ""),
    ]


# The same on files, through prepare, against bcftools


def scored(vcf, reference, folder):
    """(record, ALT as written) -> what is scored, for the alleles of a file that are scored."""
    outputs = folder / "alleles.parquet", folder / "scoreable.parquet"
    settings = {"chunk_size": 1000, "max_ref_mismatch": 1.0, "malformed_rows": "skip"}
    prepare(vcf, reference, *outputs, max_allele_length=10**6, **settings)
    rows = pq.read_table(outputs[0], filters=[("scored_pos", ">", 0)]).to_pylist()
    return {
        (row["record"], row["alt"]): tuple(row[f"scored_{key}"] for key in ("pos", "ref", "alt"))
        for row in rows
    }


def normalised(vcf, fasta, reference, folder, wanted):
    """The same by ``bcftools norm``, each allele as a record of its own."""
    one_by_one = folder / "one_by_one.vcf"
    header = ["##fileformat=VCFv4.2", *(f"##contig=<ID={name}>" for name in reference.names)]
    lines = [*header, "#CHROM\tPOS\tID\tREF\tALT\tQUAL\tFILTER\tINFO"]
    keys = []
    for row in records.read(vcf, "skip"):
        for alt in () if isinstance(row, Malformed) else row.alts:
            if (row.number, alt) in wanted:
                chrom = reference.names[reference.contig(row.chrom)]
                fields = (chrom, row.pos, len(keys), row.ref, alt, ".", ".", ".")
                lines.append("\t".join(map(str, fields)))
                keys.append((row.number, alt))
    one_by_one.write_text("\n".join(lines) + "\n")
    command = ["bcftools", "norm", "-f", str(fasta), "-c", "w", str(one_by_one)]
    text = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    rows = [line.split("\t")[1:5] for line in text.splitlines() if not line.startswith("#")]
    return {keys[int(key)]: (int(pos), ref.upper(), alt.upper()) for pos, key, ref, alt in rows}


REFERENCES = {
    "b37.chr20.fa.gz": ("b37.chr20", "b37chr20"),
    "hg38.chr20_1-1000000.fa.gz": ("hg38.chr20", "hg38chr20"),
    "hg38.chr1_1-1000000.fa.gz": ("hg38.chr1.",),
    "vg_z.b37_chr20_1000001-2000000.fa.gz": ("vg_z",),
}
REAL = [
    (path, genome)
    for folder in ("variants", "lists", "nasty")
    for path in sorted((SHARED / folder).glob("*.[vb]c[fg]*"))
    if path.suffix != ".csi"
    for genome, names in REFERENCES.items()
    if any(name in path.name for name in names)
]
needs_bcftools = pytest.mark.skipif(shutil.which("bcftools") is None, reason="needs bcftools")


@needs_bcftools
@pytest.mark.parametrize("seed", range(3))
def test_indels_at_repeats_are_scored_where_bcftools_norm_puts_them(tmp_path, seed):
    rng = random.Random(seed)
    units = ["A", "C", "AC", "CAG", "ACGT", "G", "TTA"]
    unit = rng.choice(units)  # the contig begins and ends with repeats
    bases = "".join(rng.choice(units) * rng.choice([1, 1, 2, 9]) for _ in range(400))
    bases = unit * 6 + bases + unit * 6
    fasta, vcf = tmp_path / "genome.fa", tmp_path / "indels.vcf"
    fasta.write_text(f">1\n{bases}\n")
    rows = []
    for _ in range(2000):
        start = rng.choice([rng.randrange(len(bases)), rng.randrange(8), len(bases) - 9])
        ref = bases[start : start + rng.choice([1, 1, 2, 3, 4, 7, 20])]
        alt = rng.choice(
            [ref[0], ref[0] + "".join(rng.choices("ACGT", k=3)), ref + ref[1:], ref[1:]]
        )
        if alt and alt != ref:
            rows.append(f"1\t{start + 1}\t.\t{ref}\t{alt}\t.\t.\t.\n")
    vcf.write_text(
        "##fileformat=VCFv4.2\n#CHROM\tPOS\tID\tREF\tALT\tQUAL\tFILTER\tINFO\n" + "".join(rows)
    )
    build(fasta, tmp_path / "reference")
    reference = Reference.open(tmp_path / "reference")
    ours = scored(vcf, reference, tmp_path)
    assert len(ours) == len(rows)
    assert ours == normalised(vcf, fasta, reference, tmp_path, ours)


@pytest.fixture(scope="module")
def opened(tmp_path_factory):
    found = {}

    def open_reference(name):
        if name not in found:
            folder = tmp_path_factory.mktemp("reference")
            fasta = folder / "genome.fa"
            fasta.write_bytes(gzip.decompress((SHARED / "reference" / name).read_bytes()))
            build(fasta, folder)
            found[name] = fasta, Reference.open(folder)
        return found[name]

    return open_reference


@needs_bcftools
@pytest.mark.usefixtures("shared_data")
@pytest.mark.parametrize(("vcf", "genome"), REAL, ids=lambda path: getattr(path, "name", ""))
def test_indels_of_real_files_are_scored_where_bcftools_norm_puts_them(
    vcf, genome, opened, tmp_path
):
    fasta, reference = opened(genome)
    ours = scored(vcf, reference, tmp_path)
    indels = {key: one for key, one in ours.items() if len(one[1]) > 1 or len(one[2]) > 1}
    if not indels:
        pytest.skip("no indels")
    assert indels == normalised(vcf, fasta, reference, tmp_path, indels)
    print(f"{len(indels)} of {len(ours)} alleles")
