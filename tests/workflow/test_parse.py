"""Snakemake alone can plan the workflow: that is what a submit node has, and each remote job."""

import os
import re
import subprocess

import pytest

import lone
from project import ROOT

DEMO = ("--configfile", "config/demo.yaml")


@pytest.fixture(scope="module")
def python(tmp_path_factory):
    return lone.make(tmp_path_factory.mktemp("lone") / "venv")


def snakemake(python, *arguments):
    """What it prints, started in the clone; raises `AssertionError` where it fails."""
    done = subprocess.run(
        [python, "-m", "snakemake", *arguments],
        cwd=ROOT,
        env={k: v for k, v in os.environ.items() if k != "PYTHONPATH"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    assert done.returncode == 0, done.stdout
    return done.stdout


def test_the_environment_lacks_what_jobs_need(python):
    for module in ("numpy", "pyarrow", "huggingface_hub", "pysam", "torch", "veff"):
        assert subprocess.run([python, "-c", f"import {module}"], capture_output=True).returncode


def test_snakemake_alone_plans(python, tmp_path):
    snakemake(python, *DEMO, "-n", "--config", f"outdir={tmp_path}")


def test_the_linter_is_content_without_a_configuration(python):
    """So it is called by the workflow catalogue, which shows what it says."""
    assert "Congratulations" in snakemake(python, "--lint")


def test_the_catalogue_s_folder_for_tests_is_the_demo(python):
    assert "under 2 experiments (4 models)" in snakemake(python, "--directory", ".test", "-n")


def test_snakemake_alone_plans_conda_environments(python, tmp_path, monkeypatch):
    """With a stand-in that says what Snakemake asks of conda: a dry run makes no environment."""
    (tmp_path / "conda").symlink_to(ROOT / "tests/standin/conda")
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    said = snakemake(python, *DEMO, "--sdm", "conda", "-n", "--config", f"outdir={tmp_path}/out")
    assert "envs/gpu.yaml will be created" in said


def test_snakemake_alone_plans_jobs_in_an_image(python, tmp_path, monkeypatch):
    """With a stand-in for Apptainer: a dry run fetches nothing. Without rule `all`, which is last
    and would have the image of a directive behind the others."""
    (tmp_path / "apptainer").symlink_to(ROOT / "tests/standin/apptainer")
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    image = f"docker://registry.example/veff:1@sha256:{'0' * 64}"
    given = (f"outdir={tmp_path}/out", f"container={image}")
    said = snakemake(python, "prepare", *DEMO, "--sdm", "apptainer", "-n", "--config", *given)
    assert re.findall("Singularity image (.*) will be pulled", said) == [image]


@pytest.mark.parametrize("seed", ["1", "4", "8"])
def test_whichever_rule_snakemake_looks_at_first_it_finds_all_notes(
    python, seed, tmp_path, monkeypatch
):
    """It goes through sets of rules, and looks up once what stands in a folder: under each of
    these seeds a note was missing, while all stood in one."""
    monkeypatch.setenv("PYTHONHASHSEED", seed)
    snakemake(python, *DEMO, "-n", "--until", "prepare", "--config", f"outdir={tmp_path}/out")
