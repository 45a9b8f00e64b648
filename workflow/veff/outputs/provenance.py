"""What made this run: versions, inputs, models, machines, and how fast was it?"""

import hashlib
import json
import platform
from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from importlib import metadata
from pathlib import Path

import veff
from veff import autotune
from veff.atomic import read_json
from veff.inputs import notations
from veff.inputs.classes import SNV
from veff.inputs.identity import sha256
from veff.models import acceptance, experiment
from veff.models.experiment import Experiment
from veff.scoring.how import How
from veff.store import identity

# Keys of the configuration, at any level, whose texts are paths.
PATHS = ("variants", "reference", "models", "outdir", "contig_aliases", "regions", "dir")
PATHS += ("genes", "peaks", "hits", "links", "set", "seed", "cache_dir", "table", "container")
PATHS += ("samples", "edits", "store")
PACKAGES = ("cherimoya", "torch", "triton", "snakemake", "pysam", "pyarrow", "numpy")


def versions() -> dict[str, str]:
    """Of this project, of Python, and of each package that it rests on and that is installed."""
    found = {"cherimoya-veff": veff.__version__, "python": platform.python_version()}
    for package in PACKAGES:
        try:
            found[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            continue
    return found


def job(
    seconds: float, n_alleles: int, n_models: int, tuned: dict, parts: Iterable[str] = ()
) -> dict:
    """What one scoring job leaves behind, beside its scores in `parts`, of which it notes the
    SHA-256; `tuned` is `autotune.report`'s. Of its seconds those are left out in which another job
    had the GPU."""
    seconds -= tuned["waited_seconds"]
    return {
        "host": platform.node(),
        "device": tuned["gpu"] or "CPU",
        "alleles": n_alleles,
        "models": n_models,
        "seconds": round(seconds, 3),
        "alleles_per_s": round(n_alleles / seconds, 1),
        "versions": versions(),
        "autotune": tuned,
        "parts": {part(path): sha256(path) for path in parts},
    }


def _from_store(records: list[dict]) -> dict:
    """How many scores, alleles x experiments, came from the store and how many did not, and what
    the former were scored on."""
    return {
        "found": sum(one["found"] * one["experiments"] for one in records),
        "scored": sum(one["to_score"] * one["experiments"] for one in records),
        "devices": dict(sum((Counter(one["devices"]) for one in records), Counter())),
    }


def part(path: str | Path) -> str:
    """What a part is called in the record of its job, wherever the results are moved to."""
    return "/".join(Path(path).parts[-2:])


def mixed(record: dict) -> str:
    """What must be said of a run that several kinds of device scored, '' of one; of its record."""
    devices = {f"{name} ({n} jobs)": name for name, n in record["scoring"]["devices"].items()}
    devices |= {f"{name} (the store)": name for name in record["store"]["devices"]}
    if len({identity.name(name) for name in devices.values()}) < 2:
        return ""
    each = ", ".join(sorted(devices))
    return f"scored on {each}: the last digits can differ between them; gpu_model keeps to one"


def of_scores(
    experiments: list[Experiment],
    how: How,
    nulls: dict[tuple[str, str], str],
    peaks: dict[str, str],
    fdr: float | None,
) -> dict:
    """What the tables of scores say of themselves in their metadata.

    `nulls` are the hashes, by experiment and class, and `peaks` the files, by experiment, of those
    that have any.
    """
    said: dict[str, dict] = {one.name: {"models_sha256": one.sha256} for one in experiments}
    for (name, kind), digest in nulls.items():
        if kind != SNV:
            said[name].setdefault("nulls_of_other_classes", {})[kind] = digest
            continue
        reference_set = "reference windows of the null"
        if name in peaks:
            reference_set = Path(peaks[name]).name
        said[name] |= {"null": digest, "reference_set": reference_set}
    return {
        "cherimoya-veff": veff.__version__,
        **how.decisive,
        "fdr": fdr,
        "experiments": said,
    }


def named(config: dict) -> dict:
    """A configuration with the names alone of its files and folders; alleles that are given in
    place of a file stay."""
    return {
        key: named(value)
        if isinstance(value, dict)
        else Path(value).name
        if isinstance(value, str) and key in PATHS and not notations.inline(value)
        else value
        for key, value in config.items()
    }


def run(
    config: dict,
    contigs: Path,
    prepared: Path,
    models: Path,
    setups: list[Path],
    jobs: list[Path],
    null_jobs: list[Path],
    stored: list[Path] = (),
    top_jobs: list[Path] = (),
) -> dict:
    """The record of the whole run, from what its rules wrote.

    Of files and folders it has the names, and with `provenance_paths` the paths.
    Raises `RuntimeError` if the statuses do not add up to the alleles of the input.
    """
    summary = read_json(prepared)
    if sum(summary["statuses"].values()) != summary["alleles"]:
        raise RuntimeError(
            f"{prepared}: {summary['alleles']} alleles, but the statuses add up to "
            f"{sum(summary['statuses'].values())}; report this"
        )
    records = [read_json(path) for path in jobs]
    null_records = [read_json(path) for path in null_jobs]
    other_records = [*null_records, *(read_json(path) for path in top_jobs)]
    seconds = sum(record["seconds"] for record in records)
    scored = sum(record["alleles"] * record["models"] for record in records)
    text = json.dumps(config, sort_keys=True)
    reference = read_json(contigs)
    checkpoints = experiment.read(models)
    told = config
    if not config.get("provenance_paths"):
        told = named(config)
        checkpoints = [replace(one, path=Path(one.path).name) for one in checkpoints]
    return {
        "versions": versions(),
        "config": told,
        "config_sha256": hashlib.sha256(text.encode()).hexdigest(),
        "reference": {
            "path": told["reference"],
            "sha256": reference["sha256"],
            "assembly": reference["assembly"],
        },
        "variants": {"path": told["variants"], "sha256": summary["sha256"]},
        "models": [one.plain() for one in checkpoints],
        "catv1": acceptance.origin(checkpoints),
        "duplicates": acceptance.duplicates(checkpoints),
        "stranded": acceptance.stranded(checkpoints),
        "alleles": summary,
        "setup": {Path(path).stem: read_json(path) for path in setups},
        "scoring": {
            "jobs": len(records),
            "devices": Counter(record["device"] for record in records),
            "seconds": round(seconds, 3),
            "allele_models_per_s": round(scored / seconds, 1) if seconds else None,
            "autotune": autotune.total(one["autotune"] for one in (*records, *other_records)),
        },
        "store": _from_store([read_json(path) for path in stored]),
        "nulls": {
            "jobs": len(null_records),
            "seconds": round(sum(record["seconds"] for record in null_records), 3),
        },
    }
