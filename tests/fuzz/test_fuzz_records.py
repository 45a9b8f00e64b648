"""Bytes of valid files, damaged at random: an `InputError` or the right total, nothing else.

Some seconds in the suite; VEFF_FUZZ_SECONDS makes each of the two tests longer, VEFF_FUZZ_SEED
repeats a run: it is in the message of a failure.
"""

import faulthandler
import gzip
import os
import random
import time

import pysam
import pysam.bcftools
import pytest

from genomes import named
from veff.errors import InputError
from veff.inputs import records
from veff.inputs.records import Malformed
from veff.outputs.vcf import annotate

SECONDS = float(os.environ.get("VEFF_FUZZ_SECONDS", 3))
SEED = int(os.environ.get("VEFF_FUZZ_SEED", time.time_ns() % 2**32))
HANG = 20  # seconds after which one small file counts as a hang

VCF = b"""\
##fileformat=VCFv4.2
##contig=<ID=1,length=1000>
##contig=<ID=2,length=1000>
##INFO=<ID=DP,Number=1,Type=Integer,Description="Depth">
##INFO=<ID=X,Number=0,Type=Flag,Description="A flag">
##FILTER=<ID=q10,Description="Below 10">
##FORMAT=<ID=GT,Number=1,Type=String,Description="Genotype">
#CHROM\tPOS\tID\tREF\tALT\tQUAL\tFILTER\tINFO\tFORMAT\tone\ttwo
1\t5\trs1\tA\tC\t29\tPASS\tDP=3\tGT\t0/1\t0/0
1\t7\t.\tac\tG,<DEL>,*\t9\tq10\t.\tGT\t1/2\t0/0
1\t9\t.\tN\t.\t.\t.\t.\tGT\t./.\t0/0
2\t3\trs2;rs3\tG\tG]1:5]\t.\t.\tDP=4;X\tGT\t0|1\t.
"""
LIST = b"chr1\t5\tA\tC\trs1\nchr1\t7\t-\tGG\trs2\nchr2\t9\tAC\t-\t.\nchr2\t10\tA\tT\trs4\n"
TABLE = b"chrom,pos,ref,alt,id\nchr1,5,A,C,rs1\nchr1,7,-,GG,rs2\nchr2,9,AC,-,.\n"
PIECES = [
    b"\t", b"\n", b"\r", b"\0", b"\xff", b"\xc3", b"#", b",", b";", b"=", b".", b"-", b"<", b">",
    b'"', b" ", b"0", b"99999999999", b"A", b"\xef\xbb\xbf", b"##", b"#CHROM", b"\x1f\x8b", b"BCF",
]  # fmt: skip


def damaged(data, rng):
    data = bytearray(data)
    for _ in range(rng.choice((1, 1, 1, 2, 5))):
        at, n = rng.randrange(len(data) + 1), rng.choice((1, 1, 2, 8, 60))
        match rng.randrange(6):
            case 0:
                data[at : at + n] = rng.randbytes(min(n, len(data) - at))
            case 1:
                del data[at : at + n]
            case 2:
                data[at:at] = rng.choice(PIECES)
            case 3:
                data[at : at + 1] = rng.choice(PIECES)
            case 4:
                data[at:at] = data[at : at + n]
            case 5:
                other = rng.randrange(len(data) + 1)
                data[at : at + n], data[other : other + n] = (
                    data[other : other + n],
                    data[at : at + n],
                )
    return bytes(data)


def outcome(path, malformed_rows):
    try:
        return list(records.read(path, malformed_rows))
    except InputError as error:
        message = str(error)
    assert "\n" not in message, "an error of more than a line"
    assert str(path) in message
    return None


def n_rows(data):
    """How many rows a VCF's text has, by the definition: not blank, after its #CHROM line."""
    lines = [line.rstrip(b"\r") for line in data.removeprefix(b"\xef\xbb\xbf").split(b"\n")]
    header = next(i for i, line in enumerate(lines) if line.startswith(b"#CHROM\t"))
    return sum(bool(line.strip()) for line in lines[header + 1 :])


@pytest.fixture(autouse=True)
def no_hang():
    yield
    faulthandler.cancel_dump_traceback_later()


def cases(valid, tmp_path):
    """Paths of damaged files until the time is over, with their bytes."""
    rng = random.Random(SEED)
    end = time.monotonic() + SECONDS
    while time.monotonic() < end:
        name = rng.choice(sorted(valid))
        data = damaged(valid[name], rng)
        path = tmp_path / name
        path.write_bytes(data)
        faulthandler.dump_traceback_later(HANG, exit=True)
        yield path, data


def test_damaged_files_give_an_input_error_or_every_row(tmp_path):
    (tmp_path / "x.vcf").write_bytes(VCF)
    pysam.bcftools.view(
        "-Ob", "-o", str(tmp_path / "x.bcf"), str(tmp_path / "x.vcf"), catch_stdout=False
    )
    pysam.tabix_compress(str(tmp_path / "x.vcf"), str(tmp_path / "x.gz"))
    valid = {
        "a.vcf": VCF,
        "a.vcf.gz": gzip.compress(VCF, mtime=0),
        "b.vcf.gz": (tmp_path / "x.gz").read_bytes(),
        "a.bcf": (tmp_path / "x.bcf").read_bytes(),
        "list.tsv": LIST,
        "table.csv": TABLE,
    }
    read = refused = 0
    for path, data in cases(valid, tmp_path):
        said = f"seed {SEED}: {data!r}"
        skipping, strict = outcome(path, "skip"), outcome(path, "error")
        if skipping is None:
            assert strict is None, said
            refused += 1
            continue
        read += 1
        stops = any(
            row.stops if isinstance(row, Malformed) else "" in row.alts for row in skipping
        )
        assert strict == (None if stops else skipping), said
        assert [row.number for row in skipping] == list(range(len(skipping))), said
        if path.name == "a.vcf":
            assert len(skipping) == n_rows(data), said
        for row in skipping:
            if isinstance(row, Malformed):
                "".join((row.reason, *row.fields)).encode()
            else:
                "".join((row.chrom, row.id, row.ref, *row.alts)).encode()
                assert 0 <= row.pos < 2**31, said
    assert read, "every file was refused"
    assert refused, "no file was refused"


def test_damaged_vcfs_are_annotated_row_for_row(tmp_path):
    out = tmp_path / "out.vcf.gz"
    new = ['##INFO=<ID=CHERI_N,Number=1,Type=Integer,Description="Number">']
    for path, data in cases({"a.vcf": VCF}, tmp_path):
        rows = outcome(path, "skip")
        if rows is None:
            continue
        said = f"seed {SEED}: {data!r}"
        annotate(
            path,
            out,
            new,
            [
                (None if isinstance(row, Malformed) else row, f"CHERI_N={row.number}")
                for row in rows
            ],
            named(),
        )
        with gzip.open(out) as file:
            written = [line.split(b"\t") for line in file if not line.startswith(b"#")]
        kept = [row for row in rows if not isinstance(row, Malformed)]
        assert len(written) == len(kept), said
        for row, fields in zip(kept, written, strict=True):
            expected = (row.chrom, int(fields[1]), row.ref, ",".join(row.alts) or ".")
            assert (fields[0], row.pos, fields[3], fields[4]) == tuple(
                text if isinstance(text, int) else text.encode() for text in expected
            ), said
            assert b"CHERI_N=%d" % row.number in fields[7].split(b";"), said
