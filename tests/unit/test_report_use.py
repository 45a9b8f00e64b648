"""Each thing that a reader can do with the report, done in a real browser."""

import csv
import io

import numpy as np
import pytest

import browser
from reported import Run
from veff.report import kept

MINUS = "\u2212"
# Names that begin alike, and longer than what a table shows.
EXPERIMENTS = tuple(f"ENCODE_CATv1_experiment_of_{t}" for t in ("liver", "heart", "lung_fetal"))
LIVER, HEART, LUNG = EXPERIMENTS
ABOUT = {LIVER: ("liver", "DNase"), HEART: ("heart", "ATAC"), LUNG: ("lung", "DNase")}
N = 300
# One visit does all of it, since a browser takes seconds to start. `found.NAME` is what a test
# below looks at.
PROBE = """
  const { csv } = await window.ready;
  await window.drawn;
  const get = (id) => document.getElementById(id);
  const form = get("filters");
  const pause = () => new Promise((then) => setTimeout(then, 50));
  const table = document.querySelector("table.top");
  const texts = (nodes) => [...nodes].map((node) => node.innerText.trim());
  const rows = () => [...table.tBodies[0].rows].map((row) => ({
    label: row.querySelector("a").textContent,
    about: row.querySelector("small")?.textContent ?? "",
    cells: Object.fromEntries([...row.cells].slice(1).map((c) => [c.dataset.label, c.innerText])),
  }));
  const found = {};
  const ask = (values) => {
    form.reset();
    for (const [name, value] of Object.entries(values)) {
      const field = form.elements[name];
      if (field.type === "checkbox") field.checked = value;
      else field.value = value;
    }
    form.dispatchEvent(new Event("input"));
    return { said: get("shown").textContent, rows: rows(), without: get("without").innerText };
  };
  const says = (values) => ask(values).said;

  found.first = ask({});
  found.overflow = document.documentElement.scrollWidth - innerWidth;
  get("next").click();
  found.second = rows();
  get("previous").click();

  // Everything printed, looked for.
  const printed = new Set([...document.querySelectorAll("table.top th a, #heat th a")].map(
    (node) => node.textContent));
  document.querySelectorAll("#heat thead span").forEach((n) => printed.add(n.textContent));
  document.querySelectorAll("[data-chart=folds] text, figcaption").forEach(
    (n) => /:/.test(n.textContent) && printed.add(n.textContent));
  found.labels = [...printed].filter((label) => label);
  found.unfound = found.labels.filter((text) => says({ text }).startsWith("0 of"));

  found.words = ask({ text: "RS7 heart" });
  found.gene = ask({ text: "gene7" });
  found.region = ask({ text: "chr1:1-1,000,000" });
  found.nothing = ask({ text: "rs300" });
  found.inGene = ask({ gene: "gene7" });
  found.experiment = ask({ experiment: EXPERIMENTS[1] });
  found.biosample = ask({ biosample: "lung" });
  found.assay = ask({ assay: "DNase" });
  found.kind = [says({ kind: "SNV" }), says({ kind: "insertion" })];
  found.p = [says({ p: "0.2" }), says({ p: "0.3" })];
  found.size = ask({ size: "0.2" });
  found.agree = ask({ agree: true });
  found.csv = await csv().text();
  ask({});

  const heading = (name) => [...table.tHead.querySelectorAll("button")]
    .find((one) => one.textContent === name);
  heading("log2 FC").click();
  found.smallest = rows();
  heading("allele").click();
  found.along = { rows: rows(), sorted: table.querySelector("[aria-sort]").textContent };
  heading("allele").focus();
  found.focused = document.activeElement === heading("allele");
  form.reset();
  await pause();
  heading("log2 FC").click();

  await new Promise((then) => setTimeout(then, 300));
  const cell = () => document.querySelector("#heat tbody td");
  cell().dispatchEvent(new Event("mouseover", { bubbles: true }));
  const heads = [...document.querySelectorAll("#heat thead tr")];
  found.heat = {
    groups: heads.map((row) => [...row.querySelectorAll("span")].map((one) => one.textContent)),
    full: [...heads.at(-1).querySelectorAll("span")].map((one) => one.title),
    cells: document.querySelectorAll("#heat td.up, #heat td.down").length,
    cell: cell().title,
  };
  get("zoom").value = "40";
  get("zoom").dispatchEvent(new Event("input"));
  found.zoomed = cell().getBoundingClientRect().width;

  cell().click();
  await pause();
  const page = get("allele");
  found.allele = {
    open: !page.hidden && get("all").hidden,
    heading: page.querySelector("h2").textContent,
    focused: document.activeElement.tagName,
    facts: page.querySelector(".facts").innerText,
    ranked: [...page.querySelectorAll(".cards tbody tr")].map((row) => texts(row.cells)),
    links: [...page.querySelectorAll(".links a")].map((a) => a.href),
    text: page.innerText,
  };
  location.hash = "top";
  await pause();
  found.back = page.hidden && !get("all").hidden;

  dispatchEvent(new Event("beforeprint"));
  found.print = { rows: table.tBodies[0].rows.length, closed: document.querySelectorAll(
    "details:not([open])").length };
  dispatchEvent(new Event("afterprint"));
  found.afterprint = table.tBodies[0].rows.length;
  return found;
"""


def alt(i):
    """An insertion every tenth."""
    return "C" if i % 10 else "AT"


def annotations():
    """What lies at each allele: gene i % 10 and its kin."""
    rows = range(N + 1)
    return {
        "closest_gene_1": [f"GENE{i % 10}" for i in rows],
        "gene_distance_1": [12_345 for _ in rows],
        "closest_gene_2": [f"SECOND{i % 50}" for i in rows],
        "peak_overlap": [True for _ in rows],
        "peak_experiments": [f"peaks_of_{i % 3}" for i in rows],
        "hits_motifs": ["GATA1" if i % 2 else "-" for i in rows],
        "max_pval": [0.125 for _ in rows],
    }


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("reader")
    return Run(folder, N, EXPERIMENTS, annotations=annotations(), about=ABOUT, alts=alt)


@pytest.fixture(scope="module")
def found(run, tmp_path_factory):
    probe = f"const EXPERIMENTS = {list(EXPERIMENTS)};" + PROBE
    page = run.report()
    said = browser.look(page, tmp_path_factory.mktemp("visit"), width=1280, probe=probe)
    assert said["errors"] == said["loaded"] == []
    assert isinstance(said["found"], dict), said["found"]
    return said["found"]


def effects(result):
    return [abs(float(row["cells"]["log2 FC"].replace(MINUS, "-"))) for row in result["rows"]]


def test_the_first_screen_has_the_largest_effects_where_and_how_sure(run, found):
    assert found["first"]["said"] == "300 of 300 alleles, shown 1 to 25"
    expected = np.sort(run.largest)[::-1][:25]
    assert effects(found["first"]) == pytest.approx(expected, rel=6e-3)
    cells = found["first"]["rows"][0]["cells"]
    best = EXPERIMENTS[np.abs(run.logfc).max(1).argmax()]
    assert cells["experiment"].splitlines() == [best, " · ".join(ABOUT[best])]
    assert (cells["p"], cells["p over all"]) == ("0.25", "0.13")
    assert cells["folds agree"] in ("0 of 2", "1 of 2", "2 of 2")


def test_next_shows_the_following_alleles(run, found):
    expected = np.sort(run.largest)[::-1][25:50]
    assert effects({"rows": found["second"]}) == pytest.approx(expected, rel=6e-3)


def test_every_printed_label_is_found(found):
    assert len(found["labels"]) > 40
    assert any(label.startswith("…") for label in found["labels"])
    assert found["unfound"] == []


def test_words_search_identifiers_and_choose_experiments(run, found):
    ids = [i for i in range(N) if str(i).startswith("7")]
    rows = found["words"]["rows"]
    assert sorted(row["about"] for row in rows) == sorted(f"rs{i}" for i in ids)
    assert {row["cells"]["experiment"].splitlines()[0] for row in rows} == {HEART}
    expected = np.sort(np.abs(run.logfc[1, ids]))[::-1]
    assert effects(found["words"]) == pytest.approx(expected, rel=6e-3)


@pytest.mark.parametrize("how", ["gene", "inGene"])
def test_a_gene_is_found(found, how):
    assert found[how]["said"].startswith("30 of 300")
    assert all("GENE7" in row["cells"]["genes"] for row in found[how]["rows"])


def test_a_region_is_found_whatever_the_contigs_prefix(found):
    rows = found["region"]["rows"]
    pos = [int(row["label"].split(":")[1].split()[0]) for row in rows]
    assert pos
    assert max(pos) <= 1_000_000
    assert not found["region"]["said"].startswith("300")


def test_an_allele_without_scores_is_found_with_the_reason(found):
    assert found["nothing"]["said"].startswith("0 of")
    assert "rs300 has no score: symbolic. a symbolic allele" in found["nothing"]["without"]


@pytest.mark.parametrize(
    ("how", "columns"), [("experiment", [1]), ("biosample", [2]), ("assay", [0, 2])]
)
def test_what_is_chosen_of_the_experiments_answers(run, found, how, columns):
    expected = np.sort(np.abs(run.logfc[columns]).max(0))[::-1][:25]
    assert effects(found[how]) == pytest.approx(expected, rel=6e-3)
    shown = {row["cells"]["experiment"].splitlines()[0] for row in found[how]["rows"]}
    assert shown == {EXPERIMENTS[i] for i in columns}


def test_classes_and_p_values_filter(found):
    assert [text.split()[0] for text in found["kind"]] == ["270", "30"]
    assert [text.split()[0] for text in found["p"]] == ["0", "300"]


def test_a_least_effect_filters(run, found):
    assert found["size"]["said"].startswith(f"{(run.largest >= 0.2).sum()} of")


def test_agreeing_folds_filter_and_choose_the_experiment(run, found):
    agree = run.agree == 2
    assert found["agree"]["said"].startswith(f"{agree.any(0).sum()} of")
    expected = np.sort(np.where(agree, np.abs(run.logfc), 0).max(0))[::-1][:25]
    assert effects(found["agree"]) == pytest.approx(expected, rel=6e-3)


def test_the_download_has_the_filtered_rows(run, found):
    rows = list(csv.DictReader(io.StringIO(found["csv"])))
    agree = run.agree == 2
    assert len(rows) == agree.any(0).sum()
    for row in rows:
        i, e = int(row["allele_id"]), EXPERIMENTS.index(row["experiment"])
        assert float(row["logfc"]) == pytest.approx(run.logfc[e, i], rel=6e-5)
        assert (row["id"], row["biosample"]) == (f"rs{i}", ABOUT[row["experiment"]][0])
        assert row["folds_agree"] == row["n_folds"] == "2"


def test_headings_sort_and_can_be_reached_by_keyboard(run, found):
    expected = np.sort(run.largest)[:25]
    assert effects({"rows": found["smallest"]}) == pytest.approx(expected, rel=6e-3)
    pos = [int(row["label"].split(":")[1].split()[0]) for row in found["along"]["rows"]]
    assert pos == sorted(pos)
    assert found["along"]["sorted"] == "allele"
    assert found["focused"]


def test_the_heat_map_groups_experiments_and_tells_them_apart(found):
    groups, names = found["heat"]["groups"]
    assert groups == ["heart · ATAC", "liver · DNase", "lung · DNase"]
    assert names == ["…heart", "…liver", "…lung_fetal"]
    assert found["heat"]["full"] == [HEART, LIVER, LUNG]
    assert found["heat"]["cells"] == 40 * 3


def test_the_heat_map_zooms(found):
    assert found["zoomed"] >= 40


def test_a_cell_opens_its_allele_with_all_experiments_ranked(run, found):
    one = found["allele"]
    i = int(run.largest.argmax())
    assert one["open"]
    assert (one["heading"], one["focused"]) == (found["first"]["rows"][0]["label"], "H2")
    assert found["heat"]["cell"].startswith(one["heading"])
    order = np.argsort(-np.abs(run.logfc[:, i]))
    assert [row[0] for row in one["ranked"]] == [EXPERIMENTS[e] for e in order]
    shown = [float(row[3].replace(MINUS, "-")) for row in one["ranked"]]
    assert shown == pytest.approx(run.logfc[order, i], rel=6e-3)
    assert [row[5] for row in one["ranked"]] == [f"{run.agree[e, i]} of 2" for e in order]
    assert f"GENE{i % 10}, SECOND{i % 50} (the first 12.3 kb away)" in one["facts"]
    assert f"peaks_of_{i % 3}" in one["facts"]
    assert ("GATA1" in one["facts"]) == bool(i % 2)


def test_an_allele_links_to_browsers_of_its_assembly(run, found):
    links = " ".join(found["allele"]["links"])
    label = found["allele"]["heading"]
    pos = int(label.split(":")[1].split()[0])
    assert (
        f"genome.ucsc.edu/cgi-bin/hgTracks?db=hg38&position=chr1:{pos - 500}-{pos + 500}" in links
    )
    assert (
        f"gnomad.broadinstitute.org/variant/1-{pos}-A-{alt(int(run.largest.argmax()))}?dataset=gnomad_r4"
        in links
    )
    assert f"www.ensembl.org/Homo_sapiens/Location/View?r=1:{pos - 500}-{pos + 500}" in links
    assert f"ncbi.nlm.nih.gov/snp/rs{int(run.largest.argmax())}" in links


def test_back_leads_to_all_alleles(found):
    assert found["back"]


def test_paper_has_all_rows_and_nothing_folded(found):
    assert found["print"] == {"rows": 300, "closed": 0}
    assert found["afterprint"] == 25


def test_nothing_stands_beyond_the_page(found):
    assert found["overflow"] <= 0


def test_above_its_room_the_page_says_what_it_leaves_out(tmp_path, monkeypatch):
    monkeypatch.setattr(kept, "N_ALLELES", 200)
    monkeypatch.setattr(kept, "N_ANSWERS", 300)
    run = Run(tmp_path, N, EXPERIMENTS, about=ABOUT)
    probe = """
      await window.ready;
      const form = document.getElementById("filters");
      const all = document.getElementById("shown").textContent;
      form.elements.experiment.value = EXPERIMENT;
      form.dispatchEvent(new Event("input"));
      return { all, one: document.getElementById("shown").textContent,
        limits: [...document.querySelectorAll(".limit")].map((one) => one.innerText) };
    """.replace("EXPERIMENT", repr(HEART))
    found = browser.look(run.report(), tmp_path, width=390, probe=probe)["found"]
    assert found["all"].startswith("200 of 200")
    first, second = found["limits"]
    assert "holds the 200 alleles with the largest effects of 300" in first
    assert "All experiments can be searched for the 100 alleles" in second
    best = np.abs(run.logfc).argmax(0)[np.argsort(-run.largest)[100:200]]
    assert found["one"].startswith(f"{100 + (best == 1).sum()} of")
