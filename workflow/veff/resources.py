"""How much memory and time does a job need, from what is known before it starts?

At least twice what tests/bench measured; a job that Slurm ends all the same has more at its next
attempt.
"""

import math
from dataclasses import dataclass

from veff.plan import CPU_RATE, GPU_RATE

MILLION = 1_000_000
GIB = 1024  # AWS Batch takes whole ones only
# GPUs and cores may be so many times slower than those that the rates were measured on.
SLOWER = 5


@dataclass(frozen=True)
class Need:
    """Of a job at its first attempt."""

    mem_mb: int
    minutes: int


LIGHT = Need(4 * GIB, 60)
WARMING = Need(8 * GIB, 120)  # to benchmark kernels, or to attribute: as long as a slow GPU takes


def models(alleles: int, models: int, on_gpu: bool, threads: int = 1) -> Need:
    """To predict `alleles` with each of `models`: measured are 1.8 GB, and 0.8 GB a million."""
    rate = (GPU_RATE if on_gpu else CPU_RATE * threads) / SLOWER
    return Need(_gib(4 + 2 * alleles / MILLION), 30 + int(alleles * models / rate / 60))


def rows(alleles: int, experiments: int = 1) -> Need:
    """To go through tables of a row an allele, as a whole, and an experiment, in turn."""
    return Need(_gib(4 + alleles / MILLION), 30 + alleles * experiments // MILLION)


def text(size_mb: float) -> Need:
    """To read a compressed text file from its beginning to its end, at 1 MB/s."""
    return Need(4 * GIB, 30 + int(size_mb / 60))


def _gib(gib: float) -> int:
    return GIB * math.ceil(gib)
