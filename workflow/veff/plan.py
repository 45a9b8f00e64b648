"""How many alleles should one scoring job take?"""

from veff.autotune import gpus

JOB_S = 600
# Alleles x models a second, of a default-size model: on one NVIDIA H200 and on one CPU core.
GPU_RATE = 20_000
CPU_RATE = 2


def chunk_size(setting: int | str, device: str, models: int) -> int:
    """Alleles a job: the setting, or for `auto` what `models` models score in ten minutes.

    A `device` of `auto` is a GPU where this process sees one.
    """
    if setting != "auto":
        return setting
    on_gpu = device == "cuda" or (device == "auto" and bool(gpus.visible()))
    rate = GPU_RATE if on_gpu else CPU_RATE
    return max(1, JOB_S * rate // models)
