"""What a job reads is the file that the run was started with, or the job stops."""

import gzip
import os
import shutil

import pysam
import pysam.bcftools
import pytest

from genomes import named
from veff.errors import InputError
from veff.inputs import identity, intervals, records, reference
from veff.inputs.identity import Input
from veff.models import sheet
from veff.outputs import vcf

HEADER = "##fileformat=VCFv4.2\n##contig=<ID=1>\n#CHROM\tPOS\tID\tREF\tALT\tQUAL\tFILTER\tINFO\n"
VCF = HEADER + "1\t5\t.\tA\tC\t.\t.\t.\n"
FASTA = ">1\nGATTACAGATTACA\n"
BED = "1\t2\t9\tone\n"
ALIASES = "1\tchr1\n"


def put(path, text):
    path.write_bytes(text.encode())
    return path


def put_gzip(path, text):
    path.write_bytes(gzip.compress(text.encode(), mtime=0))
    return path


def put_bcf(path, text):
    plain = put(path.with_name("plain.vcf"), text)
    pysam.bcftools.view("-Ob", "-o", str(path), str(plain), catch_stdout=False)
    return path


def read_bed(path, genome):
    return list(intervals.bed(path, genome))


def read_genes(path, genome):
    return list(intervals.genes(path, genome))


def read_records(path, genome):
    return list(records.read(path))


def read_fasta(path, genome):
    reference.build(path, path.parent / "built")


def read_aliases(path, genome):
    reference.Reference.open(path.parent / "genome", path)


def read_sheet(path, genome):
    sheet.read(path)


# How a kind of input is written and read, one content, and another of the same size.
KINDS = {
    "VCF": (put, read_records, VCF, VCF.replace("A\tC", "A\tG")),
    "VCF, gzip": (put_gzip, read_records, VCF, VCF.replace("A\tC", "A\tG")),
    "BCF": (put_bcf, read_records, VCF, VCF.replace("A\tC", "A\tG")),
    "list": (put, read_records, "1\t5\trs1\tA\tC\n", "1\t5\trs1\tA\tG\n"),
    "FASTA": (put, read_fasta, FASTA, FASTA.replace("GATT", "GACT")),
    "FASTA, gzip": (put_gzip, read_fasta, FASTA, FASTA.replace("GATT", "GACT")),
    "BED": (put, read_bed, BED, BED.replace("2", "3")),
    "BED, gzip": (put_gzip, read_bed, BED, BED.replace("2", "3")),
    "genes": (put, read_genes, BED, BED.replace("one", "two")),
    "aliases": (put, read_aliases, ALIASES, ALIASES.replace("chr1", "chr7")),
    "sheet": (
        put,
        read_sheet,
        "experiment\tcheckpoint\na\ta.t\n",
        "experiment\tcheckpoint\nb\ta.t\n",
    ),
}


@pytest.fixture
def genome(tmp_path):
    reference.build(put(tmp_path / "genome.fa", FASTA), tmp_path / "genome")
    return reference.Reference.open(tmp_path / "genome")


@pytest.fixture(params=KINDS, ids=lambda name: name.replace(", ", "_"))
def kind(request, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    put(tmp_path / "a.t", "a checkpoint")
    return KINDS[request.param]


def test_a_file_that_is_what_it_was_is_read(kind, genome, tmp_path):
    write, read, text, _ = kind
    path = write(tmp_path / "in", text)
    read(Input.expecting(path, identity.sha256(path)), genome)


def test_a_reader_stops_at_a_file_swapped_after_the_start_of_the_run(kind, genome, tmp_path):
    write, read, text, other = kind
    path = write(tmp_path / "in", text)
    expected, before = identity.sha256(path), os.stat(path)
    swapped = write(tmp_path / "other", other)
    os.utime(swapped, ns=(0, 0))
    os.replace(swapped, path)
    assert path.stat().st_mtime_ns < before.st_mtime_ns
    with pytest.raises(InputError, match="in: changed while the run used it"):
        read(Input.expecting(path, expected), genome)


def swap_with_an_old_time(path, write, other):
    replacement = write(path.with_name("replacement"), other)
    os.utime(replacement, ns=(10**18, 10**18))
    shutil.move(replacement, path)


def edit_in_place_with_the_same_time(path, write, other):
    before = os.stat(path)
    replacement = write(path.with_name("replacement"), other).read_bytes()
    with path.open("r+b") as file:
        file.write(replacement)
        file.truncate()
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert os.stat(path).st_ino == before.st_ino


def turn_the_link(path, write, other):
    replacement = write(path.with_name("replacement"), other)
    os.utime(replacement, ns=(10**18, 10**18))
    path.unlink()
    path.symlink_to(replacement)


@pytest.mark.parametrize(
    "change", [swap_with_an_old_time, edit_in_place_with_the_same_time, turn_the_link]
)
def test_the_next_start_sees_another_content_whatever_the_times(
    kind, change, tmp_path, monkeypatch
):
    write, _, text, other = kind
    monkeypatch.setattr(identity, "SETTLED_S", -1)  # all files count as settled
    path, record = write(tmp_path / "in", text), tmp_path / "inputs.json"
    before = identity.now([str(path)], record, keep=True)
    change(path, write, other)
    after = identity.now([str(path)], record, keep=True)
    assert before != after == {str(path): identity.sha256(path)}


def test_a_file_that_is_as_it_was_is_not_read_again(tmp_path, monkeypatch):
    monkeypatch.setattr(identity, "SETTLED_S", -1)
    path, record = put(tmp_path / "in", VCF), tmp_path / "inputs.json"
    first = identity.now([str(path)], record, keep=True)
    monkeypatch.setattr(identity, "sha256", lambda path: pytest.fail("was read"))
    assert identity.now([str(path)], record, keep=True) == first == identity.recorded(record)


def test_a_file_just_written_is_read_again_at_the_next_start(tmp_path, monkeypatch):
    """It could change again within what its time resolves."""
    monkeypatch.setattr(identity, "SETTLED_S", 60)
    path, record = put(tmp_path / "in", VCF), tmp_path / "inputs.json"
    identity.now([str(path)], record, keep=True)
    monkeypatch.setattr(identity, "sha256", lambda path: "read again")
    assert identity.now([str(path)], record, keep=True) == {str(path): "read again"}


def test_a_record_that_is_cut_short_is_not_believed(tmp_path):
    path, record = put(tmp_path / "in", VCF), put(tmp_path / "inputs.json", '{"in": {"sta')
    found = identity.now([str(path)], record, keep=False)
    assert found == {str(path): identity.sha256(path)}
    assert identity.recorded(record) == {}


def test_a_note_has_the_time_of_its_last_other_content_and_a_dry_run_leaves_it(tmp_path):
    note = identity.noted(tmp_path / "given/prepare/content.json", [["a"], [None]], None)
    os.utime(note, ns=(10**18, 10**18))
    assert identity.noted(note, [["a"], [None]], None) == note
    shown = identity.noted(note, [["b"], [None]], str(tmp_path))
    assert shown == tmp_path / "prepare/content.json"
    assert note.stat().st_mtime_ns == 10**18 < shown.stat().st_mtime_ns
    identity.noted(note, [["b"], [None]], None)
    assert note.stat().st_mtime_ns > 10**18


def test_a_bcf_written_to_while_it_is_read_stops_its_reader(tmp_path):
    path = put_bcf(tmp_path / "in", VCF)
    rows = records.read(Input.expecting(path, identity.sha256(path)))
    next(rows)
    os.utime(path)
    with pytest.raises(InputError, match="in: was written to while it was read"):
        list(rows)


def test_annotate_stops_at_records_that_are_not_those_prepared(tmp_path):
    path = put(tmp_path / "in.vcf", VCF)
    (prepared,) = records.read(path)
    put(path, VCF.replace("A\tC", "A\tG"))
    with pytest.raises(InputError, match=r"in\.vcf: record 1 is not the one that was prepared"):
        vcf.annotate(path, tmp_path / "out.vcf.gz", [], [(prepared, "")], named())
    assert not (tmp_path / "out.vcf.gz").exists()
