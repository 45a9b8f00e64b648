"""Every change of a region, and a list of edits: which they are, what they do, how they look."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pyBigWig
import pytest

from tiny import GEOMETRY, Tiny
from veff import tables
from veff.edited import collecting, planning
from veff.errors import InputError
from veff.report import saturation

SPAN = GEOMETRY.output_length // 2


@pytest.fixture(scope="module")
def tiny(tmp_path_factory):
    return Tiny(tmp_path_factory.mktemp("tiny"))


@pytest.fixture
def asked(tiny, tmp_path):
    """A function that plans the rows of regions and of a list."""

    def of(regions=(), edits=(), tile=4):
        files = []
        for name, rows in (("regions.bed", regions), ("edits.bed", edits)):
            path = tmp_path / name
            path.write_text("".join("\t".join(map(str, row)) + "\n" for row in rows))
            files.append(path if rows else None)
        out = {name: tmp_path / name for name in ("virtual", "planned")}
        how = {"tile": tile, "span": SPAN, "chunk_size": 1000}
        planning.plan(*files, tiny.reference, **how, **out)
        return pq.read_table(out["planned"]).to_pylist(), pq.read_table(out["virtual"])

    return of


def scored(tiny, tmp_path, virtual, *experiments):
    answers, _ = tiny.score(virtual, *experiments)
    tables.write_parquet(tmp_path / "part", answers)
    names = [one.name for one in experiments]
    collecting.write(tmp_path / "planned", [[tmp_path / "part"]], names, tmp_path / "edits")
    return pq.read_table(tmp_path / "edits")


def test_each_base_becomes_each_other_one_and_nothing_and_tiles_are_deleted(tiny, asked):
    rows, virtual = asked([("one", 500, 510, "here"), ("two", 30, 33)])
    bases = tiny.contigs["one"]
    here = [row for row in rows if row["region"] == "here"]
    changes = {(r["start"], r["alt"]) for r in here if r["kind"] == "substitution"}
    assert changes == {(i + 1, b) for i in range(500, 510) for b in "ACGT" if b != bases[i]}
    assert [r["start"] for r in here if r["kind"] == "deletion"] == list(range(501, 511))
    tiles = [(r["start"], r["end"], r["ref"]) for r in here if r["kind"] == "tiled_deletion"]
    places = [(500, 504), (504, 508), (508, 510)]
    assert tiles == [(i + 1, j, bases[i:j]) for i, j in places]
    assert {r["region"] for r in rows} == {"here", "two:31-33"}
    # In one window, but for the tile across its middle.
    centres = virtual["centre"].to_pylist()[: len(here)]
    assert sorted(set(centres)) == [504, 505]
    assert centres.count(504) == 1
    assert not [r for r in asked([("one", 500, 510)], tile=0)[0] if r["kind"] == "tiled_deletion"]


def test_a_region_longer_than_a_window_sees_is_cut_into_pieces(asked):
    rows, virtual = asked([("one", 500, 500 + 2 * SPAN + 1)], tile=0)
    assert len(rows) == 4 * (2 * SPAN + 1)
    centres = virtual["centre"].to_pylist()
    assert sorted(set(centres)) == [500 + SPAN // 2, 500 + SPAN + SPAN // 2, 500 + 2 * SPAN]
    assert all(abs(row["start"] - at) <= SPAN for row, at in zip(rows, centres, strict=True))


def test_a_change_of_one_base_has_the_bits_of_an_snv(tiny, asked, tmp_path):
    _, virtual = asked([("one", 500, 501)], tile=0)
    experiment = tiny.experiment("two", (0, 1))
    found = scored(tiny, tmp_path, virtual, experiment).to_pylist()
    alleles = tiny.alleles(1).schema.empty_table().to_pydict()
    for i, row in enumerate(found):
        values = i, 0, 500, 1, row["alt"]
        for name, value in zip(alleles, values, strict=True):
            alleles[name].append(value)
    (alone,), _ = tiny.score(pa.table(alleles, schema=tiny.alleles(1).schema), experiment)
    assert [row["logfc"] for row in found] == alone["logfc"].to_pylist()
    assert [row["jsd"] for row in found] == alone["jsd"].to_pylist()


def test_a_list_is_of_single_edits_and_of_groups_made_at_once(tiny, asked, tmp_path):
    edits = [
        ("one", 500, 504, "-"),
        ("one", 600, 601, "ttt", "pair"),
        ("one", 700, 703, "G"),
        ("one", 610, 612, "A", "pair"),
    ]
    rows, virtual = asked(edits=edits)
    bases = tiny.contigs["one"]
    told = [(r["region"], r["kind"], r["start"], r["end"], r["ref"], r["alt"]) for r in rows]
    assert told == [
        ("edit 1", "edit", 501, 504, bases[500:504], ""),
        ("group pair", "edit", 601, 612, f"{bases[600]},{bases[610:612]}", "TTT,A"),
        ("edit 3", "edit", 701, 703, bases[700:703], "G"),
    ]
    found = scored(tiny, tmp_path, virtual, tiny.experiment("one", (0,)))
    assert len(found) == 3
    assert min(abs(value) for value in found["logfc"].to_pylist()) > 0


@pytest.mark.parametrize(
    ("edits", "message"),
    [
        ([("one", 5, 6, "AX")], r"edits\.bed: one:6-6: 'AX': expected up to 50 of A, C, G and T"),
        ([("one", 5, 60, "A")], r"expected up to 50 of A, C, G and T in place of as many bases"),
        ([("one", 5, 6)], r"edits\.bed, line 1: expected a name in the fourth column"),
        ([("one", 5, 8, "A", "g"), ("one", 7, 9, "A", "g")], "group g: .* do not overlap"),
        ([("one", 5, 6, "A", "g"), ("two", 7, 9, "A", "g")], "group g: .* on one contig"),
        ([("one", 5, 6, "A", "g"), ("one", 70, 71, "A", "g")], "group g: .* within 50 bp"),
    ],
)
def test_a_list_that_cannot_be_is_refused_in_a_line(asked, edits, message):
    with pytest.raises(InputError, match=message):
        asked(edits=edits)


def test_a_region_is_drawn_and_its_means_are_a_track(tiny, asked, tmp_path):
    _, virtual = asked([("one", 500, 520, "a"), ("two", 100, 110), ("one", 510, 530, "c")])
    experiments = (
        tiny.experiment("x y", (0,)),
        tiny.experiment("groups", (1,), signal_groups=[1, 1]),
    )
    table = scored(tiny, tmp_path, virtual, *experiments)
    figures, tracks = tmp_path / "figures", tmp_path / "tracks"
    names = [one.name for one in experiments]
    saturation.write(tmp_path / "edits", names, tiny.reference, figures, tracks)
    drawn = {f"region{i}.{kind}" for i in (1, 2, 3) for kind in ("png", "svg")}
    assert {path.name for path in figures.iterdir()} == drawn
    assert "x y" in (figures / "region1.svg").read_text()
    assert {path.name for path in tracks.iterdir()} == {"x_y.bw", "groups.bw"}
    rows = [r for r in table.to_pylist() if r["experiment"] == "groups" and r["group"] == 0]
    with pyBigWig.open(str(tracks / "groups.bw")) as file:
        for contig, region, places in (
            ("one", "a", range(501, 521)),
            ("one", "c", range(521, 531)),
        ):
            for at in places:
                own = [
                    r["logfc"]
                    for r in rows
                    if (r["region"], r["kind"], r["start"]) == (region, "substitution", at)
                ]
                assert len(own) == 3
                value = file.values(contig, at - 1, at)[0]
                assert value == pytest.approx(np.mean(own), rel=1e-5)
        assert np.isnan(file.values("one", 530, 531)[0])
