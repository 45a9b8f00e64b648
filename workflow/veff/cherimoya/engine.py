"""What do a model's two heads say about a batch of windows, as fast as the hardware allows?

The fast engine calls the checkpoint's own first convolution and Cheri blocks and changes what is
between and after them: one pass moves the convolution's output into the blocks' layout, and the
profile head is a matrix product over the T + 74 positions that the output needs, instead of a
75-tap convolution over all L. At load it is compared with Cherimoya's own forward, which takes its
place where the two disagree.
"""

import warnings
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import torch
import torch.nn.functional as F
from cherimoya import Cherimoya, ControlWrapper

from veff.cherimoya import layout
from veff.cherimoya.memory import HEAD_TAPS, fallback
from veff.errors import InputError
from veff.models.architecture import Geometry

# Cherimoya turns the first of these on and the last to 'high' when imported. A benchmark decides
# between algorithms by time, so differently in each process; TF32 keeps 10 bits of a weight.
torch.backends.cudnn.benchmark = False
torch.backends.cudnn.deterministic = True
torch.backends.cudnn.allow_tf32 = False
torch.set_float32_matmul_precision("highest")

TOLERANCE = 1e-5  # between the engines: in log-counts, and in probabilities of the profile
# Of the scale, since Cherimoya's heads round to bf16 (2**-9) under autocast.
BF16_TOLERANCE = 2**-5


class Predictor:
    """A model on a device, ready to predict batches of one constant size.

    Parameters
    ----------
    model : Cherimoya, made with `compile=False`; it is moved to the device.
    geometry : the lengths L and T of the windows.
    device : where to compute.
    precision : 'fp32' (the fused CUDA blocks still multiply in bf16, as in Cherimoya), or 'bf16',
        in which activations are bf16 too; the heads of the fast engine stay fp32.
    engine : 'fast', or 'cherimoya' for Cherimoya's own forward. The attribute `engine` says which
        one is in use: a fast engine that differs from Cherimoya's own, or does not know the
        model's layers, warns and gives way to it.
    batch_size : the number of windows in every call of `predict`.

    Control tracks are zeros, as in Cherimoya's `ControlWrapper`.

    A row has the same bits wherever it stands in a batch. On a CPU each row goes through the
    model alone and on one thread, `torch.get_num_threads()` rows at a time: a window's activations
    then fit the cache, and neither the other rows nor the number of threads decides how a sum is
    split. On a GPU a pass takes the whole batch, since each other size would be benchmarked anew.
    Out of memory there, it goes on in passes of `memory.fallback` rows, with a warning.
    """

    def __init__(
        self,
        model: Cherimoya,
        geometry: Geometry,
        *,
        device: torch.device | str,
        precision: str = "fp32",
        engine: str = "fast",
        batch_size: int,
    ):
        if geometry.output_length != geometry.input_length - 2 * model.trimming:
            raise ValueError(
                f"the model trims {model.trimming} bp from each side of {geometry.input_length}, "
                f"which does not leave {geometry.output_length}"
            )
        if precision not in ("fp32", "bf16"):
            raise ValueError(f"precision is {precision!r}, not 'fp32' or 'bf16'")
        if engine not in ("fast", "cherimoya"):
            raise ValueError(f"engine is {engine!r}, not 'fast' or 'cherimoya'")
        self.device = torch.device(device)
        self.geometry = geometry
        self.batch_size = batch_size
        self.model = model.to(self.device).eval()
        self.engine = engine
        self._bf16 = precision == "bf16"
        self._pass_size = 1 if self.device.type == "cpu" else batch_size
        self._acgt = torch.tensor(list(b"ACGT"), dtype=torch.uint8, device=self.device)
        if engine == "fast":
            self._prove()

    def predict(
        self, bases: np.ndarray | torch.Tensor, n_rows: int | None = None
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Profile logits and log-counts of a batch of windows.

        Parameters
        ----------
        bases : uint8 [batch_size, L], ASCII. Anything but A, C, G and T is an all-zero column.
        n_rows : how many of them, the first, are of use: on a CPU, where each takes its time, the
            others get zeros.

        Returns
        -------
        logits : float32 [batch_size, channels, T]
        log_counts : float32 [batch_size, groups], natural log of 1 + count

        Both on the device. Raises `ValueError` for another shape.
        """
        shape = (self.batch_size, self.geometry.input_length)
        if tuple(bases.shape) != shape:
            raise ValueError(f"bases are {tuple(bases.shape)}, but this predictor takes {shape}")
        bases = torch.as_tensor(bases, device=self.device)
        if n_rows is None or self.device.type != "cpu":
            return self._predict(bases)
        logits, log_counts = self._predict(bases[:n_rows])
        unused = len(bases) - n_rows
        return F.pad(logits, (0, 0, 0, 0, 0, unused)), F.pad(log_counts, (0, 0, 0, unused))

    def _predict(self, bases: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        while True:
            try:
                outputs = self._passes(bases.split(self._pass_size))
                logits, log_counts = zip(*outputs, strict=True)
                return torch.cat(logits), torch.cat(log_counts)
            except torch.OutOfMemoryError:
                smaller = fallback(self._pass_size)
                if smaller is None:
                    raise
            # Out of the except clause, so that the failed pass no longer holds its tensors.
            torch.cuda.empty_cache()
            warnings.warn(
                f"{self.device}: out of memory with {self._pass_size} windows a pass; going on "
                f"with {smaller}, at which the last bits of scores can differ",
                stacklevel=3,
            )
            self._pass_size = smaller

    def _passes(self, batches: Iterable[torch.Tensor]) -> list[tuple[torch.Tensor, torch.Tensor]]:
        if self.device.type != "cpu":
            return [self._forward(bases) for bases in batches]
        with ThreadPoolExecutor(
            torch.get_num_threads(), initializer=torch.set_num_threads, initargs=(1,)
        ) as pool:
            return list(pool.map(self._forward, batches))

    @torch.no_grad()  # here, since the switch is each thread's own
    def _forward(self, bases: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        return self._fast(bases) if self.engine == "fast" else self._own(bases)

    def _autocast(self) -> torch.autocast:
        return torch.autocast(self.device.type, torch.bfloat16, enabled=self._bf16)

    def _one_hot(self, bases: torch.Tensor) -> torch.Tensor:
        return (bases.unsqueeze(1) == self._acgt.unsqueeze(1)).float()

    def _own(self, bases: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        with self._autocast():
            logits, log_counts = ControlWrapper(self.model)(self._one_hot(bases))
        return logits.float(), log_counts.float()

    def _fast(self, bases: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        with self._autocast():
            x = self._stem(bases)
            for block in self.model.blocks:
                x = block(x)
        return self._profile_head(x), self._count_head(x)

    def _stem(self, bases: torch.Tensor) -> torch.Tensor:
        """The first convolution and its activation, [n, L] to [n, L, filters].

        They are Cherimoya's own, to the bit: the blocks round to bf16, and sums in another order
        flip some of those roundings, which moved log-counts of trained models by 3e-4.
        """
        conv, approximate = self.model.iconv, self.model.igelu.approximate
        x = self._one_hot(bases)
        if layout.triton is not None and self.device.type == "cuda":
            x = layout.channels_last(conv._conv_forward(x, conv.weight, None), conv.bias)
            return torch.ops.aten.gelu_(x, approximate=approximate)
        x = conv(x).transpose(1, 2)
        # The activation writes the layout that the blocks read: a copy less.
        out = torch.empty(x.shape, dtype=x.dtype, device=x.device)
        return torch.ops.aten.gelu.out(x, approximate=approximate, out=out)

    def _profile_head(self, x: torch.Tensor) -> torch.Tensor:
        """The last convolution where it is needed, [n, L, filters] to [n, channels, T]."""
        n, length, filters = x.shape
        conv = self.model.fconv
        channels = conv.out_channels
        first = self.geometry.trimming - HEAD_TAPS // 2
        x = x[:, first : length - first].float()
        # What each tap makes of each position: [n, channels x taps, T + taps - 1]. The filters
        # that see control tracks see zeros.
        weight = conv.weight[:, :filters].transpose(1, 2).flatten(0, 1)
        products = torch.bmm(weight.expand(n, -1, -1), x.transpose(1, 2))
        # An output is the sum along a diagonal: tap k at position t + k.
        width = products.shape[-1]
        diagonals = products.as_strided(
            (n, channels, HEAD_TAPS, width - HEAD_TAPS + 1),
            (channels * HEAD_TAPS * width, HEAD_TAPS * width, width + 1, 1),
        )
        return diagonals.sum(2) + conv.bias.unsqueeze(-1)

    def _count_head(self, x: torch.Tensor) -> torch.Tensor:
        """The counts' linear layer over the mean of the output's positions, [n, groups]."""
        _, length, filters = x.shape
        trimming = self.geometry.trimming
        mean = x[:, trimming : length - trimming].mean(1, dtype=torch.float32)
        # A control track of zeros adds log(1 + 0).
        return F.linear(mean, self.model.linear.weight[:, :filters], self.model.linear.bias)

    def _prove(self) -> None:
        """Give way to Cherimoya's own forward where the fast engine does not reproduce it.

        On a GPU the comparison has the constant batch size, so that it needs no autotuning of
        its own.
        """
        if not _knows(self.model):
            warnings.warn(
                "the fast engine does not know this model's layers; using Cherimoya's own forward",
                stacklevel=3,
            )
            self.engine = "cherimoya"
            return
        rows = self.batch_size if self.device.type == "cuda" else 2
        bases = torch.from_numpy(sample(rows, self.geometry.input_length)).to(self.device)
        outputs = {}
        for self.engine in ("cherimoya", "fast"):
            outputs[self.engine] = self._predict(bases)
        difference = self._difference(outputs["fast"], outputs["cherimoya"])
        if difference:
            warnings.warn(
                "the fast engine does not reproduce Cherimoya's own forward, which is used "
                f"instead ({difference})",
                stacklevel=3,
            )
            self.engine = "cherimoya"

    def _difference(self, fast: tuple, own: tuple) -> str:
        """How the outputs of the two engines differ beyond tolerance, '' where they do not."""
        (fast_z, fast_h), (own_z, own_h) = fast, own
        h, allowed_h = (fast_h - own_h).abs().amax(), TOLERANCE
        if self._bf16:
            z, allowed_z = (fast_z - own_z).abs().amax(), BF16_TOLERANCE * own_z.abs().amax()
            allowed_h = BF16_TOLERANCE * own_h.abs().amax()
        else:
            z = (self._probabilities(fast_z) - self._probabilities(own_z)).abs().amax()
            allowed_z = TOLERANCE
        # Written so that NaN counts as a difference.
        if z <= allowed_z and h <= allowed_h:
            return ""
        return (
            f"profiles differ by {z:.1e} where {allowed_z:.1e} is allowed, "
            f"log-counts by {h:.1e} where {allowed_h:.1e} is"
        )

    def _probabilities(self, logits: torch.Tensor) -> torch.Tensor:
        groups = logits.split(self.model.signal_groups, 1)
        return torch.cat([group.flatten(1).softmax(1) for group in groups], 1)


def _knows(model: Cherimoya) -> bool:
    """Whether the model has the layers that the fast engine was written for."""
    return (
        type(model) is Cherimoya
        and type(model.igelu) is torch.nn.GELU
        and _is_same_convolution(model.fconv, HEAD_TAPS)
        and type(model.iconv) is torch.nn.Conv1d
        and model.iconv.bias is not None
        and model.trimming >= HEAD_TAPS // 2
    )


def _is_same_convolution(conv: torch.nn.Conv1d, taps: int) -> bool:
    """Whether it keeps the length, padding with zeros, with a kernel of so many taps."""
    return (
        type(conv) is torch.nn.Conv1d
        and conv.kernel_size == (taps,)
        and conv.padding == (taps // 2,)
        and conv.padding_mode == "zeros"
        and conv.stride == conv.dilation == (1,)
        and conv.groups == 1
        and conv.bias is not None
    )


def sample(rows: int, length: int) -> np.ndarray:
    """The same random windows each time, uint8 [rows, length]; every other one begins with Ns."""
    bases = np.random.default_rng(0).choice(np.frombuffer(b"ACGT", np.uint8), (rows, length))
    bases[1::2, : length // 3] = ord("N")
    return bases


def device(setting: str) -> torch.device:
    """Where a setting of 'cpu', 'cuda' or 'auto' (an NVIDIA GPU if there is one) says to compute.

    Raises `InputError` for 'cuda' where no GPU can be used.
    """
    usable = torch.cuda.is_available()
    if setting == "cuda" and not usable:
        raise InputError(
            "device is 'cuda', but PyTorch sees no NVIDIA GPU here; "
            "check nvidia-smi and that a CUDA build of PyTorch is installed, or set 'auto'"
        )
    return torch.device("cpu" if setting == "cpu" or not usable else "cuda")
