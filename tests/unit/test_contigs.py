"""Which contig a name means: the most specific reading, and REF where the name leaves it open.

The genomes are invented, named as UCSC's hg19, its later release, b37 and hg38 are; their
mitochondria differ, as those of hg19 and of the others do, by bases that are missing.
"""

import random

import pyarrow.parquet as pq
import pytest

from veff.errors import InputError
from veff.inputs.assemblies import ASSEMBLIES
from veff.inputs.contigs import HG19_CHRM, Contigs
from veff.inputs.preparing import prepare
from veff.inputs.reference import Reference, build

BASES = random.Random(8)
ONE = "".join(BASES.choices("ACGT", k=2000))
RCRS = "".join(BASES.choices("ACGT", k=16_569))
OLD = RCRS[:300] + "C" + RCRS[300:9000] + "TA" + RCRS[9000:16_568]  # NC_001807 is so much longer
assert len(OLD) == HG19_CHRM

GENOMES = {
    "hg19": {"chr1": ONE, "chrM": OLD},
    "later hg19": {"chr1": ONE, "chrM": OLD, "chrMT": RCRS},
    "b37": {"1": ONE, "MT": RCRS},
    "hg38": {"chr1": ONE, "chrM": RCRS},
    "both names of one": {"1": ONE, "M": RCRS, "chrM": OLD},
    "a short one": {"chr1": ONE, "chrM": OLD[:-9]},
}


@pytest.fixture(scope="module")
def opened(tmp_path_factory):
    def open_reference(contigs, aliases=None):
        folder = tmp_path_factory.mktemp("reference")
        fasta = folder / "genome.fa"
        fasta.write_text("".join(f">{name}\n{bases}\n" for name, bases in contigs.items()))
        build(fasta, folder)
        if aliases is not None:
            (folder / "aliases.tsv").write_text(aliases)
        return Reference.open(folder, None if aliases is None else folder / "aliases.tsv")

    return open_reference


def snvs(chrom, bases, positions):
    return [
        (chrom, pos, bases[pos - 1], "CGTA"["ACGT".index(bases[pos - 1])]) for pos in positions
    ]


def contigs_of(genome, rows, folder):
    """The rows of alleles.parquet of SNVs on `rows`, and one on contig 1."""
    rows = [("1", 7, ONE[6], "CGTA"["ACGT".index(ONE[6])]), *rows]
    vcf = folder / "few.vcf"
    vcf.write_text(
        "##fileformat=VCFv4.2\n#CHROM\tPOS\tID\tREF\tALT\tQUAL\tFILTER\tINFO\n"
        + "".join(f"{c}\t{p}\t.\t{r}\t{a}\t.\t.\t.\n" for c, p, r, a in rows)
    )
    prepare(vcf, genome, folder / "alleles", folder / "scoreable", chunk_size=9)
    return pq.read_table(folder / "alleles").to_pylist()[1:]


SOME = [73, 263, 750, 1438, 2706, 4769, 7028, 8860, 9477, 11_719, 12_705, 14_766, 15_326, 16_519]


@pytest.mark.parametrize(
    ("genome", "name", "sequence", "contig"),
    [
        ("b37", "MT", RCRS, "MT"),
        ("b37", "chrM", RCRS, "MT"),
        ("b37", "M", RCRS, "MT"),
        ("b37", "chrMT", RCRS, "MT"),
        ("b37", "26", RCRS, "MT"),
        ("hg38", "MT", RCRS, "chrM"),
        ("hg38", "chrMT", RCRS, "chrM"),
        ("hg38", "M", RCRS, "chrM"),
        ("hg38", "26", RCRS, "chrM"),
        ("hg19", "M", OLD, "chrM"),
        ("later hg19", "MT", RCRS, "chrMT"),
        ("later hg19", "chrMT", RCRS, "chrMT"),
        ("later hg19", "chrM", OLD, "chrM"),
        ("later hg19", "M", OLD, "chrM"),
        ("later hg19", "26", RCRS, "chrMT"),
        ("both names of one", "M", RCRS, "M"),
        ("both names of one", "chrM", OLD, "chrM"),
    ],
)
def test_each_mitochondrion_is_scored_on_its_own_sequence(
    opened, tmp_path, genome, name, sequence, contig
):
    rows = contigs_of(opened(GENOMES[genome]), snvs(name, sequence, SOME), tmp_path)
    assert {(row["status"], row["contig"]) for row in rows} == {("ok", contig)}
    assert {row["chrom"] for row in rows} == {name}


@pytest.mark.parametrize(
    ("genome", "name", "sequence"),
    [
        ("hg19", "MT", RCRS),
        ("hg19", "26", RCRS),
        ("b37", "chrM", OLD),
        ("a short one", "MT", RCRS),
    ],
)
def test_no_allele_is_scored_on_another_mitochondrion(opened, tmp_path, genome, name, sequence):
    rows = contigs_of(opened(GENOMES[genome]), snvs(name, sequence, SOME), tmp_path)
    assert {(row["status"], row["contig"]) for row in rows} == {("unknown_contig", None)}
    assert name in rows[0]["reason"]


def test_of_two_mitochondria_it_is_the_one_that_ref_fits(opened, tmp_path):
    genome = opened({"1": ONE, "M": RCRS, "chrM": OLD[:-1] + "A" * 9})
    for sequence, contig in ((RCRS, "M"), (OLD, "chrM")):
        rows = contigs_of(genome, snvs("MT", sequence, SOME), tmp_path)
        assert {row["contig"] for row in rows} == {contig}


@pytest.mark.parametrize(
    "rows",
    [snvs("MT", RCRS, [73, 263]), snvs("MT", RCRS[::-1], SOME)],
    ids=["fits both", "fits neither"],
)
def test_where_ref_does_not_settle_it_the_run_stops_and_names_both(opened, tmp_path, rows):
    genome = opened({"1": ONE, "M": RCRS, "chrM": RCRS[:300] + OLD[300:] + "A"})
    with pytest.raises(InputError, match=r"few\.vcf: contig 'MT' may be 'M' or 'chrM'") as error:
        contigs_of(genome, rows, tmp_path)
    assert "contig_aliases" in str(error.value)
    assert "\n" not in str(error.value)
    assert not (tmp_path / "alleles").exists()


def test_an_alias_settles_what_ref_does_not(opened, tmp_path):
    genome = opened({"1": ONE, "M": RCRS, "chrM": RCRS}, "MT\tM\n")
    rows = contigs_of(genome, snvs("MT", RCRS, SOME), tmp_path)
    assert {row["contig"] for row in rows} == {"M"}


@pytest.mark.parametrize(("aliases", "contig"), [("chrM\tMT\n", "chrM"), ("chrMT\tMT\n", "chrMT")])
def test_an_alias_overrides_every_convention(opened, tmp_path, aliases, contig):
    genome = opened({"chr1": ONE, "chrM": RCRS, "chrMT": RCRS}, aliases)
    rows = contigs_of(genome, snvs("MT", RCRS, SOME), tmp_path)
    assert {row["contig"] for row in rows} == {contig}


HUMAN = ["chr1", "chrX", "chrY", "chrM"]


@pytest.mark.parametrize(
    ("names", "name", "contig"),
    [
        (HUMAN, "23", "chrX"),
        (HUMAN, "chr23", "chrX"),
        (HUMAN, "24", "chrY"),
        (HUMAN, "25", "chrX"),
        (HUMAN, "XY", "chrX"),
        (HUMAN, "26", "chrM"),
        (HUMAN, "X", "chrX"),
        (["X"], "chrX", "X"),
        (["X"], "23", "X"),
        (["23", "X"], "23", "23"),  # a fish has 25 chromosomes
        (["chr23", "chrX"], "23", "chr23"),
        (HUMAN, "0", None),
        (HUMAN, "22", None),
        (["chr1"], "23", None),
    ],
)
def test_codes_of_plink_mean_contigs_that_are_there(names, name, contig):
    found = Contigs(names, [100] * len(names)).meaning(name).contigs
    assert [names[i] for i in found] == ([contig] if contig else [])


@pytest.mark.parametrize(
    ("accession", "name", "assembly"),
    [
        ("NC_000001.10", "chr1", "hg19"),
        ("NC_000014.8", "14", "hg19"),
        ("NC_000024.9", "chrY", "hg19"),
        ("NC_000001.11", "1", "hg38"),
        ("NC_000023.11", "chrX", "hg38"),
        ("NC_060948.1", "chrY", "T2T-CHM13"),
        ("NC_000068.7", "chr2", "mm10"),
        ("NC_000085.6", "chr19", "mm10"),
        ("NC_000086.7", "chrX", "mm10"),
        ("NC_000067.7", "1", "mm39"),
        ("NC_000068.8", "chr2", "mm39"),
        ("NC_000087.8", "chrY", "mm39"),
    ],
)
def test_an_accession_means_the_chromosome_of_its_assembly_alone(accession, name, assembly):
    bare = name.removeprefix("chr")
    for which, lengths in ASSEMBLIES.items():
        contigs = Contigs([name, "other"], [lengths.get(bare, 5), 7])
        assert contigs.meaning(accession) == ((0,) if which == assembly else (), True)


@pytest.mark.parametrize(
    ("accession", "length"),
    [("NC_012920.1", 16569), ("NC_001807.4", 16571), ("NC_005089.1", 16299)],
)
def test_an_accession_of_a_mitochondrion_means_the_one_of_its_length(accession, length):
    for name in ("M", "MT", "chrM", "chrMT"):
        contigs = Contigs([name], [length])
        assert contigs.meaning(accession).contigs == (0,)
    assert Contigs(["chrM", "chrMT"], [length + 2, length]).meaning(accession).contigs == (1,)
    assert Contigs(["chrM"], [length + 2]).meaning(accession).contigs == ()


def test_a_code_without_its_contig_says_what_it_stands_for(opened, tmp_path):
    rows = [("23", 5, "A", "C"), ("26", 5, "A", "C"), ("0", 0, "A", "C")]
    rows = contigs_of(opened({"1": ONE}), rows, tmp_path)
    assert [row["status"] for row in rows] == ["unknown_contig"] * 3
    assert [row["reason"] for row in rows] == [
        "the reference has no contig '23', nor X, for which PLINK writes 23",
        "the reference has no contig '26', nor MT or M, for which PLINK writes 26",
        "the reference has no contig '0': PLINK's code for variants without a place",
    ]


def test_a_code_whose_ref_does_not_fit_is_no_name_of_that_contig(opened, tmp_path):
    genome = opened({"1": ONE, "X": ONE[::-1]})
    rows = contigs_of(genome, snvs("23", ONE, range(100, 120)), tmp_path)
    assert {row["status"] for row in rows} == {"unknown_contig"}
    assert "'X' is another sequence" in rows[0]["reason"]


def test_a_file_of_regions_whose_contig_may_be_two_is_refused(opened):
    genome = opened({"M": "ACGT", "chrM": "ACGT"})
    with pytest.raises(InputError, match=r"contig 'MT' may be 'M' or 'chrM'.*contig_aliases"):
        genome.contig("MT")
