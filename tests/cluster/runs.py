"""Runs of the real workflow on a real Slurm, so small that starting processes is what they take.

One run from end to end is made first, and shared; those that meet a fault start from a copy of it
that lacks some chunks, as a run in its middle does.
"""

import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np

from cluster.slurm import Slurm
from project import ROOT, environment

HERE = Path(__file__).parent
PROFILE = ROOT / "workflow/profiles/slurm"
CHUNKS = 12
CONFIG = {
    "variants": "variants.vcf",
    "reference": "genome.fa",
    "models": "models.tsv",
    "outdir": "out",
    "chunk_size": "4",
    "max_allele_length": "20",
    "batch_size": "32",  # PyTorch cannot say how much memory a stand-in GPU has
    "nulls": "{n: 20}",
    "top": "{n: 0}",
}
TABLES = ("scores.parquet", "folds.parquet", "summary.parquet", "summary.tsv.gz")
RESULTS = ("alleles.parquet", *TABLES, "scores.tsv.gz", "annotated.vcf.gz")


class Run:
    """A folder in which Snakemake runs, with the jobs' notes (`node/sitecustomize.py`)."""

    def __init__(self, folder: Path):
        self.folder = folder
        self.out = folder / "out"

    def copy(self, folder: Path, without: list[int]) -> "Run":
        """A run in its middle: without the scores of these chunks, and what is made from them."""
        own = {"here", "disk", "said", "jobs"}

        def left_out(path: str, names: list[str]) -> set[str]:
            return own & set(names) if Path(path) == self.folder else set()

        shutil.copytree(self.folder, folder, symlinks=True, ignore=left_out)
        copy = Run(folder)
        for chunk in without:
            for part in copy.out.glob(f"parts/*/{chunk}.*"):
                part.unlink()
        for result in RESULTS[1:]:
            copy.out.joinpath(result).unlink()
        return copy

    def start(
        self, cluster: Slurm, *options: str, target: str = "out/scores.parquet", **config
    ) -> subprocess.Popen:
        """Snakemake with the profile for Slurm; `options` come after those that every test has."""
        config = CONFIG | {"autotune": f"{{cache_dir: {cluster.root}/local}}"} | config
        command = [
            *(sys.executable, str(HERE / "ask_often.py"), target),
            *("--snakefile", str(ROOT / "workflow/Snakefile")),
            *("--profile", str(PROFILE), "--latency-wait=10"),
            "--slurm-init-seconds-before-status-checks=1",
            *options,
            *("--config", *(f"{key}={value}" for key, value in config.items())),
        ]
        with (self.folder / "said").open("a") as out:
            process = subprocess.Popen(
                command,
                cwd=self.folder,
                env=on_nodes(cluster),
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        cluster.users.append(process)
        return process

    def finish(self, process: subprocess.Popen, seconds: float = 600) -> None:
        """Wait for a run's good end; raises `AssertionError` with what it said."""
        try:
            process.wait(seconds)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        assert process.returncode == 0, self.said

    @property
    def said(self) -> str:
        return (self.folder / "said").read_text()

    @property
    def jobs(self) -> list[dict]:
        """The notes of all scoring jobs' starts, in order."""
        notes = [json.loads(path.read_text()) for path in self.folder.glob("jobs/*.*")]
        return sorted(notes, key=lambda note: note["time"])

    @property
    def reports(self) -> list[dict]:
        """What the scoring jobs say of themselves, in order of their chunk."""
        (bundle,) = {path.name.split(".")[1] for path in self.out.glob("parts/jobs/*.json")}
        paths = [self.out / f"parts/jobs/{chunk}.{bundle}.json" for chunk in range(CHUNKS)]
        return [json.loads(path.read_text()) for path in paths]

    @property
    def results(self) -> dict[str, bytes]:
        return {name: (self.out / name).read_bytes() for name in RESULTS}

    @property
    def tables(self) -> dict[str, bytes]:
        """All that the scoring jobs gave, and the tables that are made of it."""
        files = [
            path for kind in ("answers", "folds") for path in self.out.glob(f"parts/{kind}/*")
        ]
        files += [self.out / name for name in TABLES]
        return {str(path.relative_to(self.out)): path.read_bytes() for path in files}


def on_nodes(cluster: Slurm) -> dict[str, str]:
    """The environment that jobs take along, so that Python finds what `node` has for it."""
    names = ("tests/site", "tests/cluster/node", "tests/standin", "workflow")
    path = [ROOT / name for name in names]
    return environment() | {
        "SLURM_CONF": cluster.environment["SLURM_CONF"],
        "PYTHONPATH": os.pathsep.join([*map(str, path), os.environ.get("PYTHONPATH", "")]),
        "VEFF_SLURM": str(cluster.root),
    }


def make_inputs(folder: Path) -> None:
    from tiny import Tiny

    (folder / "config").symlink_to(ROOT / "config")
    tiny = Tiny(folder)
    rng = np.random.default_rng(7)
    rows = []
    for name, bases in tiny.contigs.items():
        for position in sorted(rng.choice(len(bases) - 400, 2 * CHUNKS, replace=False) + 200):
            ref = bases[position]
            alt = rng.choice([base for base in "ACGT" if base != ref])
            rows.append(f"{name}\t{position + 1}\t.\t{ref}\t{alt}\t.\t.\t.\n")
    head = "##fileformat=VCFv4.2\n#CHROM\tPOS\tID\tREF\tALT\tQUAL\tFILTER\tINFO\n"
    (folder / "variants.vcf").write_text(head + "".join(rows))
    tiny.experiment("cell", seeds=(0, 1))
    models = [f"cell\tcell.{fold}.torch\t101\n" for fold in (0, 1)]
    (folder / "models.tsv").write_text("experiment\tcheckpoint\toutput_length\n" + "".join(models))


def run_here(folder: Path) -> None:
    """The same on this machine, without a scheduler or a GPU, in one chunk: in `here`."""
    config = CONFIG | {"outdir": "here", "chunk_size": "1000"}
    command = [
        *(sys.executable, "-m", "snakemake", "--snakefile", str(ROOT / "workflow/Snakefile")),
        *("here/scores.tsv.gz", "here/annotated.vcf.gz", "--cores", "1", "--nolock"),
        *("--config", *(f"{key}={value}" for key, value in config.items())),
    ]
    subprocess.run(command, cwd=folder, env=environment(), check=True, timeout=600)
