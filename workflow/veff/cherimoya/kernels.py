"""What do a model's layers make of a batch of windows, in kernels written for prediction alone?

The stem reads bytes; a block is two kernels, `_stats` (or `_far_stats`) for the norm's sums and
`_mlp` for the rest; each head is one. Between them goes the stream, [n, L, CP], in half precision
or fp32, where CP is the number of filters filled up with zeros to a power of two. Tensor cores
multiply fp16 in the blocks: it keeps 11 bits of a number, where bf16 keeps 8, at the same speed.
The stem and the heads keep 22 bits of a weight or more.

No sum is taken over more than one window, and none in an order that the batch, a row's place in it
or a kernel's configuration decides. Only `_mlp` is tuned.
"""

import torch
import triton
import triton.language as tl

from veff.models.architecture import Geometry

INTERPRETED = triton.knobs.runtime.interpret  # by Triton's own interpreter, on a CPU
POSITIONS = 32  # of a profile, that one row of the profile head's product makes
LOW = 2.0**11  # what the rest of a weight, after fp16 took its 11 bits, is scaled by


@triton.jit
def _one(asm: tl.constexpr, x):
    """An instruction of the GPU, of one float32."""
    return tl.inline_asm_elementwise(asm, "=f,f", [x], dtype=tl.float32, is_pure=True, pack=1)


@triton.jit
def _gelu(x, EXACT: tl.constexpr, PLAIN: tl.constexpr):
    """x/2 (1 + erf(x / sqrt(2))), good to 2**-23 of x, or with `_twice_gelu`'s tanh for erf.

    erfc is that of Abramowitz and Stegun, 7.1.26, which halves here.
    """
    if not EXACT:
        # (1 + tanh(u)) / 2 is the sigmoid of 2u.
        return x / (1.0 + tl.exp2(-2.302208198 * x * (1.0 + 0.044715 * x * x)))
    a = tl.abs(x)
    t = 1.0 + 0.23164189 * a
    e = -0.72134752 * (a * a)
    if PLAIN:
        t, e = 1.0 / t, tl.exp2(e)
    else:
        t, e = _one("rcp.approx.ftz.f32 $0, $1;", t), _one("ex2.approx.ftz.f32 $0, $1;", e)
    p = 0.7107068705 + t * (-0.7265760135 + t * 0.5307027145)
    p = t * (0.127414796 + t * (-0.142248368 + t * p))
    return tl.maximum(x, 0.0) - a * (p * e)


@triton.jit
def _twice_gelu(x, PLAIN: tl.constexpr):
    """x (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))), by the GPU's tanh, which is good to 2**-11: a
    bit less than fp16 keeps."""
    if PLAIN:
        return 2.0 * _gelu(x, False, True)
    u = x * (0.7978845608 + 0.0356774081 * (x * x))
    return x + x * _one("tanh.approx.f32 $0, $1;", u)


@triton.jit(do_not_specialize=["L"])
def _stem(
    bases,
    W,
    W_LOW,
    bias,
    X,
    L,
    CP: tl.constexpr,
    HALF: tl.constexpr,
    K: tl.constexpr,
    SCALE: tl.constexpr,
    EXACT: tl.constexpr,
    PLAIN: tl.constexpr,
    BM: tl.constexpr,
    BC: tl.constexpr,
):
    """First convolution and GELU, from bytes."""
    n = tl.program_id(1).to(tl.int64)
    position = tl.program_id(0) * BM + tl.arange(0, BM)
    k = tl.arange(0, K)
    c = tl.program_id(2) * BC + tl.arange(0, BC)
    at = position[:, None] + (k[None, :] // 4) - HALF
    there = (at >= 0) & (at < L) & (k[None, :] < 8 * HALF + 4)
    base = tl.load(bases + n * L + at, mask=there, other=0)
    j = k % 4
    letter = tl.where(j == 0, 65, tl.where(j == 1, 67, tl.where(j == 2, 71, 84))).to(tl.uint8)
    one_hot = (base == letter[None, :]).to(tl.float16)
    w = k[:, None] * CP + c[None, :]
    y = tl.dot(one_hot, tl.load(W + w)) + tl.dot(one_hot, tl.load(W_LOW + w)) / SCALE
    y = _gelu(y + tl.load(bias + c)[None, :], EXACT, PLAIN)
    out = X + (n * L + position[:, None]) * CP + c[None, :]
    tl.store(out, y.to(X.dtype.element_ty), mask=(position < L)[:, None])


@triton.jit
def _conv(X, W, row, position, c, L, d, CP: tl.constexpr):
    """The block's convolution of the stream at `position`, of the channels `c`, in float32."""
    here = position < L
    at = X + (row + position[:, None]) * CP + c[None, :]
    x = tl.load(at, mask=here[:, None], other=0.0)
    left = tl.load(at - d * CP, mask=(here & (position >= d))[:, None], other=0.0)
    right = tl.load(at + d * CP, mask=(position + d < L)[:, None], other=0.0)
    y = x.to(tl.float32) * tl.load(W + CP + c)[None, :]
    y += left.to(tl.float32) * tl.load(W + c)[None, :]
    y += right.to(tl.float32) * tl.load(W + 2 * CP + c)[None, :]
    return y


@triton.jit(do_not_specialize=["L", "d"])
def _stats(X, W, sums, L, d, CP: tl.constexpr, BL: tl.constexpr):
    """Of each tile of BL positions the sum and the sum of squares of the convolution."""
    n, tile, tiles = tl.program_id(1).to(tl.int64), tl.program_id(0), tl.num_programs(0)
    position = tile * BL + tl.arange(0, BL)
    y = _conv(X, W, n * L, position, tl.arange(0, CP), L, d, CP)
    tl.store(sums + (2 * n) * tiles + tile, tl.sum(y))
    tl.store(sums + (2 * n + 1) * tiles + tile, tl.sum(y * y))


@triton.jit(do_not_specialize=["L", "d", "tiles"])
def _far_stats(X, W, sums, L, d, tiles, CP: tl.constexpr, BL: tl.constexpr):
    """The same where d is BL at least, each value read once instead of three times.

    A tile is here BL positions of the first d and all that are a multiple of d behind them.
    """
    n, tile = tl.program_id(1).to(tl.int64), tl.program_id(0)
    position = tile * BL + tl.arange(0, BL)
    c = tl.arange(0, CP)
    at = X + (n * L + position[:, None]) * CP + c[None, :]
    inside = position < d
    before = tl.zeros((BL, CP), tl.float32)
    x = tl.load(at, mask=(inside & (position < L))[:, None], other=0.0).to(tl.float32)
    s = tl.zeros((BL, CP), tl.float32)
    q = tl.zeros((BL, CP), tl.float32)
    for start in tl.range(0, L, d):
        there = (inside & (position + start + d < L))[:, None]
        after = tl.load(at + (start + d) * CP, mask=there, other=0.0).to(tl.float32)
        y = x * tl.load(W + CP + c)[None, :]
        y += before * tl.load(W + c)[None, :]
        y += after * tl.load(W + 2 * CP + c)[None, :]
        y = tl.where((position + start < L)[:, None], y, 0.0)
        s += y
        q += y * y
        before = x
        x = after
    tl.store(sums + (2 * n) * tiles + tile, tl.sum(s))
    tl.store(sums + (2 * n + 1) * tiles + tile, tl.sum(q))


def _config(rows, hidden, warps, registers=None):
    return triton.Config(
        {"BM": rows, "HB": hidden}, num_warps=warps, num_stages=2, maxnreg=registers
    )


# For up to 128 filters, with the registers of two blocks of threads or four on a multiprocessor;
# and for more, where a tile's sums take all registers.
NARROW = [_config(64, 32, 4, 128), _config(128, 64, 8, 128)]
WIDE = [_config(64, 32, 8), _config(64, 16, 8)]


def _fitting(configs, named, CP, H, **_):
    # Where one step is all, Triton adds the residual on the tensor cores: other last bits.
    fitting = NARROW if CP <= 128 else WIDE
    return [config for config in configs if config in fitting and config.kwargs["HB"] < H]


@triton.autotune(
    NARROW[:1] if INTERPRETED else NARROW + WIDE,
    key=["CP", "H"],
    prune_configs_by={"early_config_prune": _fitting},
)
@triton.jit(do_not_specialize=["L", "d", "tiles"])
def _mlp(
    X,
    conv,
    sums,
    W1,
    W2,
    OUT,
    L,
    d,
    tiles,
    count,
    CP: tl.constexpr,
    H: tl.constexpr,
    TILES: tl.constexpr,
    PARTS: tl.constexpr,
    PLAIN: tl.constexpr,
    BM: tl.constexpr,
    HB: tl.constexpr,
):
    """Convolution, norm, both products with the GELU between them, and the residual."""
    n = tl.program_id(1).to(tl.int64)
    position = tl.program_id(0) * BM + tl.arange(0, BM)
    tile = tl.arange(0, TILES)
    s = tl.sum(tl.load(sums + (2 * n) * tiles + tile, mask=tile < tiles, other=0.0))
    q = tl.sum(tl.load(sums + (2 * n + 1) * tiles + tile, mask=tile < tiles, other=0.0))
    mean = s / count
    rstd = 1.0 / tl.sqrt(q / count - mean * mean + 1e-3)
    shift = -mean * rstd
    # In parts, so that only one of them is in registers at a time.
    part = tl.arange(0, CP // PARTS)
    a = ()
    for i in tl.static_range(PARTS):
        y = _conv(X, conv, n * L, position, i * (CP // PARTS) + part, L, d, CP)
        a += ((y * rstd + shift).to(W1.dtype.element_ty),)
    c = tl.arange(0, CP)
    acc = tl.zeros((BM, CP), tl.float32)
    for first in tl.range(0, H, HB):
        h = first + tl.arange(0, HB)
        z = tl.zeros((BM, HB), tl.float32)
        for i in tl.static_range(PARTS):
            w1 = tl.load(W1 + (i * (CP // PARTS) + part[:, None]) * H + h[None, :])
            z = tl.dot(a[i], w1, z)
        g = _twice_gelu(z, PLAIN).to(W2.dtype.element_ty)
        acc = tl.dot(g, tl.load(W2 + h[:, None] * CP + c[None, :]), acc)
    here = (position < L)[:, None]
    at = (n * L + position[:, None]) * CP + c[None, :]
    y = tl.load(X + at, mask=here, other=0.0).to(tl.float32) + acc
    tl.store(OUT + at, y.to(OUT.dtype.element_ty), mask=here)


@triton.jit(do_not_specialize=["rows", "L", "T", "first", "per_window", "channels"])
def _profile(
    X,
    W,
    W_LOW,
    bias,
    OUT,
    rows,
    L,
    T,
    first,
    per_window,
    channels,
    CP: tl.constexpr,
    BK: tl.constexpr,
    TAPS: tl.constexpr,
    J: tl.constexpr,
    SCALE: tl.constexpr,
    BM: tl.constexpr,
):
    """The last convolution where it is needed.

    A row makes J outputs of a window: as a product of the J + TAPS - 1 positions that they see
    with the taps, which stand in W [channels, J + TAPS - 1, J, CP] once for each output.
    """
    row = tl.program_id(0) * BM + tl.arange(0, BM)
    channel = tl.program_id(1)
    n = (row // per_window).to(tl.int64)
    output = (row % per_window) * J
    c = tl.arange(0, BK)
    j = tl.arange(0, J)
    acc = tl.zeros((BM, J), tl.float32)
    for step in tl.range(0, (J + TAPS - 1) * (CP // BK)):
        at = step // (CP // BK)
        k = (step % (CP // BK)) * BK + c
        position = first + output + at
        there = ((row < rows) & (position < L))[:, None]
        x = tl.load(X + (n * L + position)[:, None] * CP + k[None, :], mask=there, other=0.0)
        w = ((channel * (J + TAPS - 1) + at) * J + j[None, :]) * CP + k[:, None]
        if X.dtype.element_ty == tl.float16:
            # Tensor cores cut off what does not fit a sum: only a few products are summed there.
            acc += tl.dot(x, tl.load(W_LOW + w)) / SCALE + tl.dot(x, tl.load(W + w))
        else:
            acc = tl.dot(x, tl.load(W + w), acc, input_precision="tf32x3")
    t = output[:, None] + j[None, :]
    y = acc + tl.load(bias + channel)
    to = OUT + (n * channels + channel)[:, None] * T + t
    tl.store(to, y, mask=(row < rows)[:, None] & (t < T))


@triton.jit(do_not_specialize=["L", "T", "first", "groups"])
def _counts(X, W, bias, OUT, L, T, first, groups, CP: tl.constexpr, BL: tl.constexpr):
    """The linear layer of the counts over the mean of the output's positions."""
    n = tl.program_id(0).to(tl.int64)
    c = tl.arange(0, CP)
    total = tl.zeros((BL, CP), tl.float32)
    for start in tl.range(0, T, BL):
        t = start + tl.arange(0, BL)
        at = X + (n * L + first + t)[:, None] * CP + c[None, :]
        total += tl.load(at, mask=(t < T)[:, None], other=0.0).to(tl.float32)
    mean = tl.sum(total, 0) / T
    for group in tl.range(0, groups):
        y = tl.sum(mean * tl.load(W + group * CP + c)) + tl.load(bias + group)
        tl.store(OUT + n * groups + group, y)


def _halves(weight: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """A weight as fp16 and what is then left of it, times `LOW`, as fp16: 22 bits of it."""
    high = weight.half()
    return high, ((weight - high.float()) * LOW).half()


class Network:
    """A model's layers on its device, as the kernels read them.

    `stream` is torch.float16 or torch.float32: what goes from layer to layer. The weights are
    those that the model has now. Control tracks are zeros.
    """

    def __init__(self, model: torch.nn.Module, geometry: Geometry, stream: torch.dtype):
        self.geometry, self.stream = geometry, stream
        self.filters = model.n_filters
        self.padded = max(16, triton.next_power_of_2(self.filters))
        self._stem(model)
        self.blocks = [self._block(block) for block in model.blocks]
        self._heads(model)

    def _stem(self, model: torch.nn.Module) -> None:
        weight = model.iconv.weight.detach()  # [filters, 4, taps]
        taps = weight.shape[2]
        self.half = taps // 2
        columns = weight.permute(2, 1, 0).flatten(0, 1)
        self.stem = _halves(self._pad(columns, triton.next_power_of_2(4 * taps)))
        self.stem_bias = self._pad(model.iconv.bias.detach()[None])[0]
        self.exact = model.igelu.approximate == "none"

    def _block(self, block: torch.nn.Module) -> tuple:
        hidden = -(-block.linear1.out_features // 64) * 64
        w1 = self._pad(block.linear1.weight.detach(), hidden)
        # Half, since the kernel makes twice the GELU.
        w2 = self._pad(block.linear2.weight.detach().t() * (block.residual_scale / 2), hidden)
        conv = self._pad(block.conv.conv_weight.detach())
        return conv, block.dilation, w1.t().contiguous().half(), w2.half()

    def _heads(self, model: torch.nn.Module) -> None:
        weight = model.fconv.weight.detach()[:, : self.filters]  # [channels, filters, taps]
        channels, _, self.taps = weight.shape
        taps = self._pad(weight.transpose(1, 2).flatten(0, 1)).view(channels, self.taps, -1)
        table = taps.new_zeros(channels, POSITIONS + self.taps - 1, POSITIONS, self.padded)
        for j in range(POSITIONS):
            table[:, j : j + self.taps, j] = taps
        self.profile = _halves(table) if self.stream == torch.float16 else (table, table)
        self.profile_bias = model.fconv.bias.detach()
        self.counts = self._pad(model.linear.weight.detach()[:, : self.filters])
        self.counts_bias = model.linear.bias.detach()

    def _pad(self, weight: torch.Tensor, rows: int | None = None) -> torch.Tensor:
        """[rows, filters] filled up with zeros."""
        height, width = weight.shape
        out = weight.new_zeros(rows or height, self.padded)
        out[:height, :width] = weight
        return out

    def __call__(self, bases: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Profile logits [n, channels, T] and log-counts [n, groups] of uint8 bases [n, L]."""
        x = self.through_blocks(self.through_stem(bases.contiguous()))
        return self.profile_head(x), self.count_head(x)

    def through_stem(self, bases: torch.Tensor) -> torch.Tensor:
        """The stream [n, L, CP] before the first block."""
        n, length = bases.shape
        x = torch.empty((n, length, self.padded), dtype=self.stream, device=bases.device)
        wide = min(self.padded, 128)
        rows = 128
        _stem[triton.cdiv(length, rows), n, self.padded // wide](
            bases,
            *self.stem,
            self.stem_bias,
            x,
            length,
            CP=self.padded,
            HALF=self.half,
            K=len(self.stem[0]),
            SCALE=LOW,
            EXACT=self.exact,
            PLAIN=INTERPRETED,
            BM=rows,
            BC=wide,
            num_warps=8,
        )
        return x

    def through_blocks(self, x: torch.Tensor) -> torch.Tensor:
        """The stream after the last block; `x` is overwritten."""
        n, length, _ = x.shape
        out = torch.empty_like(x)
        rows = 4096 // self.padded
        most = triton.cdiv(length, rows)
        sums = torch.empty((n, 2, most), device=x.device)
        half = self.stream == torch.float16
        shape = {"CP": self.padded, "BL": rows, "num_warps": 2 if half else 4}
        for conv, dilation, w1, w2 in self.blocks:
            if half or dilation < rows:
                tiles = most
                _stats[tiles, n](x, conv, sums, length, dilation, **shape)
            else:
                tiles = min(most, triton.cdiv(dilation, rows))
                _far_stats[tiles, n](x, conv, sums, length, dilation, tiles, **shape)
            _mlp[lambda meta: (triton.cdiv(length, meta["BM"]), n)](
                x,
                conv,
                sums,
                w1,
                w2,
                out,
                length,
                dilation,
                tiles,
                float(length * self.filters),
                CP=self.padded,
                H=w1.shape[1],
                TILES=triton.next_power_of_2(most),
                PARTS=max(1, self.padded // 64),
                PLAIN=INTERPRETED,
            )
            x, out = out, x
        return x

    def profile_head(self, x: torch.Tensor) -> torch.Tensor:
        """Profile logits [n, channels, T] of the stream."""
        n, length, _ = x.shape
        channels, output = len(self.profile_bias), self.geometry.output_length
        out = torch.empty((n, channels, output), device=x.device)
        per_window = triton.cdiv(output, POSITIONS)
        _profile[triton.cdiv(n * per_window, 64), channels](
            x,
            *self.profile,
            self.profile_bias,
            out,
            n * per_window,
            length,
            output,
            self.geometry.trimming - self.taps // 2,
            per_window,
            channels,
            CP=self.padded,
            BK=min(self.padded, 64 if self.stream == torch.float16 else 32),
            TAPS=self.taps,
            J=POSITIONS,
            SCALE=LOW,
            BM=64,
            num_warps=4,
            num_stages=3,
        )
        return out

    def count_head(self, x: torch.Tensor) -> torch.Tensor:
        """Log-counts [n, groups] of the stream."""
        n, length, _ = x.shape
        groups, output = len(self.counts_bias), self.geometry.output_length
        out = torch.empty((n, groups), device=x.device)
        _counts[n,](
            x,
            self.counts,
            self.counts_bias,
            out,
            length,
            output,
            self.geometry.trimming,
            groups,
            CP=self.padded,
            BL=max(8192 // self.padded, 16),
            num_warps=8,
        )
        return out
