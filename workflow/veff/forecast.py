"""What will a run take: jobs, hours, bytes on disk?"""

from dataclasses import dataclass

from veff import plan

# Of a scoring job before its first score (4.35 s, tests/bench/results/many_models.json).
START_S = 4.4
# Bytes on disk, the jobs' parts included (tests/bench/results/plan.json): an allele under an
# experiment, the same under one of its folds, an allele whatever the models, and a row of text.
SCORE_BYTES = 403
FOLD_BYTES = 166
ALLELE_BYTES = 130
TEXT_BYTES = 233
# To attribute both windows of an allele under a default-size model takes a core so long for each
# shuffle (tests/bench/results/plan.json). A GPU does it beside its scoring.
SHUFFLE_S = 1.5
LONG_H = 24
MILLION = 1_000_000


@dataclass(frozen=True)
class Stored:
    """What was found in the store: scores (alleles x experiments), and how many alleles x models
    they took; and the jobs that are left."""

    scores: int
    allele_models: int
    jobs: int


@dataclass(frozen=True)
class Planned:
    """What is scored besides the alleles: of which kind (haplotypes, edits, background), how many
    windows, each of which takes what an allele does, in how many jobs, and how many of these are
    done."""

    kind: str
    windows: int
    jobs: int
    done: int = 0

    @property
    def left(self) -> int:
        return max(self.jobs - self.done, 0)


@dataclass(frozen=True)
class Forecast:
    """A run as it is planned.

    `cut` and `chunk_size` (the setting) divide the alleles; `models` and `bundles` are all that
    the run has. `nulls` are random SNVs an experiment, and as many alleles of each other class
    that was prepared; `strands` 1 or 2, `text` whether scores may be written as text. Of an
    earlier run, `done` are the scoring jobs, and `judged` the models whose nulls are scored. `top`
    alleles are to be drawn, with `shuffles` each. `prepared` is the summary of the prepared
    alleles, None where they are not yet counted; `store` says what is there, None before it was
    looked into. `planned` is what is scored besides the alleles, as far as it is known.
    """

    cut: plan.Cut
    chunk_size: int | str
    experiments: int
    models: int
    bundles: int
    strands: int = 1
    nulls: int = 0
    text: bool = True
    done: int = 0
    judged: int = 0
    top: int = 0
    shuffles: int = 0
    prepared: dict | None = None
    store: Stored | None = None
    planned: tuple[Planned, ...] = ()

    def words(self) -> str:
        """The plan, a line each: alleles, jobs, hours, bytes, and what to think of first."""
        n = self.prepared["scoreable"] if self.prepared else MILLION
        jobs = self.jobs(n)
        hours = self.hours(n)
        gpu = self.cut.gpu
        unit, on = ("GPU", "one NVIDIA H200") if gpu else ("CPU core", "a core of an AMD EPYC")
        under = (
            f"under {_number(self.experiments, 'experiment')} ({_number(self.models, 'model')})"
        )
        if self.prepared:
            alleles, each = f"{self.prepared['alleles']:,} alleles, {n:,} of them to be scored", ""
        else:
            alleles, each = "alleles not yet counted", "for each million alleles "
        nulls = self._nulls_in_words()
        drawing = self.drawing_hours(n)
        top = f", and {_hours(drawing)} to draw {_number(self.top, 'largest effect')} (top)"
        top = top if drawing else ""
        lines = [
            f"{alleles}, {under}",
            f"{each}{_number(jobs, 'scoring job')}{_done(self.done, jobs)}: chunks of "
            f"{self.alleles_a_job(n):,} alleles, {_number(self.bundles, 'bundle')} of models",
            f"{each}about {_hours(hours)} {unit} hours to score{nulls}{top}, at the speed of "
            f"{on} with default-size models",
            f"{each}about {_bytes(self.bytes(n))} on disk, and a byte for each base of the "
            "reference",
        ]
        lines[2:2] = [
            f"{one.windows:,} windows besides ({one.kind}), in {_number(one.jobs, 'scoring job')}"
            f"{_done(one.done, one.jobs)}"
            for one in self.planned
        ]
        if self.store:
            every = f"{n * self.experiments:,} scores (alleles x experiments)"
            lines.insert(1, f"{self.store.scores:,} of {every} are in the store")
        if self.prepared and hours + drawing > LONG_H:
            more = "more GPUs (--resources gpu=N, or a cluster)" if gpu else "a GPU, or more cores"
            lines.append(
                f"warning: more than a day for one {unit}: think of {more}, fewer models or "
                "smaller nulls"
            )
        return "\n".join(f"plan: {line}" for line in lines)

    def alleles_a_job(self, n: int) -> int:
        """The size of a chunk, where `n` alleles are to be scored."""
        if self.prepared and self.prepared["chunks"]:
            return -(-n // self.prepared["chunks"])
        return plan.enough(n, self.cut.chunk_size(self.chunk_size), self._most_chunks())

    def jobs(self, n: int) -> int:
        """Scoring jobs of `n` alleles: chunks x bundles, without what is in the store."""
        if self.store:
            return self.store.jobs
        return -(-n // self.alleles_a_job(n)) * self.bundles

    def hours(self, n: int) -> float:
        """Of one GPU or core: for the scoring jobs that are not done, for the nulls, and for what
        is planned besides."""
        jobs = self.jobs(n)
        left = max(jobs - self.done, 0)
        found = self.store.allele_models if self.store else 0
        scored = (n * self.models - found) * left / jobs if left else 0
        scored += self.nulls * self._classes * (self.models - self.judged)
        for one in self.planned:
            scored += one.windows * self.models * one.left / max(one.jobs, 1)
            left += one.left
        return (scored * self.strands / self.cut.rate + START_S * left) / 3600

    def drawing_hours(self, n: int) -> float:
        """Of one core, to attribute the largest effects; on a GPU next to nothing."""
        folds = self.models / self.experiments
        shuffles = 0 if self.cut.gpu else min(self.top, n) * self.shuffles
        return shuffles * folds * self.strands * SHUFFLE_S / 3600

    def bytes(self, n: int) -> int:
        """On disk, of `n` alleles, the jobs' own files included."""
        rows = n * self.experiments
        text = TEXT_BYTES * rows if self.text and rows <= plan.TSV_ROWS else 0
        every = n + sum(one.windows for one in self.planned)
        scores = (SCORE_BYTES * self.experiments + FOLD_BYTES * self.models) * every
        return scores + ALLELE_BYTES * n + text

    @property
    def _classes(self) -> int:
        """Of so many classes are the random alleles, SNVs among them, as far as that is known."""
        return 1 + len(self.prepared["classes"] if self.prepared else ())

    def _nulls_in_words(self) -> str:
        if not self.nulls:
            return ""
        said = f"{self.nulls:,} random SNVs a model (nulls)"
        if self._classes > 1:
            random = self.nulls * self._classes
            said = f"{random:,} random alleles a model (nulls of {self._classes} classes)"
        unknown = "" if self.prepared else ", but none yet of other classes"
        return f", {said} among them{unknown}"

    def _most_chunks(self) -> int | None:
        return self.cut.most_chunks(self.chunk_size)


def _number(n: int, of: str) -> str:
    return f"{n:,} {of}{'s' if n != 1 else ''}"


def _done(done: int, jobs: int) -> str:
    return f", {min(done, jobs):,} of them done" if done else ""


def _hours(hours: float) -> str:
    return f"{hours:,.0f}" if hours >= 10 else f"{hours:.2g}"


def _bytes(size: float) -> str:
    for unit in ("kB", "MB", "GB"):
        size /= 1000
        if size < 1000:
            return f"{size:.2g} {unit}" if size < 10 else f"{size:.0f} {unit}"
    return f"{size / 1000:,.1f} TB"
