"""What is kept of the top alleles, read back: bigWigs, a UCSC hub, an IGV session, profiles."""

import re
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pyarrow.parquet as pq
import pyBigWig
import pytest

from veff.inputs import reference
from veff.models.architecture import Geometry
from veff.report import top
from veff.scoring import explain
from veff.scoring.explain import Explanation

GEOMETRY = Geometry(2114, 1000)
HALF, TRIMMING = 1057, 557
LENGTH = 6000  # of each contig


@pytest.fixture(scope="module")
def genome(tmp_path_factory):
    folder = tmp_path_factory.mktemp("genome")
    (folder / "genome.fa").write_text(f">1\n{'A' * LENGTH}\n>2\n{'C' * LENGTH}\n")
    reference.build(folder / "genome.fa", folder / "reference")
    return reference.Reference.open(folder / "reference")


def explanation(number=7, at=3000, ref="A", alt="C", reads=None, attribution=None, **more):
    """An allele whose first base is the one `at` (0-based) of contig 2."""
    rng = np.random.default_rng(number)
    row = {"allele_id": number, "chrom": "chr2", "pos": at + 1, "ref": ref, "alt": alt}
    return Explanation(
        allele=row | {"max_experiment": "liver"} | more,
        contig="2",
        group=0,
        logfc=0.5 if number == 7 else 0.1,
        transplanted=0.4,
        shown="",
        geometry=GEOMETRY,
        start=at - HALF,
        lengths=(len(ref), len(alt)),
        bases=np.full((2, 2114), ord("A"), np.uint8),
        reads=rng.random((2, 1000)) if reads is None else reads,
        attribution=rng.normal(size=(2, 2114)) if attribution is None else attribution,
    )


def write(folder, genome, *explanations):
    outputs = ("top", "tracks", "profiles.parquet", "attributions.parquet")
    top.write(
        explanations,
        genome,
        folder / "genome.fa",
        figures_out=folder / outputs[0],
        tracks_out=folder / outputs[1],
        profiles_out=folder / outputs[2],
        attributions_out=folder / outputs[3],
    )
    return folder / "tracks"


def values(path, contig="2"):
    """All of a contig, NaN where the file has nothing."""
    with pyBigWig.open(str(path)) as file:
        assert file.chroms() == {"1": LENGTH, "2": LENGTH}
        return np.array(file.values(contig, 0, LENGTH))


def test_tracks_read_back_are_what_was_predicted_where_it_was_predicted(tmp_path, genome):
    one = explanation()
    folder = write(tmp_path, genome, one) / "7"
    first = one.start + TRIMMING
    assert first == 2500  # the variant, 3000, is base 500 of the profile
    for i, kind in enumerate(("reference", "alternate")):
        found = values(folder / f"{kind}.bw")
        assert found[first : first + 1000] == pytest.approx(one.reads[i])
        assert np.isnan(found[:first]).all()
        assert np.isnan(found[first + 1000 :]).all()
        found = values(folder / f"attribution_{kind}.bw")
        assert found[one.start : one.start + 2114] == pytest.approx(one.attribution[i])
        assert np.isfinite(found).sum() == 2114
        assert np.isnan(values(folder / f"{kind}.bw", "1")).all()
    change = values(folder / "difference.bw")[first : first + 1000]
    assert change == pytest.approx(one.reads[1] - one.reads[0], abs=1e-6)


@pytest.mark.parametrize(("ref", "alt"), [("AAAAAA", "A"), ("A", "CGTACG"), ("AA", "CGT")])
def test_an_indel_s_tracks_have_each_base_at_its_place(tmp_path, genome, ref, alt):
    """Planted: each base's value is its own position in the genome, under both alleles."""
    at = 3000
    shift = len(ref) - len(alt)
    both = min(len(ref), len(alt))

    def planted(first, n):
        on_reference = np.arange(first, first + n, dtype=float)
        on_alternate = np.where(
            on_reference < at + both, on_reference, on_reference + shift
        )  # inserted bases get places of others, and must not be shown
        return np.stack([on_reference, on_alternate])

    reads, attribution = planted(at - HALF + TRIMMING, 1000), planted(at - HALF, 2114)
    one = explanation(at=at, ref=ref, alt=alt, reads=reads, attribution=attribution)
    folder = write(tmp_path, genome, one) / "7"
    for kind in ("alternate", "attribution_alternate"):
        found = values(folder / f"{kind}.bw")
        known = np.flatnonzero(np.isfinite(found))
        assert found[known] == pytest.approx(known)
        assert set(range(at + both, at + len(ref))).isdisjoint(known)
        n = 1000 if kind == "alternate" else 2114
        assert len(known) == n - abs(shift)
    assert np.nanmax(np.abs(values(folder / "difference.bw"))) == 0


@pytest.mark.parametrize("at", [100, LENGTH - 100])
def test_what_is_past_an_end_of_the_contig_is_left_out(tmp_path, genome, at):
    one = explanation(at=at)
    found = values(write(tmp_path, genome, one) / "7/reference.bw")
    known = np.flatnonzero(np.isfinite(found))
    assert len(known) == 600
    assert found[known] == pytest.approx(one.reads[0, known - one.start - TRIMMING])


def test_profiles_are_kept_as_a_table(tmp_path, genome):
    one = explanation(ref="AAA", alt="A")
    write(tmp_path, genome, one)
    (row,) = pq.read_table(tmp_path / "profiles.parquet").to_pylist()
    assert (row["allele_id"], row["contig"], row["start"]) == (7, "2", 2500)
    assert row["reference"] == pytest.approx(one.reads[0])
    alternate = row["alternate"]
    assert alternate[501:503] == [None, None]
    assert alternate[:501] == pytest.approx(one.reads[1, :501])
    assert alternate[503:] == pytest.approx(one.reads[1, 501:998])


def stanzas(text):
    """The stanzas of a hub's file, each {setting: value}."""
    found = [
        dict(line.strip().split(" ", 1) for line in one.splitlines()) for one in text.split("\n\n")
    ]
    assert sum(map(len, found)) == len([line for line in text.splitlines() if line])
    return found


@pytest.fixture
def hub(tmp_path, genome, monkeypatch):
    monkeypatch.setattr(genome, "assembly", "T2T-CHM13")
    odd = explanation(9, max_experiment="a\nb " + "x" * 200, chrom="chr2\ttrack")
    return write(tmp_path, genome, replace(odd, attribution=None), explanation(at=5600))


def test_the_hub_is_one_by_ucsc_s_definition(hub):
    """Its Track Database Definition Document: the base settings, and those of multiWig."""
    head, genome, *tracks = stanzas((hub / "hub.txt").read_text())
    assert {"hub", "shortLabel", "longLabel", "email"} <= set(head)
    assert head["useOneFile"] == "on"
    assert genome == {"genome": "hs1"}
    by_name = {one["track"]: one for one in tracks}
    assert len(by_name) == len(tracks) == 12
    for name, one in by_name.items():
        assert re.fullmatch(r"[A-Za-z]\w*", name)
        assert next(iter(one)) == "track"
        assert len(one["shortLabel"]) <= 17
        assert len(one["longLabel"]) <= 80
        parent = by_name.get(one.get("parent"), {})
        if "superTrack" in one:
            assert one["superTrack"] == "on show"
            assert "parent" not in one
            continue
        assert one["type"] == "bigWig"
        assert one["visibility"] in ("hide", "dense", "full")
        if one.get("container") == "multiWig":
            assert one["aggregate"] == "transparentOverlay"
            assert "superTrack" in parent
            assert "bigDataUrl" not in one
            continue
        assert parent.get("container") == "multiWig" or "superTrack" in parent
        assert re.fullmatch(r"(\d{1,3},){2}\d{1,3}", one["color"])
        with pyBigWig.open(str(hub / one["bigDataUrl"])) as file:
            assert file.isBigWig()
    files = {str(path.relative_to(hub)) for path in hub.rglob("*.bw")}
    assert {one["bigDataUrl"] for one in tracks if "bigDataUrl" in one} == files


def test_the_igv_session_shows_every_track_on_its_genome(hub):
    session = ElementTree.parse(hub / "igv.xml").getroot()
    assert (session.tag, session.get("genome")) == ("Session", "hs1")
    assert session.get("locus") == f"2:5101-{LENGTH}"  # of the largest effect
    files = {str(path.relative_to(hub)) for path in hub.rglob("*.bw")}
    resources = [one.get("path") for one in session.iter("Resource")]
    assert len(resources) == len(files) == 8
    assert set(resources) == files
    assert {one.get("id") for one in session.iter("Track")} == files


def test_an_assembly_that_browsers_do_not_know_has_a_session_on_its_fasta_and_no_hub(
    tmp_path, genome
):
    folder = write(tmp_path, genome, explanation(attribution=np.zeros((2, 2114))))
    assert not (folder / "hub.txt").exists()
    session = ElementTree.parse(folder / "igv.xml").getroot()
    assert Path(folder, session.get("genome")).resolve() == (tmp_path / "genome.fa").resolve()


def test_nothing_to_keep_gives_empty_folders_and_tables(tmp_path, genome):
    folder = write(tmp_path, genome)
    assert [path.name for path in folder.iterdir()] == ["igv.xml"]
    assert list((tmp_path / "top").iterdir()) == []
    schema = pq.read_schema(tmp_path / "profiles.parquet")
    assert schema.equals(explain.PROFILES)
    assert pq.read_schema(tmp_path / "attributions.parquet").equals(explain.SCHEMA)
