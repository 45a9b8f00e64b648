"""The report in a real browser, and its numbers against a plain computation."""

import base64
import json
import re
from itertools import product
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import browser
from reported import Run
from veff import report
from veff.inputs.intervals import Interval
from veff.names import cut, distinct
from veff.outputs import provenance
from veff.report import locus
from veff.report.numbers import _classes

SCRIPT = "<script>window.ran = 1</script>"
IMAGE = "\"'><img src=x onerror='window.ran = 2'>"


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    folder = tmp_path_factory.mktemp("report")
    run = Run(folder, 300)
    null = pa.table({"group": np.zeros(50, np.int32), "logfc": np.linspace(-0.1, 0.1, 50)})
    held = [{"models_sha256": [f"{i}{k}" * 32 for k in (0, 1)], "group": None} for i in (1, 0)]
    nulls = pa.concat_tables([null, null]).replace_schema_metadata({"nulls": json.dumps(held)})
    pq.write_table(nulls, folder / "null.parquet", row_group_size=50)
    return run.report(nulls=[folder / "null.parquet"])


DRAWN = """() => {
  const charts = [...document.querySelectorAll("[data-chart]")];
  return {
    names: charts.map((chart) => chart.dataset.chart),
    marks: charts.map((chart) => chart.querySelectorAll(
      ".mark-rect path, .mark-symbol path, .mark-line path, .mark-rule line").length),
    widest: document.documentElement.scrollWidth,
    width: innerWidth,
  };
}"""


@pytest.mark.parametrize("width", [1280, 390])
def test_every_chart_has_marks_and_nothing_fails_or_is_fetched(page, chromium, width):
    with browser.opened(chromium, page, width=width) as shown:
        found = shown.evaluate(DRAWN)
    assert {"effects-0", "effects-1", "volcano", "genome"} <= set(found["names"])
    assert {"agreement", "folds"} <= set(found["names"])
    assert min(found["marks"]) > 0
    assert found["widest"] <= found["width"] == width


MARKS = "</script>\u202e{{7*7}}\n<!--\"'`\\$(x)\u2028]]>&amp;%3B"


@pytest.mark.parametrize("text", [SCRIPT, IMAGE, "x" * 10_000, MARKS])
def test_a_name_from_the_input_is_shown_and_never_run(chromium, tmp_path, text):
    run = Run(tmp_path, 20, name=lambda name: text + name)
    page = run.report()
    assert page.stat().st_size < 3e6
    assert max(map(len, re.findall(r"x+", page.read_text().split("<noscript>")[0]))) < 200
    with browser.opened(chromium, page) as shown:
        shown.locator("table.top tbody a").first.click()
        assert shown.evaluate("[window.ran || 0, document.images.length]") == [0, 0]


def test_the_page_holds_the_licences_of_what_draws_its_charts(page):
    html = page.read_text()
    assert "University of Washington Interactive Data Lab\nAll rights reserved" in html
    assert "Mike Bostock\n\nPermission to use" in html


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
    rows = [r for r in values(charts(page)["agreement"]) if r["experiment"] == "liver"]
    for row in rows:
        size = np.abs(run.logfc[0])
        first, *_, last = row["class"].split()  # "0.1 to 0.3", or "over 1"
        low, above = (float(last), np.inf) if first == "over" else (float(first), float(last))
        here = (size >= low) & (size < above)
        assert row["alleles"] == here.sum()
        assert row["share"] == pytest.approx((run.agree[0][here] == 2).mean())
    assert sum(row["alleles"] for row in rows) == 300


def test_without_nulls_there_are_no_p_values(tmp_path):
    page = Run(tmp_path, 30, p=False).report()
    assert "volcano" not in charts(page)
    assert "abs_logfc.pval" not in page.read_text()


@pytest.mark.slow
def test_a_million_alleles_make_a_page_below_15_mb(tmp_path):
    assert Run(tmp_path, 1_000_000).report().stat().st_size < 15e6


def test_what_lies_around_an_allele_is_kept_and_nothing_else():
    rng = np.random.default_rng(0)
    rows = [
        Interval(contig, start, start + n, [str(k)])
        for k, (contig, start, n) in enumerate(rng.integers(1, (3, 300_000, 30_000), (400, 3)))
    ]
    loci = np.array([(1, 150_000), (1, 5_000), (2, 290_000)])
    expected = [
        row
        for row in rows
        if any(c == row.contig and row.start - 10_000 <= p <= row.end + 10_000 for c, p in loci)
    ]
    found = locus._near(rows, loci @ (locus._CONTIG, 1))
    assert 0 < len(expected) < 200
    assert found["name"] == [row.more[0] for row in expected]
    assert found["start"] == [row.start for row in expected]


def luminance(colour):
    """Relative luminance, as WCAG 2.2 defines it."""
    parts = np.array([int(colour[i : i + 2], 16) for i in (1, 3, 5)]) / 255
    linear = np.where(parts <= 0.04045, parts / 12.92, ((parts + 0.055) / 1.055) ** 2.4)
    return linear @ [0.2126, 0.7152, 0.0722]


def test_every_text_has_a_contrast_of_aa_in_both_themes_and_on_paper():
    css = (Path(report.__file__).parent / "page.css").read_text()
    themes = [
        dict(re.findall(r"(--[\w-]+): (#\w+)", t)) for t in re.findall(r":root {(.*?)}", css)
    ]
    assert len(themes) == 3
    for theme in themes:
        theme = {
            k: v if len(v) == 7 else "#" + "".join(c * 2 for c in v[1:]) for k, v in theme.items()
        }
        for text, below in product(("ink", "soft", "up", "down", "link"), ("paper", "tint")):
            light, dark = sorted(luminance(theme[f"--{x}"]) for x in (text, below))[::-1]
            assert (light + 0.05) / (dark + 0.05) >= 4.5, (text, below)


def test_names_that_are_cut_alike_stay_apart():
    assert cut("a" * 50) == "a" * 39 + "…"
    assert distinct(["a", "b", "a", "a (2)"]) == ["a", "b", "a (2)", "a (2) (2)"]


def test_a_run_on_two_gpu_models_says_so_and_a_run_on_one_does_not():
    def said(**devices):
        return provenance.mixed({"scoring": {"devices": devices}, "store": {"devices": {}}})

    assert said(H200=4) == ""
    assert said(H200=4, H100=8).startswith("scored on H100 (8 jobs), H200 (4 jobs): ")


def a_haplotype(tmp_path, *experiments):
    """What the report is given of one, with the alleles 5 and one that is on no page."""
    row = {
        "haplotype": 12,
        "contig": "1",
        "start": 1000,
        "end": 1005,
        "alleles": [5, 1_000_000],
        "variants": "1000:A>C,1006:->GG",
        "background": [7],
        "chromosomes": 3,
        "unphased": 0,
        "frequency": 0.015,
        "n_samples": 4,
        "samples": [SCRIPT, IMAGE, "c"],
        "experiment": "liver",
        "logfc": 0.1,
        "single_logfc": [1.25, -0.5],
        "sum_logfc": 0.75,
        "interaction": -0.65,
        "interaction_pval": 0.02,
    }
    more = {"group": 0, "jsd": 0.25, "logfc.pval": 0.004}
    each = [row | more | {"experiment": name} for name in experiments]
    path = tmp_path / "shown.json"
    path.write_text(json.dumps([row | {"n_experiments": 1518, "experiments": each}]))
    return path


def test_haplotypes_show_their_alleles_what_they_do_and_who_carries_them_as_text(tmp_path):
    haplotypes = a_haplotype(tmp_path, "liver", SCRIPT)
    html = Run(tmp_path, 20).report(haplotypes=haplotypes).read_text()
    section = html.split('<section id="haplotypes">')[1].split("</section>")[0]
    page = html.split('<article id="haplotype-12" hidden>')[1].split("</article>")[0]
    for part in (section, page):
        assert "<script" not in part
        assert "<img" not in part
    for part, words in (
        (section, ("1:1,000\u20131,005", "1000:A&gt;C +1.25, 1006:-&gt;GG \u22120.500")),
        (section, ("background of 1", "+0.750", "+0.100", "\u22120.650", "0.02")),
        (section, ("3 chromosomes (1.5 %)", "and 1 more")),
        (page, ("1:1,000\u20131,005, 2 alleles at once", "change the log2 reads by +0.100")),
        (page, ("3 chromosomes (1.5 %)", "1 more allele of", "Of 1,518 these 2 have the largest")),
        (page, ("liver +1.25 \u22120.500 +0.750 +0.100 0.004 0.250 \u22120.650 0.02",)),
    ):
        text = " ".join(re.sub("<[^>]*>", " ", part).split())
        for said in words:
            assert said in text


def test_a_haplotype_has_a_page_that_leads_to_its_alleles_and_back(chromium, tmp_path):
    hidden = "document.getElementById(one).hidden"
    only = f"['all', 'haplotype-12', 'allele'].every((one) => {hidden} === (one !== '{{}}'))"
    report = Run(tmp_path, 20).report(haplotypes=a_haplotype(tmp_path, "liver"))
    with browser.opened(chromium, report) as page:
        page.click("#haplotypes th a")
        page.wait_for_function(only.format("haplotype-12"))
        assert page.locator("#haplotype-12 ul a").count() == 1  # the other is not on this page
        page.click("#haplotype-12 ul a")
        page.wait_for_function(only.format("allele"))
        page.go_back()
        page.wait_for_function(only.format("haplotype-12"))
        page.click("#haplotype-12 .back")
        page.wait_for_function(only.format("all"))
        page.wait_for_function(
            "document.querySelector('#haplotypes').getBoundingClientRect().y < 5"
        )
