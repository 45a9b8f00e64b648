"""How is a run cut into jobs: how many alleles and how many models does one take?"""

import importlib.util
import os
from dataclasses import dataclass
from pathlib import Path

from veff import atomic
from veff.autotune import gpus
from veff.models.sheet import Request

JOB_S = 600
# Alleles x models a second of a default-size model in fp32: on one NVIDIA H200 from VCF to table
# (26,603, tests/bench/results/throughput.json), rounded down; on a core of an AMD EPYC, where an
# SNV takes two windows (tests/bench/results/plan.json).
GPU_RATE = 20_000
CPU_RATE = 7
# A job holds its alleles and one experiment's scores in memory.
ALLELES_A_JOB = 5_000_000
# No run has more scoring jobs, chunks x bundles, unless it is told so. Snakemake plans a few
# thousand in half a minute (tests/bench/results/dry_run.json).
JOBS = 20_000
MODELS_IN_A_BUNDLE = 50
# Random SNVs an experiment: half a second of a GPU, and two and a half minutes of a core, a model.
GPU_NULLS = 10_000
CPU_NULLS = 1_000
# A pair of random SNVs is as many alleles: both at once, and each alone.
A_PAIR = 3
BUNDLES = 40
# With more experiments, the scores are a folder with a file for each.
EXPERIMENTS_A_FILE = 100
# Scores of more alleles x experiments are not written as text.
TSV_ROWS = 10_000_000


@dataclass(frozen=True)
class Cut:
    """What the alleles are divided for: kept beside them, so that they stay divided so.

    `device` and `gpu_model` are the configuration's, `gpu` whether jobs have a GPU; `models` and
    `bundles` those of the first bundle, and their number, when the run began.
    """

    device: str
    gpu_model: str | None
    gpu: bool
    models: int
    bundles: int

    @property
    def rate(self) -> int:
        """Alleles x models a second of a job."""
        return GPU_RATE if self.gpu else CPU_RATE

    def chunk_size(self, setting: int | str) -> int:
        """Alleles a job: the setting, or for `auto` what its models score in ten minutes, and not
        more than fit in memory."""
        if setting != "auto":
            return setting
        return min(max(1, JOB_S * self.rate // self.models), ALLELES_A_JOB)

    def most_chunks(self, setting: int | str) -> int | None:
        """How many chunks there may be: under `auto` so many that no more jobs than `JOBS` are."""
        return max(1, JOBS // self.bundles) if setting == "auto" else None


def enough(alleles: int, chunk_size: int, most_chunks: int | None) -> int:
    """The size of chunks of that size, or larger, so that there are no more than so many."""
    return max(chunk_size, -(-alleles // most_chunks)) if most_chunks else chunk_size


def cut(
    prepared: str | Path,
    bundles: dict[str, list[Request]],
    device: str,
    gpu_model: str | None,
    gpu: bool,
) -> Cut:
    """What to divide the alleles for; where they are divided already, what they were divided for.

    `prepared` is the summary of the prepared alleles. So models that are added later do not
    divide the alleles anew, nor does a run that goes on from another machine.
    """
    if Path(prepared).is_file():
        kept = atomic.read_json(prepared).get("cut", {})
        if (kept.get("device"), kept.get("gpu_model")) == (device, gpu_model):
            return Cut(**kept)
    first = next(iter(bundles.values()))
    return Cut(device, gpu_model, gpu, sum(len(one.checkpoints) for one in first), len(bundles))


def gpus_a_job(device: str, gpu_model: str | None, elsewhere: bool) -> int:
    """How many GPUs a job that runs models is to have: 1, or 0 where it runs on the CPU.

    Under `device: auto`, jobs that run `elsewhere` ask their scheduler for one; those that run
    here have one where this machine has.
    """
    if device != "auto" or gpu_model:
        return int(device != "cpu")
    return int(elsewhere or _gpu_here())


def _gpu_here() -> bool:
    # By files, since the environment that runs Snakemake may know no NVML, and no torch.
    hidden = os.environ.get("CUDA_VISIBLE_DEVICES") in ("", "-1")
    there = (
        any(Path("/dev").glob("nvidia[0-9]*")) or Path("/usr/lib/wsl/lib/libcuda.so.1").exists()
    )
    usable = importlib.util.find_spec("torch") is None or gpus.torch_has_cuda()
    return there and usable and not hidden


def random_snvs(gpu: bool) -> int:
    """What `auto` is as the number of random SNVs of a null."""
    return GPU_NULLS if gpu else CPU_NULLS


def models_per_job(setting: int | str, experiments: list[Request]) -> int:
    """The most checkpoints that a job takes: the setting, or what `auto` makes of the sheet."""
    if setting != "auto":
        return setting
    models = sum(len(one.checkpoints) for one in experiments)
    return max(MODELS_IN_A_BUNDLE, -(-models // BUNDLES))
