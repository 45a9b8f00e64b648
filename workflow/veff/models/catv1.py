"""Which models does CATv1 have, and how do they come here from the Hugging Face hub, whole?

CATv1 (the Cherimoya Accessibility aTlas) is 1,518 ENCODE DNase-seq and ATAC-seq experiments of
five folds each, in one repository of the hub, under CC-BY-4.0. `huggingface_hub` keeps what it
fetches in its own cache and obeys HF_HOME, HF_ENDPOINT, HF_TOKEN and HF_HUB_OFFLINE.
"""

import csv
import functools
import hashlib
import logging
import os
import re
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from veff.errors import InputError, Passing
from veff.models.experiment import Checkpoint

REPOSITORY = "programmable-genomics/CATv1"
LICENCE = "CC-BY-4.0"
ASSEMBLY = "hg38"
FOLDS = range(5)
FACETS = ("biosample", "assay", "organ", "life_stage")
METADATA = "CATv1-metadata.tsv"
PERFORMANCE = "performance.tsv"

# The client itself tries each request again for half a minute; a job then does so after these.
PATIENT_S = (10, 60)
COMMIT = re.compile("[0-9a-f]{40}")
SHA256 = re.compile("[0-9a-f]{64}")
SEARCH = "search with: list_models"
# Stages of life, and the words by which a summary of a biosample tells them.
STAGES = {"embryonic": "embryo", "newborn": "newborn", "child": "child", "adult": "adult"}


@dataclass(frozen=True)
class Entry:
    """One experiment of CATv1, as its metadata have it."""

    accession: str
    biosample: str
    assay: str
    summary: str  # donor, stage and treatment, where they are told
    count_pearson: float | None  # of fold 0, on held-out chromosomes, as CATv1 publishes it

    @property
    def life_stage(self) -> str:
        """As its summary tells it (`STAGES`), '' where it does not."""
        told = [stage for stage, word in STAGES.items() if _has(self.summary, word)]
        return ",".join(told)

    def __str__(self) -> str:
        about = ", ".join(filter(None, (self.biosample, self.assay, self.summary)))
        known = self.count_pearson is not None
        return f"{self.accession} ({about}{f', r = {self.count_pearson:.2f}' if known else ''})"


class NotThere(InputError):
    """The hub answers, but has no such file."""


def file(accession: str, fold: int) -> str:
    """The name of a checkpoint in the repository."""
    return f"models/{accession}/cherimoya.fold_{fold}.torch"


def commit(revision: str) -> str:
    """The commit that a revision stands for.

    A branch or tag is looked up once and then taken from the client's cache, so that all jobs of
    a run, and later runs, mean the same files.
    """
    if COMMIT.fullmatch(revision):
        return revision
    try:
        from huggingface_hub import try_to_load_from_cache
    except ImportError:
        raise InputError(
            "the hub is asked with the Python package huggingface-hub, which is not installed: "
            "install it, or give accessions as catv1"
        ) from None
    kept = try_to_load_from_cache(REPOSITORY, METADATA, revision=revision)
    return (Path(kept) if isinstance(kept, str) else _whole(METADATA, revision, ())).parent.name


def fetch(name: str, revision: str, waits: tuple[float, ...] = ()) -> Path:
    """A file of the repository at that revision, on this machine and checked.

    From the client's cache, else from the hub; again after each of the `waits` (s) where the
    connection fails or the content is not what the hub announced. Raises `NotThere` if the hub
    has no such file, `InputError` if it cannot be had.
    """
    return _whole(name, commit(revision), waits)


def download(names: list[str], revision: str) -> dict[str, dict[str, str]]:
    """For each file of the repository where it is now, and of which commit, or that it is not.

    Raises `InputError` if one cannot be had for another reason than that it does not exist.
    """
    record = {}
    for name in names:
        try:
            path = fetch(name, revision, PATIENT_S)
            record[name] = {"checkpoint": str(path), "commit": commit(revision)}
            logging.info("%s: %d bytes", path, path.stat().st_size)
        except NotThere as error:
            record[name] = {"error": str(error)}
            logging.error("%s", error)
    return record


def mend(cached: Iterable[Checkpoint], sha256: Mapping[str, str]) -> None:
    """Fetch again each checkpoint that is no more in the client's cache as it was inspected.

    `sha256` is what their files have now, by path. Of one that cannot be had a warning tells, and
    the jobs that need it stop at it.
    """
    for one in cached:
        if sha256[one.path] != one.sha256:
            try:
                fetch(one.file, one.commit, (0,))
            except InputError as error:
                logging.warning("%s: changed since it was fetched; %s", one.path, error)


@functools.cache
def entries(revision: str) -> tuple[Entry, ...]:
    """The experiments of CATv1, in the order of its metadata.

    Raises `InputError` if the metadata lack a column that is needed.
    """
    performance = {
        row["experiment_accession"]: float(row["count_pearson"])
        for row in _rows(PERFORMANCE, revision, ("experiment_accession", "fold", "count_pearson"))
        if row["fold"] == "0" and row["count_pearson"]
    }
    needed = ("experiment_accession", "experiment_biosample_term_name", "assay_term_name")
    return tuple(
        Entry(
            row["experiment_accession"],
            row["experiment_biosample_term_name"],
            row["assay_term_name"],
            row.get("biosample_simple_summary") or "",
            performance.get(row["experiment_accession"]),
        )
        for row in _rows(METADATA, revision, needed)
    )


def find(biosample: str, assay: str, revision: str) -> Entry:
    """The experiment of that biosample and assay, whatever their case; `DNase` is `DNase-seq`.

    Raises `InputError` if there is none, or more than one: then it lists them, best first.
    """

    found = matching({"biosample": biosample, "assay": assay}, revision)
    if len(found) == 1:
        return found[0]
    if not found:
        raise InputError(f"CATv1 has no experiment of {biosample!r} and {assay!r}; {SEARCH}")
    raise InputError(
        f"{biosample!r} and {assay!r} are {len(found)} experiments in CATv1; "
        f"give one as catv1: {'; '.join(map(str, by_performance(found)))}"
    )


def matching(facets: dict[str, str], revision: str) -> list[Entry]:
    """The experiments that have all these facets, in any case; empty ones do not count.

    `biosample` is the whole name; `assay` as well (`DNase` is `DNase-seq`); `life_stage` is one of
    `STAGES`; `organ` is a word of the biosample's name or summary, since CATv1's metadata name
    no organs. Raises `InputError` for a life stage that there is not.
    """
    biosample, assay, organ, stage = (facets.get(facet, "").strip().lower() for facet in FACETS)
    if stage and stage not in STAGES:
        raise InputError(f"life_stage is {stage!r}; expected one of {', '.join(STAGES)}")
    return [
        one
        for one in entries(revision)
        if biosample in ("", one.biosample.lower())
        and assay.removesuffix("-seq") in ("", one.assay.lower().removesuffix("-seq"))
        and (not organ or _has(f"{one.biosample} {one.summary}", organ))
        and (not stage or stage in one.life_stage.split(","))
    ]


def search(words: list[str], facets: dict[str, str], revision: str) -> list[Entry]:
    """Those `matching` whose accession, biosample, assay or summary have all these words, best
    first."""
    wanted = [word.lower() for word in words]
    return by_performance(
        one
        for one in matching(facets, revision)
        for text in [f"{one.accession} {one.biosample} {one.assay} {one.summary}".lower()]
        if all(word in text for word in wanted)
    )


def by_performance(found) -> list[Entry]:
    """Best published count correlation first."""
    return sorted(found, key=lambda one: (-(one.count_pearson or 0), one.accession))


def _has(text: str, word: str) -> bool:
    return re.search(rf"\b{re.escape(word)}\b", text, re.IGNORECASE) is not None


def _rows(name: str, revision: str, needed: tuple[str, ...]) -> list[dict[str, str]]:
    path = fetch(name, revision)
    with open(path, newline="", encoding="utf-8-sig") as handle:
        rows = csv.DictReader(handle, delimiter="\t")
        missing = [column for column in needed if column not in (rows.fieldnames or ())]
        if missing:
            raise InputError(
                f"{REPOSITORY}: {name} has no column {missing[0]!r} at revision {revision}; "
                "give accessions as catv1, or another catv1_revision"
            )
        return list(rows)


def _whole(name: str, revision: str, waits: tuple[float, ...]) -> Path:
    for wait in (*waits, None):
        try:
            path = _download(name, revision)
            if _is_whole(path):
                return path
            fault = "what arrived is not what the hub announced (sha256)"
            _remove(path)
        except _Passing as error:
            fault = str(error)
        if wait is not None:
            logging.warning("%s: %s; again in %g s", name, fault, wait)
            time.sleep(wait)
    raise Passing(f"{REPOSITORY}: {name}: {fault}; check the connection and run again")


class _Passing(Exception):
    """A fault of the connection or of the hub that may be over soon."""


def _download(name: str, revision: str) -> Path:
    """Where the client put the file; what it raises becomes one line."""
    import httpx2
    from huggingface_hub import constants, errors, hf_hub_download
    from huggingface_hub.utils import disable_progress_bars

    disable_progress_bars()
    try:
        return Path(hf_hub_download(REPOSITORY, name, revision=revision))
    except errors.RevisionNotFoundError:
        raise InputError(
            f"{REPOSITORY}: the hub has no revision {revision!r}; set catv1_revision"
        ) from None
    except errors.RemoteEntryNotFoundError:
        raise NotThere(
            f"{REPOSITORY}: the hub has no {name} at revision {revision}; {SEARCH}"
        ) from None
    except (httpx2.HTTPError, OSError) as error:
        cause = error.__cause__ or error
        status = getattr(getattr(cause, "response", None), "status_code", None)
        if constants.is_offline_mode():
            raise InputError(
                f"{REPOSITORY}: {name} is not in the cache ({constants.HF_HUB_CACHE}), and "
                "HF_HUB_OFFLINE is set; fetch it once online"
            ) from None
        if status in (401, 403, 404):
            raise InputError(
                f"{REPOSITORY}: {constants.ENDPOINT} does not give {name} ({status}); "
                "if the repository needs a token, set HF_TOKEN"
            ) from None
        line = next(iter(str(cause).split("\n")), "") or type(cause).__name__
        raise _Passing(f"{constants.ENDPOINT}: {line}") from error


def _is_whole(path: Path) -> bool:
    """Whether a file's content has the hash that the hub gave it.

    The client names a blob of its cache by what the hub calls its content: the sha256 of a large
    file, the git hash of a small one.
    """
    if not path.is_symlink():  # a cache on a disk without links: the client checked the length
        return True
    name, data = Path(os.readlink(path)).name, path.read_bytes()
    if SHA256.fullmatch(name):
        return hashlib.sha256(data).hexdigest() == name
    if COMMIT.fullmatch(name):
        return hashlib.sha1(b"blob %d\0" % len(data) + data).hexdigest() == name
    return True


def _remove(path: Path) -> None:
    (path.parent / os.readlink(path)).unlink(missing_ok=True)
    path.unlink()
