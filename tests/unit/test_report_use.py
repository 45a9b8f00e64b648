"""Each thing that a reader can do with the report, done in a real browser with mouse and keys."""

import csv
import re

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
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
        "n_biosamples": [90 for _ in rows],
        "n_biosamples_significant": [12 for _ in rows],
        "n_biosamples_within_noise": [2 for _ in rows],
        "tau": [0.875 for _ in rows],
        "max_qval": [0.05 if i < 40 else 0.06 for i in rows],
        "max_fwer": [0.01 if i < 7 else 1.0 for i in rows],
    }


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("reader")
    return Run(folder, N, EXPERIMENTS, annotations=annotations(), about=ABOUT, alts=alt)


@pytest.fixture(scope="module")
def neighbour(run):
    """The first of the two alleles that are closest to each other."""
    return int(np.diff(run.pos[:N]).argmin())


def in_biosamples(run):
    """Of the allele of the largest effect, by rank."""
    empty = {"organ": None, "life_stage": None, "assays": None, "significant": True}
    one = empty | {"allele_id": int(run.largest.argmax()), "pooled_pval": 0.001}
    return [
        one | dict(zip(("biosample", "rank", "pooled_logfc", *TIES), values, strict=True))
        for values in (
            ("HepG2", 1, -1.5, 0.01, True),
            ("<b>liver</b>", 2, -1.25, 0.2, True),
            ("lung", 3, 0.5, 0.1, False),
            ("heart", 4, 0.25, None, None),
        )
    ]


TIES = ("pooled_se", "within_noise_of_best")


@pytest.fixture(scope="module")
def opened(run, neighbour, chromium, tmp_path_factory):
    """With genes, peaks and profiles planted around that allele, and peaks of its experiment."""
    folder = tmp_path_factory.mktemp("around")
    at = int(run.pos[neighbour])
    best = EXPERIMENTS[np.abs(run.logfc[:, neighbour]).argmax()]
    beds = {
        "genes": [(at - 400, at - 100, "NEAR"), (at + 1500, at + 1800, "FAR")],
        "peaks": [(at - 50, at + 50, "x"), (at + 9000, at + 9100, "x")],
        "of": [(at - 10, at + 20, "x")],
    }
    for name, rows in beds.items():
        lines = [f"chr1\t{start}\t{end}\t{text}\n" for start, end, text in rows]
        (folder / f"{name}.bed").write_text("".join(lines))
    alternate = [1.0] * 1000
    alternate[700], alternate[300], alternate[400] = 4.0, 0.5, None
    row = {"allele_id": neighbour, "start": at - 501, "reference": [1.0] * 1000}
    pq.write_table(pa.Table.from_pylist([row | {"alternate": alternate}]), folder / "p.parquet")
    pq.write_table(pa.Table.from_pylist(in_biosamples(run)), folder / "biosamples.parquet")
    report = run.report(
        length=9_010_000,
        biosamples=folder / "biosamples.parquet",
        genes=folder / "genes.bed",
        peaks=folder / "peaks.bed",
        peaks_of={best: folder / "of.bed"},
        profiles=folder / "p.parquet",
    )
    with browser.opened(chromium, report) as page:
        yield page


@pytest.fixture
def page(opened):
    """The page as it is at first."""
    opened.emulate_media(media="screen", color_scheme="light")
    opened.goto(opened.url.partition("#")[0])
    opened.reload()
    opened.evaluate("window.ready")
    return opened


def said(page):
    return page.locator("#shown").inner_text()


def rows(page):
    """The table: of each row its label, what stands below that, and its cells by heading."""
    return page.evaluate("""() => [...document.querySelector("table.top").tBodies[0].rows].map(
      (row) => ({
        label: row.querySelector("a").textContent,
        about: row.querySelector("small")?.textContent ?? "",
        cells: Object.fromEntries(
          [...row.cells].slice(1).map((cell) => [cell.dataset.label, cell.innerText])),
      }))""")


def value(text):
    return float(text.replace(MINUS, "-"))


def effects(page):
    return [abs(value(row["cells"]["log2 FC"])) for row in rows(page)]


def choose(page, **values):
    """Fill in what the filters ask."""
    page.get_by_text("Filters", exact=True).click()
    for name, value in values.items():
        field = page.locator(f"#filters [name={name}]")
        if value is True:
            field.check()
        elif field.evaluate("one => one.tagName") == "SELECT":
            field.select_option(value)
        else:
            field.fill(value)


def near(values):
    """As the page prints them, with three digits."""
    return pytest.approx(values, rel=6e-3)


def test_the_first_screen_has_the_largest_effects_where_and_how_sure(run, page):
    assert said(page) == "300 of 300 alleles, shown 1 to 25"
    assert effects(page) == near(np.sort(run.largest)[::-1][:25])
    first = page.locator("table.top tbody tr").first
    assert first.bounding_box()["y"] < 900
    headings = page.locator("table.top thead th")
    assert headings.count() == first.locator("th, td").count()
    cells = rows(page)[0]["cells"]
    best = EXPERIMENTS[np.abs(run.logfc).max(1).argmax()]
    assert cells["experiment"].splitlines() == [best, " · ".join(ABOUT[best])]
    assert (cells["p"], cells["p over all"]) == ("0.25", "0.13")
    assert cells["folds agree"] in ("0 of 2", "1 of 2", "2 of 2")


def test_the_alleles_on_the_lists_over_all_experiments_are_counted(page):
    text = page.locator("#top").inner_text()
    assert "40 of 300 alleles have max_qval ≤ 0.05" in text
    assert "7 have max_fwer ≤ 0.05" in text


def test_the_contents_lead_to_each_section(page):
    names = page.locator("#sections a").all_text_contents()
    assert names == page.locator("main section h2").all_text_contents()
    page.get_by_role("link", name="How the run was made").click()
    page.wait_for_function("document.querySelector('#run').getBoundingClientRect().top < 900")


def test_next_and_previous_turn_the_pages(run, page):
    page.get_by_role("button", name="Next").click()
    assert effects(page) == near(np.sort(run.largest)[::-1][25:50])
    page.get_by_role("button", name="Previous").click()
    assert effects(page) == near(np.sort(run.largest)[::-1][:25])


def test_every_printed_label_is_found(page):
    page.evaluate("window.drawn")
    labels = set()
    for place in ("table.top th a", "#heat th a", "#heat thead span", "figcaption"):
        labels.update(page.locator(place).all_text_contents())
    charts = page.locator("[data-chart=folds] text").all_text_contents()
    labels.update(text for text in charts if ":" in text)
    labels.discard("")
    assert len(labels) > 40
    assert any(label.startswith("…") for label in labels)
    search = page.get_by_label("Search")
    unfound = []
    for label in labels:
        search.fill(label)
        if said(page).startswith("0 of"):
            unfound.append(label)
    assert unfound == []


def test_words_search_identifiers_and_choose_experiments(run, page):
    page.get_by_label("Search").press_sequentially("RS7 heart")
    ids = [i for i in range(N) if str(i).startswith("7")]
    found = rows(page)
    assert sorted(row["about"] for row in found) == sorted(f"rs{i}" for i in ids)
    assert {row["cells"]["experiment"].splitlines()[0] for row in found} == {HEART}
    assert effects(page) == near(np.sort(np.abs(run.logfc[1, ids]))[::-1])


@pytest.mark.parametrize("field", ["text", "gene"])
def test_a_gene_is_found(page, field):
    choose(page, **{field: "gene7"})
    assert said(page).startswith("30 of 300")
    assert all("GENE7" in row["cells"]["genes"] for row in rows(page))


def test_a_region_is_found_whatever_the_contigs_prefix(page):
    page.get_by_label("Search").fill("chr1:1-1,000,000")
    pos = [int(row["label"].split(":")[1].split()[0]) for row in rows(page)]
    assert pos
    assert max(pos) <= 1_000_000
    assert not said(page).startswith("300")


def test_an_allele_without_scores_is_found_with_the_reason(page):
    page.get_by_label("Search").fill("rs300")
    assert said(page).startswith("0 of")
    reason = "rs300 has no score: symbolic. a symbolic allele"
    assert reason in page.locator("#without").inner_text()


@pytest.mark.parametrize(
    ("field", "chosen", "columns"),
    [("experiment", HEART, [1]), ("biosample", "lung", [2]), ("assay", "DNase", [0, 2])],
)
def test_what_is_chosen_of_the_experiments_answers(run, page, field, chosen, columns):
    choose(page, **{field: chosen})
    assert effects(page) == near(np.sort(np.abs(run.logfc[columns]).max(0))[::-1][:25])
    shown = {row["cells"]["experiment"].splitlines()[0] for row in rows(page)}
    assert shown == {EXPERIMENTS[i] for i in columns}


@pytest.mark.parametrize(
    ("filters", "n"),
    [({"kind": "SNV"}, 270), ({"kind": "insertion"}, 30), ({"p": "0.2"}, 0), ({"p": "0.3"}, 300)],
)
def test_classes_and_p_values_filter(page, filters, n):
    choose(page, **filters)
    assert said(page).startswith(f"{n} of")


def test_a_least_effect_filters(run, page):
    choose(page, size="0.2")
    assert said(page).startswith(f"{(run.largest >= 0.2).sum()} of")


def test_agreeing_folds_filter_and_choose_the_experiment(run, page):
    choose(page, agree=True)
    agree = run.agree == 2
    assert said(page).startswith(f"{agree.any(0).sum()} of")
    expected = np.where(agree, np.abs(run.logfc), 0).max(0)
    assert effects(page) == near(np.sort(expected)[::-1][:25])


def test_clear_asks_for_everything_again(page):
    choose(page, size="0.2", kind="SNV")
    page.get_by_role("button", name="Clear").click()
    page.wait_for_function("document.getElementById('shown').textContent.startsWith('300 of')")


def test_the_download_has_the_filtered_rows(run, page, tmp_path):
    choose(page, agree=True)
    with page.expect_download() as download:
        page.get_by_role("button", name="Download as CSV").click()
    assert download.value.suggested_filename == f"{run.folder.name}.csv"
    download.value.save_as(tmp_path / "rows.csv")
    with open(tmp_path / "rows.csv", newline="") as handle:
        found = list(csv.DictReader(handle))
    assert len(found) == (run.agree == 2).any(0).sum()
    for row in found:
        i, e = int(row["allele_id"]), EXPERIMENTS.index(row["experiment"])
        assert float(row["logfc"]) == pytest.approx(run.logfc[e, i], rel=6e-5)
        assert (row["id"], row["biosample"]) == (f"rs{i}", ABOUT[row["experiment"]][0])
        assert row["folds_agree"] == row["n_folds"] == "2"


def test_headings_sort_by_mouse_and_by_key(run, page):
    page.get_by_role("button", name="log2 FC").click()
    assert effects(page) == near(np.sort(run.largest)[:25])
    page.get_by_role("button", name="allele", exact=True).focus()
    page.keyboard.press("Enter")
    pos = [int(row["label"].split(":")[1].split()[0]) for row in rows(page)]
    assert pos == sorted(pos)
    assert page.locator("[aria-sort]").inner_text().strip() == "allele"


def headings(page):
    """The heat map's headings, row by row."""
    return [
        row.locator("span").all_text_contents() for row in page.locator("#heat thead tr").all()
    ]


def test_the_heat_map_groups_experiments_and_tells_them_apart(page):
    groups, names = headings(page)
    assert groups == ["heart · ATAC", "liver · DNase", "lung · DNase"]
    assert names == ["…heart", "…liver", "…lung_fetal"]
    full = page.locator("#heat thead tr").last.locator("span")
    assert [one.get_attribute("title") for one in full.all()] == [HEART, LIVER, LUNG]
    assert page.locator("#heat td.up, #heat td.down").count() == 40 * 3


def test_the_heat_map_clusters_alike_experiments(tmp_path, chromium):
    """Planted: the first and the last are copies, but for noise, and the two between too."""

    class Alike(Run):
        def alike(self, logfc):
            noise = np.random.default_rng(1).normal(0, 1e-3, logfc.shape)
            return logfc[[0, 1, 1, 0]] + noise

    names = ("a", "b", "c", "d")
    with browser.opened(chromium, Alike(tmp_path, 50, names).report()) as page:
        assert headings(page)[-1] == ["a", "b", "c", "d"]
        page.get_by_label("Order").select_option("clustered")
        first, second, third, last = headings(page)[-1]
        assert {first, second} in ({"a", "d"}, {"b", "c"})
        assert {third, last} in ({"a", "d"}, {"b", "c"})


def test_the_heat_map_shows_more_alleles(page):
    page.get_by_role("button", name="More alleles").click()
    assert page.locator("#heat tbody tr").count() == 80
    assert "80 of 300 alleles" in page.locator("#heat-shown").inner_text()


def test_the_heat_map_zooms_and_scrolls(tmp_path, chromium):
    run = Run(tmp_path, 50, [f"experiment{i}" for i in range(60)])
    with browser.opened(chromium, run.report(), width=390) as page:
        cell = page.locator("#heat tbody td").first
        zoom = page.get_by_label("Zoom")
        zoom.focus()
        page.keyboard.press("End")
        assert cell.bounding_box()["width"] >= 40
        assert page.get_by_text("Scroll sideways for more").is_visible()
        before = cell.bounding_box()["x"]
        page.locator("#heat").hover()
        page.mouse.wheel(300, 0)
        page.wait_for_function("document.getElementById('heat').scrollLeft > 0")
        assert cell.bounding_box()["x"] < before
        # The names of the alleles stay.
        assert page.locator("#heat tbody th").first.bounding_box()["x"] >= 0


def test_a_cell_says_what_it_is_and_opens_its_allele(run, page):
    label = rows(page)[0]["label"]
    cell = page.locator("#heat tbody td").first
    cell.hover()
    effect = run.logfc[1, run.largest.argmax()]
    said = page.locator("#heat-cell").inner_text()
    assert said.startswith(f"{label} in {HEART} (heart · ATAC): ")
    assert value(said.split(": ")[-1]) == near(effect)
    cell.click()
    assert page.locator("#allele h2").inner_text() == label


def test_keys_lead_through_the_cells_and_open_an_allele(run, page):
    page.locator("#heat tbody td[tabindex='0']").focus()
    for key in ("ArrowDown", "ArrowRight", "ArrowRight", "ArrowLeft"):
        page.keyboard.press(key)
    second = int(np.argsort(-run.largest, kind="stable")[1])
    said = page.locator("#heat-cell").inner_text()
    assert f" in {LIVER} " in said
    assert value(said.split(": ")[-1]) == near(run.logfc[0, second])
    # One stop for the tab key, where the reader is.
    assert page.locator("#heat [tabindex='0']").count() == 1
    page.keyboard.press("Enter")
    assert page.locator("#allele h2").inner_text() == rows(page)[1]["label"]


def largest(run, page):
    """The allele of the largest effect, its page opened."""
    page.locator("table.top tbody a").first.click()
    page.locator("#allele h2").wait_for()
    return int(run.largest.argmax())


def test_an_allele_has_a_page_with_all_experiments_ranked(run, page):
    label = rows(page)[0]["label"]
    i = largest(run, page)
    assert page.locator("#allele h2").inner_text() == label
    assert page.evaluate("document.activeElement.tagName") == "H2"
    assert not page.locator("#all").is_visible()
    table = [row.locator("th, td").all_inner_texts() for row in page.locator(".cards tr").all()]
    table = [row for row in table if row[0] in EXPERIMENTS]
    order = np.argsort(-np.abs(run.logfc[:, i]))
    assert [row[0] for row in table] == [EXPERIMENTS[e] for e in order]
    assert [value(row[3]) for row in table] == near(run.logfc[order, i])
    assert [row[5] for row in table] == [f"{run.agree[e, i]} of 2" for e in order]


def test_biosamples_are_ranked_and_share_the_first_place(run, page):
    def texts(rows):
        return [row.locator("th, td").all_inner_texts() for row in rows.all()]

    ((_, *cells),) = texts(page.locator("#biosamples tbody tr"))
    assert cells == ["HepG2", f"{MINUS}1.50", "0.001", "2", "12 of 90", "0.88"]
    largest(run, page)
    table = page.locator("#allele h3:text('In biosamples') ~ .scroll").first.locator("tbody tr")
    assert texts(table) == [
        ["1", "HepG2", f"{MINUS}1.50", "0.010", "0.001", "yes"],
        ["2", "<b>liver</b>", f"{MINUS}1.25", "0.20", "0.001", "yes"],
        ["3", "lung", "+0.500", "0.10", "0.001", "no"],
        ["4", "heart", "+0.250", "", "0.001", "not known"],
    ]


def test_an_allele_s_page_has_what_lies_there(run, page):
    i = largest(run, page)
    facts = page.locator("#allele .facts").inner_text()
    assert f"GENE{i % 10}, SECOND{i % 50} (the first 12.3 kb away)" in facts
    assert f"peaks_of_{i % 3}" in facts
    assert ("GATA1" in facts) == bool(i % 2)


def test_an_allele_s_page_has_what_each_fold_says(run, page):
    i = largest(run, page)
    order = np.argsort(-np.abs(run.logfc[:, i]))
    strips = page.locator("#allele .strip")
    for e, one in zip(order, strips.all(), strict=True):
        said = one.get_attribute("aria-label").removeprefix("folds: ")
        assert [value(text) for text in said.split(", ")] == near(run.folds[e, :, i])
        # Dots and the answer stand from left to right as the numbers do.
        at = [float(dot.get_attribute("cx")) for dot in one.locator("circle").all()]
        line = re.match(r"M([\d.]+) ", one.locator("path").last.get_attribute("d"))[1]
        numbers = [*run.folds[e, :, i], run.logfc[e, i]]
        assert np.array_equal(np.argsort([*at, float(line)]), np.argsort(numbers))


@pytest.fixture
def around(page, neighbour):
    """The page of the allele with close neighbours, its locus drawn."""
    page.goto(f"{page.url.partition('#')[0]}#allele-{neighbour}")
    page.locator("#locus svg").wait_for()
    return page


def drawn(page, kind):
    """What the locus shows: of each mark of a kind its values, by field."""
    marks = page.locator(f"#locus [aria-roledescription='{kind}']")
    labels = [one.get_attribute("aria-label") for one in marks.all()]
    return [dict(part.split(": ", 1) for part in label.split("; ")) for label in labels]


def ends(page):
    """The first and the last position of the axis."""
    axis = page.locator("#locus [aria-label^=X-axis]").get_attribute("aria-label")
    return [
        int(text.replace(",", "")) for text in re.findall(r"values from (.*) to (.*)", axis)[0]
    ]


def test_a_locus_shows_alleles_genes_and_peaks_together(run, around, neighbour):
    at = int(run.pos[neighbour])
    here = {one["href"] for one in drawn(around, "circle")}
    assert here == {f"#allele-{neighbour}", f"#allele-{neighbour + 1}"}
    bars = [(one["name"], one["at"]) for one in drawn(around, "bar")]
    assert bars == [
        ("NEAR", f"{at - 399:,} to {at - 100:,}"),
        ("x", f"{at - 9:,} to {at + 20:,}"),
        ("x", f"{at - 49:,} to {at + 50:,}"),
    ]
    texts = around.locator("#locus text").all_text_contents()
    best = EXPERIMENTS[np.abs(run.logfc[:, neighbour]).argmax()]
    assert {"NEAR", "peaks", f"peaks of {best}"} <= set(texts)


def outline(page, kind):
    """The corners of each path of a kind in the locus: which base of the window, and how high."""
    found = []
    for one in page.locator(f"#locus .mark-{kind} path").all():
        xy = [float(x) for x in re.findall(r"-?[\d.]+(?:e-?\d+)?", one.get_attribute("d"))]
        x, y = np.array(xy).reshape(-1, 2).T
        found.append((np.round(x / x.max() * 999).astype(int), -y))
    return found


def test_a_locus_shows_the_profiles_of_both_alleles_and_their_difference(around):
    """Planted: one read a bp, but of the alternate 4 at base 700, 0.5 at 300 and none at 400."""
    assert {"reference", "alternate"} <= set(around.locator("#locus text").all_text_contents())
    (base, reference), (alternate_base, alternate) = outline(around, "line")
    assert len(base) == 1000
    assert np.ptp(reference) == 0
    assert set(base) - set(alternate_base) == {400}
    high = alternate - reference[0]
    assert set(alternate_base[high != 0]) == {300, 700}
    assert high.max() == pytest.approx(3 / -0.5 * high.min(), rel=1e-3)
    assert alternate_base[high.argmax()] == 700
    (base, more), (_, less) = outline(around, "area")
    assert base[more.argmax()] == 700
    assert base[less.argmin()] == 300
    colours = [one.get_attribute("fill") for one in around.locator("#locus .mark-area path").all()]
    assert colours == ["var(--up-mark)", "var(--down-mark)"]


def test_a_locus_widens_and_moves(run, around, neighbour):
    at = int(run.pos[neighbour])
    assert ends(around) == [at - 500, at + 500]
    around.get_by_label("Width").select_option("5 kb")
    around.get_by_text("FAR", exact=True).wait_for()
    assert ends(around) == [at - 2500, at + 2500]
    around.get_by_label("to the right").press("Enter")
    around.wait_for_function(f"document.body.innerHTML.includes('{at + 5000:,}')")
    assert ends(around) == [at, at + 5000]
    for _ in range(4):
        around.get_by_label("to the right").click()
    around.get_by_text("no gene here").wait_for()
    assert ends(around) == [at + 5000, at + 10000]


def test_a_gene_that_a_locus_shows_is_found(run, page, neighbour):
    page.get_by_label("Search").fill("far")
    first, last = run.pos[neighbour] + np.array([1500 - 10_000, 1800 + 10_000])
    shown = (run.pos[:N] > first) & (run.pos[:N] < last)
    assert said(page).startswith(f"{shown.sum()} of 300")


def test_a_neighbour_in_a_locus_opens_its_page(run, around, neighbour):
    around.locator("#locus [aria-roledescription=circle]").last.click()
    around.wait_for_function(f"location.hash === '#allele-{neighbour + 1}'")
    label = f"1:{run.pos[neighbour + 1]} "
    assert around.locator("#allele h2").inner_text().startswith(label)
    assert "no profiles were made" in around.locator("#allele").inner_text()


def test_an_allele_links_to_browsers_of_its_assembly(run, page):
    i = largest(run, page)
    links = [one.get_attribute("href") for one in page.locator(".links a").all()]
    pos = int(page.locator("#allele h2").inner_text().split(":")[1].split()[0])
    place = f"{pos - 500}-{pos + 500}"
    assert links == [
        f"https://genome.ucsc.edu/cgi-bin/hgTracks?db=hg38&position=chr1:{place}",
        f"https://www.ensembl.org/Homo_sapiens/Location/View?r=1:{place}",
        f"https://gnomad.broadinstitute.org/variant/1-{pos}-A-{alt(i)}?dataset=gnomad_r4",
        f"https://www.ncbi.nlm.nih.gov/snp/rs{i}",
    ]


def test_back_leads_to_all_alleles_where_the_reader_was(run, page):
    page.mouse.wheel(0, 200)
    page.wait_for_function("scrollY > 100")
    was = page.evaluate("scrollY")
    page.locator("#heat th a").last.click()
    page.get_by_text("← all alleles").click()
    page.locator("#all").wait_for()
    assert not page.locator("#allele").is_visible()
    assert page.evaluate("scrollY") >= was


def test_paper_has_all_rows_and_nothing_folded(page):
    page.evaluate("""() => {
      addEventListener("beforeprint", () => (window.printed = {
        rows: document.querySelector("table.top").tBodies[0].rows.length,
        closed: document.querySelectorAll("details:not([open])").length,
      }));
    }""")
    page.pdf()
    assert page.evaluate("window.printed") == {"rows": 300, "closed": 0}
    assert len(rows(page)) == 25


def test_the_page_has_the_system_s_theme(page):
    def paper():
        return page.evaluate("getComputedStyle(document.body).backgroundColor")

    assert paper() == "rgb(255, 255, 255)"
    page.emulate_media(color_scheme="dark")
    assert paper() == "rgb(21, 24, 27)"
    page.emulate_media(media="print")
    assert paper() == "rgb(255, 255, 255)"


@pytest.mark.parametrize("width", [1280, 390])
def test_nothing_stands_beyond_the_page(run, page, width):
    page.set_viewport_size({"width": width, "height": 900})
    beyond = "document.documentElement.scrollWidth - innerWidth"
    assert page.evaluate(beyond) <= 0
    largest(run, page)
    assert page.evaluate(beyond) <= 0
    page.set_viewport_size({"width": 1280, "height": 900})


def test_above_its_room_the_page_says_what_it_leaves_out(chromium, tmp_path, monkeypatch):
    monkeypatch.setattr(kept, "N_ALLELES", 200)
    monkeypatch.setattr(kept, "N_ANSWERS", 300)
    monkeypatch.setattr(kept, "N_FOLDED", 60)
    run = Run(tmp_path, N, EXPERIMENTS, about=ABOUT)
    with browser.opened(chromium, run.report(), width=390) as page:
        assert said(page).startswith("200 of 200")
        first, second = page.locator(".limit").all_inner_texts()[:2]
        assert "holds the 200 alleles with the largest effects of 300" in first
        assert "All experiments can be searched for the 100 alleles" in second
        choose(page, experiment=HEART)
        best = np.abs(run.logfc).argmax(0)[np.argsort(-run.largest)[100:200]]
        assert said(page).startswith(f"{100 + (best == 1).sum()} of")
        order = np.argsort(-run.largest, kind="stable")
        for rank, what in ((9, "None were drawn"), (10, "folds.parquet"), (100, "scores.parquet")):
            page.goto(f"{page.url.partition('#')[0]}#allele-{order[rank]}")
            assert what in page.locator("#allele").inner_text()
            assert page.locator("#allele .strip").count() == (3 if rank < 10 else 0)
