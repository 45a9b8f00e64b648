"""What do a model's two heads say about a batch of windows, as fast as the hardware allows?

On an NVIDIA GPU the fast engine is this project's own kernels (`kernels`), taken for a checkpoint
where they are no further from a float64 forward than Cherimoya's own kernels are (`proof`). On a
CPU it is `processor`. Where it cannot be taken, Cherimoya's own forward takes its place.
"""

import importlib.util
import warnings
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, nullcontext
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F

from veff.cherimoya import processor, proof
from veff.cherimoya.lean import Cherimoya, ControlWrapper, cheri
from veff.cherimoya.memory import HEAD_TAPS, fallback
from veff.errors import InputError
from veff.models.architecture import Geometry

# Cherimoya turns the first of these on and the last to 'high' when imported. A benchmark decides
# between algorithms by time, so differently in each process; TF32 keeps 10 bits of a weight.
torch.backends.cudnn.benchmark = False
torch.backends.cudnn.deterministic = True
torch.backends.cudnn.allow_tf32 = False
torch.set_float32_matmul_precision("highest")

# Between the engines on a CPU: in log-counts, and in probabilities of the profile.
TOLERANCE = 1e-5
# On a GPU, the streams that a precision may use, the best first, and how many times the error of
# Cherimoya's own forward each may have.
STREAMS = {"fp32": [torch.float32], "fast": [torch.float16, torch.float32]}
ALLOWED = {"fp32": 1.0, "fast": 2.0}


class Predictor:
    """A model on a device, ready to predict batches of one constant size.

    Parameters
    ----------
    model : Cherimoya, made with `compile=False`; it is moved to the device.
    geometry : the lengths L and T of the windows.
    device : where to compute.
    precision : on a GPU, 'fp32', or 'fast': the stream between the layers in half precision. The
        blocks multiply in half precision either way. With Cherimoya's own engine 'fast' is
        autocast to bf16. A CPU computes in fp32 whichever it is.
    engine : 'fast', or 'cherimoya' for Cherimoya's own forward. The attribute `engine` says which
        one is in use: a fast engine that is further from the truth than Cherimoya's own, or does
        not know the model's layers, warns and gives way to it.
    batch_size : the number of windows in every call of `predict`.
    proofs : on a GPU, a folder where what the proof of a checkpoint needs is kept, if any.

    The fast engine has the weights that the model had when this was made. Control tracks are
    zeros, as in Cherimoya's `ControlWrapper`.

    A row has the same bits wherever it stands in a batch. On a CPU each row goes through the
    model alone and on one thread, `torch.get_num_threads()` rows at a time: a window's activations
    then fit the cache, and neither the other rows nor the number of threads decides how a sum is
    split. On a GPU a pass takes the whole batch, since each other size would be benchmarked anew.
    Out of memory there, it goes on in passes of `memory.fallback` rows, with a warning. A window
    whose prediction overflows half precision gets that of a stream in fp32, with one warning.
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
        proofs: Path | None = None,
    ):
        if geometry.output_length != geometry.input_length - 2 * model.trimming:
            raise ValueError(
                f"the model trims {model.trimming} bp from each side of {geometry.input_length}, "
                f"which does not leave {geometry.output_length}"
            )
        if precision not in STREAMS:
            raise ValueError(f"precision is {precision!r}, not 'fp32' or 'fast'")
        if engine not in ("fast", "cherimoya"):
            raise ValueError(f"engine is {engine!r}, not 'fast' or 'cherimoya'")
        self.device = torch.device(device)
        self.geometry = geometry
        self.batch_size = batch_size
        self.model = model.to(self.device).eval()
        self.engine = engine
        self._precision = precision
        self._asked = engine
        self._network = self._wide = None  # of the fast engine; on a GPU the kernels
        self._on_gpu = on_gpu(self.device)
        self._pass_size = batch_size if self._on_gpu else 1
        self._acgt = torch.tensor(list(b"ACGT"), dtype=torch.uint8, device=self.device)
        if engine == "fast":
            self._prove(proofs)

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
        return self.start(bases, n_rows)()

    def start(
        self, bases: np.ndarray | torch.Tensor, n_rows: int | None = None
    ) -> Callable[[], tuple[torch.Tensor, torch.Tensor]]:
        """As `predict`, but on a GPU without waiting: a function that gives the outputs.

        It waits where these may have overflowed half precision. Whoever starts the next batch
        before calling it keeps the GPU busy meanwhile.
        """
        shape = (self.batch_size, self.geometry.input_length)
        if tuple(bases.shape) != shape:
            raise ValueError(f"bases are {tuple(bases.shape)}, but this predictor takes {shape}")
        bases = torch.as_tensor(bases, device=self.device)
        if self._on_gpu:
            outputs = self._predict(bases)
            half = self.engine == "fast" and self._network.stream != torch.float32
            return self._checked(bases, outputs) if half else lambda: outputs
        n_rows = len(bases) if n_rows is None else n_rows
        logits, log_counts = self._predict(bases[:n_rows])
        unused = len(bases) - n_rows
        padded = F.pad(logits, (0, 0, 0, 0, 0, unused)), F.pad(log_counts, (0, 0, 0, unused))
        return lambda: padded

    def _predict(
        self, bases: torch.Tensor, forward: Callable | None = None
    ) -> tuple[torch.Tensor, torch.Tensor]:
        while True:
            try:
                outputs = self._passes(bases.split(self._pass_size), forward or self._forward)
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

    def _passes(
        self, batches: Iterable[torch.Tensor], forward: Callable
    ) -> list[tuple[torch.Tensor, torch.Tensor]]:
        if self._on_gpu:
            return [forward(bases) for bases in batches]
        with ThreadPoolExecutor(
            torch.get_num_threads(), initializer=torch.set_num_threads, initargs=(1,)
        ) as pool:
            return list(pool.map(forward, batches))

    @torch.no_grad()  # here, since the switch is each thread's own
    def _forward(self, bases: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        if self.engine != "fast":
            return self._own(bases)
        return self._network(bases)

    def _one_hot(self, bases: torch.Tensor) -> torch.Tensor:
        return (bases.unsqueeze(1) == self._acgt.unsqueeze(1)).float()

    def _own(self, bases: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Cherimoya's own forward; where it was not asked for, in fp32 and without tuning."""
        asked = self._asked == "cherimoya"
        bf16 = asked and self._precision == "fast"
        with (
            nullcontext() if asked else _untuned(),
            torch.autocast(self.device.type, torch.bfloat16, enabled=bf16),
        ):
            logits, log_counts = ControlWrapper(self.model)(self._one_hot(bases))
        return logits.float(), log_counts.float()

    def _checked(
        self, bases: torch.Tensor, outputs: tuple[torch.Tensor, torch.Tensor]
    ) -> Callable[[], tuple[torch.Tensor, torch.Tensor]]:
        """The outputs of a stream in half precision, in fp32 where it overflowed."""
        logits, log_counts = outputs
        sound = logits.isfinite().flatten(1).all(1) & log_counts.isfinite().all(1)
        # Not by `bool`, which would wait for all that is queued by then.
        all_sound = sound.all().to("cpu", non_blocking=True)
        known = torch.cuda.Event()
        known.record()

        @torch.no_grad()
        def checked() -> tuple[torch.Tensor, torch.Tensor]:
            known.synchronize()
            if all_sound:
                return outputs
            # Of these rows alone, so that no row's bits depend on what stands beside it.
            if self._wide is None:
                warnings.warn(
                    "a prediction overflows half precision; such windows are predicted in fp32",
                    stacklevel=2,
                )
                self._wide = self._kernels(torch.float32)
            wide_logits, wide_counts = self._predict(bases, self._wide)
            return (
                torch.where(sound[:, None, None], logits, wide_logits),
                torch.where(sound[:, None], log_counts, wide_counts),
            )

        return checked

    def _kernels(self, stream: torch.dtype):
        from veff.cherimoya.kernels import Network  # needs Triton, which may be missing on a CPU

        return Network(self.model, self.geometry, stream)

    def _prove(self, proofs: Path | None) -> None:
        """Give way to Cherimoya's own forward where the fast engine is not as good."""
        if not _knows(self.model):
            self._give_way("the fast engine does not know this model's layers")
        elif not self._on_gpu:
            self._compare()
        elif not importlib.util.find_spec("triton"):
            self._give_way("the fast engine needs Triton on a GPU")
        else:
            self._measure(proofs)

    def _give_way(self, reason: str) -> None:
        warnings.warn(f"{reason}; using Cherimoya's own forward", stacklevel=5)
        self.engine = "cherimoya"

    def _measure(self, proofs: Path | None) -> None:
        """On a GPU, take the first stream whose error against float64 is allowed."""
        from triton import OutOfResources

        known = proof.of(self.model, self.geometry.input_length, self._own_of, proofs)
        # A batch of the constant size, since the first one is what the kernels are tuned on.
        sample = proof.sample(self.batch_size, self.geometry.input_length)
        bases = torch.from_numpy(sample).to(self.device)
        limit = ALLOWED[self._precision] * known.own_error
        for stream in STREAMS[self._precision]:
            self._network = self._kernels(stream)
            try:
                outputs = self._predict(bases, self._network)
            except OutOfResources as lack:
                self._network = None
                return self._give_way(f"this GPU is too small for the fast engine ({lack})")
            error = known.error([one[: proof.ROWS] for one in outputs])
            if error <= limit:  # not so where it is NaN
                return
            said = f"an error of {error:.1e} against float64, where {limit:.1e} is allowed"
            if stream != STREAMS[self._precision][-1]:
                warnings.warn(f"half precision gives {said}; using a stream in fp32", stacklevel=4)
        self._network = None
        self._give_way(f"the fast engine has {said}")

    def _own_of(self, bases: np.ndarray) -> tuple[torch.Tensor, torch.Tensor]:
        with torch.no_grad():
            return self._own(torch.from_numpy(bases).to(self.device))

    def _compare(self) -> None:
        """On a CPU, see whether the engines agree but for the order of their sums."""
        bases = torch.from_numpy(proof.sample(2, self.geometry.input_length))
        self._network = processor.Network(self.model, self.geometry)
        outputs = {}
        for self.engine in ("cherimoya", "fast"):
            outputs[self.engine] = self._predict(bases)
        (fast_z, fast_h), (own_z, own_h) = outputs["fast"], outputs["cherimoya"]
        z = (self._probabilities(fast_z) - self._probabilities(own_z)).abs().amax()
        h = (fast_h - own_h).abs().amax()
        # Written so that NaN counts as a difference.
        if not (z <= TOLERANCE and h <= TOLERANCE):
            self._give_way(
                "the fast engine does not reproduce Cherimoya's own forward (profiles differ by "
                f"{z:.1e}, log-counts by {h:.1e}, where {TOLERANCE:.1e} is allowed)"
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
        and all(type(block) is cheri.CheriBlock for block in model.blocks)
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


@contextmanager
def _untuned() -> Iterator[None]:
    """Cherimoya's kernels with one configuration each, so that none is benchmarked."""
    tuned = {k: k.configs for k in vars(cheri).values() if hasattr(k, "configs")}
    try:
        for kernel, configs in tuned.items():
            kernel.configs = configs[:1]
        yield
    finally:
        for kernel, configs in tuned.items():
            kernel.configs = configs


def on_gpu(device: torch.device) -> bool:
    return device.type == "cuda"


def device(setting: str) -> torch.device:
    """Where a setting of 'cpu', 'cuda' or 'auto' (an NVIDIA GPU if there is one) says to compute.

    Raises `InputError` for 'cuda' where no GPU can be used.
    """
    usable = torch.cuda.is_available()
    if setting == "cuda" and not usable:
        raise InputError(
            "this job is to use a GPU, but PyTorch sees no NVIDIA GPU here; "
            "check nvidia-smi and that a CUDA build of PyTorch is installed, or set 'cpu'"
        )
    return torch.device("cpu" if setting == "cpu" or not usable else "cuda")
