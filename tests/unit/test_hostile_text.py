"""Any text that an input can carry is in every output as it was, or is refused in one line.

A run without models: alleles are prepared, given scores by hand, collected, annotated; each file
is then read by others' readers.
"""

import csv
import gzip
import re

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pysam
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

import browser
from reported import Run
from tiny import a_fold
from veff import tables
from veff.errors import InputError
from veff.inputs import lists, preparing, records, reference
from veff.inputs.record import MOST_ALTS, Malformed
from veff.inputs.reference import Reference
from veff.models import sheet
from veff.models.biosamples import Biosample
from veff.models.experiment import Experiment
from veff.names import cut
from veff.outputs import collect, info, nearby, vcf
from veff.scoring import columns

NASTY = [
    '"',
    '""',
    'a"b',
    "'",
    "a b",
    "\\",
    "\\t",
    ",",
    ";",
    "=",
    "%3B",
    "<1>",
    "#",
    "#CHROM",
    "##x",
]
NASTY += [
    "é",
    "染色体",
    "\u202e",
    "\u2028",
    "\x85",
    "\ufeff",
    "🧬",
    "nan",
    "NA",
    "None",
    "1e5",
    "{}",
    "*",
]
NASTY += [
    "\t",
    "\r",
    "\n",
    "\r\n",
    "\0",
    "\x1b[0m",
    "\x7f",
    ".",
    "-",
    "|",
    "$(x)",
    "=1+1",
    "@x",
    "x" * 300,
]
TEXT = st.one_of(
    st.sampled_from(NASTY),
    st.text(st.characters(codec="utf-8"), min_size=1, max_size=12),
    st.lists(st.sampled_from(NASTY[:40]), min_size=1, max_size=4).map("".join),
)
CELL = TEXT.map(lambda text: re.sub(r"[\x00-\x1f\x7f]", "", text)).filter(bool)  # of one line


# Tables as text

SCHEMA = pa.schema(
    [("id", pa.string()), ("n", pa.int64()), ("x", pa.float64()), ("y", pa.bool_())]
)


def read_back(path):
    """The texts of column `id`, as three readers find them."""
    with gzip.open(path, "rt", newline="", encoding="utf-8") as file:
        by_csv = [row["id"] for row in csv.DictReader(file, delimiter="\t")]
    by_pandas = pd.read_csv(path, sep="\t", keep_default_na=False, dtype={"id": str})[
        "id"
    ].tolist()
    by_polars = pl.read_csv(
        gzip.decompress(path.read_bytes()), separator="\t", schema_overrides={"id": pl.String}
    )["id"].to_list()
    return by_csv, by_pandas, by_polars


@settings(
    max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(st.lists(TEXT.filter(lambda text: "\0" not in text), min_size=1, max_size=5))
@example(NASTY[:27])
def test_a_tsv_gives_back_whatever_text_is_in_it(tmp_path, texts):
    n = len(texts)
    table = pa.table([texts, range(n), np.arange(n) / 3, [True] * n], schema=SCHEMA)
    with tables.tsv_gz(tmp_path / "t.tsv.gz", SCHEMA) as write:
        write(table)
    assert read_back(tmp_path / "t.tsv.gz") == (texts, texts, texts)


def test_a_tsv_without_such_text_has_the_bytes_that_arrow_writes(tmp_path):
    rng = np.random.default_rng(0)
    numbers = [
        *(10.0 ** rng.uniform(-30, 30, 500) * rng.choice([-1, 1], 500)),
        0.0,
        -0.0,
        1e16,
        0.1,
    ]
    numbers += [float("nan"), float("inf"), None, 123456789.0]
    n = len(numbers)
    texts = ["plain", "a b", "é,;'", None] * (n // 4)
    table = pa.table([texts, [*range(n - 1), None], numbers, [True, False, None, True] * (n // 4)],
                     schema=SCHEMA)  # fmt: skip
    with tables.tsv_gz(tmp_path / "t.tsv.gz", SCHEMA) as write:
        write(table)
    options = pyarrow.csv.WriteOptions(include_header=False, delimiter="\t", quoting_style="none")
    pyarrow.csv.write_csv(table, tmp_path / "t.tsv", options)
    header, _, body = gzip.decompress((tmp_path / "t.tsv.gz").read_bytes()).partition(b"\n")
    assert header == b"id\tn\tx\ty"
    assert body == (tmp_path / "t.tsv").read_bytes()


# From the input to the outputs


def genome(folder, contig):
    (folder / "g.fa").write_bytes(b">" + contig.encode() + b"\n" + b"ACGT" * 100 + b"\n")
    reference.build(folder / "g.fa", folder / "genome")
    return Reference.open(folder / "genome")


def outputs(folder, variants, genome, experiment, gene):
    """Every table and the VCF of a run over `variants`, each scoreable allele with a score."""
    summary = preparing.prepare(
        variants, genome, folder / "alleles.parquet", folder / "ok.parquet", chunk_size=100
    )
    ids = pq.read_table(folder / "ok.parquet")["allele_id"].sort()
    n = len(ids)
    if not n:  # as where a list says nan
        raise InputError("nothing to score")
    (folder / "genes.bed").write_text(f"{genome.names[0]}\t1\t9\t{gene}\n", encoding="utf-8")
    nearby.write(
        folder / "near.parquet", folder / "alleles.parquet", genome, genes=folder / "genes.bed"
    )
    kinds = {name: column.kind for name, column in columns.SPREAD.items()}
    part = {"allele_id": ids, "experiment": pa.repeat(experiment, n)}
    part |= {k: pa.array(np.zeros(n, np.int32)) for k in ("group", "n_padded", "fold")}
    part |= {name: pa.array(np.full(n, 0.5)) for name in columns.SCORES}
    part |= {name: pa.array(np.ones(n)).cast(kind) for name, kind in kinds.items()}
    tables.write_parquet(folder / "part.parquet", [pa.table(part)])
    collect.collect(
        folder / "alleles.parquet",
        [[folder / "part.parquet"]],
        [[folder / "part.parquet"]],
        [experiment],
        annotations=folder / "near.parquet",
        scores=folder / "scores.parquet",
        folds_out=folder / "folds.parquet",
        samples=[Biosample(experiment, (experiment,), ("",))],
        biosamples_out=folder / "biosamples.parquet",
        summary=folder / "summary.parquet",
        summary_tsv=folder / "summary.tsv.gz",
    )
    tables.parquet_to_tsv(folder / "scores.parquet", folder / "scores.tsv.gz")
    models = [Experiment(experiment, (a_fold(experiment),))]
    per = info.PerExperiment(folder / "scores.parquet", models, 1, summary["alleles"])
    texts = info.texts(folder / "summary.parquet", per)
    vcf.annotate(variants, folder / "out.vcf.gz", info.header(per), texts, genome)


def told(error):
    assert "\n" not in str(error)
    assert "\r" not in str(error)


def check(folder, id, contig, experiment, gene):
    """That all readers agree on what is in the outputs, and that it is what was given."""
    for name in ("summary", "scores"):
        tsv, parquet = folder / f"{name}.tsv.gz", folder / f"{name}.parquet"
        assert set(pq.read_table(parquet)["id"].to_pylist()) == {id}
        assert pl.read_parquet(parquet)["chrom"].to_list()[0] == contig
        assert {id} == {text for texts in read_back(tsv) for text in texts}
        text = {"keep_default_na": False, "dtype": str}
        for row in pd.read_csv(tsv, sep="\t", **text).to_dict("records"):
            assert row["chrom"] == contig
            assert row["max_experiment" if name == "summary" else "experiment"] == experiment
            assert row.get("closest_gene_1", gene) == gene
    with pysam.VariantFile(str(folder / "out.vcf.gz")) as file:
        (row,) = file
        assert (row.chrom, row.id or ".", row.pos, row.ref, row.alts) == (
            contig,
            id,
            5,
            "A",
            ("C",),
        )
        assert row.info["CHERI_STATUS"] == ("ok",)
        assert row.info["CHERI_MAX_LOGFC"] == (0.5,)
        assert [row.info[key] for key in row.info if key.startswith("CHERI_LOGFC")] == [(0.5,)]
        return dict(row.info)


def sheet_takes(folder, name):
    """Whether a model sheet may have an experiment of that name."""
    (folder / "m.torch").touch()
    with open(folder / "sheet.tsv", "w", newline="", encoding="utf-8") as file:
        rows = csv.writer(file, delimiter="\t")
        rows.writerows([["experiment", "checkpoint"], [name, str(folder / "m.torch")]])
    try:
        (one,) = sheet.read(folder / "sheet.tsv")
    except InputError as error:
        told(error)
        return False
    return one.name == name


KINDS = settings(
    max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


@KINDS
@given(TEXT, TEXT)
@example('rs"1', "x")
@example("rs1", '"')
@example("\x85", "\u2028")
def test_the_text_of_an_id_and_of_an_info_field_of_a_vcf(tmp_path, id, value):
    row = f"c\t5\t{id}\tA\tC\t.\t.\tX={value}"
    (tmp_path / "v.vcf").write_bytes(
        b"##fileformat=VCFv4.2\n#CHROM\tPOS\tID\tREF\tALT\tQUAL\tFILTER\tINFO\n"
        + row.encode()
        + b"\n"
    )
    try:
        outputs(tmp_path, tmp_path / "v.vcf", genome(tmp_path, "c"), "e", "g")
    except InputError as error:
        assert re.search(r"[\x00-\x1f\x7f]", id + value)
        return told(error)
    fields = check(tmp_path, id, "c", "e", "g")
    if not re.search(r"[;=,%\x00-\x1f]", value) and value not in (".", ""):
        assert fields["X"] == (value,)


@KINDS
@given(CELL)
@example("#c")
@example("##c")
@example("a,b")
@example("<c>")
@example('"')
def test_the_name_of_a_contig(tmp_path, contig):
    if contig.split() != [contig] or contig.startswith(">"):
        return
    (tmp_path / "v.csv").write_text(
        f'chrom,pos,ref,alt,id\n"{contig.replace(chr(34), chr(34) * 2)}",5,A,C,rs1\n',
        encoding="utf-8",
    )
    try:
        outputs(tmp_path, tmp_path / "v.csv", genome(tmp_path, contig), "e", "g")
    except InputError as error:
        return told(error)
    check(tmp_path, "rs1", contig, "e", "g")


@KINDS
@given(TEXT)
@example("a\tb")
@example("a\rb")
@example('a"b')
def test_the_text_of_a_cell_of_a_csv(tmp_path, id):
    with open(tmp_path / "v.csv", "w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([["chrom", "pos", "ref", "alt", "id"], ["c", 5, "A", "C", id]])
    try:
        outputs(tmp_path, tmp_path / "v.csv", genome(tmp_path, "c"), "e", "g")
    except InputError as error:
        assert re.search(r"[\x00-\x1f\x7f]", id)
        return told(error)
    # A list's words for none are none, and quotes around a cell are taken off, as R writes them.
    bare = re.sub(r'^"(.*)"$', r"\1", id.strip()).strip()
    check(tmp_path, "." if bare in ("", *lists._NOT_KNOWN) else bare, "c", "e", "g")


@KINDS
@given(TEXT.map(str.strip).filter(bool), CELL.map(str.strip).filter(bool))
@example('a"b', 'g"1')
@example(".", "g")
@example("a;b=c,d", "g")
def test_the_names_of_an_experiment_and_of_a_gene(tmp_path, experiment, gene):
    if not sheet_takes(tmp_path, experiment):
        assert re.search(r"[\x00-\x1f\x7f]", experiment) or len(experiment) > 25
        return
    (tmp_path / "v.csv").write_text("chrom,pos,ref,alt,id\nc,5,A,C,rs1\n")
    outputs(tmp_path, tmp_path / "v.csv", genome(tmp_path, "c"), experiment, gene)
    fields = check(tmp_path, "rs1", "c", experiment, gene)
    if experiment != ".":  # a VCF's word for none
        assert fields["CHERI_MAX_EXP"] == (experiment.translate(info.UNSAFE),)


# What the report's table has of its alleles.
SHOWN = """() => [...document.querySelector("table.top").tBodies[0].rows].map((row) => [
  row.querySelector("a").textContent, row.querySelector("small").textContent,
  ...[...row.cells].map((cell) => cell.textContent)])"""


@settings(KINDS, max_examples=2)
@given(st.lists(CELL.map(str.strip).filter(bool), min_size=20, max_size=20))
@example(["</script><script>window.ran = 1</script>", "{{7*7}}", "\u202ea", "&amp;", "<td>"] * 4)
def test_the_texts_of_a_report_as_chromium_shows_them(chromium, tmp_path, texts):
    """Of a contig, an ID, a gene and an experiment; long ones are cut."""
    n, contig = len(texts), "c" + re.sub(r"\s", "", texts[0])
    genes = [f"g{text}" for text in texts] + ["-"]

    def name(own):
        """Each ID has another text."""
        return own + " " + texts[int(re.sub(r"\D", "", own) or 0) % n]

    named = Run(
        tmp_path,
        n,
        name=name,
        chrom=contig,
        annotations={"closest_gene_1": genes, "gene_distance_1": [0] * (n + 1)},
    )
    with browser.opened(chromium, named.report(contig=contig)) as page:
        rows = page.evaluate(SHOWN)
        assert page.evaluate("window.ran || 0") == 0
    assert len(rows) == n
    ids = [cut(name(f"rs{i}")) for i in range(n)]
    assert sorted(id for _, id, *_ in rows) == sorted(ids)
    for allele, id, *cells in rows:
        assert allele.startswith(f"{cut(contig, 20)}:")
        assert cut(genes[ids.index(id)], 200) in cells
        assert {cut(name(one), 60) for one in ("liver", "heart")} & set(cells)


@pytest.mark.parametrize(
    ("cells", "says"),
    [
        (["a\tb", 5, "A", "C", "x"], r"'\\t', a control character"),
        (["c", 5, "A", "C", "a\rb"], r"'\\r', a control character"),
        (["c", 5, "A", "C", "a\x1bb"], r"'\\x1b', a control character"),
        ([5, "#c", "A", "C", "x"], "'#c' is no name of a contig"),
    ],
)
def test_what_no_vcf_can_hold_is_refused_with_line_and_reason(tmp_path, cells, says):
    with open(tmp_path / "v.csv", "w", newline="") as file:
        heads = ["chrom", "pos"] if isinstance(cells[1], int) else ["pos", "chrom"]
        good = ["c", 5] if isinstance(cells[1], int) else [5, "c"]
        rows = [[*heads, "ref", "alt", "id"], [*good, "A", "C", "x"], cells]
        csv.writer(file).writerows(rows)
    with pytest.raises(InputError, match=f"line 3: {says}") as error:
        list(records.read(tmp_path / "v.csv"))
    told(error.value)
    *_, bad = records.read(tmp_path / "v.csv", "skip")
    assert not re.search(r"[\x00-\x1f\x7f]", "".join(bad.fields))


@pytest.mark.parametrize("n", [MOST_ALTS, MOST_ALTS + 1, 100_000])
def test_a_record_of_more_alts_than_htslib_counts_is_refused(tmp_path, n):
    with open(tmp_path / "v.vcf", "w") as file:
        file.write("##fileformat=VCFv4.2\n##contig=<ID=c>\n")
        file.write("#CHROM\tPOS\tID\tREF\tALT\tQUAL\tFILTER\tINFO\n")
        file.write(f"c\t5\t.\tA\t{','.join('C' * n)}\t.\t.\t.\n")
    (row,) = records.read(tmp_path / "v.vcf", "skip")
    loudness = pysam.set_verbosity(0)
    try:
        with pysam.VariantFile(str(tmp_path / "v.vcf")) as file:
            assert [len(one.alts) for one in file] == [n]
        readable = True
    except OSError:
        readable = False
    finally:
        pysam.set_verbosity(loudness)
    assert isinstance(row, Malformed) is not readable
    if not readable:
        with pytest.raises(InputError, match=f"line 4: {n:,} alternate alleles"):
            list(records.read(tmp_path / "v.vcf"))


def test_the_fields_of_an_earlier_run_are_gone_whatever_its_experiments_were(tmp_path):
    (tmp_path / "v.vcf").write_text(
        "##fileformat=VCFv4.2\n##contig=<ID=c>\n"
        '##INFO=<ID=CHERI_LOGFC_old,Number=A,Type=Float,Description="of a run before">\n'
        '##INFO=<ID=X,Number=1,Type=Integer,Description="the input\'s own">\n'
        "#CHROM\tPOS\tID\tREF\tALT\tQUAL\tFILTER\tINFO\n"
        "c\t5\trs1\tA\tC\t.\t.\tCHERI_LOGFC_old=9;X=3;CHERI_STATUS=no_alt;CHERI_undefined\n"
    )
    outputs(tmp_path, tmp_path / "v.vcf", genome(tmp_path, "c"), "new", "g")
    fields = check(tmp_path, "rs1", "c", "new", "g")
    assert fields["X"] == 3
    text = gzip.decompress((tmp_path / "out.vcf.gz").read_bytes()).decode()
    assert "CHERI_LOGFC_old" not in text
    assert "CHERI_undefined" not in text
    assert "CHERI_LOGFC_new" in fields
