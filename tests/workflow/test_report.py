"""What people look at, of the demo: the report, the figures, Snakemake's own report."""

import html
import zipfile

import numpy as np
import pyarrow.parquet as pq
import pyBigWig
import pytest

import browser
from named import right_and_false, truth


def top(demo, n=3):
    rows = pq.read_table(demo.outdir / "summary.parquet").to_pylist()
    scored = [row for row in rows if row["status"] == "ok"]
    return sorted(scored, key=lambda row: -abs(row["max_logfc"]))[:n]


def test_the_largest_effects_are_drawn(demo):
    expected = {f"{row['allele_id']}.{kind}" for row in top(demo) for kind in ("png", "svg")}
    assert {path.name for path in (demo.outdir / "top").glob("*.*g")} == expected


def test_attributions_are_of_the_alleles_drawn_under_their_experiments(demo):
    rows = pq.read_table(demo.outdir / "attributions.parquet").to_pylist()
    experiments = {row["allele_id"]: row["max_experiment"] for row in top(demo)}
    assert rows
    assert all(experiments[row["allele_id"]] == row["experiment"] for row in rows)


def test_tracks_hold_the_profiles_of_the_alleles_drawn(demo):
    rows = pq.read_table(demo.outdir / "profiles.parquet").to_pylist()
    assert {row["allele_id"] for row in rows} == {row["allele_id"] for row in top(demo)}
    for row in rows:
        for kind in ("reference", "alternate"):
            path = demo.outdir / f"tracks/{row['allele_id']}/{kind}.bw"
            with pyBigWig.open(str(path)) as file:
                first = max(row["start"], 0)
                last = min(row["start"] + 1000, file.chroms(row["contig"]))
                found = file.values(row["contig"], first, last)
            expected = np.array(row[kind], float)[first - row["start"] : last - row["start"]]
            assert found == pytest.approx(expected, nan_ok=True)


def test_the_planted_motif_of_each_allele_drawn_is_named(demo):
    planted = truth()
    rows = pq.read_table(demo.outdir / "motifs.parquet").to_pylist()
    first = {row["allele_id"]: row for row in reversed(rows)}
    for number in (row["allele_id"] for row in top(demo)):
        row = first[number]
        assert row["motif"] == planted[number]["motif"]
        attributed = row["experiment"] is not None
        said = ("gained", "lost") if attributed else ("strengthened", "weakened")
        assert row["verdict"] == said[planted[number]["class"] == "breaks"]
        assert row["effect_kept"] == (True if attributed else None)
        drawn = (demo.outdir / "top" / f"{number}.svg").read_text()
        assert (f"motif {row['motif']}, as it stands" in drawn) == attributed


def test_of_all_alleles_the_planted_motifs_are_named_and_no_others(demo):
    right, false = right_and_false(pq.read_table(demo.outdir / "motifs.parquet").to_pandas())
    for kind in ("SNV", "indel"):
        assert np.mean(right[kind]) >= 0.95, kind
        assert np.mean(false[kind]) <= 0.05, kind


def test_each_allele_drawn_is_said_in_words(demo):
    rows = pq.read_table(demo.outdir / "words.parquet").to_pylist()
    assert [row["allele_id"] for row in rows] == [row["allele_id"] for row in top(demo)]
    page = html.unescape((demo.outdir / "report.html").read_text())
    for row, of in zip(top(demo), rows, strict=True):
        verb = "lowers" if row["max_logfc"] < 0 else "raises"
        assert f"{row['chrom']}:{row['pos']} {verb} the predicted reads" in of["words"]
        assert of["words"] in page


def test_the_report_works_in_a_browser_and_shows_the_figures(demo, chromium):
    probe = """async () => {
      const images = () => [...document.images].filter((one) => one.checkVisibility());
      const first = document.querySelector(".top tbody tr");
      const found = {
        title: document.title,
        first: first.innerText,
        columns: document.querySelectorAll(".top thead th").length - first.cells.length,
        text: document.body.innerText,
        images: images().map((image) => image.naturalWidth),
      };
      first.querySelector(".thumbnail a").click();
      const page = document.getElementById("allele");
      while (!page.querySelector("#locus svg")) await new Promise((then) => setTimeout(then, 50));
      found.allele = page.innerText;
      found.locus = page.querySelector("#locus").textContent;
      found.figure = page.querySelector("figure img").naturalWidth;
      page.querySelector("figcaption a").click();
      await new Promise((then) => setTimeout(then, 100));
      found.back = document.querySelector("figure:target").id;
      return found;
    }"""
    with browser.opened(chromium, demo.outdir / "report.html") as page:
        found = page.evaluate(probe)
    assert found["title"] == f"{demo.outdir.name}: variant effects"
    assert found["columns"] == 0
    # Three figures, and as many thumbnails that lead to their alleles.
    assert len(found["images"]) == 6
    assert min(found["images"]) > 500
    largest = top(demo)[0]
    assert f"{largest['chrom']}:{largest['pos']}" in found["first"]
    assert largest["max_experiment"] in found["first"]
    assert "autotune: 0 benchmarks" in found["text"]
    assert "301 of 304 alleles have scores" in found["text"]
    assert f"Largest in {largest['max_experiment']}" in found["allele"]
    assert found["figure"] > 500
    assert "reads / bp" in found["locus"]
    assert "peaks" in found["locus"]
    assert found["back"] == f"figure-{largest['allele_id']}"


def test_snakemakes_own_report_holds_the_page_and_the_figures(demo):
    demo.run("--report", "report.zip", **demo.settings)
    with zipfile.ZipFile(demo.folder / "report.zip") as archive:
        names = [name.rsplit("/", 1)[-1] for name in archive.namelist()]
    assert "report.html" in names
    assert {f"{row['allele_id']}.svg" for row in top(demo)} <= set(names)
