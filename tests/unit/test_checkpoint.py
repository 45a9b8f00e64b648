"""Checkpoints that are not what they should be, and what is said of those that are."""

import hashlib
import os
import pickle
import re
import zipfile
from dataclasses import replace

import pytest
import torch
from cherimoya import Cherimoya

from project import DEMO
from tiny import a_fold
from veff import atomic
from veff.cherimoya import checkpoint
from veff.errors import InputError
from veff.models.acceptance import accept, duplicates, stranded, write_experiments
from veff.models.architecture import Geometry
from veff.models.experiment import experiments, read_inspected
from veff.models.sheet import Request


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def save(path, **shape):
    shape = {"n_filters": 16, "n_layers": 2, "compile": False, "random_state": 0} | shape
    Cherimoya(**shape).save(path)
    return str(path)


class Runs:
    """Runs code when it is unpickled."""

    def __reduce__(self):
        return os.mkdir, ("it-ran",)


def malicious(path):
    torch.save({"config": {}, "state_dict": Runs()}, path)


def malicious_pickle(path):
    path.write_bytes(pickle.dumps(Runs()))


def truncated(path):
    save(path)
    path.write_bytes(path.read_bytes()[:-1000])


def empty(path):
    path.touch()


def text(path):
    path.write_text("not a model")


def another_archive(path):
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("data.pkl", "x")


def only_weights(path):
    torch.save({"weight": torch.zeros(3)}, path)


def another_config(path):
    save(path)
    payload = torch.load(path, weights_only=True)
    torch.save(payload | {"config": payload["config"] | {"n_filters": 32}}, path)


def not_finite(path):
    model = Cherimoya(n_filters=16, n_layers=2, compile=False)
    with torch.no_grad():
        model.linear.weight[0, 0] = torch.nan
    model.save(path)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (malicious, "not a file of weights alone, so it was not opened"),
        (malicious_pickle, "not a file of weights alone, so it was not opened"),
        (truncated, "not a Cherimoya checkpoint, or cut short"),
        (empty, "not a Cherimoya checkpoint, or cut short"),
        (text, "not a"),
        (another_archive, "not a Cherimoya checkpoint, or cut short"),
        (only_weights, "not a Cherimoya checkpoint, or cut short"),
        (another_config, "not a Cherimoya checkpoint, or cut short"),
        (not_finite, "weights of linear.weight are not finite"),
    ],
)
def test_a_bad_checkpoint_is_refused_and_named(folder, make, message):
    make(folder / "bad.torch")
    with pytest.raises(InputError, match=re.escape(message)) as error:
        checkpoint.load("bad.torch")
    assert str(error.value).startswith("bad.torch: ")
    assert "\n" not in str(error.value)
    assert not (folder / "it-ran").exists()


def accepted(*requests, max_allele_length=500, assemblies=None, reference=None):
    assemblies = assemblies or {one.name: None for one in requests}
    inspected = checkpoint.inspect(list(requests), {})
    return accept(inspected, max_allele_length, assemblies, reference)


def test_a_checkpoint_is_described_as_it_is():
    path = str(DEMO / "models/cellA.fold0.torch")
    (one,) = accepted(Request("cellA", (path,)))
    with open(path, "rb") as handle:
        assert one.sha256 == hashlib.sha256(handle.read()).hexdigest()
    assert one.architecture.geometry == Geometry(2114, 1000)
    assert (one.experiment, one.fold, one.architecture.signal_groups) == ("cellA", 0, (1,))


def test_what_is_written_of_a_checkpoint_is_read_again_as_it_was(folder):
    published = {"m": {"checkpoint": save(folder / "cached"), "commit": "c"}}
    request = Request("a", (save(folder / "x.torch", signal_groups=[1, 2]), "catv1:m", "catv1:n"))
    found = checkpoint.inspect([request], published | {"n": {"error": "the hub has no n"}})
    atomic.write_json(folder / "inspected.json", [one.plain() for one in found])
    assert read_inspected(folder / "inspected.json") == found
    assert [len(one.folds) for one in experiments(found[:2])] == [2]


def test_one_bad_checkpoint_is_told_beside_the_good_ones(folder):
    good, bad = save(folder / "good.torch"), "bad.torch"
    truncated(folder / bad)
    first, second = checkpoint.inspect([Request("a", (good,)), Request("b", (bad,))], {})
    assert first.path == good
    assert second.error.startswith("bad.torch: not a Cherimoya checkpoint")
    with pytest.raises(InputError, match=r"^bad.torch: not a Cherimoya"):
        accept([first, second], 500, {"a": None, "b": None}, None)


def test_a_file_from_the_hub_is_loaded_from_where_it_was_put(folder):
    path = save(folder / "cached")
    downloads = {"m": {"checkpoint": path, "commit": "c"}, "n": {"error": "the hub has no n"}}
    there, not_there = checkpoint.inspect([Request("a", ("catv1:m", "catv1:n"))], downloads)
    assert (there.path, there.file, there.commit) == (path, "m", "c")
    assert not_there.error == "the hub has no n"


@pytest.mark.parametrize(
    ("shape", "how", "message"),
    [
        ({"n_layers": 3}, {}, "n_layers is 3, but the first fold of x has 2"),
        ({"trimming": 500}, {}, "input_length is 2000, but the first fold of x has 1098"),
        ({}, {"max_allele_length": 501}, "set max_allele_length to at most 500"),
        ({}, {"assemblies": {"x": "hg38"}, "reference": "hg19"}, "x: a model of hg38, but"),
    ],
)
def test_what_does_not_fit_is_refused(folder, shape, how, message):
    first = save(folder / "first.torch")
    second = save(folder / "second.torch", **shape)
    with pytest.raises(InputError, match=re.escape(message)):
        accepted(Request("x", (first, second)), **how)


def test_a_signal_group_that_a_model_does_not_have_is_refused(folder):
    path = save(folder / "two.torch", signal_groups=[1, 2])
    assert accepted(Request("x", (path,), group=1))[0].group == 1
    with pytest.raises(InputError, match="has 2 signal groups, so there is no group 2"):
        accepted(Request("x", (path,), group=2))


def test_a_stranded_group_of_the_user_s_own_model_is_named_where_it_is_reported(folder):
    path = save(folder / "two.torch", signal_groups=[1, 2])
    groups = {"all": None, "one": 0, "two": 1}
    every = accepted(*[Request(name, (path,), group=group) for name, group in groups.items()])
    assert stranded(every) == ["all", "two"]
    assert stranded([replace(one, file="CATv1/two.torch") for one in every]) == []


def test_a_checkpoint_of_cherimoya_before_0_2_is_told_so(folder):
    path = save(folder / "old.torch")
    payload = torch.load(path, weights_only=True)
    del payload["config"]["signal_groups"]
    payload["config"] |= {"n_outputs": 2, "single_count_output": True}  # as 0.1.0 wrote them
    torch.save(payload, path)
    with pytest.raises(InputError, match=r"old\.torch: a checkpoint of Cherimoya before 0\.2\.0"):
        checkpoint.load(path)


def test_one_content_under_two_names_is_found(folder):
    first, other = save(folder / "first.torch"), save(folder / "other.torch", random_state=1)
    (folder / "again.torch").write_bytes((folder / "first.torch").read_bytes())
    every = accepted(Request("x", (first, other)), Request("y", ("again.torch",)))
    assert duplicates(every) == [[f"x: {first}", "y: again.torch"]]


def test_the_table_of_experiments_has_the_columns_of_the_sheet(tmp_path):
    requests = [
        Request("x", ("a", "b"), assembly="hg38", about=(("tissue", "blood"),)),
        Request("y", ("c",), peaks="p.bed", about=(("donor", "1"),)),
    ]
    checkpoints = [a_fold(name) for name in "xxy"]
    write_experiments(tmp_path / "experiments.tsv", requests, checkpoints)
    assert [
        line.split("\t") for line in (tmp_path / "experiments.tsv").read_text().split("\n")
    ] == [
        ["experiment", "n_models", "assembly", "peaks", "tissue", "donor"],
        ["x", "2", "hg38", "", "blood", ""],
        ["y", "1", "", "p.bed", "", "1"],
        [""],
    ]


def test_a_checkpoint_swapped_after_it_was_inspected_is_not_loaded(folder):
    save("x.torch")
    (inspected,) = checkpoint.inspect([Request("a", ("x.torch",))], {})
    checkpoint.load("x.torch", inspected.sha256)
    save("y.torch", n_filters=8)
    os.utime("y.torch", (0, 0))
    os.replace("y.torch", "x.torch")
    with pytest.raises(InputError, match=r"x\.torch: changed while the run used it"):
        checkpoint.load("x.torch", inspected.sha256)
    (again,) = checkpoint.inspect([Request("a", ("x.torch",))], {}, {"x.torch": inspected.sha256})
    assert "x.torch: changed while the run used it" in again.error
