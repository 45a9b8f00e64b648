"""What does a run show? Its own words, faults, and one line that says how far it is.

A plugin of Snakemake, `--logger veff`, in place of a paragraph for each job. The line counts
alleles x experiments; on a terminal it is drawn anew, elsewhere it is printed now and then.
"""

import logging
import os
import sys
import time
from collections import Counter

from snakemake_interface_logger_plugins.base import LogHandlerBase
from snakemake_interface_logger_plugins.common import LogEvent

SCORING = "{percentage:3.0f} %|{bar:20}| {n:,} of {total:,} alleles x experiments, "
SCORING += "{left} left: {desc}"
# Before this share of what there was to do is done, its speed says little.
SOON = 0.05
SCORED = "{total:,} alleles x experiments scored: {desc}"
# Seconds between two printed lines: so many, or in a long run a share of the time that it runs.
EVERY_S, SHARE = 10, 0.05
# What Snakemake says in every run.
CHATTER = (
    "Assuming unrestricted shared filesystem",
    "Building DAG of jobs",
    "Complete log(s)",
    "Conda environments: ignored",
    "Config file config/config.yaml is extended",
    "DAG of jobs will be updated",
    "Reasons:\n    (check individual jobs above",
    "Elapsed time",
    "Select jobs to execute",
    "The run involves checkpoint jobs",
    "Updating checkpoint dependencies",
    "Using shell",
)
# What it says of a job that failed: the job has said why, and the run's last words repeat it.
REPEATED = (
    "RuleException:\nCalledProcessError",
    "Exiting because a job execution failed",
    "WorkflowError:\nAt least one job did not complete",
)


class LogHandler(LogHandlerBase):
    """Snakemake's records come one by one, in one thread.

    The workflow marks its own words with `veff`: None, or, where the run starts, the
    `veff.progress.Progress` that knows what there is to score.
    """

    writes_to_stream = True
    writes_to_file = False
    has_filter = True
    has_formatter = False  # Snakemake's own
    needs_rulegraph = False

    def __post_init__(self) -> None:
        from tqdm import tqdm  # Snakemake, which loads each plugin, may be alone

        self.stream = sys.stdout if self.common_settings.stdout else sys.stderr
        terminal = self.stream.isatty()
        self.line = tqdm(
            file=self.stream if terminal else open(os.devnull, "w"),  # noqa: SIM115
            bar_format="{desc}",
            dynamic_ncols=True,
            smoothing=0,
            leave=False,
        )
        self.began = self.printed = time.monotonic()
        self.printing = not terminal
        self.progress = None
        self.plans = []
        self.jobs = {}  # by id, those that run: their rules and wildcards

    def emit(self, record: logging.LogRecord) -> None:
        event, said = getattr(record, "event", None), str(record.msg)
        if hasattr(record, "veff"):
            self.progress = record.veff or self.progress
            self.say(said)
        elif event == LogEvent.JOB_ERROR:
            self.say(f"{record.rule_name} failed: see {', '.join(record.log)}")
        elif event == LogEvent.RUN_INFO and self.common_settings.dryrun:
            if said not in self.plans:  # Snakemake says it before and after
                self.say(said)
            self.plans.append(said)
        elif record.levelno >= logging.WARNING:
            if not said.startswith(REPEATED):
                self.say(self.format(record))
        elif event is None and not said.startswith(CHATTER):
            self.say(self.format(record))
        if not self.common_settings.dryrun:
            self.follow(record)

    def say(self, text: str) -> None:
        """Print a text above the line."""
        self.line.write(text.rstrip("\n"), file=self.stream)

    def follow(self, record: logging.LogRecord) -> None:
        """Note which jobs run and what they have done, and show it."""
        event = getattr(record, "event", None)
        if event == LogEvent.JOB_INFO:
            job = self.jobs[record.jobid] = record.rule_name, record.wildcards
            if self.progress:
                self.progress.starts(*job)
        elif event == LogEvent.JOB_FINISHED and record.job_id in self.jobs:
            job = self.jobs.pop(record.job_id)
            if self.progress:
                self.progress.ends(*job)
        elif event == LogEvent.JOB_ERROR:
            self.jobs.pop(record.jobid, None)
        else:
            return
        self.show()

    def show(self) -> None:
        done, every = self.progress.counts() if self.progress else (0, 0)
        if every and not self.line.total:
            self.line.reset(every)
            self.line.initial = done
        if every:
            self.line.total = every  # other than at first where the alleles are prepared again
            known = done - self.line.initial >= SOON * (every - self.line.initial)
            scoring = SCORING.replace("{left}", "{remaining}" if known else "?")
            self.line.bar_format = scoring if done < every else SCORED
        self.line.n = done
        rules = Counter(rule for rule, _ in self.jobs.values())
        rules = ", ".join(f"{n} {rule}" if n > 1 else rule for rule, n in rules.items())
        self.line.set_description_str(rules)
        now = time.monotonic()
        pause = max(EVERY_S, SHARE * (now - self.began))
        if self.printing and rules and now - self.printed >= pause:
            self.printed = now
            self.say(str(self.line))

    def close(self) -> None:
        self.line.close()
        super().close()
