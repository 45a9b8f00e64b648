"""How many windows go through a model at once?"""

from collections.abc import Callable, Iterable

from veff.models.architecture import Architecture

LADDER = (1024, 512, 256, 128, 64, 32)
ON_CPU = 32
MEMORY_SHARE = 0.8  # of the GPU's memory that a batch may take
HEAD_TAPS = 75  # of the convolution that makes the profile


def size(
    setting: int | str,
    architectures: Iterable[Architecture],
    gpu_bytes: Callable[[], int] | None,
) -> int:
    """The number of windows in a batch, for models of these architectures.

    `setting` is a number, which is used as it is, or 'auto': 32 on a CPU, where `gpu_bytes` is
    None; on a GPU the largest of 1,024, 512, ... 32 that fits in 80 % of its whole memory by the
    estimate. Of the whole, so that what else runs there does not change a batch, and with it the
    last bits of scores.
    """
    if setting != "auto":
        return int(setting)
    if gpu_bytes is None:
        return ON_CPU
    room = MEMORY_SHARE * gpu_bytes()
    needed = max(map(row_bytes, architectures))
    return next((n for n in LADDER if n * needed <= room), LADDER[-1])


def fallback(pass_size: int) -> int | None:
    """The number of windows a pass takes after one of `pass_size` ran out of memory."""
    return pass_size // 2 if pass_size % 2 == 0 else None


def pass_sizes(batch_size: int) -> list[int]:
    """The numbers of windows that a pass may have: the batch, and what it first falls back to."""
    return [size for size in (batch_size, fallback(batch_size)) if size]


def row_bytes(one: Architecture) -> int:
    """An upper estimate of the GPU memory that one window of a batch takes, in bytes.

    It is of Cherimoya's own forward, the hungrier one: six float32 activations of
    L x (filters + control tracks), the 84-column matrix of the first convolution, and what each
    tap of the profile head makes of each position.
    """
    columns = 6 * (one.n_filters + one.n_control_tracks) + 4
    taps = HEAD_TAPS * sum(one.signal_groups)
    positions = one.output_length + HEAD_TAPS
    return 4 * (one.input_length * columns + taps * positions)
