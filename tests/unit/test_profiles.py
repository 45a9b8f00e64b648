"""Which rules the profiles name that must be told of GPUs rule by rule."""

import re

import pytest
import yaml

from project import ROOT

RULES = "\n".join(path.read_text() for path in sorted((ROOT / "workflow/rules").glob("*.smk")))


def that_run_models():
    """The rules that ask for a GPU, and those that are such a rule with other files."""
    found = set()
    for name, text in re.findall(r"^rule (\w+):\n((?: .*\n|\n)+)", RULES, re.MULTILINE):
        if "**GPU" in text:
            found.add(name)
    derived = re.findall(r"^use rule (\w+) as (\w+) with:", RULES, re.MULTILINE)
    return found | {name for of, name in derived if of in found}


@pytest.mark.parametrize("profile", ["kubernetes", "awsbatch", "googlebatch", "lsf", "sge"])
def test_each_rule_that_runs_models_is_given_a_gpu(profile):
    settings = yaml.safe_load((ROOT / "workflow/profiles" / profile / "config.yaml").read_text())
    told = settings["set-resources"]
    rules = that_run_models()
    assert {"setup", "score", "null", "top", "null_of_pairs", "score_edits"} <= rules
    assert {name for name, asked in told.items() if asked == told["setup"]} == rules
    if threads := settings.get("set-threads"):
        assert rules <= set(threads)
