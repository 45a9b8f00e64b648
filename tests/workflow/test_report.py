"""What people look at, of the demo: the report, the figures, Snakemake's own report."""

import zipfile

import pyarrow.parquet as pq

import browser


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


def test_the_report_works_in_a_browser_and_shows_the_figures(demo, tmp_path):
    probe = """
      const images = [...document.images];
      images.forEach((image) => { image.loading = "eager"; });
      await new Promise((after) => setTimeout(after, 2000));
      return {
        images: images.map((image) => image.naturalWidth),
        first: [...document.querySelector(".top tbody tr").cells].map((c) => c.textContent),
        text: document.body.innerText,
      };
    """
    said = browser.look(demo.outdir / "report.html", tmp_path, width=1280, probe=probe)
    assert said["errors"] == []
    assert [name for name in said["loaded"] if not name.startswith("data:")] == []
    found = said["found"]
    assert len(found["images"]) == 3
    assert min(found["images"]) > 500
    largest = top(demo)[0]
    assert {str(largest["pos"]), largest["max_experiment"]} <= set(found["first"])
    assert "autotune: 0 benchmarks" in found["text"]
    assert "301 of 304 alleles have scores" in found["text"]


def test_snakemakes_own_report_holds_the_page_and_the_figures(demo):
    demo.run("--report", "report.zip", **demo.settings)
    with zipfile.ZipFile(demo.folder / "report.zip") as archive:
        names = [name.rsplit("/", 1)[-1] for name in archive.namelist()]
    assert "report.html" in names
    assert {f"{row['allele_id']}.svg" for row in top(demo)} <= set(names)
