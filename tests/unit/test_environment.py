"""The pinned lists: complete, explained, the same for pip and conda, and right after a move."""

import ast
import importlib.util
import re
import shutil
import subprocess
import sys
from importlib import metadata
from pathlib import Path

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

import veff
from veff.autotune import fingerprint

ROOT = Path(__file__).resolve().parents[2]
ENVS = ROOT / "envs"
README = (ENVS / "README.md").read_text()


def load(name):
    """A script of envs/ as a module."""
    spec = importlib.util.spec_from_file_location(f"envs_{name}", ENVS / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def pins(*lists):
    """The pinned requirements of some lists by name."""
    lines = [line for name in lists for line in (ENVS / f"{name}.txt").read_text().splitlines()]
    found = [Requirement(line) for line in lines if re.match(r"\w", line)]
    assert all(re.fullmatch(r"==[\w.]+", str(one.specifier)) for one in found)
    assert len({one.name for one in found}) == len(found), "pinned twice"
    return {canonicalize_name(one.name): one for one in found}


def left_out():
    """The packages of the README's last table."""
    table = README.split("## What is left out")[1]
    rows = [row.split("|")[1] for row in table.splitlines() if row.startswith("| `")]
    return {name for row in rows for name in re.findall(r"`([\w-]+)`", row)}


def imported(folder):
    """The top-level modules that the Python and workflow files of a folder import."""
    for path in [*folder.rglob("*.py"), *folder.rglob("*.smk"), *folder.rglob("Snakefile")]:
        text = path.read_text()
        if path.suffix != ".py":
            text = "\n".join(re.findall(r"^(?:import|from) .*", text, flags=re.MULTILINE))
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.Import):
                yield from (alias.name.partition(".")[0] for alias in node.names)
            elif isinstance(node, ast.ImportFrom) and not node.level:
                yield node.module.partition(".")[0]


def own(module):
    """Whether the project holds a module of this name."""
    return any(
        path.stem == module
        for folder in ("workflow", "tests", "resources")
        for path in (ROOT / folder).rglob("*")
        if path.suffix == ".py" or path.is_dir()
    )


TORCH = metadata.version("torch").partition("+")[0]
KIND = "gpu" if str(pins("torch-gpu")["torch"].specifier) == f"=={TORCH}" else "cpu"
RUNTIME = (f"torch-{KIND}", "requirements")
ALL = (*RUNTIME, "requirements-dev", "cluster", "docs")


@pytest.mark.parametrize(
    "lists", [("torch-cpu", *ALL[1:]), ("torch-gpu", *ALL[1:]), ("executors",)]
)
def test_every_pinned_package_is_explained(lists):
    pinned = pins(*lists)
    assert [name for name in pinned if f"`{name}`" not in README] == []


@pytest.mark.parametrize(
    ("folder", "lists"),
    [("workflow", RUNTIME), ("resources", RUNTIME), ("tests", (*ALL, "executors"))],
)
def test_every_imported_package_is_pinned(folder, lists):
    distributions = metadata.packages_distributions()
    pinned = {name for one in lists for name in pins(one)}
    missing = {
        module
        for module in imported(ROOT / folder)
        if module not in sys.stdlib_module_names
        and not own(module)
        and pinned.isdisjoint(map(canonicalize_name, distributions.get(module, [module])))
    }
    assert missing == set()


def test_the_lists_are_closed():
    """What a pinned package asks for is pinned at a version it accepts, or stated as left out."""
    pinned, wrong = pins(*ALL), []
    for name in pinned:
        try:
            asked = metadata.requires(name) or ()
        except metadata.PackageNotFoundError:
            continue  # cluster.txt, docs.txt, and Triton elsewhere than on Linux
        for one in map(Requirement, asked):
            if one.marker and not one.marker.evaluate({"extra": ""}):
                continue
            given = pinned.get(canonicalize_name(one.name))
            if given is None:
                if canonicalize_name(one.name) not in left_out():
                    wrong.append(f"{name} needs {one}")
            elif not one.specifier.contains(str(given.specifier).lstrip("=")):
                wrong.append(f"{name} needs {one}, pinned is {given}")
    assert wrong == []


def test_conda_files_have_the_same_pins():
    for name, content in load("conda").files().items():
        assert (ENVS / name).read_text() == content, "run python envs/conda.py"


@pytest.mark.parametrize("name", load("lock").lists())
def test_a_lock_has_the_pins_of_its_list_and_their_hashes(name):
    text = (ENVS / f"{name}.lock").read_text().replace("\\\n", "")
    lines = [re.split(r"\s+--hash=sha256:", line) for line in text.splitlines() if line]
    options = {line[0] for line in lines if line[0].startswith("--")}
    locked = {str(Requirement(line[0])) for line in lines if line[0] not in options}
    todo = f"run python envs/lock.py {name}"
    assert locked == {str(one) for one in pins(name).values()}, todo
    assert all(len(digest) == 64 for line in lines for digest in line[1:])
    assert not [line[0] for line in lines if line[0] not in options and len(line) < 2], todo
    only = {line.replace("=", " ") for line in load("conda").lines(f"{name}.txt") if "--" in line}
    assert options == only, todo


def test_a_moved_environment_runs_its_scripts(tmp_path):
    old, new = tmp_path / "old" / ".venv", tmp_path / "new" / ".venv"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", old], check=True)
    script = old / "bin" / "where"
    script.write_text(f"#!{old}/bin/python\nimport sys; print(sys.prefix)\n")
    script.chmod(0o755)
    (old / "made").write_text(f"{old}\n")
    (site,) = old.glob("lib/python*/site-packages")
    (site / "__editable__.cherimoya_veff.pth").write_text(f"{old.parent}/workflow\n")
    shutil.move(old.parent, new.parent)
    subprocess.run([new / "bin" / "python", ENVS / "relocate.py", new / "made"], check=True)
    shell = f'. "{new}/bin/activate" && where'
    said = subprocess.run(["sh", "-c", shell], check=True, capture_output=True, text=True)
    assert said.stdout.strip() == str(new)
    assert not any(str(old) in path.read_text() for path in (new / "bin").glob("activate*"))
    (library,) = new.glob("lib/python*/site-packages/__editable__*")
    assert library.read_text() == f"{new.parent}/workflow\n"


def test_a_path_that_scripts_cannot_hold_is_refused(tmp_path):
    (tmp_path / "a b").mkdir()
    stamp = tmp_path / "a b" / "made"
    stamp.write_text("/elsewhere/.venv\n")
    with pytest.raises(SystemExit, match="make clean env"):
        load("relocate").relocate(stamp)
    assert stamp.read_text() == "/elsewhere/.venv\n"


def test_over_several_processes_a_file_s_tests_stay_in_one(request):
    """With their fixtures, which take minutes: tests/conftest.py groups them."""
    if not request.config.getoption("loadgroup", False):
        pytest.skip("runs in one process, or without groups")
    assert request.node.nodeid.endswith("@test_environment.py")


def test_the_citation_and_the_changes_name_this_version():
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    assert citation["version"] == veff.__version__
    first = re.search("^## (.*)", (ROOT / "CHANGELOG.md").read_text(), re.M)[1]
    released = citation.get("date-released", "not yet released")
    assert first == f"{veff.__version__} ({released})"


def test_the_badges_are_true():
    """What they say is what the files that decide it say."""
    badges = re.findall(
        r"img\.shields\.io/badge/(\w+)-(\S+?)-\w+\)", (ROOT / "README.md").read_text()
    )
    said = {name: re.findall(r"\d+\.\d+|MIT", text) for name, text in badges}
    tested = yaml.safe_load((ROOT / ".github/workflows/ci.yml").read_text())
    project = (ROOT / "pyproject.toml").read_text()
    assert said == {
        "snakemake": re.findall(
            r'min_version\("(.*)"\)', (ROOT / "workflow/Snakefile").read_text()
        ),
        "python": tested["jobs"]["tests"]["strategy"]["matrix"]["python"],
        "licence": re.findall('license = "(.*)"', project),
    }
    assert f'requires-python = ">={said["python"][0]}"' in project


def test_each_week_the_oldest_versions_that_are_let_in_are_tested():
    weekly = yaml.safe_load((ROOT / ".github/workflows/weekly.yml").read_text())
    packages = weekly["jobs"]["versions"]["strategy"]["matrix"]["packages"]
    oldest = dict(re.findall(r"([\w-]+)==([\d.]+)", " ".join(packages)))
    let_in = {name: version for name, (version, _) in fingerprint.OLDEST.items()}
    snakefile = (ROOT / "workflow/Snakefile").read_text()
    let_in["snakemake"] = re.search(r'min_version\("(.*)"\)', snakefile)[1] + ".0"
    assert {name: oldest[name] for name in let_in} == let_in
    newest = {name for one in packages if "--upgrade" in one for name in one.split()}
    assert newest >= {*let_in, "torch"}
