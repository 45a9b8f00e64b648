"""The real client of the Hugging Face hub, against a hub on the loopback."""

import json
import os
import subprocess
import sys

import pytest

from project import ROOT
from unit.hub import COMMIT, Hub

NAME = "models/ENCSR000AAA/cherimoya.fold_0.torch"
METADATA = """\
experiment_accession\tassay_term_name\texperiment_biosample_term_name\tbiosample_simple_summary
ENCSR000AAA\tDNase-seq\tK562\t
ENCSR000BBB\tATAC-seq\tK562\t
ENCSR000CCC\tDNase-seq\tliver\tmale adult (37 years)
ENCSR000DDD\tDNase-seq\tliver\tfemale child (16 years)
"""
PERFORMANCE = """\
experiment_accession\tfold\tprofile_pearson\tcount_pearson
ENCSR000AAA\t0\t0.5\t0.81
ENCSR000AAA\t1\t0.5\t0.99
ENCSR000CCC\t0\t0.5\t0.7
ENCSR000DDD\t0\t0.5\t0.9
"""


@pytest.fixture
def hub(tmp_path):
    """A hub, and `hub.run(code)`: what Python prints with `catv1` and this hub as HF_ENDPOINT."""
    files = {NAME: bytes(range(256)) * 40, "performance.tsv": PERFORMANCE.encode()}
    hub = Hub(files | {"CATv1-metadata.tsv": METADATA.encode()})

    def run(*arguments, **environment):
        quiet = {"HF_HUB_DISABLE_TELEMETRY": "1", "HF_TOKEN": ""}
        paths = {"HF_HOME": str(tmp_path / "hf"), "PYTHONPATH": str(ROOT / "workflow")}
        return subprocess.run(
            [sys.executable, *arguments],
            env=os.environ | quiet | paths | {"HF_ENDPOINT": address} | environment,
            capture_output=True,
            text=True,
            timeout=100,
        )

    def code(text, **environment):
        before = "import json, logging\nfrom pathlib import Path\nfrom veff.models import catv1\n"
        before += "catv1.PATIENT_S = (0.1,)\nfrom veff.errors import InputError\n"
        body = "".join(f"    {line}\n" for line in text.splitlines())
        ran = run(
            "-c", f"{before}try:\n{body}except InputError as e: print('!', e)", **environment
        )
        assert ran.returncode == 0, ran.stderr
        return ran.stdout

    hub.run, hub.code = run, code
    with hub.serving() as address:
        yield hub


def fetched(hub, text=f"print(catv1.fetch('{NAME}', 'main', (0.1,)), end='')", **environment):
    return hub.code(text, **environment)


def test_a_file_comes_through_the_redirect_whole_and_of_a_commit(hub):
    path = fetched(hub)
    assert f"/snapshots/{COMMIT}/models/ENCSR000AAA/" in path
    with open(path, "rb") as handle:
        assert handle.read() == hub.files[NAME]


def test_a_file_in_the_cache_is_not_fetched_again_and_needs_no_hub(hub):
    first = fetched(hub)
    asked = len(hub.asked)
    assert fetched(hub) == first
    assert fetched(hub, HF_HUB_OFFLINE="1") == first
    assert len(hub.asked) == asked


def test_a_branch_that_moved_on_does_not_move_the_run(hub):
    fetched(hub)
    hub.files[NAME] = b"a later model"
    with open(fetched(hub), "rb") as handle:
        assert handle.read() != b"a later model"


def test_offline_without_the_file_says_so(hub):
    assert "HF_HUB_OFFLINE is set" in fetched(hub, HF_HUB_OFFLINE="1")


def test_a_cut_download_is_resumed_where_it_ended(hub):
    """The client hands on 10 MiB at a time, so a small file starts again from its beginning."""
    hub.files[NAME] = bytes(range(256)) * (22 << 12)
    hub.cut = 1
    with open(fetched(hub, f"print(catv1.fetch('{NAME}', '{COMMIT}'), end='')"), "rb") as handle:
        assert handle.read() == hub.files[NAME]
    assert ("GET", NAME, f"bytes={10 << 20}-") in hub.asked


def test_too_many_requests_and_a_hub_that_is_down_are_waited_for(hub):
    hub.busy, hub.down = 2, 1
    assert "snapshots" in fetched(hub)


def test_changed_content_is_fetched_again(hub):
    hub.changed = 1
    with open(
        fetched(hub, f"print(catv1.fetch('{NAME}', '{COMMIT}', (0.1,)), end='')"), "rb"
    ) as f:
        assert f.read() == hub.files[NAME]


def test_content_that_stays_changed_is_refused_and_not_kept(hub, tmp_path):
    hub.changed = 9
    said = fetched(hub, f"catv1.fetch('{NAME}', '{COMMIT}', (0.1,))")
    assert "not what the hub announced" in said
    assert list(tmp_path.rglob("blobs/*")) == list(tmp_path.rglob("*.torch")) == []


def test_damage_in_the_cache_is_found_and_mended(hub):
    path = fetched(hub)
    with open(path, "r+b") as handle:
        handle.write(b"x")
    with open(fetched(hub), "rb") as handle:
        assert handle.read() == hub.files[NAME]


def test_a_token_is_used_and_its_lack_is_said(hub):
    hub.token = "hf_secret"
    assert "HF_TOKEN" in fetched(hub)
    assert "snapshots" in fetched(hub, HF_TOKEN="hf_secret")


@pytest.mark.parametrize(
    ("call", "message"),
    [
        ("catv1.fetch('models/ENCSR999ZZZ/cherimoya.fold_0.torch', 'main')", "the hub has no"),
        ("catv1.fetch('x', 'no-such-branch')", "no revision 'no-such-branch'; set catv1_revision"),
        ("catv1.find('liver', 'DNase', 'main')", "are 2 experiments in CATv1; give one as catv1"),
        ("catv1.find('lever', 'DNase', 'main')", "no experiment of 'lever' and 'DNase'"),
    ],
)
def test_what_the_hub_does_not_have_is_one_line(hub, call, message):
    said = hub.code(call)
    assert message in said
    assert said.startswith("! ")
    assert len(said.splitlines()) == 1


def test_an_ambiguous_biosample_lists_its_candidates_best_first(hub):
    said = hub.code("catv1.find('liver', 'DNase-seq', 'main')")
    first = "ENCSR000DDD (liver, DNase-seq, female child (16 years), r = 0.90)"
    assert said.index(first) < said.index("ENCSR000CCC (liver, DNase-seq, male adult (37 years)")


def test_a_biosample_and_an_assay_are_found_whatever_their_case(hub):
    assert "ENCSR000AAA" in hub.code("print(catv1.find('k562', 'dnase', 'main').accession)")


def test_metadata_without_a_needed_column_say_which(hub):
    hub.files["CATv1-metadata.tsv"] = b"accession\tname\nx\ty\n"
    assert "no column 'experiment_accession'" in hub.code("catv1.search(['x'], {}, 'main')")


def test_a_missing_file_of_many_is_recorded_and_the_others_come(hub):
    missing = "models/ENCSR999ZZZ/cherimoya.fold_0.torch"
    record = json.loads(
        hub.code(f"print(json.dumps(catv1.download(['{missing}', '{NAME}'], 'main')))")
    )
    assert "the hub has no" in record[missing]["error"]
    assert record[NAME]["commit"] == COMMIT


def test_list_models_prints_rows_that_the_sheet_takes(hub, tmp_path, monkeypatch):
    from veff.models import sheet

    ran = hub.run("-m", "veff.models.listing", "k562")
    assert "ENCSR000AAA  DNase-seq  K562       0.810" in ran.stdout
    rows = ran.stdout[ran.stdout.index("experiment\t") :]
    path = tmp_path / "models.tsv"
    path.write_text(rows)
    assert [len(one.from_hub) for one in sheet.read(path)] == [5, 5]
    assert "ENCSR000CCC" not in ran.stdout


@pytest.mark.parametrize(
    ("facets", "accessions"),
    [
        (("--assay", "atac"), {"ENCSR000BBB"}),
        (("--biosample", "Liver"), {"ENCSR000CCC", "ENCSR000DDD"}),
        (("--organ", "liver", "--life-stage", "child"), {"ENCSR000DDD"}),
        (("--life-stage", "adult", "male"), {"ENCSR000CCC"}),
    ],
)
def test_list_models_by_facets(hub, facets, accessions):
    ran = hub.run("-m", "veff.models.listing", "--folds", "0", *facets)
    rows = ran.stdout.partition("experiment\t")[2].splitlines()[1:]
    assert {row.split("\t")[1] for row in rows} == accessions, ran.stderr
    assert {row.split("\t")[2] for row in rows} == {"0"}


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        (("spleen",), "CATv1 has no experiment with spleen"),
        (
            ("--life-stage", "old"),
            "error: life_stage is 'old'; expected one of embryonic",
        ),
    ],
)
def test_list_models_says_what_there_is_not(hub, asked, message):
    ran = hub.run("-m", "veff.models.listing", *asked)
    assert message in ran.stderr
    assert ran.returncode == 1
