"""How far a run is, and what it shows of itself."""

import io
import json
import logging
import os
import sys

import pytest
from snakemake_interface_logger_plugins.common import LogEvent
from snakemake_interface_logger_plugins.tests import MockOutputSettings

from snakemake_logger_plugin_veff import LogHandler
from veff import progress

BUNDLES = {"a" * 12: 2, "b" * 12: 3}
FIRST, SECOND = ({"chunk": str(chunk), "bundle": "a" * 12} for chunk in (0, 1))


@pytest.fixture
def outdir(tmp_path):
    """Ten alleles in two chunks; of an earlier run one job, and one of a bundle that is gone."""
    for name, text in {
        "prepared/summary.json": json.dumps(
            {
                "alleles": 12,
                "scoreable": 10,
                "chunks": 2,
                "classes": ["ins_1_5"],
                "statuses": {"ok": 10, "malformed": 2},
            }
        ),
        f"parts/jobs/1.{'a' * 12}.json": "{}",
        f"parts/jobs/1.{'c' * 12}.json": "{}",
        f"parts/nulls/{'b' * 12}.json": "{}",
    }.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return tmp_path


def test_alleles_and_the_random_ones_of_each_class_are_counted_under_each_experiment(outdir):
    run = progress.Progress(outdir, BUNDLES, nulls=100)
    assert run.counts() == (5 * 2 + 200 * 3, (10 + 200) * 5)
    run.ends("score", FIRST)
    run.ends("collect", {})
    assert run.counts()[0] == 10 * 2 + 200 * 3


def test_what_is_done_again_is_not_done(outdir):
    run = progress.Progress(outdir, BUNDLES, nulls=0)
    run.starts("score", SECOND)
    assert run.counts() == (0, 10 * 5)


def test_what_is_scored_besides_counts_once_it_is_planned(outdir):
    parts = outdir / "parts/haplotypes"
    (parts / "jobs").mkdir(parents=True)
    (parts / f"jobs/0.{'a' * 12}.json").write_text("{}")
    run = progress.Progress(outdir, BUNDLES, nulls=100, also=["haplotypes", "edits"])
    before = run.counts()
    assert before == progress.Progress(outdir, BUNDLES, nulls=100).counts()
    (parts / "summary.json").write_text(json.dumps({"windows": 60, "chunks": 3}))
    assert run.counts() == (before[0] + 20 * 2, before[1] + 60 * 5)
    run.ends("score_haplotypes", SECOND)
    assert run.counts()[0] == before[0] + 40 * 2
    run.starts("score_haplotypes", FIRST)
    assert run.counts()[0] == before[0] + 20 * 2
    # Random pairs of 100 are 300 windows.
    (parts / "summary.json").write_text(json.dumps({"windows": 60, "chunks": 3, "several": 1}))
    run.ends("null_of_pairs", {"bundle": "b" * 12})
    assert run.counts() == (before[0] + 20 * 2 + 300 * 3, before[1] + 360 * 5)


def test_nothing_is_counted_before_the_alleles_are_prepared(tmp_path):
    assert progress.Progress(tmp_path, BUNDLES, nulls=100).counts() == (0, 0)


def test_a_run_ends_with_statuses_until_it_has_closing_words_of_these_alleles(outdir):
    statuses = "12 alleles: 10 ok, 2 malformed ("
    assert progress.reached(outdir).startswith(statuses)
    (outdir / "closing.txt").write_text("the largest effects")
    assert progress.reached(outdir) == "the largest effects"
    os.utime(outdir / "closing.txt", (0, 0))  # of other variants
    assert progress.reached(outdir).startswith(statuses)


class Screen(io.StringIO):
    """What a user sees; `terminal` says whether it is one."""

    terminal = False

    def isatty(self):
        return self.terminal


@pytest.fixture
def show(monkeypatch):
    """Shows records, given as (message, fields), and returns what a user sees of them."""

    def of(*records, terminal=False, dryrun=False):
        screen = Screen()
        screen.terminal = terminal
        monkeypatch.setattr(sys, "stderr", screen)
        monkeypatch.setenv("COLUMNS", "100")
        monkeypatch.setattr("snakemake_logger_plugin_veff.EVERY_S", 0)
        monkeypatch.setattr("snakemake_logger_plugin_veff.SHARE", 0)
        settings = MockOutputSettings()
        settings.dryrun = dryrun
        handler = LogHandler(settings, None)
        for message, fields in records:
            level = fields.get("level", logging.INFO)
            record = logging.LogRecord("snakemake", level, "", 0, message, (), None)
            record.__dict__ |= fields
            handler.emit(record)
        handler.close()
        return screen.getvalue()

    return of


def starts(number, rule, wildcards):
    job = {"jobid": number, "rule_name": rule, "wildcards": wildcards}
    return "a paragraph", {"event": LogEvent.JOB_INFO} | job


def ends(number):
    return "Finished", {"event": LogEvent.JOB_FINISHED, "job_id": number}


def run(outdir):
    """The records of a run that scores the chunk that is left."""
    return [
        ("Building DAG of jobs...", {}),
        ("plan: so much", {"veff": progress.Progress(outdir, {"a" * 12: 2}, nulls=0)}),
        starts(1, "score", FIRST),
        starts(2, "models", {}),
        ends(2),
        ends(1),
        starts(3, "collect", {}),
        ends(3),
        ("the largest effects", {"veff": None}),
    ]


def test_without_a_terminal_a_run_is_its_words_and_a_line_now_and_then(outdir, show):
    first, *lines, last = show(*run(outdir)).splitlines()
    assert (first, last) == ("plan: so much", "the largest effects")
    scoring = [line for line in lines if "10 of 20 alleles x experiments" in line]
    assert [line.split("left: ")[1] for line in scoring] == ["score", "score, models", "score"]
    assert all(line.startswith(" 50 %|") for line in scoring)
    assert lines[len(scoring) :] == ["20 alleles x experiments scored: collect"]


def test_on_a_terminal_one_line_is_drawn_anew_and_gone_at_the_end(outdir, show):
    seen = show(*run(outdir), terminal=True)
    assert [line.rpartition("\r")[2] for line in seen.split("\n")] == [
        "plan: so much",
        "the largest effects",
        "",
    ]
    assert "| 10 of 20 alleles x experiments, ? left: score\r" in seen


def test_an_error_is_shown_and_what_only_repeats_it_is_not(outdir, show):
    failed = {"event": LogEvent.JOB_ERROR, "jobid": 1, "rule_name": "score", "log": ["a.log"]}
    error = {"level": logging.ERROR}
    assert show(
        starts(1, "score", FIRST),
        ("a paragraph", failed | error),
        ("RuleException:\nCalledProcessError in file score.smk", error),
        ("Exiting because a job execution failed. Look above for error messages", error),
        ("WorkflowError:\nAt least one job did not complete successfully.", error),
        ("MissingInputException: no such file", error),
    ).splitlines()[1:] == ["score failed: see a.log", "MissingInputException: no such file"]


def test_a_dry_run_says_its_jobs_once(show):
    stats = ("Job stats: 3", {"event": LogEvent.RUN_INFO})
    assert show(stats, starts(1, "score", FIRST), stats, dryrun=True) == "Job stats: 3\n"
