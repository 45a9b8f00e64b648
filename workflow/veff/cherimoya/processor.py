"""What do a model's layers make of a window on a CPU, faster than layer by layer?

Cherimoya's blocks turn their stream around for each convolution, and ask for new memory at each
step. Here it stays [L, filters] and in place, the first convolution is a matrix product, the
profile head makes the T + 74 positions that the output needs instead of all L, and products go
through oneDNN, with the GELU in them, where PyTorch has it.
"""

import torch
import torch.nn.functional as F

from veff.cherimoya.lean import Cherimoya, cheri
from veff.models.architecture import Geometry

ACGT = torch.tensor(list(b"ACGT"), dtype=torch.uint8)
# The product that torch.compile uses.
PACKED = torch.backends.mkldnn.is_available() and hasattr(torch.ops.mkldnn, "_linear_pointwise")


class Network:
    """A model's layers with the weights that it has now.

    Control tracks are zeros. Nothing is kept from call to call, so that threads can share it.
    """

    def __init__(self, model: Cherimoya, geometry: Geometry):
        self.geometry, self.filters = geometry, model.n_filters
        # [taps, 4, filters]: the order in which the window's one-hot lies in memory.
        self.stem = model.iconv.weight.detach().permute(2, 1, 0).contiguous()
        self.stem_bias = model.iconv.bias.detach()
        self.approximate = model.igelu.approximate
        self.blocks = [_Block(block, geometry.input_length) for block in model.blocks]
        fconv = model.fconv.weight.detach()[:, : self.filters]
        self.channels, self.taps = fconv.shape[0], fconv.shape[2]
        self.profile = fconv.transpose(1, 2).flatten(0, 1)
        self.profile_bias = model.fconv.bias.detach()
        # A control track of zeros adds log(1 + 0).
        self.counts = model.linear.weight.detach()[:, : self.filters]
        self.counts_bias = model.linear.bias.detach()

    def __call__(self, bases: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Profile logits [n, channels, T] and log-counts [n, groups] of uint8 bases [n, L], each
        window on its own."""
        logits, log_counts = zip(*map(self._window, bases), strict=True)
        return torch.stack(logits), torch.stack(log_counts)

    def _window(self, bases: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        x = self._through_stem(bases)
        y = torch.empty_like(x)
        for block in self.blocks:
            block(x, y)
        return self._profile_head(x), self._count_head(x)

    def _through_stem(self, bases: torch.Tensor) -> torch.Tensor:
        """First convolution and GELU, [L] to [L, filters]."""
        taps, half = len(self.stem), len(self.stem) // 2
        one_hot = torch.zeros(len(bases) + 2 * half, 4)
        one_hot[half : half + len(bases)] = bases[:, None] == ACGT
        seen = one_hot.as_strided((len(bases), 4 * taps), (4, 1))  # by each position
        x = torch.addmm(self.stem_bias, seen, self.stem.flatten(0, 1))
        return torch.ops.aten.gelu.out(x, approximate=self.approximate, out=x)

    def _profile_head(self, x: torch.Tensor) -> torch.Tensor:
        """The last convolution where it is needed, [L, filters] to [channels, T]."""
        first = self.geometry.trimming - self.taps // 2
        # What each tap makes of each position: [channels x taps, T + taps - 1].
        products = self.profile @ x[first : len(x) - first].t()
        # An output is the sum along a diagonal: tap k at position t + k.
        width = products.shape[1]
        diagonals = products.as_strided(
            (self.channels, self.taps, width - self.taps + 1), (self.taps * width, width + 1, 1)
        )
        return diagonals.sum(1) + self.profile_bias[:, None]

    def _count_head(self, x: torch.Tensor) -> torch.Tensor:
        """The counts' linear layer over the mean of the output's positions, [groups]."""
        first = self.geometry.trimming
        return F.linear(x[first : len(x) - first].mean(0), self.counts, self.counts_bias)


class _Block:
    """A Cheri block, which adds to its stream in place."""

    def __init__(self, block: cheri.CheriBlock, length: int):
        self.left, self.middle, self.right = block.conv.conv_weight.detach()
        self.dilation = block.dilation
        self.up = _Product(block.linear1.weight.detach(), length, block.activation.approximate)
        self.down = _Product(block.linear2.weight.detach() * block.residual_scale, length)

    def __call__(self, x: torch.Tensor, y: torch.Tensor) -> None:
        """`y`, of the shape of `x`, is written over."""
        d = self.dilation
        torch.mul(x, self.middle, out=y)
        y[d:].addcmul_(x[:-d], self.left)
        y[:-d].addcmul_(x[d:], self.right)
        y.sub_(y.mean())
        flat = y.view(-1)
        y.mul_((torch.dot(flat, flat) / len(flat) + cheri.CONV_NORM_EPS).rsqrt())
        x.add_(self.down(self.up(y)))


class _Product:
    """A linear layer without bias, of `length` rows, and the GELU behind it, if any."""

    def __init__(self, weight: torch.Tensor, length: int, gelu: str | None = None):
        self.gelu, self.packed = gelu, PACKED
        if self.packed:
            weight = torch.ops.mkldnn._reorder_linear_weight(weight.contiguous(), length)
        self.weight = weight

    def __call__(self, x: torch.Tensor) -> torch.Tensor:
        if self.packed:
            behind = ("gelu", [], self.gelu) if self.gelu else ("none", [], "")
            return torch.ops.mkldnn._linear_pointwise(x, self.weight, None, *behind)
        y = F.linear(x, self.weight)
        return torch.ops.aten.gelu.out(y, approximate=self.gelu, out=y) if self.gelu else y
