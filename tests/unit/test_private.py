"""What a run says of the machine that it ran on."""

import json

import pytest
import yaml

from project import ROOT
from tiny import a_fold
from veff.atomic import write_json
from veff.models import experiment
from veff.outputs import provenance

SCHEMA = yaml.safe_load((ROOT / "workflow/schemas/config.schema.yaml").read_text())


def settings(schema, above=""):
    """Every key that may hold a text of the user's, those in groups with a dot."""
    for key, one in schema.items():
        options = [one, *one.get("anyOf", [])]
        groups = [option["properties"] for option in options if "properties" in option]
        for group in groups:
            yield from settings(group, f"{above}{key}.")
        if "string" in str(one.get("type")) and "pattern" not in one:
            yield above + key


def nest(keys, value):
    made = {}
    for key in keys:
        *groups, last = key.split(".")
        inner = made
        for group in groups:
            inner = inner.setdefault(group, {})
        inner[last] = value
    return made


# Texts that are no paths: a commit, and names of columns and of a sample.
NO_PATHS = {"catv1_revision", "fine_mapping.pip", "fine_mapping.credible_set"}
NO_PATHS |= {"background.sample"}
KEYS = [key for key in settings(SCHEMA["properties"]) if key not in NO_PATHS]


def recorded(folder, variants=None, **more):
    """The record of a run all of whose files lie in /home/someone/secret."""
    config = nest(KEYS, "/home/someone/secret/a.file") | more
    (folder / "variants").touch()
    config["variants"] = variants or str(folder / "variants")
    folds = [
        a_fold("x", fold=k, checkpoint=f"/home/someone/secret/{k}.torch", sha256="same")
        for k in (0, 1)
    ]
    write_json(folder / "models.json", [one.plain() for one in folds])
    write_json(folder / "contigs.json", {"sha256": "0", "assembly": None})
    write_json(folder / "prepared.json", {"statuses": {"ok": 1}, "alleles": 1, "sha256": "0"})
    paths = (folder / name for name in ("contigs.json", "prepared.json", "models.json"))
    return json.dumps(provenance.run(config, *paths, [], [], [])), str(folder)


def test_every_setting_that_may_be_a_path_is_looked_at():
    assert {"variants", "outdir", "annotations.genes", "nulls.dir", "autotune.seed"} <= set(KEYS)


def test_a_record_has_names_and_no_path(tmp_path):
    text, folder = recorded(tmp_path)
    assert "secret" not in text
    assert "someone" not in text
    assert folder not in text
    assert text.count("a.file") == len(KEYS)  # that of the variants aside, the reference's twice
    assert "x: 0.torch" in text


def test_alleles_in_place_of_a_file_are_kept_as_they_were_given(tmp_path):
    text, folder = recorded(tmp_path, variants="chr1:123:A/G")
    assert text.count("chr1:123:A/G") == 2
    assert folder not in text


def test_a_record_has_paths_where_the_configuration_says_so(tmp_path):
    text, folder = recorded(tmp_path, provenance_paths=True)
    assert folder in text
    assert "/home/someone/secret/0.torch" in text
    assert text.count("/home/someone/secret/a.file") == len(KEYS)


@pytest.mark.parametrize("path", ["/home/someone/secret/peaks.bed", "secret/peaks.bed"])
def test_tables_name_the_peaks_and_not_where_they_are(path):
    one = experiment.Experiment("x", (a_fold("x"),))
    how = type("How", (), {"decisive": {}})
    said = provenance.of_scores([one], how, {("x", "snv"): "hash"}, {"x": path}, None)
    assert said["experiments"]["x"]["reference_set"] == "peaks.bed"
