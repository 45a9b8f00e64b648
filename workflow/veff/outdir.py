"""May this run write to the folder of its results: is it ours, and does nobody else write there?

A folder that a run of ours wrote to holds `.veff`, and in it the file that a run locks while it
lasts. The system gives the lock up with the process, however that ends.
"""

import fcntl
import json
import logging
import os
import time
from pathlib import Path

from veff.errors import InputError

MARK = ".veff"
LOCK = f"{MARK}/run.json"
# All that a run writes there, and, of the folders that are replaced as a whole, what is in them.
FOLDERS = ("autotune", "logs", "models", "nulls", "parts", "prepared", "reference")
FILES = (
    "alleles.parquet",
    "annotated.vcf.gz",
    "annotated.vcf.gz.csi",
    "annotations.parquet",
    "attributions.parquet",
    "biosamples.parquet",
    "closing.txt",
    "evaluation.parquet",
    "evaluation.tsv",
    "experiments.tsv",
    "models.json",
    "motifs.parquet",
    "phasing.parquet",
    "profiles.parquet",
    "provenance.json",
    "report.html",
    "scores.tsv.gz",
    "store.tsv.gz",
    "store.tsv.gz.csi",
    "store.vcf.gz",
    "store.vcf.gz.csi",
    "store_lookup.tsv.gz",
    "store_missing.tsv.gz",
    "summary.parquet",
    "summary.tsv.gz",
    "words.parquet",
)
TABLES = ("edits", "folds", "haplotypes", "imbalance", "personal", "scores")
REPLACED = {
    **{f"{name}.parquet": ("experiment=*", "experiment=*/part.parquet") for name in TABLES},
    "saturation": ("region[0-9]*.png", "region[0-9]*.svg"),
    "saturation_tracks": ("*.bw",),
    "tracks": ("hub.txt", "igv.xml", "[0-9]*", "[0-9]*/*.bw"),
    "top": ("[0-9]*.png", "[0-9]*.svg"),
}
NAMES = (*FOLDERS, *FILES, *REPLACED)
SNAKEMAKE = ".snakemake_timestamp"  # which it puts into folders that are outputs

_held: dict[Path, int] = {}  # locked files, by folder; open as long as this process lives


def check(outdir: Path) -> None:
    """Raise `InputError` where a run would write over, or remove, what no run of ours wrote."""
    if outdir.exists() and not outdir.is_dir():
        raise InputError(f"outdir {outdir}: is a file; give the path of a folder, or of none yet")
    if not (outdir / MARK).is_dir():
        there = [name for name in NAMES if os.path.lexists(outdir / name)]
        if there:
            raise InputError(
                f"outdir {outdir}: no run of ours wrote this folder, and {_some(there)} would be "
                "written over; give another outdir, or move them away"
            )
    for name, ours in REPLACED.items():
        folder = outdir / name
        known = {path for pattern in (*ours, SNAKEMAKE) for path in folder.glob(pattern)}
        if strange := sorted(set(folder.rglob("*")) - known) if folder.is_dir() else []:
            names = [str(path.relative_to(outdir)) for path in strange]
            raise InputError(
                f"outdir {outdir}: {_some(names)} was written by no run of ours, and {name} is "
                "removed before it is made again; move it away"
            )


def claim(outdir: Path) -> None:
    """Mark the folder as ours, and keep other runs from it until this process ends.

    Raises `InputError` that names the run that has it. Over NFS and other network file systems
    the lock holds between nodes as far as these carry `flock`; where they refuse it there is
    none, which a warning says.
    """
    folder = outdir.resolve()
    if folder in _held:
        return
    (outdir / MARK).mkdir(parents=True, exist_ok=True)
    file = os.open(outdir / LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(file)
        raise InputError(
            f"outdir {outdir}: another run writes there, {_who(outdir / LOCK)}; wait for its end, "
            "or give another outdir"
        ) from None
    except OSError as error:
        logging.warning(
            "outdir %s: its file system takes no lock (%s), so see to it that no other run "
            "writes there meanwhile",
            outdir,
            error.strerror,
        )
    _held[folder] = file
    since = time.strftime("%Y-%m-%d %H:%M:%S %z")
    run = {"host": os.uname().nodename, "pid": os.getpid(), "since": since, "from": os.getcwd()}
    os.ftruncate(file, 0)
    os.pwrite(file, (json.dumps(run) + "\n").encode(), 0)


def _who(lock: Path) -> str:
    try:
        run = json.loads(lock.read_text())
        return (
            f"process {run['pid']} on {run['host']} since {run['since']}, started in {run['from']}"
        )
    except (OSError, ValueError, KeyError):  # it has the lock, and has not yet said who it is
        return "which has just begun"


def _some(names: list[str]) -> str:
    return ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")
