"""Statuses, trimming, order and totals of alleles on a planted contig of 5 kb."""

import gzip
import json
import random
from pathlib import Path
from unittest import mock

import numpy as np
import pyarrow.parquet as pq
import pysam
import pysam.bcftools
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from project import SHARED
from veff.errors import InputError
from veff.inputs import classes, preparing, records
from veff.inputs.judging import STATUSES
from veff.inputs.preparing import prepare
from veff.inputs.records import NO_REF, ORDER_UNKNOWN, Malformed, Record
from veff.inputs.reference import Reference, build


def planted_contig():
    """5 kb with, at 1-based positions: 1001 TTGACGGAGTT, 2001 soft-masked, 3001 N, 4001 R, Y."""
    bases = random.Random(5).choices("ACGT", k=5000)
    bases[1000:1011] = "TTGACGGAGTT"
    bases[2000:2040] = "".join(bases[2000:2040]).lower()
    bases[3000:3010] = "N" * 10
    bases[4000:4004] = "ARYC"
    return "".join(bases)


CONTIG = planted_contig()
GENOME = {"chr1": CONTIG, "chr2": "ACGTACGTAC" * 30, "chrM": "GATCACAG" * 10}


@pytest.fixture(scope="module")
def genome(tmp_path_factory):
    folder = tmp_path_factory.mktemp("genome")
    fasta = folder / "genome.fa"
    fasta.write_text("".join(f">{name}\n{bases}\n" for name, bases in GENOME.items()))
    build(fasta, folder / "reference")
    reference = Reference.open(folder / "reference")
    reference.fasta = fasta
    return reference


def as_records(rows):
    """Records from (chrom, pos, ref, alts) tuples, alts joined by commas as in a VCF."""
    return [
        row
        if isinstance(row, Record | Malformed)
        else Record(i, i + 2, row[0], row[1], f"v{i}", row[2], tuple(row[3].split(",")))
        for i, row in enumerate(rows)
    ]


class Given:
    """Records as if they had been read."""

    def __init__(self, read):
        self.read = read
        self.read_as = {"form": "VCF", "positions": "1-based", "why": "by definition"}

    def __iter__(self):
        return iter(self.read())

    pieces = __iter__


def prepared(genome, folder, rows, chunk_size=100, max_ref_mismatch=1.0, **settings):
    """Summary, rows of the alleles and rows of the scoreable, as dictionaries."""
    alleles, scoreable = folder / "alleles.parquet", folder / "scoreable.parquet"
    with mock.patch.object(records, "Variants", return_value=Given(lambda: as_records(rows))):
        summary = prepare(
            Path("test.vcf"),
            genome,
            alleles,
            scoreable,
            chunk_size=chunk_size,
            max_ref_mismatch=max_ref_mismatch,
            **settings,
        )
    assert sum(summary["statuses"].values()) == summary["alleles"]
    assert set(path.name for path in folder.iterdir()) >= {alleles.name, scoreable.name}
    assert not list(folder.glob(".prepare-*"))
    table = pq.read_table(alleles)
    assert table.schema.equals(preparing.ALLELES)
    assert table["allele_id"].to_pylist() == list(range(summary["alleles"]))
    scores = pq.read_table(scoreable)
    assert scores.schema.equals(preparing.SCOREABLE)
    assert scores.num_rows == summary["scoreable"] == summary["statuses"]["ok"]
    return summary, table.to_pylist(), scores.to_pylist()


def one(genome, folder, chrom, pos, ref, alt, **settings):
    """The row of a single allele, and its trimmed form (contig, start, ref_len, alt) or None."""
    rows = [(chrom, pos, ref, alt), ("chr2", 299, "A", "G")]
    _, (row, _), scores = prepared(genome, folder, rows, **settings)
    assert (row["chrom"], row["pos"], row["ref"], row["alt"]) == (chrom, pos, ref, alt)
    assert "\n" not in row["reason"]
    if row["status"] != "ok":
        assert row["reason"] != ""
        assert row["scored_as"] is None
        assert [score["allele_id"] for score in scores] == [1]
        return row, None
    scored = next(score for score in scores if score["allele_id"] == 0)
    assert row["scored_as"] == 0
    return row, tuple(scored.values())[1:]


def at(pos, length=1):
    """The reference of chr1 at 1-based `pos`, upper case."""
    return CONTIG[pos - 1 : pos - 1 + length].upper()


def other(base, by=1):
    return "ACGT"[("ACGT".index(base) + by) % 4]


LONG = "ACGT" * 500

# chrom, POS, REF, ALT, expected status; what is expected follows from the planted contig.
CASES = {
    "SNV": ("chr1", 101, at(101), other(at(101)), "ok"),
    "first base": ("chr1", 1, at(1), other(at(1)), "ok"),
    "last base": ("chr1", 5000, at(5000), other(at(5000)), "ok"),
    "without chr": ("1", 101, at(101), other(at(101)), "ok"),
    "MT for M": ("MT", 2, "A", "C", "ok"),
    "lower-case alleles": ("chr1", 101, at(101).lower(), other(at(101)).lower(), "ok"),
    "soft-masked reference": ("chr1", 2010, at(2010), other(at(2010)), "ok"),
    "MNV": ("chr1", 1003, "GAC", "CCT", "ok"),
    "long MNV": ("chr1", 301, at(301, 120), at(301, 120)[::-1], "ok"),
    "complex": ("chr1", 1003, "GACG", "TT", "ok"),
    "deletion": ("chr1", 1003, "GAC", "G", "ok"),
    "insertion": ("chr1", 1004, "A", "ACG", "ok"),
    "insertion after the last base": ("chr1", 5000, at(5000), at(5000) + "TT", "ok"),
    "insertion of 300": ("chr1", 101, at(101), at(101) + LONG[:300], "ok"),
    "insertion of 500": ("chr1", 101, at(101), at(101) + LONG[:500], "ok"),
    "insertion of 501": ("chr1", 101, at(101), at(101) + LONG[:501], "too_long"),
    "deletion of 500": ("chr1", 101, at(101, 501), at(101), "ok"),
    "deletion of 1,000": ("chr1", 101, at(101, 1001), at(101), "too_long"),
    "no change": ("chr1", 101, at(101), at(101), "no_alt"),
    "no change but for case": ("chr1", 101, at(101), at(101).lower(), "no_alt"),
    "wrong REF": ("chr1", 101, other(at(101)), other(at(101), 2), "ref_mismatch"),
    "wrong REF at the end of it": ("chr1", 1003, "GAA", "G", "ref_alt_swapped"),
    "wrong REF of no change": ("chr1", 101, other(at(101)), other(at(101)), "ref_mismatch"),
    "swapped": ("chr1", 101, other(at(101)), at(101), "ref_alt_swapped"),
    "swapped insertion": ("chr1", 1003, "GAT", "GACGG", "ref_alt_swapped"),
    "absent contig": ("chr7", 101, "A", "C", "unknown_contig"),
    "case of a contig's name": ("CHR1", 101, at(101), other(at(101)), "unknown_contig"),
    "POS 0": ("chr1", 0, "N", "A", "out_of_contig"),
    "past the end": ("chr1", 5001, "A", "C", "out_of_contig"),
    "far past the end": ("chr1", 2147483647, "A", "C", "out_of_contig"),
    "over the end": ("chr1", 5000, at(5000) + "A", at(5000), "out_of_contig"),
    "no ALT": ("chr1", 101, at(101), ".", "no_alt"),
    "gVCF": ("chr1", 101, at(101), "<NON_REF>", "no_alt"),
    "unobserved": ("chr1", 101, at(101), "<*>", "no_alt"),
    "star": ("chr1", 101, at(101), "*", "spanning_deletion"),
    "symbolic": ("chr1", 101, at(101), "<DEL>", "symbolic"),
    "symbolic that looks like a breakend": ("chr1", 101, at(101), "<a[b]c.>", "symbolic"),
    "breakend": ("chr1", 101, at(101), f"{at(101)}[chr2:20[", "breakend"),
    "reverse breakend": ("chr1", 101, at(101), f"]chr2:20]{at(101)}", "breakend"),
    "single breakend": ("chr1", 101, at(101), f"{at(101)}.", "breakend"),
    "single breakend on the left": ("chr1", 101, at(101), f".{at(101)}", "breakend"),
    "N in ALT": ("chr1", 101, at(101), "N", "not_acgt"),
    "IUPAC in ALT": ("chr1", 101, at(101), "R", "not_acgt"),
    "VCF 3 deletion": ("chr1", 101, at(101), "D4", "not_acgt"),
    "plink's missing allele": ("chr1", 101, at(101), "0", "not_acgt"),
    "N in REF, N in the reference": ("chr1", 3001, "N", "A", "reference_n"),
    "N in REF": ("chr1", 101, "N", "A", "not_acgt"),
    "A in REF, N in the reference": ("chr1", 3001, "A", "C", "reference_n"),
    "REF into N": ("chr1", 2999, at(2999, 2) + "AC", "A", "reference_n"),
    "wrong REF into N": ("chr1", 3000, other(at(3000)) + "AC", "A", "ref_mismatch"),
    "IUPAC in REF": ("chr1", 4002, "R", "A", "not_acgt"),
    "star in REF": ("chr1", 101, "*", "A", "not_acgt"),
    # R is A or G, so the VCF specification has REF A for it; Y is C or T, so C.
    "R in the reference": ("chr1", 4002, "A", "G", "ok"),
    "R in the reference, read otherwise": ("chr1", 4002, "G", "T", "ref_mismatch"),
    "Y in the reference": ("chr1", 4003, "C", "T", "ok"),
    "IUPAC within a longer REF": ("chr1", 4001, "AACC", "A", "ok"),
}


@pytest.mark.parametrize("case", CASES)
def test_status(genome, tmp_path, case):
    *allele, expected = CASES[case]
    row, _ = one(genome, tmp_path, *allele)
    assert row["status"] == expected, row["reason"]


def test_all_cases_at_once_give_the_same_statuses_and_totals(genome, tmp_path):
    summary, rows, _ = prepared(genome, tmp_path, [case[:4] for case in CASES.values()])
    seen = dict(zip(CASES, (row["status"] for row in rows), strict=True))
    # The same allele under another name or case is the first one's duplicate.
    repeated = {"without chr", "lower-case alleles"}
    expected = {name: "duplicate" if name in repeated else case[4] for name, case in CASES.items()}
    assert seen == expected
    assert summary["records"] == summary["alleles"] == len(CASES)
    assert list(summary["statuses"]) == list(STATUSES)
    assert summary["contigs_unmatched"] == {"chr7": 1, "CHR1": 1}
    assert json.loads(json.dumps(summary)) == summary


def test_position_is_one_based(genome, tmp_path):
    # Position 1003 of the planted contig is the G of TTGACGGAGTT.
    _, scored = one(genome, tmp_path, "chr1", 1003, "G", "T")
    assert scored == (0, 1002, 1, "T")


@pytest.mark.parametrize(
    ("vcf", "listed", "trimmed"),
    [
        ((1003, "GAC", "G"), (1004, "AC", "-"), (0, 1003, 2, "")),
        ((1004, "A", "ACG"), (1005, "-", "CG"), (0, 1004, 0, "CG")),
    ],
)
def test_vcf_form_and_list_form_of_an_indel_are_the_same(genome, tmp_path, vcf, listed, trimmed):
    assert one(genome, tmp_path, "chr1", *vcf)[1] == trimmed
    assert one(genome, tmp_path, "chr1", *listed)[1] == trimmed
    _, rows, _ = prepared(genome, tmp_path, [("chr1", *vcf), ("chr1", *listed)])
    assert [(row["status"], row["scored_as"]) for row in rows] == [("ok", 0), ("duplicate", 0)]


def with_allele(row):
    """chr1 edited by a row of the input, as a string."""
    begin = row["pos"] - 1
    return CONTIG[:begin] + row["alt"] + CONTIG[begin + len(row["ref"]) :]


def with_scored(score):
    """chr1 edited by a scoreable allele, as a string."""
    begin = score["start"]
    return CONTIG[:begin] + score["alt"] + CONTIG[begin + score["ref_len"] :]


def test_neighbouring_deletions_keep_their_keys_and_are_scored_as_what_they_give(genome, tmp_path):
    # On ACGGAGTT at 1004: GGA>G at 1006 and GAG>G at 1007 both leave ACGGTT, the same sequence;
    # CGG>C at 1005 leaves ACAGTT.
    rows = [("chr1", 1006, "GGA", "G"), ("chr1", 1007, "GAG", "G"), ("chr1", 1005, "CGG", "C")]
    _, alleles, scores = prepared(genome, tmp_path, rows)
    assert [tuple(row[key] for key in ("chrom", "pos", "ref", "alt")) for row in alleles] == rows
    scored = {score["allele_id"]: score for score in scores}
    for row in alleles:
        assert with_scored(scored[row["scored_as"]]).upper() == with_allele(row).upper()
    assert [row["scored_as"] for row in alleles] == [0, 0, 2]


def test_every_alt_of_a_multiallelic_record_is_its_own_allele(genome, tmp_path):
    base = at(101)
    alts = [other(base), other(base, 2), "*", f"{base}TT"]
    summary, rows, scores = prepared(genome, tmp_path, [("chr1", 101, base, ",".join(alts))])
    assert (summary["records"], summary["alleles"]) == (1, 4)
    assert [row["alt"] for row in rows] == alts
    assert [row["status"] for row in rows] == ["ok", "ok", "spanning_deletion", "ok"]
    assert {row["record"] for row in rows} == {0}
    assert [row["id"] for row in rows] == ["v0"] * 4
    assert len(scores) == 3


def test_alt_dot_is_one_allele(genome, tmp_path):
    record = Record(0, 2, "chr1", 101, ".", at(101), ())
    summary, (row,), _ = prepared(genome, tmp_path, [record])
    assert (row["alt"], row["status"], summary["alleles"]) == (".", "no_alt", 1)


def test_an_empty_alt_is_malformed_and_costs_the_record_no_other(genome, tmp_path):
    base = at(101)
    _, rows, _ = prepared(genome, tmp_path, [("chr1", 101, base, f"{other(base)},,{base}T")])
    assert [row["status"] for row in rows] == ["ok", "malformed", "ok"]
    assert rows[1]["reason"] == "ALT is empty"


def test_duplicates_are_scored_once_and_reported_for_each(genome, tmp_path):
    snv = ("chr1", 101, at(101), other(at(101)))
    rows = [("chr1", 900, at(900), other(at(900))), snv, snv, ("1", *snv[1:]), snv]
    summary, alleles, scores = prepared(genome, tmp_path, rows)
    assert [row["status"] for row in alleles] == ["ok", "ok", *["duplicate"] * 3]
    assert [row["scored_as"] for row in alleles] == [0, 1, 1, 1, 1]
    assert alleles[3]["reason"] == "the same change as allele 1"
    assert [score["allele_id"] for score in scores] == [1, 0]
    assert summary["statuses"]["duplicate"] == 3


def test_an_insertion_after_a_contig_is_not_one_before_the_next(genome, tmp_path):
    rows = [("chr1", 5000, at(5000), at(5000) + "GG"), ("chr2", 1, "-", "GG")]
    _, alleles, scores = prepared(genome, tmp_path, rows)
    assert [row["status"] for row in alleles] == ["ok", "ok"]
    assert [(s["contig"], s["start"]) for s in scores] == [(0, 5000), (1, 0)]


def random_rows(n, seed):
    """SNVs and indels of chr1 and chr2 at random places, with repeats, in random order."""
    rng = random.Random(seed)
    rows = []
    for _ in range(n):
        chrom = rng.choice(["chr1", "chr2"])
        bases = GENOME[chrom]
        pos = rng.randint(1, min(len(bases), 400) - 5)
        ref = bases[pos - 1 : pos - 1 + rng.choice([1, 1, 1, 2, 4])].upper()
        alt = "".join(rng.choices("ACGT", k=rng.choice([1, 1, 1, 2, 3])))
        rows.append((chrom, pos, ref, alt))
    return rows


def test_scoreable_alleles_are_distinct_and_in_genome_order(genome, tmp_path):
    _, _, scores = prepared(genome, tmp_path, random_rows(3000, 1))
    keys = [(s["contig"], s["start"], s["ref_len"], s["alt"]) for s in scores]
    assert keys == sorted(set(keys))


def test_the_order_of_the_input_does_not_change_what_is_scored(genome, tmp_path):
    rows = random_rows(2000, 2)
    shuffled = random.Random(3).sample(rows, len(rows))
    tables, statuses = [], []
    for order in (rows, sorted(rows), shuffled):
        summary, alleles, scores = prepared(genome, tmp_path, order)
        tables.append([tuple(score.values())[1:] for score in scores])
        statuses.append(summary["statuses"])
        assert [(r["chrom"], r["pos"], r["ref"], r["alt"]) for r in alleles] == order
    assert tables[0] == tables[1] == tables[2]
    assert statuses[0] == statuses[1] == statuses[2]


@pytest.mark.parametrize(
    ("block", "bases", "region"), [(1, 1 << 26, 24), (7, 1 << 26, 4), (64, 9, 0)]
)
def test_blocks_and_regions_change_nothing(genome, tmp_path, monkeypatch, block, bases, region):
    rows = random_rows(400, 4)
    rows[50] = Malformed(50, 52, "seven columns", ("chr1", "x", ".", "A", "C"))
    rows[60:64] = [case[:4] for case in list(CASES.values())[-4:]]
    expected = prepared(genome, tmp_path, rows)
    monkeypatch.setattr(preparing, "BLOCK_RECORDS", block)
    monkeypatch.setattr(preparing, "BLOCK_BASES", bases)
    monkeypatch.setattr(preparing, "REGION_BITS", region)
    assert prepared(genome, tmp_path, rows) == expected


@pytest.mark.parametrize("chunk_size", [1, 2, 7, 100, 1000])
def test_each_allele_stands_in_one_chunk(genome, tmp_path, chunk_size):
    summary, _, scores = prepared(genome, tmp_path, random_rows(300, 5), chunk_size=chunk_size)
    file = pq.ParquetFile(tmp_path / "scoreable.parquet")
    sizes = [file.metadata.row_group(i).num_rows for i in range(file.num_row_groups)]
    assert len(sizes) == summary["chunks"]
    assert set(sizes[:-1]) <= {chunk_size}
    assert 0 < sizes[-1] <= chunk_size
    in_chunks = [
        allele_id
        for i in range(file.num_row_groups)
        for allele_id in file.read_row_group(i)["allele_id"].to_pylist()
    ]
    assert in_chunks == [score["allele_id"] for score in scores]
    assert len(set(in_chunks)) == len(in_chunks)


def test_the_classes_of_what_is_scored_are_said(genome, tmp_path):
    summary, _, scores = prepared(genome, tmp_path, random_rows(300, 5))
    lengths = np.array([(score["ref_len"], len(score["alt"])) for score in scores]).T
    found = {classes.NAMES[kind] for kind in classes.number(*lengths)}
    assert set(summary["classes"]) == found - {"snv"} != set()
    assert summary["classes"] == sorted(summary["classes"], key=classes.NAMES.index)
    assert prepared(genome, tmp_path, snvs(5))[0]["classes"] == []


@pytest.mark.parametrize("rows", [[], [("chr1", 101, "N", "<DEL>")]])
def test_nothing_to_score_gives_valid_files_without_chunks(genome, tmp_path, rows):
    summary, alleles, scores = prepared(genome, tmp_path, rows)
    assert (summary["chunks"], summary["scoreable"], scores) == (0, 0, [])
    assert len(alleles) == len(rows)
    assert pq.ParquetFile(tmp_path / "scoreable.parquet").num_row_groups == 0


def test_malformed_rows_are_reported_with_what_can_be_told(genome, tmp_path):
    rows = [
        Malformed(0, 9, "line 9: POS is 'x'", ("chr1", "x", "rs1", "A", "C")),
        Malformed(1, 10, "line 10: POS is '-1'", ("chr1", "-1", ".", "A", "C,G")),
        Malformed(2, 11, "line 11: two columns", ("chr7", "9" * 40, "", "", "")),
        Record(3, 12, "chr1", 101, ".", at(101), (other(at(101)),)),
    ]
    summary, alleles, _ = prepared(genome, tmp_path, rows)
    assert [row["status"] for row in alleles] == ["malformed"] * 3 + ["ok"]
    assert [row["pos"] for row in alleles] == [None, -1, None, 101]
    assert alleles[0]["reason"] == "line 9: POS is 'x'"
    assert (alleles[0]["id"], alleles[1]["alt"]) == ("rs1", "C,G")
    assert summary["contigs_unmatched"] == {}
    assert summary["records"] == 4


def listed(pos, ref, alt, note, chrom="chr1"):
    return Record(0, 1, chrom, pos, "rs1", ref, (alt,), note)


def test_a_list_without_ref_gets_it_from_the_reference_and_says_so(genome, tmp_path):
    base = at(2010)
    _, (row,), scores = prepared(genome, tmp_path, [listed(2010, "", other(base), NO_REF)])
    assert (row["ref"], row["alt"], row["status"]) == (base, other(base), "ok")
    assert row["reason"] == "the list has no REF: taken from the reference"
    assert tuple(scores[0].values())[1:] == (0, 2009, 1, other(base))


@pytest.mark.parametrize(
    ("pos", "chrom", "alt", "status"),
    [
        (101, "chr1", at(101), "no_alt"),
        (3001, "chr1", "A", "reference_n"),
        (5001, "chr1", "A", "out_of_contig"),
        (0, "chr1", "A", "out_of_contig"),
        (101, "chr7", "A", "unknown_contig"),
    ],
)
def test_a_ref_that_cannot_be_filled(genome, tmp_path, pos, chrom, alt, status):
    rows = [listed(pos, "", alt, NO_REF, chrom), ("chr1", 101, at(101), other(at(101)))]
    _, alleles, _ = prepared(genome, tmp_path, rows)
    assert alleles[0]["status"] == status


@pytest.mark.parametrize(
    ("pos", "allele2", "allele1", "ref", "alt", "status"),
    [
        (1003, "G", "T", "G", "T", "ok"),
        (1003, "T", "G", "G", "T", "ok"),
        (1003, "g", "t", "g", "t", "ok"),
        (1003, "A", "T", "A", "T", "ref_mismatch"),
        (1003, "GT", "G", "G", "GT", "ok"),
        (1004, "-", "AC", "-", "AC", "ok"),
        (1004, "-", "TT", "-", "TT", "ok"),
        (1004, "TT", "-", "-", "TT", "ok"),
        (1003, "G", "0", "G", "0", "not_acgt"),
        (1003, "0", "G", "G", "0", "not_acgt"),
        (1003, "I", "D", "I", "D", "not_acgt"),
    ],
)
def test_an_unknown_order_of_alleles_is_settled_by_the_reference(
    genome, tmp_path, pos, allele2, allele1, ref, alt, status
):
    record = listed(pos, allele2, allele1, ORDER_UNKNOWN)
    _, (row,), _ = prepared(genome, tmp_path, [record])
    assert (row["ref"], row["alt"], row["status"]) == (ref, alt, status)
    if status == "ok":
        assert row["reason"].startswith("allele order ")


def test_an_order_that_the_reference_cannot_settle_is_flagged(genome, tmp_path):
    # The reference has GA at 1003, so G may have lost nothing and GA nothing gained.
    _, (row,), _ = prepared(genome, tmp_path, [listed(1003, "G", "GA", ORDER_UNKNOWN)])
    assert (row["ref"], row["alt"], row["status"]) == ("G", "GA", "ok")
    assert "not settled" in row["reason"]
    _, (row,), _ = prepared(genome, tmp_path, [listed(1003, "G", "T", ORDER_UNKNOWN)])
    assert "settled by the reference" in row["reason"]


def test_a_duplicate_keeps_its_remark(genome, tmp_path):
    rows = [("chr1", 1003, "G", "T"), listed(1003, "T", "G", ORDER_UNKNOWN)]
    _, alleles, _ = prepared(genome, tmp_path, rows)
    assert alleles[1]["status"] == "duplicate"
    assert alleles[1]["reason"] == (
        "the same change as allele 0; allele order settled by the reference"
    )


def test_no_contig_in_common_shows_both_lists_and_writes_nothing(genome, tmp_path):
    rows = [(f"NC_{i:06}.1", 101, "A", "C") for i in range(8)]
    with pytest.raises(InputError, match=r"test\.vcf: none of its contigs") as error:
        prepared(genome, tmp_path, rows)
    assert "'NC_000000.1', 'NC_000001.1'" in str(error.value)
    assert "'chr1', 'chr2', 'chrM'" in str(error.value)
    assert "\n" not in str(error.value)
    assert list(tmp_path.iterdir()) == []


def snvs(n, shift=0, swap=False):
    """n SNVs of chr1; `shift` is added to POS, `swap` exchanges REF and ALT."""
    rows = []
    for pos in range(20, 20 + 5 * n, 5):
        pair = (at(pos), other(at(pos)))
        rows.append(("chr1", pos + shift, *(pair[::-1] if swap else pair)))
    return rows


@pytest.mark.parametrize(
    ("rows", "cause", "explains"),
    [
        (snvs(100, swap=True), "REF and ALT look swapped", 0),
        (snvs(100, shift=-1), "one off, too small by one", 1),
        (snvs(100, shift=1), "one off, too large by one", 2),
        (snvs(100, shift=400), "another assembly", None),
        (snvs(5, swap=True), "REF and ALT look swapped", 0),
        (snvs(5, shift=-1), "one off, too small by one", 1),
        (snvs(5, shift=1), "one off, too large by one", 2),
        (snvs(5, shift=400), "another assembly", None),
        (snvs(2) + snvs(5, swap=True)[2:], "REF and ALT look swapped", 0),
    ],
)
def test_many_wrong_refs_are_an_error_that_names_the_likely_cause(
    genome, tmp_path, rows, cause, explains
):
    wrong = [(pos, ref, alt) for _, pos, ref, alt in rows if at(pos) != ref]
    counts = (
        sum(at(pos) == alt for pos, ref, alt in wrong),
        sum(at(pos + 1) == ref for pos, ref, alt in wrong),
        sum(at(pos - 1) == ref for pos, ref, alt in wrong),
    )
    if explains is not None:
        assert counts[explains] == len(wrong)
    with pytest.raises(InputError) as error:
        prepared(genome, tmp_path, rows, max_ref_mismatch=0.01)
    message = str(error.value)
    assert f"{len(wrong)} of {len(rows)} alleles" in message
    assert cause in message
    assert f"{counts[0]} fit with REF and ALT swapped" in message
    assert f"{counts[1]} one base further on and {counts[2]} one base before" in message
    assert "\n" not in message
    assert list(tmp_path.iterdir()) == []


def test_wrong_refs_up_to_the_limit_are_flagged_and_above_it_refused(genome, tmp_path):
    rows = snvs(500)[10:] + snvs(10, swap=True)
    summary, *_ = prepared(genome, tmp_path, rows, max_ref_mismatch=0.02)
    assert summary["statuses"]["ref_alt_swapped"] == 10
    assert summary["ref_checked"] == 500
    prepared(genome, tmp_path, rows, max_ref_mismatch=0.01)  # 5 are expected: 10 are no wonder
    with pytest.raises(InputError, match="10 of 500 alleles"):
        prepared(genome, tmp_path, rows, max_ref_mismatch=0.005)


def test_no_wrong_ref_passes_where_none_is_allowed_and_all_where_all_are(genome, tmp_path):
    rows = snvs(500) + snvs(1, swap=True)
    with pytest.raises(InputError, match="1 of 501 alleles"):
        prepared(genome, tmp_path, rows, max_ref_mismatch=0)
    prepared(genome, tmp_path, snvs(5, swap=True), max_ref_mismatch=1)


def test_odd_rows_of_a_long_list_pass_and_most_of_a_short_one_do_not(genome, tmp_path):
    for wrong, right in ((1, 0), (1, 4), (2, 98), (2, 20)):
        rows = snvs(wrong, swap=True) + snvs(wrong + right)[wrong:]
        summary, *_ = prepared(genome, tmp_path, rows, max_ref_mismatch=0.01)
        assert summary["statuses"]["ref_alt_swapped"] == wrong
    for wrong, right in ((2, 0), (3, 2), (4, 1), (9, 1)):
        rows = snvs(wrong, swap=True) + snvs(wrong + right)[wrong:]
        with pytest.raises(InputError, match=f"{wrong} of {wrong + right} alleles"):
            prepared(genome, tmp_path, rows, max_ref_mismatch=0.01)


def test_alleles_over_n_do_not_count_as_another_assembly(genome, tmp_path):
    masked = [("chr1", pos, base, alt) for pos in range(3001, 3011) for base, alt in ("AC", "TG")]
    summary, rows, _ = prepared(genome, tmp_path, snvs(5) + masked, max_ref_mismatch=0.01)
    assert summary["statuses"]["reference_n"] == 20
    assert summary["ref_checked"] == 5
    assert rows[-1]["reason"] == "the reference has 'N' there"


def test_one_wrong_ref_does_not_stop_a_small_file(genome, tmp_path):
    rows = snvs(20) + snvs(1, swap=True)
    summary, _, _ = prepared(genome, tmp_path, rows, max_ref_mismatch=0.01)
    assert summary["statuses"]["ref_alt_swapped"] == 1
    summary, _, _ = prepared(genome, tmp_path, snvs(1, swap=True), max_ref_mismatch=0.01)
    assert summary["statuses"]["ref_alt_swapped"] == 1


def test_a_small_file_without_a_single_right_ref_is_refused(genome, tmp_path):
    with pytest.raises(InputError, match="2 of 2 alleles"):
        prepared(genome, tmp_path, snvs(2, swap=True), max_ref_mismatch=0.01)


def test_an_error_while_reading_leaves_the_outputs_of_before(genome, tmp_path, monkeypatch):
    def broken():
        yield from as_records(snvs(3))
        raise InputError("test.vcf, line 5: no")

    prepared(genome, tmp_path, snvs(5))
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    monkeypatch.setattr(records, "Variants", lambda *_: Given(broken))
    outputs = tmp_path / "alleles.parquet", tmp_path / "scoreable.parquet"
    with pytest.raises(InputError, match="line 5"):
        prepare(Path("test.vcf"), genome, *outputs, chunk_size=10)
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before


VCF_HEADER = (
    "##fileformat=VCFv4.2\n"
    + "".join(f"##contig=<ID={name},length={len(bases)}>\n" for name, bases in GENOME.items())
    + "#CHROM\tPOS\tID\tREF\tALT\tQUAL\tFILTER\tINFO\n"
)


def indexed_vcf(folder, rows):
    path = folder / "rows.vcf"
    lines = [f"{chrom}\t{pos}\t.\t{ref}\t{alt}\t.\t.\t.\n" for chrom, pos, ref, alt in rows]
    path.write_text(VCF_HEADER + "".join(lines))
    pysam.tabix_compress(str(path), f"{path}.gz", force=True)
    pysam.tabix_index(f"{path}.gz", preset="vcf", force=True)
    return f"{path}.gz"


def spaced_rows(seed):
    """One allele every 40 bases of chr1's first 3 kb: SNVs, MNVs, indels, complex ones."""
    rng = random.Random(seed)
    rows = []
    for pos in range(50, 2900, 40):
        ref = at(pos, rng.choice([1, 1, 2, 3, 9, 20]))
        alt = "".join(rng.choices("ACGT", k=rng.choice([1, 1, 2, 3, 12])))
        if rng.random() < 0.7 and len(ref) != len(alt):
            alt = ref[0] + alt[1:]
        if ref != alt:
            rows.append(("chr1", pos, ref, alt))
    return rows


@pytest.mark.parametrize("seed", range(5))
def test_scoreable_alleles_give_the_sequence_that_bcftools_consensus_gives(genome, tmp_path, seed):
    rows = spaced_rows(seed)
    summary, _, scores = prepared(genome, tmp_path, rows)
    assert summary["statuses"]["ok"] == len(rows)
    ours = CONTIG
    for score in reversed(scores):
        ours = ours[: score["start"]] + score["alt"] + ours[score["start"] + score["ref_len"] :]
    consensus = pysam.bcftools.consensus("-f", str(genome.fasta), indexed_vcf(tmp_path, rows))
    theirs = "".join(consensus.split(">")[1].split("\n")[1:])
    assert ours.upper() == theirs.upper()


def test_scoreable_alleles_are_as_short_as_those_of_bcftools_norm(genome, tmp_path):
    # norm also moves indels to the left; lengths and resulting sequences must be the same.
    rows = spaced_rows(11)
    scores = prepared(genome, tmp_path, rows)[2]
    vcf = indexed_vcf(tmp_path, rows)
    normalised = pysam.bcftools.norm("-f", str(genome.fasta), "-c", "e", vcf).splitlines()
    normalised = [line.split("\t") for line in normalised if not line.startswith("#")]
    assert len(normalised) == len(scores)
    for (_, pos, _, ref, alt, *_), score in zip(normalised, scores, strict=True):
        theirs = with_allele({"pos": int(pos), "ref": ref, "alt": alt})
        assert theirs.upper() == with_scored(score).upper()
        anchor = int(ref[0] == alt[0])  # VCF has no empty alleles
        assert score["ref_len"] == len(ref) - anchor
        assert len(score["alt"]) == len(alt) - anchor


@pytest.mark.parametrize("suffix", [".vcf", ".vcf.gz"])
def test_a_vcf_file_from_end_to_end(genome, tmp_path, suffix):
    rows = snvs(50)
    text = VCF_HEADER + "".join(f"{c}\t{p}\trs{p}\t{r}\t{a}\t.\t.\t.\n" for c, p, r, a in rows)
    path = tmp_path / f"input{suffix}"
    path.write_bytes(gzip.compress(text.encode()) if suffix.endswith("gz") else text.encode())
    summary = prepare(path, genome, tmp_path / "a.parquet", tmp_path / "s.parquet", chunk_size=20)
    assert summary["statuses"]["ok"] == 50
    assert summary["chunks"] == 3
    ids = pq.read_table(tmp_path / "a.parquet")["id"].to_pylist()
    assert ids == [f"rs{pos}" for _, pos, _, _ in rows]


def test_malformed_rows_of_a_file_are_an_error_or_counted(genome, tmp_path):
    path = tmp_path / "input.vcf"
    path.write_text(VCF_HEADER + "chr1\t12x\t.\tA\tC\t.\t.\t.\n")
    outputs = (tmp_path / "a.parquet", tmp_path / "s.parquet")
    with pytest.raises(InputError, match="line 6"):
        prepare(path, genome, *outputs, chunk_size=20)
    assert not outputs[0].exists()
    summary = prepare(path, genome, *outputs, chunk_size=20, malformed_rows="skip")
    assert summary["statuses"]["malformed"] == 1


@settings(max_examples=60, deadline=None)
@given(
    st.lists(
        st.tuples(
            st.sampled_from(["chr1", "1", "chr2", "chr9", "", "MT"]),
            st.integers(0, 2**31 - 1) | st.integers(0, 5002),
            st.text("ACGTNacgtR*-<>.", max_size=6),
            st.lists(st.text("ACGTN*.<>[]-DEL0", max_size=6), max_size=3),
            st.sampled_from(["", NO_REF, ORDER_UNKNOWN]),
        ),
        max_size=30,
    )
)
def test_whatever_the_records_hold_each_allele_has_one_status(genome, tmp_path_factory, rows):
    rows = [
        Record(i, i, chrom, pos, ".", ref, tuple(alts), note)
        for i, (chrom, pos, ref, alts, note) in enumerate(rows)
    ]
    n_alleles = sum(len(row.alts) or 1 for row in rows)
    rows.append(("chr2", 299, "A", "G"))  # so that not all contigs can be unknown
    summary, alleles, scores = prepared(genome, tmp_path_factory.mktemp("any"), rows)
    assert summary["alleles"] == n_alleles + 1 == len(alleles)
    assert {row["status"] for row in alleles} <= set(STATUSES)
    by_id = {score["allele_id"]: score for score in scores}
    for row in alleles:
        scored = row["status"] in ("ok", "duplicate")
        assert (row["scored_as"] in by_id) == scored
        assert scored or row["reason"]
    for score in scores:
        ends = score["start"] + score["ref_len"]
        assert 0 <= score["start"] <= ends <= genome.lengths[score["contig"]]
        assert set(score["alt"]) <= set("ACGT")
        assert score["ref_len"] or score["alt"]


@pytest.mark.usefixtures("shared_data")
def test_every_allele_of_the_real_panel_fits_its_reference(tmp_path):
    build(SHARED / "reference" / "b37.chr20.fa.gz", tmp_path / "reference")
    reference = Reference.open(tmp_path / "reference")
    assert reference.assembly == "hg19"
    panel = "b37.chr20_1-4Mb.1000G_reference_panel"
    tables = []
    for suffix in ("vcf.gz", "bcf"):
        summary = prepare(
            SHARED / "variants" / f"{panel}.{suffix}",
            reference,
            tmp_path / "alleles.parquet",
            tmp_path / "scoreable.parquet",
            chunk_size=1000,
        )
        assert summary["statuses"]["ok"] == summary["records"] == 24990
        tables.append(pq.read_table(tmp_path / "scoreable.parquet"))
    assert tables[0].equals(tables[1])
