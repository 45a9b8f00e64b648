"""The knob of the persistent cache is ignored, without a word, once Cherimoya is imported."""

import ast
import functools
import importlib.util

import pytest

from project import ROOT, printed

LIBRARY = ROOT / "workflow/veff"
SCRIPTS = sorted((ROOT / "workflow/scripts").glob("*.py"))
SWITCH = "autotune.enable"


def imported(tree):
    """Every import of a module, with its line: (dotted name, line)."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((alias.name, node.lineno) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield node.module, node.lineno
            yield from ((f"{node.module}.{alias.name}", node.lineno) for alias in node.names)


@functools.cache
def brings_cherimoya():
    """The modules of veff whose import imports Cherimoya, directly or through another one."""
    names = {}
    for path in LIBRARY.rglob("*.py"):
        dotted = ".".join(path.relative_to(LIBRARY.parent).with_suffix("").parts)
        tree = ast.parse(path.read_text())
        names[dotted.removesuffix(".__init__")] = {
            name for node in tree.body for name, _ in imported(node)
        }
    found = {"cherimoya"}
    while True:
        more = {
            m
            for m, those in names.items()
            if any(t.split(".")[0] in found or t in found for t in those)
        }
        if more <= found:
            return found
        found |= more


def switched_on(tree):
    """The line of the first call that sets the knob."""
    calls = (node for node in ast.walk(tree) if isinstance(node, ast.Call))
    return min(node.lineno for node in calls if ast.unparse(node.func) == SWITCH)


def test_there_are_scripts_and_modules_to_look_at():
    assert len(SCRIPTS) >= 7
    assert {
        "veff.cherimoya.engine",
        "veff.cherimoya.checkpoint",
        "veff.scoring.score",
    } <= brings_cherimoya()
    assert not {"veff.autotune", "veff.inputs.preparing", "veff.tables"} & brings_cherimoya()


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.stem)
def test_a_script_sets_the_knob_before_it_imports_cherimoya(script):
    tree = ast.parse(script.read_text())
    knob = switched_on(tree)
    early = [
        name
        for name, line in imported(tree)
        if line < knob and (name in brings_cherimoya() or name.split(".")[0] == "cherimoya")
    ]
    assert early == []


@pytest.mark.skipif(not importlib.util.find_spec("triton"), reason="needs Triton")
@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.stem)
def test_a_script_leaves_every_kernel_with_its_cache_on(script):
    """Its imports and its switch, in order, in a fresh process; then a look at the kernels."""
    tree = ast.parse(script.read_text())
    lines = [
        (node.lineno, ast.unparse(node))
        for node in ast.walk(tree)
        if isinstance(node, ast.Import | ast.ImportFrom)
    ]
    if not any(name in brings_cherimoya() for name, _ in imported(tree)):
        pytest.skip("imports no Cherimoya")
    lines.append((switched_on(tree), f"{SWITCH}()"))
    look = [
        "import cherimoya.cheri, triton",
        "kernels = [k for k in vars(cherimoya.cheri).values()"
        " if isinstance(k, triton.runtime.autotuner.Autotuner)]",
        "print(len(kernels), sum(k.cache_results for k in kernels))",
    ]
    code = "\n".join([line for _, line in sorted(lines)] + look)
    n_kernels, n_cached = map(int, printed(code).split())
    assert n_kernels == n_cached > 0
