"""A kernel that costs a second, where Cherimoya's would cost half a minute."""

import triton
import triton.language as tl

CONFIGS = [triton.Config({"BLOCK": block}, num_warps=4) for block in (16, 32, 64)]


@triton.autotune(configs=CONFIGS, key=["n"])
@triton.jit
def double(x, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(x + at, 2 * tl.load(x + at, mask=at < n), mask=at < n)
