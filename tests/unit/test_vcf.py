"""The annotated VCF, as bcftools and pysam read it, against the input as they read it."""

import gzip

import pysam
import pysam.bcftools
import pytest

from genomes import named
from veff.errors import InputError
from veff.inputs import formats, records, reference
from veff.inputs.judging import Judge
from veff.outputs import vcf

NEW = [
    '##INFO=<ID=CHERI_STATUS,Number=A,Type=String,Description="Status">',
    '##INFO=<ID=CHERI_LOGFC,Number=A,Type=Float,Description="log2 fold change">',
]
VCF = """\
##fileformat=VCFv4.3
##source=someone's caller
##contig=<ID=1,length=1000>
##contig=<ID=2,length=1000>
##INFO=<ID=DP,Number=1,Type=Integer,Description="Depth, of reads">
##INFO=<ID=DB,Number=0,Type=Flag,Description="In a database">
##FILTER=<ID=q10,Description="Below 10">
##FORMAT=<ID=GT,Number=1,Type=String,Description="Genotype">
##FORMAT=<ID=GQ,Number=1,Type=Integer,Description="Quality">
#CHROM\tPOS\tID\tREF\tALT\tQUAL\tFILTER\tINFO\tFORMAT\tone 1\ttwo
1\t5\trs1;rs2\tA\tC\t29.5\tPASS\tDP=3;DB\tGT:GQ\t0|1:35\t./.:.
1\t7\t.\tac\tG,<DEL>,*\t9\tq10\t.\tGT\t1/2\t0/3
2\t1\t.\tN\t.\t.\t.\tDP=4\tGT\t0\t0/0
2\t1\t.\tG\tT\t.\t.\tDB\tGT\t1\t0/0
"""
NO_BASES = named()
TEXTS = [
    "CHERI_STATUS=ok;CHERI_LOGFC=0.25",
    "CHERI_STATUS=ok,symbolic,spanning_deletion;CHERI_LOGFC=-1.5,.,.",
    "",
    "CHERI_STATUS=ok;CHERI_LOGFC=0",
]


def annotate(path, out, header, texts, genome=NO_BASES):
    """`vcf.annotate` with the records as they were prepared."""
    rows = list(records.read(path, "skip", genome))
    prepared = [row if isinstance(row, records.Record) else None for row in rows]
    if formats.kind(path) == "list":
        prepared = settled(rows, genome)
    return vcf.annotate(path, out, header, zip(prepared, texts, strict=True), genome)


def settled(rows, genome):
    """Records of a list as the table of alleles has them, their order of alleles settled."""
    table, _ = Judge(genome, rows, "list", 500, 1.0).block(rows)
    found = {}
    for one in table.to_pylist():
        place = [one[name] for name in ("chrom", "pos", "id", "ref")]
        before = found.setdefault(one["record"], records.Record(one["record"], 0, *place, ()))
        alts = () if one["alt"] == "." else (one["alt"],)
        found[one["record"]] = before._replace(alts=(*before.alts, *alts))
    return list(found.values())


def write(path, text):
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def sites(*rows, header="##fileformat=VCFv4.2\n"):
    return header + "#CHROM\tPOS\tID\tREF\tALT\tQUAL\tFILTER\tINFO\n" + "\n".join(rows) + "\n"


def lines(path):
    with gzip.open(path, "rt", encoding="utf-8") as file:
        return file.read().splitlines()


def body(path):
    return [line for line in lines(path) if not line.startswith("#")]


def bcftools(command, *arguments):
    return getattr(pysam.bcftools, command)(*map(str, arguments)).splitlines()


def without_new(path):
    fields = "INFO/CHERI_STATUS,INFO/CHERI_LOGFC"
    return bcftools("annotate", "--no-version", "-x", fields, path)


@pytest.fixture(params=["plain", "gzip", "bgzip", "bcf", "CRLF"])
def source(request, tmp_path):
    plain = write(tmp_path / "in.vcf", VCF)
    if request.param == "gzip":
        return write(tmp_path / "in.vcf.gz", gzip.compress(VCF.encode()))
    if request.param == "bgzip":
        pysam.tabix_compress(str(plain), str(tmp_path / "in.vcf.gz"))
        return tmp_path / "in.vcf.gz"
    if request.param == "bcf":
        pysam.bcftools.view("-Ob", "-o", str(tmp_path / "in.bcf"), str(plain), catch_stdout=False)
        return tmp_path / "in.bcf"
    if request.param == "CRLF":
        return write(tmp_path / "crlf.vcf", VCF.replace("\n", "\r\n"))
    return plain


def test_every_record_header_line_and_genotype_is_kept(source, tmp_path):
    out = tmp_path / "out.vcf.gz"
    assert annotate(source, out, NEW, TEXTS) is True
    assert without_new(out) == bcftools("view", "--no-version", source)


def test_text_input_is_kept_to_the_byte_outside_info(tmp_path):
    out = tmp_path / "out.vcf.gz"
    annotate(write(tmp_path / "in.vcf", VCF), out, NEW, TEXTS)
    before, after = VCF.splitlines(), lines(out)
    n = len(before) - 5
    assert after[:n] == before[:n]
    assert after[n : n + 2] == NEW
    for old, new, text in zip(before[n + 1 :], after[n + 3 :], TEXTS, strict=True):
        old, new = old.split("\t"), new.split("\t")
        assert old[:7] + old[8:] == new[:7] + new[8:]
        expected = [old[7] if old[7] != "." else "", text]
        assert new[7] == (";".join(filter(None, expected)) or ".")


def test_bcftools_and_pysam_read_a_value_for_each_alternate(source, tmp_path):
    out = tmp_path / "out.vcf.gz"
    annotate(source, out, NEW, TEXTS)
    assert bcftools("query", "-f", "%CHROM:%POS %CHERI_STATUS %CHERI_LOGFC\\n", out) == [
        "1:5 ok 0.25",
        "1:7 ok,symbolic,spanning_deletion -1.5,.,.",
        "2:1 . .",
        "2:1 ok 0",
    ]
    with pysam.VariantFile(str(out)) as file:
        assert [row.info.get("CHERI_LOGFC") for row in file] == [
            (0.25,),
            (-1.5, None, None),
            None,
            (0,),
        ]


def test_the_index_finds_records_and_bgzip_reads_the_whole(tmp_path):
    out = tmp_path / "out.vcf.gz"
    rows = [f"{chrom}\t{i}\t.\tA\tC\t.\t.\t." for chrom in "12" for i in range(1, 20000, 2)]
    header = "##fileformat=VCFv4.2\n##contig=<ID=1>\n##contig=<ID=2>\n"
    path = write(tmp_path / "in.vcf", sites(*rows, header=header))
    assert annotate(path, out, NEW, (f"CHERI_LOGFC={i}" for i in range(len(rows))))
    with pysam.VariantFile(str(out)) as file:
        found = [row.info["CHERI_LOGFC"] for row in file.fetch("2", 10_000, 10_003)]
        assert found == [(15000.0,), (15001.0,)]
    with pysam.VariantFile(str(out)) as file:
        assert sum(1 for _ in file) == len(rows)
    assert formats.kind(out) == "vcf"  # with the end block of bgzip


@pytest.mark.parametrize("order", [["1\t9", "1\t5"], ["1\t5", "2\t5", "1\t9"]])
def test_unsorted_records_keep_their_order_and_have_no_index(tmp_path, caplog, order):
    out = tmp_path / "out.vcf.gz"
    write(tmp_path / "out.vcf.gz.csi", "of an earlier run")
    rows = [f"{site}\t.\tA\tC\t.\t.\t." for site in order]
    path = write(tmp_path / "in.vcf", sites(*rows))
    assert annotate(path, out, NEW, ["", *TEXTS][: len(rows)]) is False
    assert "not sorted" in caplog.text
    assert bcftools("query", "-f", "%CHROM\\t%POS\\n", out) == order
    assert sorted(p.name for p in tmp_path.iterdir()) == ["in.vcf", "out.vcf.gz"]


def test_what_the_header_lacks_is_defined(tmp_path):
    path = write(
        tmp_path / "in.vcf",
        "##source=x\n"
        '##INFO=<ID=DP,Number=1,Type=Integer,Description="ID=AF">\n'
        "#CHROM\tPOS\tID\tREF\tALT\tQUAL\tFILTER\tINFO\tFORMAT\ts\n"
        "chr1\t5\t.\tA\tC\t.\tlow;far\tDP=1;AF=0.5,0.1;DB\tGT:GQ\t0/1:3\n"
        "<2>\t5\t.\tA\tC\t.\tPASS\tDB\tGT\t0/1\n",
    )
    out = tmp_path / "out.vcf.gz"
    annotate(path, out, NEW, ["CHERI_LOGFC=1", ""], named(chr1=248956422))
    assert lines(out)[0] == "##fileformat=VCFv4.2"
    said = ',Description="Not defined in the input">'
    assert lines(out)[3:-3] == [
        "##contig=<ID=chr1,length=248956422>",
        "##FILTER=<ID=low" + said,
        "##FILTER=<ID=far" + said,
        "##INFO=<ID=AF,Number=.,Type=String" + said,
        "##INFO=<ID=DB,Number=0,Type=Flag" + said,
        "##FORMAT=<ID=GT,Number=1,Type=String" + said,
        "##FORMAT=<ID=GQ,Number=.,Type=String" + said,
        *NEW,
    ]
    query = bcftools("query", "-f", "%CHROM %FILTER %AF %DB %CHERI_LOGFC[ %GT %GQ]\\n", out)
    assert query == ["chr1 low;far 0.5,0.1 1 1 0/1 3", "<2> PASS . 1 . 0/1 ."]


def test_what_htslib_refuses_is_put_right(tmp_path, caplog):
    path = write(
        tmp_path / "in.vcf",
        "#CHROM\tPOS\tID\tREF\tALT\tQUAL\tFILTER\tINFO\tFORMAT\ts\ts\n"
        "1\t5\t\tA\tC\t\tq1,q2\t0,14;X=1;;\tGT:A,B\t0/1:3\t0/0:4\n"
        "1\t6\t.\tA\tC\t.\t\t\n"
        "1\t7\t.\tA\tC\t.\t.\t.\t.\t.\t.\n",
    )
    out = tmp_path / "out.vcf.gz"
    annotate(path, out, NEW, ["CHERI_LOGFC=1", "", ""])
    assert body(out) == [
        "1\t5\t.\tA\tC\t.\tq1_q2\t0_14;X=1;CHERI_LOGFC=1\tGT:A_B\t0/1:3\t0/0:4",
        "1\t6\t.\tA\tC\t.\t.\t.\t.\t.\t.",
        "1\t7\t.\tA\tC\t.\t.\t.\t.\t.\t.",
    ]
    assert lines(out)[-4].endswith("\ts\ts_2")
    assert "s_2" in caplog.text
    assert bcftools("view", "-H", "--no-version", out) == body(out)


def test_columns_that_the_input_lacks_are_filled(tmp_path):
    path = write(tmp_path / "in.vcf", "#CHROM\tPOS\tID\tREF\tALT\n1\t5\trs1\tA\tC\n")
    out = tmp_path / "out.vcf.gz"
    annotate(path, out, NEW, ["CHERI_LOGFC=1"])
    assert bcftools("view", "-H", out) == ["1\t5\trs1\tA\tC\t.\t.\tCHERI_LOGFC=1"]


def test_annotating_the_output_again_replaces_what_was_added(tmp_path):
    first, second = tmp_path / "first.vcf.gz", tmp_path / "second.vcf.gz"
    annotate(write(tmp_path / "in.vcf", VCF), first, NEW, ["CHERI_LOGFC=9", "", "", ""])
    annotate(first, second, NEW, TEXTS)
    again = tmp_path / "again.vcf.gz"
    annotate(tmp_path / "in.vcf", again, NEW, TEXTS)
    assert lines(second) == lines(again)


def test_malformed_rows_are_left_out_and_counted(tmp_path, caplog):
    rows = ["1\t5\t.\tA\tC\t.\t.\t.", "1\tx\t.\tA\tC\t.\t.\t.", "1\t9\t.\tA\tC\t.\t.\t."]
    path, out = write(tmp_path / "in.vcf", sites(*rows)), tmp_path / "out.vcf.gz"
    annotate(path, out, NEW, ["CHERI_LOGFC=1", "CHERI_LOGFC=2", "CHERI_LOGFC=3"])
    assert bcftools("query", "-f", "%POS %CHERI_LOGFC\\n", out) == ["5 1", "9 3"]
    assert "1 malformed rows" in caplog.text


def test_bytes_that_are_not_utf8_stay_as_they_are(tmp_path):
    row = b"1\t5\t.\tA\tC\t.\t.\tNOTE=caf\xe9"
    path, out = write(tmp_path / "in.vcf", sites().encode()[:-1] + row), tmp_path / "out.vcf.gz"
    annotate(path, out, NEW, ["CHERI_LOGFC=1"])
    assert gzip.decompress(out.read_bytes()).endswith(row + b";CHERI_LOGFC=1\n")


def test_no_records_give_a_valid_empty_vcf(tmp_path):
    path, out = write(tmp_path / "in.vcf", sites()), tmp_path / "out.vcf.gz"
    assert annotate(path, out, NEW, []) is True
    assert bcftools("view", "-H", out) == []
    assert (tmp_path / "out.vcf.gz.csi").exists()


@pytest.mark.parametrize("n", [1, 3])
def test_an_error_leaves_the_earlier_output_and_nothing_half_written(tmp_path, n):
    rows = ["1\t5\t.\tA\tC\t.\t.\t.", "1\t6\t.\tA\tC\t.\t.\t."]
    path, out = write(tmp_path / "in.vcf", sites(*rows)), tmp_path / "out.vcf.gz"
    write(out, "earlier")
    prepared = list(records.read(path))
    info = [(row, "") for row in [*prepared, prepared[0]][:n]]
    with pytest.raises(InputError, match=r"record [23] is not the one that was prepared"):
        vcf.annotate(path, out, NEW, info, named())
    assert out.read_text() == "earlier"
    assert sorted(p.name for p in tmp_path.iterdir()) == ["in.vcf", "out.vcf.gz"]


# Lists. The genome's contig is GATTACAGATTACCA, positions 1 to 15; its second has IUPAC codes.


@pytest.fixture
def genome(tmp_path):
    fasta = write(tmp_path / "genome.fa", ">chr1\nGATTACAGATTACCA\n>chr2\nRNAC\n")
    reference.build(fasta, tmp_path / "genome")
    return reference.Reference.open(tmp_path / "genome")


def annotated_list(tmp_path, genome, text):
    path, out = write(tmp_path / "list.tsv", text), tmp_path / "out.vcf.gz"
    n = len(list(records.read(path, "skip")))
    annotate(path, out, NEW, ["CHERI_LOGFC=1"] * n, genome)
    form = "%CHROM %POS %ID %REF %ALT %QUAL %FILTER %CHERI_LOGFC\\n"
    assert all(line.endswith(" . . 1") for line in bcftools("query", "-f", form, out))
    return [" ".join(line.split()[:5]) for line in bcftools("query", "-f", form, out)]


@pytest.mark.parametrize(
    ("listed", "written"),
    [
        ("chr1\t3\tT\tC\trs1", "chr1 3 rs1 T C"),
        ("chr1\t5\tAC\t-\trs1", "chr1 4 rs1 TAC T"),
        ("chr1\t5\t-\tGG\trs1", "chr1 4 rs1 T TGG"),
        ("chr1\t1\tGA\t-\trs1", "chr1 1 rs1 GAT T"),
        ("chr1\t1\t-\tCC\trs1", "chr1 1 rs1 G CCG"),
        ("chr1\t16\t-\tCC\trs1", "chr1 15 rs1 A ACC"),
        ("chr2\t2\t-\tCC\trs1", "chr2 1 rs1 A ACC"),  # R is written as A
        ("chrX\t5\tAC\t-\trs1", "chrX 4 rs1 NAC N"),
    ],
)
def test_empty_alleles_of_a_list_get_the_base_before(tmp_path, genome, listed, written):
    assert annotated_list(tmp_path, genome, listed + "\n") == [written]


def test_a_reference_allele_that_a_list_lacks_is_the_references(tmp_path, genome):
    text = "chrom\tpos\talt\nchr1\t3\tC\n1\t2\tG\n"
    assert annotated_list(tmp_path, genome, text) == ["chr1 3 . T C", "1 2 . A G"]


def test_the_order_of_a_bim_is_the_references(tmp_path, genome):
    text = "1\trs1\t0\t3\tT\tC\n1\trs2\t0\t3\tC\tT\n1\trs3\t0\t3\tG\tC\n1\trs4\t0\t3\t0\tT\n"
    assert annotated_list(tmp_path, genome, text) == [
        "1 3 rs1 T C",
        "1 3 rs2 T C",
        "1 3 rs3 C G",  # neither is the reference's: as listed
        "1 3 rs4 T .",
    ]


def test_a_lists_alleles_are_those_of_the_table(tmp_path, genome):
    """Where the reference has an N both alleles may fit: the table decides, not the list."""
    path, out = write(tmp_path / "a.bim", "chr1\trs1\t0\t3\tN\tA\n"), tmp_path / "out.vcf.gz"
    (row,) = records.read(path, "skip", genome)
    for ref, alt in (("A", "N"), ("N", "A")):
        prepared = row._replace(ref=ref, alts=(alt,), note="")
        vcf.annotate(path, out, NEW, [(prepared, "CHERI_LOGFC=1")], genome)
        assert bcftools("query", "-f", "%REF %ALT\\n", out) == [f"{ref} {alt}"]
