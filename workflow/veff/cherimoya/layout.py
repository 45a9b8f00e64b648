"""How does a convolution's output get the layout that Cherimoya's blocks read, in one pass?

PyTorch adds a convolution's bias in a pass of its own, and copies into channels-last by a kernel
that reads memory across the grain. An element comes out with the bits that these two give it.
"""

import torch

try:
    import triton
    import triton.language as tl
except ImportError:  # it comes with torch for NVIDIA GPUs only
    triton = None

POSITIONS = 64  # that a program moves, with all their channels

if triton is not None:

    @triton.jit
    def _add_and_transpose(x, bias, out, C, L, CHANNELS: tl.constexpr, POSITIONS: tl.constexpr):
        row = tl.program_id(1).to(tl.int64) * C * L
        position = tl.program_id(0) * POSITIONS + tl.arange(0, POSITIONS)
        channel = tl.arange(0, CHANNELS)
        here = (channel < C)[:, None] & (position < L)[None, :]
        tile = tl.load(x + row + channel[:, None] * L + position[None, :], mask=here)
        added = tl.load(bias + channel, mask=channel < C).to(tile.dtype)
        tile = (tile.to(tl.float32) + added.to(tl.float32)[:, None]).to(tile.dtype)
        place = out + row + position[:, None] * C + channel[None, :]
        tl.store(place, tl.trans(tile), mask=tl.trans(here))


def channels_last(x: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
    """`x` [n, C, L], contiguous on an NVIDIA GPU, plus `bias` [C], as contiguous [n, L, C]."""
    n, channels, length = x.shape
    out = torch.empty((n, length, channels), dtype=x.dtype, device=x.device)
    grid = (triton.cdiv(length, POSITIONS), n)
    width = triton.next_power_of_2(channels)
    _add_and_transpose[grid](x, bias, out, channels, length, width, POSITIONS)
    return out
