"""Many models in a run: all of them, those added later, those that are bad, those from the hub."""

import json

import pyarrow.parquet as pq
import pysam
import pytest
from cherimoya import Cherimoya

from project import DEMO, Project
from unit.hub import COMMIT, Hub

pytestmark = pytest.mark.slow
SETTINGS = {"chunk_size": 6, "models_per_job": 50, "nulls": "none", "top": "{n: 0}"}
SETTINGS |= {"max_allele_length": 20}


def tiny(path, seed):
    """A model of windows that are 150 bp longer than what it predicts."""
    model = Cherimoya(n_filters=16, n_layers=4, trimming=75, compile=False, random_state=seed)
    model.save(path)
    return path


def with_variants(folder):
    """A project on 17 of the demo's records: three chunks."""
    project = Project(folder)
    with pysam.VariantFile(str(DEMO / "variants.vcf.gz")) as vcf:
        header, records = str(vcf.header), [str(record) for record in vcf]
    project.write("small.vcf", header + "".join(records[5:22]))
    return project


def sheet(project, experiments, columns=()):
    """Writes a sheet of {experiment: [row of further columns, ...]}."""
    lines = ["\t".join(("experiment", *columns))]
    lines += ["\t".join((name, *row)) for name, rows in experiments.items() for row in rows]
    return project.write("models.tsv", "\n".join(lines) + "\n").name


def written(project):
    return {path: path.stat().st_mtime_ns for path in project.outdir.glob("parts/*/*")}


COLUMNS = ("checkpoint", "output_length", "tissue")


@pytest.fixture(scope="module")
def forty(tmp_path_factory):
    """A run of 20 experiments of two folds and two geometries; of `first` outputs, and parts."""
    project = with_variants(tmp_path_factory.mktemp("forty"))
    project.experiments = {}
    for number in range(20):
        length = 101 if number < 16 else 61
        rows = project.experiments[f"e{number}"] = []
        for fold in range(2):
            tiny(project.folder / f"{number}.{fold}.torch", 2 * number + fold)
            rows.append((f"{number}.{fold}.torch", str(length), f"tissue{number}"))
    project.settings = SETTINGS | {"variants": "small.vcf"}
    models = sheet(project, project.experiments, COLUMNS)
    project.run(**project.settings, models=models)
    project.first = pq.read_table(project.outdir / "scores.parquet")
    project.parts = written(project)
    return project


def test_forty_models_score_every_allele_in_the_order_of_the_sheet(forty):
    names = forty.first["experiment"].to_pylist()
    scored = sum(
        one["scored_as"] is not None
        for one in pq.read_table(forty.outdir / "alleles.parquet").to_pylist()
    )
    assert names == [name for name in forty.experiments for _ in range(scored)]
    assert scored >= 15
    assert len({path.name.split(".")[0] for path in forty.parts}) == 3
    assert set(forty.first["n_folds"].to_pylist()) == {2}


def test_no_two_models_give_the_same_scores(forty):
    first = forty.first.to_pandas().groupby("experiment")["logfc"].first()
    assert first.nunique() == 20


def test_models_of_one_output_length_share_jobs(forty):
    described = json.loads((forty.outdir / "models.json").read_text())
    assert [one["experiment"] for one in described] == [f"e{n // 2}" for n in range(40)]
    for path in forty.outdir.glob("models/*/models.json"):
        lengths = {one["output_length"] for one in json.loads(path.read_text())}
        assert len(lengths) == 1


def test_columns_of_the_sheet_come_through(forty):
    lines = (forty.outdir / "experiments.tsv").read_text().splitlines()
    assert lines[0].split("\t") == ["experiment", "n_models", "assembly", "peaks", "tissue"]
    assert lines[4].split("\t") == ["e3", "2", "", "", "tissue3"]


def test_experiments_added_later_are_scored_and_no_others(forty):
    added = {
        f"n{number}": [(tiny(forty.folder / f"n{number}.torch", 90 + number).name, "101", "")]
        for number in range(3)
    }
    before = list(forty.experiments.items())
    together = dict([*before[:7], *added.items(), *before[7:]])
    models = sheet(forty, together, COLUMNS)
    said = forty.run("out/scores.parquet", **forty.settings, models=models)
    assert "prepare" not in said.split("Select jobs")[0]
    now = written(forty)
    assert {path: now[path] for path in forty.parts} == forty.parts
    new = [path for path in set(now) - set(forty.parts) if path.parent.name == "jobs"]
    assert len(new) == 3  # one bundle of three experiments, in three chunks
    table = pq.read_table(forty.outdir / "scores.parquet")
    kept = table.filter([one not in added for one in table["experiment"].to_pylist()])
    assert kept.to_pylist() == forty.first.to_pylist()
    assert list(dict.fromkeys(table["experiment"].to_pylist())) == list(together)


def test_bad_models_stop_only_their_own_jobs_and_are_named(tmp_path, monkeypatch):
    """One from the hub, one that the hub does not have, one cut short, one sound."""
    project = with_variants(tmp_path)
    sound = tiny(tmp_path / "sound.torch", 1)
    (tmp_path / "cut.torch").write_bytes(sound.read_bytes()[:-1000])
    hub = Hub({"models/ENCSR000AAA/cherimoya.fold_0.torch": sound.read_bytes()})
    monkeypatch.setenv("HF_HOME", str(tmp_path / "hf"))
    rows = {
        "sound": [("sound.torch", "", "", "101")],
        "cut": [("cut.torch", "", "", "101")],
        "hub": [("", "ENCSR000AAA", "0", "101")],
        "none": [("", "ENCSR999ZZZ", "0", "101")],
    }
    columns = ("checkpoint", "catv1", "folds", "output_length")
    settings = SETTINGS | {"variants": "small.vcf", "models_per_job": 1}
    settings |= {"catv1_revision": COMMIT}
    with hub.serving() as address:
        monkeypatch.setenv("HF_ENDPOINT", address)
        models = sheet(project, rows, columns)
        said = project.run("--keep-going", **settings, models=models, fails=True)
    assert "error: cut.torch: not a Cherimoya checkpoint, or cut short" in said
    assert f"the hub has no models/ENCSR999ZZZ/cherimoya.fold_0.torch at revision {COMMIT}" in said
    before = written(project)
    assert len([path for path in before if path.parent.name == "jobs"]) == 2 * 3
    assert not (project.outdir / "scores.parquet").exists()

    del rows["cut"], rows["none"]
    # What the hub gave changes in its cache before all that needs it is scored.
    (cached,) = (tmp_path / "hf").rglob("ENCSR000AAA/*.torch")
    cached.write_bytes(sound.read_bytes()[:-1] + b"x")
    (bundle,) = {
        path.parent.name
        for path in project.outdir.glob("models/*/downloads.json")
        if path.with_name("models.json").is_file()
    }
    part = project.outdir / f"parts/answers/1.{bundle}.parquet"
    whole = part.read_bytes()
    part.unlink()
    with hub.serving() as address:
        monkeypatch.setenv("HF_ENDPOINT", address)
        said = project.run(**settings, models=sheet(project, rows, columns))
    assert cached.read_bytes() == sound.read_bytes()
    assert part.read_bytes() == whole
    again = {path.name for path, time in written(project).items() if time != before[path]}
    assert again == {f"1.{bundle}.parquet", f"1.{bundle}.json"}
    scores = pq.read_table(project.outdir / "scores.parquet").to_pandas()
    sound, hub = (scores[scores["experiment"] == name] for name in ("sound", "hub"))
    assert sound["logfc"].tolist() == hub["logfc"].tolist()
    assert "The same checkpoint twice: sound: sound.torch, hub: cherimoya.fold_0.torch" in said
    record = json.loads((project.outdir / "provenance.json").read_text())
    assert record["catv1"]["commits"] == [COMMIT]
    assert record["catv1"]["licence"] == "CC-BY-4.0"
