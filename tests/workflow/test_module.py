"""Another workflow uses the rules: from a clone, or from a git URL with the library installed."""

import os
import shlex
import shutil
import subprocess
import sys

import pyarrow.parquet as pq
import pysam
import pytest

import lone
from project import DEMO, ROOT, environment

PREFIXES = pytest.mark.parametrize("prefix", ["", "veff_"], ids=["no prefix", "prefix"])


@pytest.fixture(scope="module")
def repository(tmp_path_factory):
    """The project as a git repository of one commit."""
    folder = tmp_path_factory.mktemp("git") / "veff"
    pycache = shutil.ignore_patterns("__pycache__")
    for name in ("workflow", "envs"):
        shutil.copytree(ROOT / name, folder / name, ignore=pycache)
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, folder)
    who = ["-c", "user.name=x", "-c", "user.email=x"]
    for command in (["init", "-qb", "main"], ["add", "."], [*who, "commit", "-qm", "one"]):
        subprocess.run(["git", *command], cwd=folder, check=True)
    return folder


@pytest.fixture
def outer(tmp_path, repository):
    """`outer(where, prefix)`: writes a Snakefile that uses the rules from there."""
    with pysam.VariantFile(str(DEMO / "variants.vcf.gz")) as vcf:
        head, records = str(vcf.header), [str(record) for record in vcf]
    (tmp_path / "small.vcf").write_text(head + "".join(records[5:9]))
    (tmp_path / "models.tsv").write_text(
        f"experiment\tcheckpoint\ncellA\t{DEMO}/models/cellA.fold0.torch\n"
    )
    config = {"variants": "small.vcf", "reference": str(DEMO / "genome.fa.gz")}
    config |= {"models": "models.tsv", "outdir": "mine", "device": "cpu", "nulls": "none"}
    config |= {"top": {"n": 0}, "batch_size": 8}
    sources = {
        "clone": f"{ROOT}/workflow/Snakefile",
        "git": f"git+file://{repository}/workflow/Snakefile@main",
    }

    def write(where, prefix):
        lines = [
            "module veff:",
            f'    snakefile: "{sources[where]}"',
            f"    config: {config!r}",
            "use rule * from veff" + (f" as {prefix}*" if prefix else ""),
            "rule mine:",
            "    default_target: True",
            f"    input: rules.{prefix}all.input",
        ]
        (tmp_path / "Snakefile").write_text("\n".join(lines) + "\n")
        return tmp_path

    return write


@pytest.fixture(scope="module")
def alone(tmp_path_factory):
    return lone.make(tmp_path_factory.mktemp("lone") / "venv")


def snakemake(folder, *arguments, python=sys.executable, library=None):
    """The exit status of a run, and what it printed."""
    path = [library, *environment()["PYTHONPATH"].split(os.pathsep)] if library else []
    done = subprocess.run(
        [python, "-m", "snakemake", "--cores", "2", *arguments],
        cwd=folder,
        env=environment() | {"PYTHONPATH": os.pathsep.join(map(str, path))},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    return done.returncode, done.stdout


def told_to_install(said):
    (line,) = [line for line in said.splitlines() if line.startswith("these rules are")]
    return line.partition(": pip ")[2]


@pytest.fixture(scope="module")
def installed(repository, tmp_path_factory):
    """A folder with the library, installed by pip from the repository."""
    folder = tmp_path_factory.mktemp("installed")
    pip = f"pip install --quiet --no-build-isolation --target {folder} --no-deps"
    source = f"git+file://{repository}@main"
    subprocess.run([sys.executable, "-m", *shlex.split(pip), source], check=True)
    return folder


def test_the_installed_library_has_every_file(installed):
    def files(folder):
        found = {path.relative_to(folder) for path in folder.rglob("*.*") if path.is_file()}
        return {path for path in found if "__pycache__" not in path.parts}

    assert files(installed / "veff") == files(ROOT / "workflow/veff")


@PREFIXES
def test_the_rules_of_a_clone_are_planned(outer, alone, prefix):
    status, said = snakemake(outer("clone", prefix), "-n", python=alone)
    assert status == 0, said
    assert f"{prefix}prepare" in said


def test_the_rules_of_a_git_url_say_what_to_install(outer, alone, repository):
    status, said = snakemake(outer("git", "veff_"), "-n", python=alone)
    assert status == 1
    assert told_to_install(said) == f"install --no-deps git+file://{repository}@main"


def test_rules_and_library_of_two_versions_do_not_run_together(outer, alone, tmp_path, repository):
    older = tmp_path / "older/veff"
    older.mkdir(parents=True)
    (older / "__init__.py").write_text('__version__ = "0.0.1"\n')
    status, said = snakemake(outer("git", ""), "-n", python=alone, library=older.parent)
    assert status == 1
    assert "is there as 0.0.1: pip" in said
    assert told_to_install(said) == f"install --no-deps git+file://{repository}@main"


def test_the_rules_of_a_git_url_are_planned_without_a_prefix(outer, alone, installed):
    status, said = snakemake(outer("git", ""), "-n", python=alone, library=installed)
    assert status == 0, said


def test_the_rules_of_a_git_url_run(outer, installed):
    folder = outer("git", "veff_")
    status, said = snakemake(folder, library=installed)
    assert status == 0, said
    assert len(pq.read_table(folder / "mine/scores.parquet")) == 4
    assert "4 of 4 alleles have scores" in (folder / "mine/closing.txt").read_text()
    assert (folder / "mine/report.html").exists()
