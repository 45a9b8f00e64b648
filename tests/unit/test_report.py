"""The report in a real browser, and its numbers against a plain computation."""

import base64
import json
import re

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import browser
from veff import report
from veff.inputs import reference
from veff.names import cut, distinct
from veff.outputs import provenance
from veff.report.numbers import _classes

SCRIPT = "<script>window.ran = 1</script>"
IMAGE = "\"'><img src=x onerror='window.ran = 2'>"


class Run:
    """The tables of a run that never was: `n` scored alleles, one that was not."""

    def __init__(
        self,
        folder,
        n,
        experiments=("liver", "heart"),
        name=str,
        p=True,
        chrom="1",
        annotations=None,
    ):
        rng = np.random.default_rng(0)
        self.folder, self.n = folder, n
        pos = np.sort(rng.integers(1, 9_000_000, n + 1))
        ids = np.arange(n + 1)
        status = np.where(ids < n, "ok", "symbolic")
        base = {
            "allele_id": ids,
            "record": ids,
            "chrom": pa.array([chrom] * (n + 1)),
            "pos": pos,
            "id": pa.array([name(f"rs{i}") for i in range(n + 1)]),
            "ref": pa.array([name("A")] * (n + 1)),
            "alt": pa.array([name("C")] * (n + 1)),
            "status": pa.array(status),
        }
        scored = pa.array(np.where(ids < n, ids, -1), mask=ids == n)
        reasons = pa.array([""] * n + [name("a symbolic allele")])
        self.write("alleles", base | {"reason": reasons, "scored_as": scored})
        self.logfc = rng.standard_t(3, (len(experiments), n)) * 0.1
        folds = self.logfc[:, None] + rng.normal(0, 0.05, (len(experiments), 2, n))
        self.agree = (np.sign(folds) == np.sign(self.logfc)[:, None]).sum(1)
        keys = {key: base[key][:n] for key in ("allele_id", "chrom", "pos", "id", "ref", "alt")}
        self.parts(
            "scores", keys, [(name(e), self.scores(i, p)) for i, e in enumerate(experiments)]
        )
        per_fold = [
            (name(e), {"logfc": folds[i, k], "fold": np.full(n, k, np.int32)})
            for i, e in enumerate(experiments)
            for k in (0, 1)
        ]
        self.parts("folds", keys, per_fold)
        best = np.abs(self.logfc).argmax(0) if n else np.zeros(0, int)
        largest = np.append(self.logfc[best, np.arange(n)], 0)
        mask = ids == n
        names = [name(experiments[i]) for i in best] + [None]
        summary = {
            "max_experiment": pa.array(names, pa.string()),
            "max_logfc": pa.array(largest, mask=mask),
            "max_jsd": pa.array(np.abs(largest) / 2, mask=mask),
        }
        self.write("summary", base | summary | (annotations or {}))
        self.largest = np.abs(largest[:n])
        models = [
            {
                "experiment": name(e),
                "fold": k,
                "checkpoint": f"{name(e)}.{k}",
                "sha256": f"{i}{k}" * 32,
            }
            for i, e in enumerate(experiments)
            for k in (0, 1)
        ]
        self.provenance(models, name)

    def scores(self, i, p):
        values = {
            "logfc": self.logfc[i],
            "jsd": np.abs(self.logfc[i]) / 2,
            "folds_agree": self.agree[i].astype(np.int32),
            "n_folds": np.full(self.n, 2, np.int32),
        }
        return values | ({"abs_logfc.pval": np.full(self.n, 0.25)} if p else {})

    def path(self, name):
        return self.folder / name

    def write(self, name, columns):
        pq.write_table(pa.table(columns), self.path(f"{name}.parquet"))

    def parts(self, name, keys, parts):
        group = {"group": np.zeros(self.n, np.int32)}
        tables = [
            pa.table(keys | {"experiment": pa.array([e] * self.n, pa.string())} | group | values)
            for e, values in parts
        ]
        pq.write_table(pa.concat_tables(tables), self.path(f"{name}.parquet"))

    def provenance(self, models, name):
        file = {"path": name("some.vcf"), "sha256": "0" * 64}
        tuned = {"benchmarks": 0, "jobs": 4, "autotune_hits": 8, "autotune_misses": 0}
        record = {
            "versions": {"torch": "2"},
            "config": {"variants": name("some.vcf")},
            "reference": file | {"assembly": None},
            "variants": file,
            "models": models,
            "alleles": {"statuses": {"ok": self.n, "symbolic": 1, "too_long": 0}},
            "setup": {"b1": {"gpu": "NVIDIA H200", "node": "warm", "seed": "ab"}},
            "scoring": {
                "jobs": 4,
                "devices": {"NVIDIA H200": 4},
                "seconds": 5.0,
                "allele_models_per_s": 9.0,
                "autotune": tuned | {"repaired": 0},
            },
        }
        self.path("provenance.json").write_text(json.dumps(record))

    def report(self, **more):
        fasta = self.path("genome.fa")
        fasta.write_text(">1\nACGT\n>2\nACGT\n")
        reference.build(fasta, self.path("reference"))
        tables = ("alleles", "summary", "scores", "folds")
        report.build(
            self.path("report.html"),
            **{name: self.path(f"{name}.parquet") for name in tables},
            provenance=self.path("provenance.json"),
            reference=reference.Reference.open(self.path("reference")),
            **more,
        )
        return self.path("report.html")


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    folder = tmp_path_factory.mktemp("report")
    run = Run(folder, 300)
    null = pa.table({"group": np.zeros(50, np.int32), "logfc": np.linspace(-0.1, 0.1, 50)})
    held = [{"models_sha256": [f"{i}{k}" * 32 for k in (0, 1)], "group": None} for i in (1, 0)]
    nulls = pa.concat_tables([null, null]).replace_schema_metadata({"nulls": json.dumps(held)})
    pq.write_table(nulls, folder / "null.parquet", row_group_size=50)
    return run.report(nulls=[folder / "null.parquet"])


MARKS = """
  const charts = [...document.querySelectorAll("[data-chart]")];
  return {
    names: charts.map((chart) => chart.dataset.chart),
    marks: charts.map((chart) => chart.querySelectorAll(
      ".mark-rect path, .mark-symbol path, .mark-line path, .mark-rule line").length),
    widest: document.documentElement.scrollWidth,
    width: innerWidth,
  };
"""


@pytest.mark.parametrize("width", [1280, 390])
def test_every_chart_has_marks_and_nothing_fails_or_is_fetched(page, tmp_path, width):
    said = browser.look(page, tmp_path, width=width, probe=MARKS)
    assert said["errors"] == []
    assert said["loaded"] == []
    found = said["found"]
    assert {"effects-0", "effects-1", "volcano", "genome", "heatmap"} <= set(found["names"])
    assert {"agreement", "folds"} <= set(found["names"])
    assert min(found["marks"]) > 0
    assert found["widest"] <= found["width"] == width


def test_the_table_sorts_by_a_click_and_filters_by_text(page, tmp_path):
    probe = """
      const heading = [...document.querySelectorAll(".top th")].find(
        (one) => one.textContent.trim() === "log2 FC");
      const column = (i) => [...document.querySelectorAll(".top tbody tr")]
        .filter((row) => !row.hidden).map((row) => row.cells[i].textContent);
      heading.click();
      const up = column(heading.cellIndex);
      heading.click();
      const down = column(heading.cellIndex);
      const field = document.getElementById("search");
      field.value = "RS7 1";
      field.dispatchEvent(new Event("input"));
      return { up, down, ids: column(3), said: document.getElementById("shown").textContent };
    """
    found = browser.look(page, tmp_path, width=1280, probe=probe)["found"]
    up = [float(text) for text in found["up"]]
    assert len(up) == 200
    assert up == sorted(up)
    assert found["down"] == found["up"][::-1] or sorted(map(float, found["down"])) == up
    assert found["ids"] != []
    assert all("rs7" in text for text in found["ids"])
    assert found["said"] == f"{len(found['ids'])} of 200"


@pytest.mark.parametrize("text", [SCRIPT, IMAGE, "x" * 10_000, "</script>\u202e{{7*7}}\n<!--"])
def test_a_name_from_the_input_is_shown_and_never_run(tmp_path, text):
    run = Run(tmp_path, 20, name=lambda name: text + name)
    page = run.report()
    assert page.stat().st_size < 3e6
    assert max(map(len, re.findall(r"x+", page.read_text().split("<noscript>")[0]))) < 200
    probe = "return { ran: window.ran || 0, images: document.images.length };"
    said = browser.look(page, tmp_path, width=1280, probe=probe)
    assert said["errors"] == said["loaded"] == []
    assert said["found"] == {"ran": 0, "images": 0}


def test_without_a_scoreable_allele_the_page_says_so(tmp_path):
    html = Run(tmp_path, 0).report().read_text()
    assert "No allele could be scored" in html
    assert 'data-chart="' not in html
    assert "symbolic" in html


def test_alleles_without_scores_can_be_downloaded_with_the_reason(page):
    encoded = re.search(r'href="data:text/tab[^,]*,([^"]*)"', page.read_text())[1]
    header, row = base64.b64decode(encoded).decode().splitlines()
    found = dict(zip(header.split("\t"), row.split("\t"), strict=True))
    assert (found["id"], found["status"], found["reason"]) == (
        "rs300",
        "symbolic",
        "a symbolic allele",
    )


def charts(page):
    return json.loads(re.search(r'<script id="specs"[^>]*>(.*?)</script>', page.read_text())[1])


def values(spec):
    return [row for layer in spec.get("layer", [spec]) for row in layer["data"]["values"]]


def test_histograms_count_every_allele_once(page):
    for name in ("effects-0", "effects-1"):
        bars = [row for row in values(charts(page)[name]) if row["alleles"]]
        assert sum(row["alleles"] for row in {r["from"]: r for r in bars}.values()) == 300


def test_one_large_effect_does_not_crowd_the_others_into_one_bar():
    effects = np.append(np.random.default_rng(0).normal(0, 0.01, 10_000), 3.0)
    _, edges = _classes(3.0)
    alleles = np.histogram(effects, edges)[0]
    assert alleles.sum() == len(effects)
    assert alleles.max() < 0.2 * len(effects)


def test_each_histogram_has_the_null_of_its_experiment(page):
    """50 of them between -0.1 and 0.1, scaled to 300 alleles."""
    for name in ("effects-0", "effects-1"):
        lines = {row["from"]: row["null"] for row in values(charts(page)[name])}
        assert sum(null for null in lines.values() if null > 0.5) == pytest.approx(300)


def test_the_largest_effects_are_drawn_along_the_genome(tmp_path):
    run = Run(tmp_path, 20_000)
    drawn = [row["logfc"] for row in charts(run.report())["genome"]["data"]["values"]]
    assert max(map(abs, drawn)) == pytest.approx(run.largest.max())
    assert len(drawn) <= 1002


def test_the_share_of_agreeing_folds_is_that_of_the_table(page, tmp_path):
    run = Run(tmp_path, 300)
    rows = [r for r in charts(page)["agreement"]["data"]["values"] if r["experiment"] == "liver"]
    for row in rows:
        size = np.abs(run.logfc[0])
        above = {0: 0.01, 0.01: 0.03, 0.03: 0.1, 0.1: 0.3, 0.3: 1, 1: np.inf}[row["order"]]
        here = (size >= row["order"]) & (size < above)
        assert row["alleles"] == here.sum()
        assert row["share"] == pytest.approx((run.agree[0][here] == 2).mean())
    assert sum(row["alleles"] for row in rows) == 300


def test_without_nulls_there_are_no_p_values(tmp_path):
    page = Run(tmp_path, 30, p=False).report()
    assert "volcano" not in charts(page)
    assert "abs_logfc.pval" not in page.read_text()


def test_the_table_says_what_lies_at_an_allele(tmp_path):
    genes = ["near", "far", '<b>"in"', None, None]
    annotations = {
        "closest_gene_1": genes,
        "gene_distance_1": [999, 12345, 0, None, None],
        "peak_overlap": [True, False, True, None, False],
        "peak_experiments": ["a,b", "-", "a", None, "-"],
        "hits_motifs": ["-", "GATA,SPI1", "-", None, "-"],
    }
    html = Run(tmp_path, 4, annotations=annotations).report().read_text()
    rows = re.findall(r"<tr><td.*?</tr>", html.split('class="top"')[1].split("</tbody>")[0])
    cells = {c[3]: c[-4:] for c in (re.findall(r"<td[^>]*>(.*?)</td>", row) for row in rows)}
    assert cells == {
        "rs0": ["near, 999 bp", "yes", "a,b", ""],
        "rs1": ["far, 12.3 kb", "", "", "GATA,SPI1"],
        "rs2": ["&lt;b&gt;&#34;in&#34;", "yes", "a", ""],
        "rs3": ["", "", "", ""],
    }
    assert "closest gene" not in Run(tmp_path, 4).report().read_text()


@pytest.mark.slow
def test_a_million_alleles_make_a_page_below_15_mb(tmp_path):
    assert Run(tmp_path, 1_000_000).report().stat().st_size < 15e6


def test_names_that_are_cut_alike_stay_apart():
    assert cut("a" * 50) == "a" * 39 + "…"
    assert distinct(["a", "b", "a", "a (2)"]) == ["a", "b", "a (2)", "a (2) (2)"]


def test_a_run_on_two_gpu_models_says_so_and_a_run_on_one_does_not():
    def said(**devices):
        return provenance.mixed({"scoring": {"devices": devices}})

    assert said(H200=4) == ""
    assert said(H200=4, H100=8).startswith("scored on H100 (8 jobs), H200 (4 jobs): ")
