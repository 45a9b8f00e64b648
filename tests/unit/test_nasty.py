"""Real files that break readers of variants: for each what must happen, and that it does.

The expectations are the judgement of the data's manifest, written out: numbers of records, lines
of malformed rows and statuses where a file is accepted, the error where it is refused.
"""

import csv
from collections import Counter
from pathlib import Path
from typing import NamedTuple

import pysam
import pysam.bcftools
import pytest

from genomes import named
from project import SHARED
from veff.errors import InputError
from veff.inputs import preparing, records, reference
from veff.inputs.records import Malformed
from veff.outputs.vcf import annotate

NEW = ['##INFO=<ID=CHERI_STATUS,Number=1,Type=String,Description="Status of the first">']

pytestmark = pytest.mark.usefixtures("shared_data")


class Accepted(NamedTuple):
    rows: int
    malformed: tuple[int, ...] = ()  # their lines
    sequences: int | None = None  # alternate alleles of bases; by default one in each row
    others: dict[str, int] = {}  # noqa: RUF012 (statuses of the alleles that are none)


NO_HEADER = "line 1: .*needs its header"
NASTY = {
    "file_zero_bytes.vcf": "empty",
    "file_one_newline.vcf": "empty",
    "file_empty_bgzf.vcf.gz": "empty",
    "file_bgzf_no_eof_block.vcf.gz": "may be truncated",
    "file_bgzf_truncated_block.vcf.gz": "may be truncated",
    "file_plain_gzip.vcf.gz": Accepted(2),
    "file_plain_gzip_2504samples_dup_names.b37chr20.vcf.gz": Accepted(298, sequences=300),
    "file_uncompressed_named_gz.b37chr1.vcf.gz": Accepted(168, sequences=169),
    "file_mangled.vcf.gz": "neither text nor BCF",
    "file_corrupt_starts_with_hash.vcf": "line 1: '#'; expected #CHROM",
    "text_crlf_headerless.vcf": NO_HEADER,
    "text_crlf_unsorted_interleaved.vcf": Accepted(40),
    "text_spaces_for_tabs.vcf": "line 18: columns separated by spaces",
    "text_utf8_info.vcf": Accepted(6, sequences=7, others={"no_alt": 1}),
    "text_utf8_contig_name.vcf": Accepted(9, sequences=11, others={"no_alt": 2}),
    "hdr_no_fileformat.vcf": "line 1: ''; only VCF 4",
    "hdr_bad_chrom_line.vcf": "line 2: .*expected #CHROM, POS",
    "hdr_missing_entirely_5cols.vcf": NO_HEADER + ".*For a list of variants, name the file .tsv",
    "hdr_vcf33.vcf": "line 1: 'VCFv3.3'; only VCF 4",
    "hdr_vcr32.vcf.gz": "line 1: 'VCRv3.2'; only VCF 4",
    "hdr_vcf44_sv_equivalents.vcf": Accepted(
        9, sequences=2, others={"symbolic": 4, "breakend": 3}
    ),
    "hdr_vcf45_LAA.vcf": Accepted(6),
    "hdr_sample_names_with_spaces.vcf": Accepted(2),
    "hdr_no_contig_lines.vcf": Accepted(1),
    "ctg_HLA_colon_star.vcf.gz": Accepted(3),
    "ctg_angle_brackets.vcf": Accepted(5),
    "ctg_name_with_space.vcf": Accepted(1),
    "ctg_mixed_1_chr_x_M_MT.vcf": Accepted(13, sequences=11, others={"breakend": 2}),
    "ctg_NCBI_accessions.b37.vcf.gz": Accepted(22, sequences=32),
    "ctg_kraken_pipes.vcf": Accepted(4, sequences=0, others={"breakend": 4}),
    "pos_zero_spec_legal.vcf": Accepted(3),
    "pos_123abc.vcf": Accepted(1, malformed=(4,), sequences=0),
    "pos_negative.vcf": Accepted(1, malformed=(4,), sequences=0),
    "pos_empty_field.vcf": Accepted(5, malformed=(19,), sequences=5, others={"no_alt": 1}),
    "pos_beyond_2_29_and_int32max.vcf": Accepted(12, sequences=12, others={"no_alt": 1}),
    "al_iupac_ref_B.vcf": Accepted(1, sequences=0, others={"not_acgt": 1}),
    "al_iupac_R_W_bad_info.vcf": Accepted(6),
    "al_iupac_ref_M.b37chr20.vcf": Accepted(2),
    "al_N_ref.vcf": Accepted(2, sequences=1, others={"not_acgt": 1}),
    "al_star_ref_and_alt.vcf": Accepted(5, sequences=0, others={"spanning_deletion": 5}),
    "al_nonref_gvcf.hg38chr20.g.vcf": Accepted(12, sequences=4, others={"no_alt": 12}),
    "al_alt_dot.b37+hg38chr1.vcf": Accepted(882, sequences=0, others={"no_alt": 882}),
    "al_all_spec_alts.vcf": Accepted(
        26,
        sequences=7,
        others={"breakend": 6, "symbolic": 11, "spanning_deletion": 2, "no_alt": 5},
    ),
    "al_huge_REF_7kb.vcf": NO_HEADER,
    "al_huge_ALT.vcf.gz": "line 30: .*needs its header",
    "al_breakends_manta.vcf": Accepted(3, sequences=0, others={"breakend": 2, "symbolic": 1}),
    "al_symbolic_zoo.vcf.gz": Accepted(15, sequences=0, others={"symbolic": 15}),
    "al_sv_END_before_POS.vcf": Accepted(7, sequences=1, others={"symbolic": 6}),
    "al_dup_records_trailing_tab.vcf": Accepted(3),
    "refmis_wrong_REF.hg19.vcf": Accepted(16),
    "refmis_one.vcf": Accepted(1),
    "refmis_all_wrong.b37chr1.vcf": Accepted(2),
    "ord_unsorted.b37chr20.vcf": Accepted(782, sequences=812),
    "fld_row_truncated_after_ALT.vcf": Accepted(
        4, malformed=(50,), sequences=1, others={"no_alt": 2}
    ),
}
ACCEPTED = [name for name, expected in NASTY.items() if isinstance(expected, Accepted)]
REFUSED = [name for name in NASTY if name not in ACCEPTED]

# With a reference: where all comes out, or the error.
WITH_REFERENCE = {
    ("refmis_one.vcf", "nasty/refmis_one.fa"): {"ref_alt_swapped": 1},
    ("refmis_all_wrong.b37chr1.vcf", "reference/hg38.chr1_1-1000000.fa.gz"): (
        "2 of 2 alleles .*another REF.*assembly"
    ),
    ("al_iupac_ref_B.vcf", "nasty/al_iupac_ref_B.fa"): {"not_acgt": 1},
    ("al_iupac_ref_M.b37chr20.vcf", "reference/b37.chr20.fa.gz"): {"ok": 1, "not_acgt": 1},
    ("al_nonref_gvcf.hg38chr20.g.vcf", "reference/hg38.chr20_1-1000000.fa.gz"): {
        "ok": 4,
        "no_alt": 12,
    },
    ("al_alt_dot.b37+hg38chr1.vcf", "reference/hg38.chr1_1-1000000.fa.gz"): {"no_alt": 882},
    (
        "file_plain_gzip_2504samples_dup_names.b37chr20.vcf.gz",
        "reference/b37.chr20.fa.gz",
    ): {"ok": 300},
    ("ord_unsorted.b37chr20.vcf", "reference/b37.chr20.fa.gz"): {"ok": 812},
    ("pos_zero_spec_legal.vcf", "reference/hg38.chr1_1-1000000.fa.gz"): {
        "out_of_contig": 1,  # POS 0
        "unknown_contig": 2,
    },
    ("ctg_mixed_1_chr_x_M_MT.vcf", "reference/hg19.chrM_chr22part.fa"): {
        "unknown_contig": 7,
        "out_of_contig": 4,
        "breakend": 2,
    },
    ("ctg_NCBI_accessions.b37.vcf.gz", "reference/hg38.chr1_1-1000000.fa.gz"): (
        "none of its contigs is in the reference; it has 'NC_000001.10'.*contig_aliases"
    ),
}

FASTA = {
    "fasta_empty.fa": "holds no contig",
    "fasta_empty_lines.fasta": 3,
    "fasta_iupac.fasta": 1,
    "fasta_malformed_seq_before_header.fasta": "starts with",
    "fasta_trailing_whitespace.fasta": "' ' in the sequence",
    "al_iupac_ref_B.fa": 1,
    "refmis_one.fa": 1,
}


def test_every_file_has_an_expectation():
    assert {path.name for path in (SHARED / "nasty").iterdir()} == NASTY.keys() | FASTA.keys()


@pytest.mark.parametrize("name", REFUSED)
def test_refused_with_one_line_that_says_why(name):
    path = SHARED / "nasty" / name
    for malformed_rows in ("error", "skip"):
        with pytest.raises(InputError, match=NASTY[name]) as error:
            list(records.read(path, malformed_rows))
        assert str(error.value).startswith(str(path))
        assert "\n" not in str(error.value)
        assert "\r" not in str(error.value)
        assert len(str(error.value)) < 400 + len(str(path))


@pytest.mark.parametrize("name", ACCEPTED)
def test_accepted_with_every_row_counted(name):
    path, expected = SHARED / "nasty" / name, NASTY[name]
    rows = list(records.read(path, "skip"))
    assert [row.number for row in rows] == list(range(expected.rows))
    assert tuple(row.line for row in rows if isinstance(row, Malformed)) == expected.malformed
    if expected.malformed:
        with pytest.raises(InputError, match=f"line {expected.malformed[0]}: "):
            list(records.read(path))
    else:
        assert list(records.read(path)) == rows


@pytest.fixture(scope="module")
def opened(tmp_path_factory):
    folders = {}

    def open_reference(name):
        if name not in folders:
            folders[name] = tmp_path_factory.mktemp("reference")
            reference.build(SHARED / name, folders[name])
        return reference.Reference.open(folders[name])

    return open_reference


@pytest.fixture
def statuses(tmp_path):
    def count(path, genome, **settings):
        summary = preparing.prepare(
            path, genome, tmp_path / "alleles", tmp_path / "scoreable", chunk_size=100, **settings
        )
        return {status: n for status, n in summary["statuses"].items() if n}

    return count


@pytest.mark.parametrize("name", ACCEPTED)
def test_alleles_that_are_no_sequence_are_said_to_be_what_they_are(name, statuses, tmp_path):
    path, expected = SHARED / "nasty" / name, NASTY[name]
    # A genome that has all contigs, a base of each: what its status depends on is the ALT alone.
    fasta = tmp_path / "genome.fa"
    contigs = {row.chrom for row in records.read(path, "skip") if not isinstance(row, Malformed)}
    words = {chrom for chrom in contigs if " " not in chrom} | {"none"}
    fasta.write_text("".join(f">{chrom}\nN\n" for chrom in sorted(words)))
    reference.build(fasta, tmp_path / "genome")
    genome = reference.Reference.open(tmp_path / "genome")
    if contigs and not contigs & words:
        with pytest.raises(InputError, match="none of its contigs"):
            statuses(path, genome, malformed_rows="skip")
        return
    found = Counter(statuses(path, genome, malformed_rows="skip", max_ref_mismatch=1.0))
    assert found.pop("malformed", 0) == len(expected.malformed)
    for status, n in expected.others.items():
        assert found[status] >= n
        found[status] -= n
    sequences = expected.rows if expected.sequences is None else expected.sequences
    assert found.total() == sequences
    assert found["ok"] == 0


@pytest.mark.parametrize(("name", "genome"), WITH_REFERENCE)
def test_against_a_reference(name, genome, opened, statuses):
    expected = WITH_REFERENCE[name, genome]
    if isinstance(expected, dict):
        assert statuses(SHARED / "nasty" / name, opened(genome)) == expected
    else:
        with pytest.raises(InputError, match=expected):
            statuses(SHARED / "nasty" / name, opened(genome))


@pytest.mark.parametrize("name", FASTA)
def test_fasta(name, tmp_path):
    if isinstance(FASTA[name], int):
        reference.build(SHARED / "nasty" / name, tmp_path)
        assert len(reference.Reference.open(tmp_path).names) == FASTA[name]
    else:
        with pytest.raises(InputError, match=FASTA[name]):
            reference.build(SHARED / "nasty" / name, tmp_path)


# What annotate makes of them, and of the files that are in order


def annotated(path, out):
    """Annotate each record with its number; returns how many rows are no records."""
    rows = list(records.read(path, "skip"))
    annotate(
        path,
        out,
        NEW,
        [
            (None if isinstance(row, Malformed) else row, f"CHERI_STATUS=n{row.number}")
            for row in rows
        ],
        named(),
    )
    return rows


def bcftools_rows(command, *arguments):
    text = getattr(pysam.bcftools, command)("--no-version", *map(str, arguments))
    return [line for line in text.splitlines() if not line.startswith("#")]


@pytest.mark.parametrize("name", ACCEPTED)
def test_annotated_vcf_is_read_by_bcftools_and_pysam(name, tmp_path):
    out = tmp_path / "out.vcf.gz"
    rows = annotated(SHARED / "nasty" / name, out)
    numbers = [f"n{row.number}" for row in rows if not isinstance(row, Malformed)]
    with pysam.VariantFile(str(out)) as file:
        assert [row.info["CHERI_STATUS"] for row in file] == numbers
    assert pysam.bcftools.query("-f", "%CHERI_STATUS\\n", str(out)).split() == numbers
    assert len(bcftools_rows("view", out)) == len(numbers)


def manifest():
    if not SHARED.is_dir():
        return []
    with (SHARED / "MANIFEST.tsv").open() as file:
        rows = csv.DictReader(file, delimiter="\t")
        return [
            pytest.param(row["path"], int(row["n_records"]), id=Path(row["path"]).name)
            for row in rows
            if row["path"].startswith("variants/") and row["n_records"]
        ]


@pytest.mark.parametrize(("path", "n_records"), manifest())
def test_files_in_order_are_read_as_pysam_reads_them(path, n_records):
    path = SHARED / path
    with pysam.VariantFile(str(path), drop_samples=True) as file:
        theirs = [(row.chrom, row.pos, row.id or ".", row.ref, row.alts or ()) for row in file]
    ours = [(row.chrom, row.pos, row.id, row.ref, row.alts) for row in records.read(path)]
    assert len(ours) == n_records
    assert ours == theirs


@pytest.mark.parametrize(("path", "n_records"), manifest())
def test_files_in_order_keep_every_field_when_annotated(path, n_records, tmp_path):
    path, out = SHARED / path, tmp_path / "out.vcf.gz"
    annotated(path, out)
    assert out.with_name("out.vcf.gz.csi").exists()
    before = bcftools_rows("view", path)
    after = bcftools_rows("annotate", "-x", "INFO/CHERI_STATUS", out)
    assert len(after) == n_records
    assert after == before
