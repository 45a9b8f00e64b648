"""Reading VCF, BCF and lists: planted rows, and pysam as the second opinion."""

import gzip
import os
import time

import pysam
import pysam.bcftools
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from veff.errors import InputError
from veff.inputs import record, records, vcf
from veff.inputs.records import NO_REF, ORDER_UNKNOWN, Malformed, Record

HEADER = (
    "##fileformat=VCFv4.2\n"
    "##contig=<ID=1,length=1000>\n"
    "##contig=<ID=2,length=1000>\n"
    '##INFO=<ID=DP,Number=1,Type=Integer,Description="Depth">\n'
    '##FORMAT=<ID=GT,Number=1,Type=String,Description="Genotype">\n'
)
SITES = "#CHROM\tPOS\tID\tREF\tALT\tQUAL\tFILTER\tINFO\n"
SAMPLES = "#CHROM\tPOS\tID\tREF\tALT\tQUAL\tFILTER\tINFO\tFORMAT\tone\ttwo\n"
ROWS = (
    "1\t5\trs1\tA\tC\t.\t.\tDP=3\tGT\t0/1\t0/0\n"
    "1\t7\t.\tac\tG,<DEL>,*\t9\tPASS\t.\tGT\t1/2\t0/0\n"
    "2\t0\t.\tN\t.\t.\t.\t.\tGT\t./.\t0/0\n"
)
EXPECTED = [
    Record(0, 7, "1", 5, "rs1", "A", ("C",)),
    Record(1, 8, "1", 7, ".", "ac", ("G", "<DEL>", "*")),
    Record(2, 9, "2", 0, ".", "N", ()),
]


def write(path, text):
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def read(path, malformed_rows="error"):
    return list(records.read(path, malformed_rows))


def bgzip(path, text):
    with pysam.BGZFile(str(path), "wb") as file:
        file.write(text.encode())
    return path


def test_columns_of_a_vcf_become_a_record(tmp_path):
    assert read(write(tmp_path / "a.vcf", HEADER + SAMPLES + ROWS)) == EXPECTED


@pytest.mark.parametrize("name", ["a.vcf.gz", "a.vcf", "a.vcf.bgz", "a.txt"])
@pytest.mark.parametrize("packed", ["plain", "gzip", "bgzip"])
def test_compression_is_told_from_content_not_suffix(tmp_path, name, packed):
    text, path = HEADER + SAMPLES + ROWS, tmp_path / name
    if packed == "bgzip":
        bgzip(path, text)
    else:
        write(path, gzip.compress(text.encode()) if packed == "gzip" else text)
    assert read(path) == EXPECTED


def test_gzip_of_several_members_is_read_to_its_end(tmp_path):
    parts = [HEADER + SAMPLES, *ROWS.splitlines(keepends=True)]
    path = write(tmp_path / "a.vcf.gz", b"".join(gzip.compress(part.encode()) for part in parts))
    assert read(path) == EXPECTED


@pytest.mark.parametrize("packed", ["-Ob", "-Ou"])
@pytest.mark.parametrize("name", ["a.bcf", "a.vcf.gz"])
def test_bcf_gives_what_its_text_gives(tmp_path, packed, name):
    text = write(tmp_path / "text.vcf", HEADER + SAMPLES + ROWS)
    bcf = tmp_path / "b.bcf"  # bcftools goes by the suffix
    pysam.bcftools.view(packed, "-o", str(bcf), str(text), catch_stdout=False)
    bcf.rename(tmp_path / name)
    found = read(tmp_path / name)
    assert [row.line for row in found] == [1, 2, 3]
    assert [row._replace(line=0) for row in found] == [row._replace(line=0) for row in EXPECTED]


@pytest.mark.parametrize(
    "change",
    [
        lambda text: text.replace("\n", "\r\n"),
        lambda text: text.rstrip("\n"),
        lambda text: "\ufeff" + text,
        lambda text: text + "\n\r\n",
        lambda text: text.replace("0/0\n", "0/0\t\n"),
        lambda text: text.replace("##fileformat=VCFv4.2\n", "##source=x\n"),
    ],
    ids=["CRLF", "no final newline", "byte order mark", "blank end", "trailing tab", "no version"],
)
def test_text_whose_meaning_is_plain_is_accepted(tmp_path, change):
    assert read(write(tmp_path / "a.vcf", change(HEADER + SAMPLES + ROWS))) == EXPECTED


def test_rows_may_lack_the_samples_columns_altogether(tmp_path):
    path = write(tmp_path / "a.vcf", HEADER + SAMPLES + "1\t5\trs1\tA\tC\t.\t.\tDP=3\n")
    assert read(path) == EXPECTED[:1]


def test_a_header_of_five_columns_is_enough(tmp_path):
    path = write(tmp_path / "a.vcf", "#CHROM\tPOS\tID\tREF\tALT\n1\t5\trs1\tA\tC\n")
    assert read(path) == [EXPECTED[0]._replace(line=2)]


def test_header_without_rows_gives_no_records(tmp_path):
    assert read(write(tmp_path / "a.vcf", HEADER + SITES)) == []


MALFORMED = {
    "1\t\t.\tA\tC\t.\t.\t.": "position",
    "1\t.\t.\tA\tC\t.\t.\t.": "position",
    "1\t-1\t.\tA\tC\t.\t.\t.": "position",
    "1\t123abc\t.\tA\tC\t.\t.\t.": "position",
    "1\t+5\t.\tA\tC\t.\t.\t.": "position",
    "1\t1_000\t.\tA\tC\t.\t.\t.": "position",
    "1\t 5\t.\tA\tC\t.\t.\t.": "position",
    "1\t\uff15\t.\tA\tC\t.\t.\t.": "position",
    "1\t2147483648\t.\tA\tC\t.\t.\t.": "position",
    "1\t" + "9" * 5000 + "\t.\tA\tC\t.\t.\t.": "position",
    "\t5\t.\tA\tC\t.\t.\t.": "name of a contig",
    "1,2\t5\t.\tA\tC\t.\t.\t.": "name of a contig",
    "1\t5\t.\t\tC\t.\t.\t.": "missing",
    "1\t5\t.\tA\t\t.\t.\t.": "missing",
    "1\t5\t.\tA\t-\t.\t.\t.": "'-'",
    "1\t5\t.\t-\tA\t.\t.\t.": "'-'",
    "1\t5\t.\tA\tC": "5 columns where the header has 8",
    "1\t5\t.\tA": "4 columns where the header has 8",
    "1 5 . A C . . .": "1 columns where the header has 8",
    SITES.rstrip("\n"): "header line",
    "##contig=<ID=3>": "header line",
    "1\t5\tx\0\tA\tC\t.\t.\t.": "NUL",
    b"1\t5\tr\xe9s\tA\tC\t.\t.\t.": "UTF-8",
    b"\xff\t5\t.\tA\tC\t.\t.\t.": "UTF-8",
}


@pytest.mark.parametrize("row", MALFORMED)
def test_a_row_that_is_no_record_is_an_error_with_its_line_or_counted(tmp_path, row):
    bad = row if isinstance(row, bytes) else row.encode()
    good = b"1\t6\t.\tA\tC\t.\t.\t.\n"
    path = write(tmp_path / "a.vcf", HEADER.encode() + SITES.encode() + good + bad + b"\n" + good)
    with pytest.raises(InputError, match=r"a\.vcf, line 8: ") as error:
        read(path)
    assert MALFORMED[row] in str(error.value)
    assert "\n" not in str(error.value)
    assert "\r" not in str(error.value)
    before, malformed, after = read(path, "skip")
    assert (before.number, after.number, after.line) == (0, 2, 9)
    assert isinstance(malformed, Malformed)
    assert (malformed.number, malformed.line) == (1, 8)
    assert MALFORMED[row] in malformed.reason
    assert len(malformed.fields) == 5
    assert all(field.encode("utf-8") is not None for field in malformed.fields)


@given(
    st.tuples(
        st.text("1cX_.<>,#é\0", min_size=0, max_size=3),
        st.text("019+ ٣", max_size=11),
        st.text("rs.;é ", max_size=3),
        st.text("ACgN*-,", max_size=3),
        st.text("ACgN.*-,<>", max_size=5),
    )
)
@example(("1", "9" * 9, "rs1;rs2", "acgtN", "A,GT,n"))
def test_a_row_that_is_taken_as_plain_is_what_the_checks_make_of_it(row):
    plain = vcf._is_plain("\t".join((*row, ".", "PASS", "AF=é")))
    if plain:
        chrom, pos, id, ref, alt = plain.groups()
        taken = Record(0, 1, chrom, int(pos), id, ref, tuple(alt.split(",")))
        assert taken == record.parse(0, 1, *row)


def one_by_one(pieces):
    """The records of `Vcf.pieces`, without their lines, and how many came by columns."""
    found, by_columns = [], 0
    for piece in pieces:
        if isinstance(piece, list):
            found += [row._replace(line=0) for row in piece]
            continue
        by_columns += len(piece.chrom)
        columns = (column.to_pylist() for column in piece[1:])
        for number, (*row, ref, alts) in enumerate(zip(*columns, strict=True), piece.number):
            found.append(Record(number, 0, *row, ref, () if alts == ["."] else tuple(alts)))
    return found, by_columns


ODD = [
    *(row if isinstance(row, bytes) else row.encode() for row in MALFORMED),
    *(
        b"",
        b" ",
        b"1\t5\t.\tA\tC\t.\t.\t.\t",
        b"1\t5\t.\tA\tC\t.\t.\t.\tmore",
        b'1\t5\t"\tA\t"\t.\t.\t.',
    ),
    *(b"1\t5\t\tA\tC\t.\t.\t.", b"1\t5\t.\tA\tC,\t.\t.\t.", b"1\t5\t.\tA\t,C\t.\t.\t."),
    *(b"1\t5\t.\tA\t.\t.\t.\t\xff", b"1\t5\t.\tA\t<DEL>,*\t.\t.\t.\r", b"1\t5\t.\tA\tC"),
    b"1\t5\t.\tA\t" + b",".join([b"C"] * 70_000) + b"\t.\t.\t.",
]


@pytest.mark.parametrize("row", ODD)
@pytest.mark.parametrize("end", [b"\n", b""])
def test_records_by_columns_are_those_of_one_row_after_the_other(tmp_path, monkeypatch, row, end):
    monkeypatch.setattr(vcf, "BLOCK_LINES", 2)
    plain = b'chr1_alt\t012\trs1;x,y\tacG\tC,GT\t.\t.\tA=\xe9;B="\n' * 4
    path = write(tmp_path / "a.vcf", HEADER.encode() + SITES.encode() + plain + row + end)
    expected = [record._replace(line=0) for record, _ in vcf.Vcf(path)]
    found, by_columns = one_by_one(vcf.Vcf(path).pieces())
    assert found == expected
    assert by_columns >= 4


def test_a_missing_alt_among_others_is_an_error_or_costs_only_itself(tmp_path):
    path = write(tmp_path / "a.vcf", HEADER + SITES + "1\t5\t.\tA\tC,,T\t.\t.\t.\n")
    with pytest.raises(InputError, match=r"a\.vcf, line 7: an allele is missing: ALT 'C,,T'"):
        read(path)
    assert read(path, "skip") == [Record(0, 7, "1", 5, ".", "A", ("C", "", "T"))]


def test_the_fields_of_a_malformed_row_are_kept_as_far_as_they_go(tmp_path):
    path = write(tmp_path / "a.vcf", SITES + "1\tx\trs1\tA\tC\t.\t.\t.\n2\t5\trs2\n")
    first, second = read(path, "skip")
    assert first.fields == ("1", "x", "rs1", "A", "C")
    assert second.fields == ("2", "5", "rs2", "", "")


def test_a_row_cut_among_the_samples_is_not_a_record(tmp_path):
    path = write(tmp_path / "a.vcf", HEADER + SAMPLES + ROWS[:-5])
    with pytest.raises(InputError, match="line 9: 10 columns where the header has 11"):
        read(path)


COLUMNS = HEADER + SITES.rstrip("\n") + "\tFORMAT\ta\tb\n"
FAULTS_BEHIND_ALT = {
    "1\t5\t.\tA\tC\t": "1\t5\t.\tA\tC\t\t.\t.\t.\t.\t.",
    "1\t5\t.\tA\tC\t.\tPASS": "1\t5\t.\tA\tC\t.\tPASS\t.\t.\t.\t.",
    "1\t5\t.\tA\tC\t.\t.\tX\tGT": "1\t5\t.\tA\tC\t.\t.\tX\tGT\t.\t.",
    "1\t5\t.\tA\tC\t.\t.\tX\tGT\t0/1": "1\t5\t.\tA\tC\t.\t.\tX\tGT\t0/1\t.",
    "1\t5\t.\tA\tC\t.\t.\t.\tGT\t0/1\t0/1\t1/1": "1\t5\t.\tA\tC\t.\t.\t.\tGT\t0/1\t0/1",
    "1\t5\t.\tA\tC\tx\t;;\t=;\0\t::\t0/\t?": "1\t5\t.\tA\tC\tx\t;;\t=;\0\t::\t0/\t?",
}


@pytest.mark.parametrize("row", FAULTS_BEHIND_ALT)
def test_a_fault_behind_alt_costs_no_allele(tmp_path, row, caplog):
    path = write(tmp_path / "a.vcf", COLUMNS + row + "\n")
    expected = FAULTS_BEHIND_ALT[row]
    record = Record(0, 7, "1", 5, ".", "A", ("C",))
    assert list(vcf.Vcf(path)) == [(record, expected.encode())]
    assert (row != expected) == ("1 rows, the first in line 7" in caplog.text)


def test_bytes_that_are_not_utf8_do_not_matter_outside_the_five_columns(tmp_path):
    row = b"1\t5\trs1\tA\tC\t.\t.\tNOTE=caf\xe9\n"
    path = write(tmp_path / "a.vcf", HEADER.encode() + SITES.encode() + row)
    assert read(path) == EXPECTED[:1]


def test_an_info_of_five_megabytes_is_read(tmp_path):
    row = f"1\t5\trs1\tA\tC\t.\t.\tX={'A' * 5_000_000}\n"
    assert read(bgzip(tmp_path / "a.vcf.gz", HEADER + SITES + row))[0].alts == ("C",)


def test_ten_thousand_samples_are_passed_over(tmp_path):
    names = "\t".join(f"s{i}" for i in range(10_000))
    genotypes = "\t".join(["0|1:35:99"] * 10_000)
    header = HEADER + SITES.rstrip("\n") + "\tFORMAT\t" + names + "\n"
    rows = [f"1\t{i}\trs{i}\tA\tC\t.\t.\t.\tGT:DP:GQ\t{genotypes}\n" for i in range(1, 301)]
    path = write(tmp_path / "a.vcf", header + "".join(rows))
    start = time.process_time()
    found = read(path)
    took = time.process_time() - start
    assert [row.pos for row in found] == list(range(1, 301))
    assert took < 2, "27 MB of genotypes took longer than any copying of them"


@pytest.mark.parametrize("name", ["-", "/dev/stdin"])
def test_standard_input_is_refused_with_a_hint(name):
    with pytest.raises(InputError, match=r"standard input.*give a file"):
        read(name)


def test_what_is_no_regular_file_is_refused(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path, tmp_path / "pipe"):
        with pytest.raises(InputError, match="not a regular file"):
            read(path)
    with pytest.raises(InputError, match="no such file"):
        read(tmp_path / "absent.vcf")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "empty"),
        (b"\n\n", "empty"),
        (b"PK\x03\x04....", "a zip archive"),
        (b"\x28\xb5\x2f\xfd....", "Zstandard"),
        (b"\x01\x00\x02\n", "neither text nor BCF"),
        (b"##fileformat=VCFv4.2\n", "no #CHROM line"),
        (b"##fileformat=VCFv4.2\n1\t5\t.\tA\tC\t.\t.\t.\n", "line 2: .*before any #CHROM line"),
        (b"1\t5\t.\tA\tC\t.\t.\t.\n", "line 1: .*needs its header.*name the file .tsv"),
        (b"##fileformat=VCFv3.3\n" + SITES.encode(), "line 1: 'VCFv3.3'; only VCF 4"),
        (b"##format=VCRv3.2\n" + SITES.encode(), "line 1: 'VCRv3.2'; only VCF 4"),
        (b"#CHROM  POS  ID  REF  ALT\n", "line 1: columns separated by spaces"),
        (b"##x\n#CHROM\tPOSITION\tID\tREF\tALT\n", "line 2: .*expected #CHROM, POS"),
        (b"#CHROM\tPOS\tID\tREF\tALT\tINFO\n", "line 1: .*expected #CHROM, POS"),
    ],
)
def test_a_file_that_is_not_what_it_must_be_is_one_line_of_error(tmp_path, content, message):
    path = write(tmp_path / "a.vcf", content)
    with pytest.raises(InputError, match=message) as error:
        read(path, "skip")
    assert str(path) in str(error.value)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("packed", ["bgzip", "gzip", "bcf"])
def test_a_truncated_file_is_never_taken_for_a_whole_one(tmp_path, packed):
    rows = "".join(f"1\t{i}\trs{i * 7919}\tA\tC\t.\t.\tDP={i * i}\n" for i in range(1, 9000))
    text = HEADER + SITES + rows
    path = tmp_path / "whole"
    if packed == "bgzip":
        bgzip(path, text)
    elif packed == "gzip":
        write(path, gzip.compress(text.encode()))
    else:
        plain = str(write(tmp_path / "a.vcf", text))
        pysam.bcftools.view("-Ob", "-o", str(path), plain, catch_stdout=False)
    whole = path.read_bytes()
    assert len(read(path)) == 8999
    for cut in (1, 8, 28, 29, 1000, len(whole) // 2, len(whole) - 20):
        with pytest.raises(InputError, match=r"cut.*truncated"):
            read(write(tmp_path / "cut", whole[:-cut]), "skip")


# Lists


def rows_of(path):
    return [(row.chrom, row.pos, row.id, row.ref, row.alts, row.note) for row in read(path)]


@pytest.mark.parametrize(
    ("layout", "rows"),
    [
        ("original", ["chr1\t100\trs1\tA\tG", "chr1\t200\trs2\t-\tCG", "chr1\t300\t.\tAC\t-"]),
        ("chrombpnet", ["chr1\t100\tA\tG\trs1", "chr1\t200\t-\tCG\trs2", "chr1\t300\tAC\t-\t."]),
        (
            "bed",
            [
                "chr1\t99\t100\tA\tG\trs1",
                "chr1\t199\t199\t-\tCG\trs2",
                "chr1\t299\t301\tAC\t-\t.",
            ],
        ),
        ("plink2", ["chr1\trs1\t100\tA\tG", "chr1\trs2\t200\t-\tCG", "chr1\t.\t300\tAC\t-"]),
    ],
)
@pytest.mark.parametrize("packed", [False, True])
def test_the_headerless_schemas_of_variant_scorer(tmp_path, layout, rows, packed):
    text = ("\n".join(rows) + "\n").encode()
    path = write(tmp_path / "list.tsv", gzip.compress(text) if packed else text)
    assert rows_of(path) == [
        ("chr1", 100, "rs1", "A", ("G",), ""),
        ("chr1", 200, "rs2", "-", ("CG",), ""),
        ("chr1", 300, ".", "AC", ("-",), ""),
    ]


def test_a_bim_has_allele_1_as_alternate_with_its_order_in_doubt(tmp_path):
    path = write(tmp_path / "x.bim", "20\trs1\t46.567\t100\tG\tA\n20\trs2\t0\t200\t0\tA\n")
    assert rows_of(path) == [
        ("20", 100, "rs1", "A", ("G",), ORDER_UNKNOWN),
        ("20", 200, "rs2", "A", (), ORDER_UNKNOWN),
    ]


HEADED = {
    "chrom\tpos\tid\tref\talt\nchr1\t100\trs1\tA\tG,T\n": ("rs1", "A", ("G", "T"), ""),
    "#CHROM\tPOS\tREF\tALT\nchr1\t100\tA\tG\n": (".", "A", ("G",), ""),
    "Chromosome,Position,Ref,Alt,rsID\nchr1,100,A,G,rs1\n": ("rs1", "A", ("G",), ""),
    'note,chr,pos,ref,alt\n"a, b",chr1,100,A,G\n': (".", "A", ("G",), ""),
    "chr\tpos\tallele1\tallele2\tvariant_id\nchr1\t100\tA\tG\tv\n": (
        "v",
        "A",
        ("G",),
        ORDER_UNKNOWN,
    ),
    "chromosome\tbase_pair_location\teffect_allele\tother_allele\nchr1\t100\tG\tA\n": (
        ".",
        "A",
        ("G",),
        ORDER_UNKNOWN,
    ),
    "chrom\tpos\talt\nchr1\t100\tG\n": (".", "", ("G",), NO_REF),
    "chrom\tpos\tref\talt\nchr1\t100\t.\tG\n": (".", "", ("G",), NO_REF),
    "# from somewhere\n#chrom\tpos\tref\talt\n\n# more\nchr1\t100\tA\t.\n": (".", "A", (), ""),
}


@pytest.mark.parametrize("text", HEADED)
def test_a_headed_table_in_the_common_spellings(tmp_path, text):
    path = write(tmp_path / "list.txt", text)
    assert rows_of(path) == [("chr1", 100, *HEADED[text])]
    assert read(path)[0].line == text.count("\n")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("chr1\t100\tA\tG\tT\n", "line 1: .*reads as original and as chrombpnet.*header line"),
        ("chr1\t100\t200\tA\tT\n", "not certain how positions are counted"),
        ("chr1\t100\t200\tpeak\n", "match no list without headings"),
        ("a\tb\tc\td\n1\t2\tA\tC\n", "line 1: .*names no columns that are known"),
        ("chrom\tpos\tref\n1\t2\tA\n", "line 1: no column of alternate alleles"),
        ("chrom\tpos\tposition\tref\talt\n1\t2\t2\tA\tC\n", "'pos' and 'position' could both"),
        ("# nothing\n", "only comments"),
    ],
)
def test_a_list_that_cannot_be_told_asks_for_a_header(tmp_path, text, message):
    with pytest.raises(InputError, match=message):
        read(write(tmp_path / "list.tsv", text), "skip")


@pytest.mark.parametrize(
    "row", ["chr1\tx\tA\tG\trs1", "chr1\t5\t\tG\trs1", "chr1\t5\tA", "\t5\tA\tC\tx"]
)
def test_a_malformed_row_of_a_list_has_its_line(tmp_path, row):
    good = "chr1\t100\tA\tG\trs1\n"
    path = write(tmp_path / "list.tsv", good + "\n" + good + row + "\n" + good)
    with pytest.raises(InputError, match=r"list\.tsv, line 4: "):
        read(path)
    found = read(path, "skip")
    assert [row.number for row in found] == [0, 1, 2, 3]
    assert isinstance(found[2], Malformed)


def test_alleles_that_are_no_bases_do_not_hide_the_schema(tmp_path):
    rows = "".join(f"chr1\t{i}\tA\tG\trs{i}\n" for i in range(1, 6)) + "chr1\t9\tA\tX\trs9\n"
    assert rows_of(write(tmp_path / "list.tsv", rows))[-1] == ("chr1", 9, "rs9", "A", ("X",), "")


@pytest.mark.parametrize("name", ["v.vcf", "v.tsv"])
def test_lines_that_end_with_a_carriage_return_alone_are_told_as_such(tmp_path, name):
    header = "##fileformat=VCFv4.2\r#CHROM\tPOS\tID\tREF\tALT\r"
    text = f"{header if name == 'v.vcf' else ''}1\t5\trs1\tA\tC\r1\t6\trs2\tA\tC\r"
    (tmp_path / name).write_bytes(text.encode())
    with pytest.raises(InputError, match=r"lines end with a carriage return \(CR\) alone"):
        list(records.read(tmp_path / name))
