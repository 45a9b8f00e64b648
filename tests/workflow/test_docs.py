"""Every command of the documentation runs, and every sheet in it is read.

What takes long or needs another machine is checked as far as that goes: `snakemake` by a dry run,
`make` by one of its own, a script that trains by compiling it. A command that nothing here knows
how to check fails.
"""

import os
import re
import shlex
import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pysam
import pytest

from project import DEMO, ROOT, environment
from unit.hub import Hub
from veff.models import catv1, sheet

PAGES = sorted(
    [*ROOT.glob("*.md"), *ROOT.glob("docs/*.md"), *ROOT.glob("*/README.md"), DEMO / "README.md"]
)
HUB = {
    "CATv1-metadata.tsv": "experiment_accession\tassay_term_name\texperiment_biosample_term_name\t"
    "biosample_simple_summary\nENCSR000EOT\tDNase-seq\tK562\t\n"
    "ENCSR000AAA\tDNase-seq\theart left ventricle\tfemale adult (53 years)\n",
    "performance.tsv": "experiment_accession\tfold\tcount_pearson\nENCSR000EOT\t0\t0.8\n",
}


def blocks(page, language):
    """The blocks of code in a language ('' for none), wherever they are indented."""
    found = re.findall(rf"^( *)```{language}\n(.*?)^\1```$", page.read_text(), re.M | re.S)
    return [
        "".join(line.removeprefix(indent) for line in text.splitlines(keepends=True))
        for indent, text in found
    ]


def commands(page):
    """The commands of a page, one by one, as lists of words, but those shown to fail."""
    texts = blocks(page, "bash")
    for text in blocks(page, "console"):
        shown = re.findall(r"^\$ (.*)\n((?:(?!\$ ).*\n)*)", text, re.M)
        texts += [command for command, said in shown if not said.startswith("error: ")]
    for line in "\n".join(texts).replace("\\\n", " ").splitlines():
        for command in re.split(r"\s&&\s", line):
            if words := shlex.split(command, comments=True):
                yield words


ALL = {
    f"{page.relative_to(ROOT)}: {' '.join(words)[:90]}": words
    for page in PAGES
    for words in commands(page)
}


@pytest.fixture(scope="module")
def clone(tmp_path_factory):
    """A clone of a user, with variants, a genome and a model sheet of theirs."""
    folder = tmp_path_factory.mktemp("clone")
    for name in ("config", "envs", "gpu", "resources", "workflow"):
        (folder / name).symlink_to(ROOT / name)
    for own in ("my.vcf.gz", "my.vcf", "person.vcf.gz"):
        shutil.copy(DEMO / "variants.vcf.gz", folder / own)
    for own in ("hg38.fa", "genome.fa"):
        shutil.copy(DEMO / "genome.fa.gz", folder / own)
    shutil.copy(DEMO / "models.tsv", folder / "my_models.tsv")
    for own in ("enhancers.bed", "designs.bed"):
        (folder / own).touch()
    return folder


def runs(words, folder, **more):
    done = subprocess.run(
        words,
        cwd=folder,
        env=environment() | more,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    assert done.returncode == 0, done.stdout
    return done.stdout


def snakemake(words, clone, tmp_path):
    """A dry run; with another executor where its packages are."""
    more = {}
    if "slurm" in " ".join(words):
        added = ROOT / ".venv/cluster"  # make test-cluster
        if not find_spec("snakemake_executor_plugin_slurm") and not added.is_dir():
            pytest.skip("needs the packages of envs/cluster.txt")
        more = {"PYTHONPATH": f"{added}{os.pathsep}{environment()['PYTHONPATH']}"}
    if "conda" in words:
        (tmp_path / "conda").symlink_to(ROOT / "tests/standin/conda")
        more["PATH"] = f"{tmp_path}{os.pathsep}{environment()['PATH']}"
    given = [word.removesuffix("…").rstrip() for word in words[1:] if word != "…"]
    if given[-1] == "--config":
        given[-1:] = ["--configfile", "config/demo.yaml"]
    if "--report" in given:  # of a run that was; the dry run is of the run itself
        del given[given.index("--report") : given.index("--report") + 2]
    dry = [] if "-n" in given else ["-n"]
    # First, since --config takes all words that follow.
    said = runs([sys.executable, "-m", "snakemake", *dry, *given], clone, **more)
    assert "plan: " in said


def make(words, clone, tmp_path):
    runs(["make", "--dry-run", *words[1:]], ROOT)


def list_models(words, clone, tmp_path):
    hub = Hub({name: text.encode() for name, text in HUB.items()})
    with hub.serving() as address:
        more = {"HF_ENDPOINT": address, "HF_HOME": str(tmp_path), "HF_TOKEN": ""}
        said = runs([sys.executable, "-m", "veff.models.listing", *words[1:]], clone, **more)
    assert "\nexperiment\tcatv1\tfolds\n" in said


def python(words, clone, tmp_path):
    """A script of the demo takes minutes; an installation needs a network."""
    if words[1:3] == ["-m", "pip"]:
        assert (ROOT / words[words.index("-r") + 1]).is_file()
    else:
        compile((ROOT / words[1]).read_text(), words[1], "exec")


def git(words, clone, tmp_path):
    """From wherever this repository is."""
    assert words[1] == "clone"
    assert words[2].endswith("/cherimoya-veff.git")


def printf(words, clone, tmp_path):
    """Another row for the model sheet of the clone."""
    assert words[2:] == [">>", "my_models.tsv"]
    _, checkpoint = words[1].removesuffix(r"\n").split(r"\t")
    assert (ROOT / checkpoint).is_file()


def cd(words, clone, tmp_path):
    assert words == ["cd", "cherimoya-veff"]


def source(words, clone, tmp_path):
    """What `make env` makes."""
    assert words == ["source", ".venv/bin/activate"]
    assert "venv --clear .venv" in (ROOT / "Makefile").read_text()


CHECKS = {
    check.__name__: check
    for check in (snakemake, make, list_models, python, git, printf, cd, source)
}
CHECKS[".venv/bin/python"] = python
ON_RESULTS = ("bcftools", "vep")


@pytest.mark.parametrize("words", [pytest.param(words, id=name) for name, words in ALL.items()])
def test_a_command_runs(words, clone, tmp_path):
    if words[0] not in ON_RESULTS:
        CHECKS[words[0]](words, clone, tmp_path)


def test_a_fault_is_told_as_the_tutorial_shows_it(clone):
    """Its last line, as far as the page has it."""
    (command, error), *more = re.findall(
        r"^\$ (.*)\n(error: .*?)…?$", (ROOT / "docs/tutorial.md").read_text(), re.M
    )
    assert not more
    words = [sys.executable, "-m", *shlex.split(command), "-n"]
    with pytest.raises(AssertionError) as failed:
        runs(words, clone)
    assert error in str(failed.value)


def test_the_tutorial_shows_what_the_demo_ends_with(demo):
    def effects(text):
        """Places, alleles and experiments of the lines of a run's last table."""
        lines = re.findall(r"^  (sim\w)\s+(\d+)\s+(\S+)\s+-?[\d.]+\s.*\s(\w+)$", text, re.M)
        return lines[:10]

    shown = effects((ROOT / "docs/tutorial.md").read_text())
    assert len(shown) == 10
    assert shown == effects(demo.said)


def test_no_page_is_without_its_commands():
    """The blocks are found: these pages have some."""
    said = {name.partition(":")[0] for name in ALL}
    assert {"README.md", "docs/install.md", "docs/use.md", "docs/cluster.md"} <= said


def test_commands_on_results_find_what_they_ask_for(demo):
    asked = [words for words in ALL.values() if words[0] in ON_RESULTS]
    assert {words[0] for words in asked} == set(ON_RESULTS)
    with pysam.VariantFile(str(demo.outdir / "annotated.vcf.gz")) as vcf:
        fields = set(vcf.header.info)
    for words in asked:
        assert set(re.findall(r"CHERI_\w+", " ".join(words))) <= fields
        if words[0] == "bcftools" and shutil.which("bcftools"):
            assert "cell" in runs(words, demo.outdir)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_a_sheet_is_read(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    entries = (
        catv1.Entry("ENCSR000AAA", "heart left ventricle", "DNase-seq", "female adult", 0.8),
    )
    monkeypatch.setattr(catv1, "entries", lambda revision: entries)
    for text in blocks(page, ""):
        if text.startswith("experiment\t"):
            for checkpoint in re.findall(r"\S+\.torch", text):
                Path(checkpoint).parent.mkdir(exist_ok=True)
                Path(checkpoint).touch()
            Path("models.tsv").write_text(text)
            assert sheet.read("models.tsv")


def test_python_opens_the_demo_as_the_pages_say(demo):
    code = [text for page in PAGES for text in blocks(page, "python") if "results/demo" in text]
    assert len(code) > 1
    for text in code:
        exec(compile(text.replace("results/demo", str(demo.outdir)), "a page", "exec"), {})
