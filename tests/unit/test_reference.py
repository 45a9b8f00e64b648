"""The bases, names and assembly of a FASTA file, against pysam's reading of it."""

import gzip
import hashlib
import random

import numpy as np
import pysam
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from project import SHARED
from veff.errors import InputError
from veff.inputs import assemblies, reference
from veff.inputs.reference import Reference, build

# NCBI's assembly reports: a chromosome of each that no other assembly shares.
CHROMOSOME_20_OR_19 = {
    "hg19": ("20", 63025520),
    "hg38": ("20", 64444167),
    "T2T-CHM13": ("20", 66210255),
    "mm10": ("19", 61431566),
    "mm39": ("19", 61420004),
}


def opened(tmp_path, text, aliases=None, name="genome.fa"):
    fasta = tmp_path / name
    fasta.write_bytes(text if isinstance(text, bytes) else text.encode())
    build(fasta, tmp_path / "reference")
    return Reference.open(tmp_path / "reference", aliases)


def contigs_of(genome):
    return {
        name: genome.fetch(i, 0, int(genome.lengths[i])).decode()
        for i, name in enumerate(genome.names)
    }


def wrapped(contigs, width=60, end="\n"):
    lines = []
    for name, bases in contigs.items():
        lines += [f">{name}", *(bases[i : i + width] for i in range(0, len(bases), width))]
    return end.join(lines) + end


@given(
    st.lists(st.text("ACGTNRYacgtn", max_size=70), min_size=1, max_size=5),
    st.integers(1, 40),
    st.sampled_from(["\n", "\r\n"]),
    st.booleans(),
    st.integers(1, 50),
)
@settings(max_examples=150, deadline=None)
def test_any_layout_and_any_cut_into_blocks_give_the_bases(
    tmp_path_factory, contigs, width, end, final_newline, block
):
    contigs = {f"contig{i} of the test": bases for i, bases in enumerate(contigs)}
    text = wrapped(contigs, width, end)
    tmp_path = tmp_path_factory.mktemp("reference")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(reference, "BLOCK", block)
        genome = opened(tmp_path, text if final_newline else text.removesuffix(end))
    assert contigs_of(genome) == {
        name.split()[0]: bases.upper() for name, bases in contigs.items()
    }


def test_plain_gzip_and_bgzip_read_as_pysam_reads_them(tmp_path):
    rng = random.Random(1)
    contigs = {f"c{i}": "".join(rng.choices("ACGTacgtN", k=1000 * i + 1)) for i in range(4)}
    plain = tmp_path / "plain.fa"
    plain.write_text(wrapped(contigs))
    expected = {}
    with pysam.FastaFile(str(plain)) as fasta:
        expected = {name: fasta.fetch(name).upper() for name in fasta.references}
    (tmp_path / "gzip.fa.gz").write_bytes(gzip.compress(plain.read_bytes()))
    pysam.tabix_compress(str(plain), str(tmp_path / "bgzip.fa.gz"))
    for name in ("plain.fa", "gzip.fa.gz", "bgzip.fa.gz"):
        build(tmp_path / name, tmp_path / "reference")
        genome = Reference.open(tmp_path / "reference")
        assert contigs_of(genome) == expected
        assert genome.names == list(expected)
        assert genome.lengths.tolist() == [len(bases) for bases in expected.values()]
        digest = hashlib.sha256((tmp_path / name).read_bytes()).hexdigest()
        assert genome.sha256 == digest


def test_fasta_in_a_folder_without_index_is_left_as_it_is(tmp_path):
    (tmp_path / "in").mkdir()
    fasta = tmp_path / "in" / "genome.fa"
    fasta.write_text(">c\nACGT\n")
    build(fasta, tmp_path / "out")
    assert [path.name for path in (tmp_path / "in").iterdir()] == ["genome.fa"]
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == [
        ".contigs.json.sha256",
        "bases.u8",
        "contigs.json",
    ]


def test_fetch_is_clipped_to_the_contig_not_to_its_neighbours(tmp_path):
    genome = opened(tmp_path, ">a\nAAAA\n>b\nCCCC\n>c\nGGGG\n")
    assert genome.fetch(1, -3, 2) == b"CC"
    assert genome.fetch(1, 2, 99) == b"CC"
    assert genome.fetch(1, -9, 99) == b"CCCC"
    for start, end in ((4, 9), (7, 9), (-5, -1), (-5, 0), (3, 2)):
        assert genome.fetch(1, start, end) == b""


def test_many_reads_all_over_the_genome_stay_right(tmp_path, monkeypatch):
    monkeypatch.setattr(reference, "READS", 3)
    rng = random.Random(2)
    contigs = {f"c{i}": "".join(rng.choices("ACGT", k=9000)) for i in range(3)}
    genome = opened(tmp_path, wrapped(contigs))
    contig, start = np.array([(rng.randrange(3), rng.randrange(9000)) for _ in range(100)]).T
    expected = [contigs[f"c{i}"][j] for i, j in zip(contig, start, strict=True)]
    assert genome.at(contig, start).tobytes().decode() == "".join(expected)
    for i, j, base in zip(contig.tolist(), start.tolist(), expected, strict=True):
        assert genome.fetch(i, j, j + 1).decode() == base
    assert genome.at(contig[:0], start[:0]).shape == (0,)


# Without the time, which would be in the test's name and differ between processes.
BASES = bytes(random.Random(0).choices(b"ACGT", k=9999))
TRUNCATED = gzip.compress(b">a\n" + BASES, mtime=0)[:-99]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (b"", "holds no contig"),
        (b"\n\n", "holds no contig"),
        (b"ACGT\n>a\nACGT\n", "starts with"),
        (b"@read\nACGT\n+\nIIII\n", "starts with"),
        (b">a\nACGT ACGT\n", "' ' in the sequence of 'a'"),
        (b">a\nACGT\n>b\nACGTQ\n", "'Q' in the sequence of 'b'"),
        (b">a\nAC-GT\n", "'-' in the sequence of 'a'"),
        (b">a\nACGT\n>a\nACGT\n", "'a' occurs twice"),
        (b">\nACGT\n", "without a contig's name"),
        (TRUNCATED, "truncated"),
    ],
)
def test_what_is_no_nucleotide_fasta_is_refused_and_leaves_nothing(tmp_path, text, message):
    with pytest.raises(InputError, match=r"genome\.fa: ") as error:
        opened(tmp_path, text)
    assert message in str(error.value)
    assert "\n" not in str(error.value)
    assert list((tmp_path / "reference").iterdir()) == []


def test_a_failed_build_keeps_the_reference_of_before(tmp_path):
    opened(tmp_path, ">a\nACGT\n")
    with pytest.raises(InputError):
        opened(tmp_path, ">a\nAC!T\n")
    assert contigs_of(Reference.open(tmp_path / "reference")) == {"a": "ACGT"}


def test_a_missing_file_is_an_input_error(tmp_path):
    with pytest.raises(InputError, match="no such file"):
        build(tmp_path / "absent.fa", tmp_path / "reference")


def test_bases_that_do_not_fit_their_contigs_are_refused(tmp_path):
    opened(tmp_path, ">a\nACGT\n")
    with (tmp_path / "reference" / "bases.u8").open("ab") as file:
        file.write(b"A")
    with pytest.raises(InputError, match="not as the job wrote it"):
        Reference.open(tmp_path / "reference")


@pytest.mark.parametrize("which", CHROMOSOME_20_OR_19)
@pytest.mark.parametrize("prefix", ["", "chr"])
def test_assembly_is_told_from_one_chromosome_whatever_its_prefix(which, prefix):
    name, length = CHROMOSOME_20_OR_19[which]
    assert assemblies.assembly([f"{prefix}{name}", "scaffold_7"], [length, 12]) == which


def test_assembly_is_not_guessed_when_a_chromosome_does_not_fit():
    assert assemblies.assembly(["chr1"], [1000000]) is None
    assert assemblies.assembly(["chr1", "chr20"], [248956422, 63025520]) is None
    assert assemblies.assembly(["contig_1"], [248956422]) is None
    assert assemblies.assembly([], []) is None


def test_no_length_is_that_of_two_assemblies_under_one_name():
    for name in assemblies.ASSEMBLIES["hg38"]:
        lengths = [table[name] for table in assemblies.ASSEMBLIES.values() if name in table]
        assert len(set(lengths)) == len(lengths)


def test_contigs_are_found_with_and_without_chr_and_by_nothing_else(tmp_path):
    genome = opened(tmp_path, ">chr1\nA\n>2\nC\n>chrM\nG\n>HLA-DRB1*16:02:01\nT\n")
    found = {"chr1": 0, "1": 0, "2": 1, "chr2": 1, "HLA-DRB1*16:02:01": 3}
    found |= {"chrM": 2, "MT": 2, "M": 2, "chrMT": 2}
    for name, index in found.items():
        assert genome.contig(name) == index, name
    for name in ("Chr1", "CHR1", "m", "mt", "3", "", "chr", "*", "HLA-DRB1"):
        assert genome.contig(name) is None, name


def test_the_exact_name_comes_before_the_other_spelling(tmp_path):
    genome = opened(tmp_path, ">chr1\nA\n>1\nC\n>MT\nA\n>chrM\nC\n")
    assert [genome.contig(name) for name in ("chr1", "1", "MT", "chrM")] == [0, 1, 2, 3]


def test_alias_table_of_several_columns(tmp_path):
    aliases = tmp_path / "aliases.tsv"
    aliases.write_text(
        "# ucsc\tensembl\trefseq\n"
        "chr1\t1\tNC_000001.11\n"
        "\n"
        "chrUn_KI270742v1\tKI270742.1\t\n"
        "chr9\t9\tNC_000009.12\n"
        "chrM\tMT\tna\n"
    )
    genome = opened(tmp_path, ">1\nA\n>KI270742.1\nC\n>M\nC\n", aliases)
    assert genome.contig("NC_000001.11") == 0
    assert genome.contig("chrUn_KI270742v1") == 1
    assert genome.contig("NC_000009.12") is None
    assert genome.contig("na") is None


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ("1\n", "line 1: one column"),
        ("1\talias\n2\talias\n", "line 2: its names are those of '1' and '2'"),
        ("x\t1\t2\n", "line 1: its names are those of '1' and '2'"),
        (b"\xff\xfe1\t2\n", "cannot read the contig aliases"),
    ],
)
def test_an_alias_table_that_contradicts_itself_is_refused(tmp_path, table, message):
    aliases = tmp_path / "aliases.tsv"
    aliases.write_bytes(table if isinstance(table, bytes) else table.encode())
    with pytest.raises(InputError) as error:
        opened(tmp_path, ">1\nA\n>2\nC\n", aliases)
    assert message in str(error.value)


@pytest.mark.usefixtures("shared_data")
@pytest.mark.parametrize(
    ("name", "accepted"),
    [
        ("nasty/fasta_empty.fa", False),
        ("nasty/fasta_trailing_whitespace.fasta", False),
        ("nasty/fasta_malformed_seq_before_header.fasta", False),
        ("nasty/fasta_empty_lines.fasta", True),
        ("nasty/fasta_iupac.fasta", True),
        ("nasty/al_iupac_ref_B.fa", True),
        ("reference/b37.chr17_1-1000000.2bit", False),
        ("reference/hg38.chr9_1-1000000.softmasked.fa.gz", True),
    ],
)
def test_files_found_in_the_wild(tmp_path, name, accepted):
    if accepted:
        build(SHARED / name, tmp_path)
        genome = Reference.open(tmp_path)
        with pysam.FastxFile(str(SHARED / name)) as fasta:
            for i, contig in enumerate(fasta):
                bases = contig.sequence.upper().rstrip("0123456789")
                assert genome.names[i] == contig.name
                assert genome.fetch(i, 0, len(bases) + 1).decode() == bases
    else:
        with pytest.raises(InputError):
            build(SHARED / name, tmp_path)
