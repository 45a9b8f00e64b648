"""How far from the truth are the predictions of an engine?

The truth is a forward pass in float64 on the CPU, of a few fixed windows. Cherimoya's own forward
on the same GPU is the measure: an engine is not to be further away than that.
"""

import copy
import hashlib
import json
import logging
import zipfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F

from veff import atomic
from veff.cherimoya.lean import Cherimoya, cheri

ROWS = 2  # of `sample`, that are proved

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Proof:
    """What a model says of the windows in float64, `logits` [ROWS, channels, T] and `log_counts`
    [ROWS, groups], and how far Cherimoya's own forward is from it (`error`)."""

    logits: np.ndarray
    log_counts: np.ndarray
    own_error: float

    def error(self, outputs: Sequence[torch.Tensor]) -> float:
        return error(outputs, (torch.from_numpy(self.logits), torch.from_numpy(self.log_counts)))


def sample(rows: int, length: int) -> np.ndarray:
    """The same random windows each time, uint8 [rows, length]; every other one begins with Ns."""
    bases = np.random.default_rng(0).choice(np.frombuffer(b"ACGT", np.uint8), (rows, length))
    bases[1::2, : length // 3] = ord("N")
    return bases


def error(outputs: Sequence[torch.Tensor], exact: Sequence[torch.Tensor]) -> float:
    """The root mean square of the error of what all scores are made of, NaN where that is none.

    It is of the logarithm of the expected count at each position, the profile's log-probability
    plus the log-count, over windows, groups and positions.
    """
    ours, true = (_log_expected(*(y.cpu().double() for y in of)) for of in (outputs, exact))
    return (ours - true).square().mean().sqrt().item()


def _log_expected(logits: torch.Tensor, log_counts: torch.Tensor) -> torch.Tensor:
    # Of all channels together: which of them form a group makes no difference to an error's size.
    profile = logits.flatten(1).log_softmax(1)
    return (profile.unsqueeze(1) + log_counts.unsqueeze(2)).flatten(1)


def exact(model: Cherimoya, bases: np.ndarray) -> tuple[torch.Tensor, torch.Tensor]:
    """The forward in float64 throughout, of uint8 [n, L]; control tracks are zeros.

    Cherimoya's own block makes its norm in float32, whatever the weights are.
    """
    model, length = copy.deepcopy(model).cpu().double(), bases.shape[1]
    one_hot = np.stack([bases == letter for letter in b"ACGT"], 1)
    with torch.no_grad():
        x = model.igelu(model.iconv(torch.from_numpy(one_hot).double())).transpose(1, 2)
        for block in model.blocks:
            y = cheri._cheri_conv(x, block.conv.conv_weight, block.dilation)
            y = F.layer_norm(y, y.shape[1:], eps=cheri.CONV_NORM_EPS)
            x = x + block.linear2(block.activation(block.linear1(y))) * block.residual_scale
        first, filters, conv = model.trimming, model.n_filters, model.fconv
        half = conv.kernel_size[0] // 2
        seen = x[:, first - half : length - first + half].transpose(1, 2)
        logits = F.conv1d(seen, conv.weight[:, :filters], conv.bias)
        mean = x[:, first : length - first].mean(1)
        return logits, F.linear(mean, model.linear.weight[:, :filters], model.linear.bias)


def of(model: Cherimoya, input_length: int, own: Callable, kept: Path | None) -> Proof:
    """The proof of a model, read from the folder `kept` or made and kept there.

    `own` is Cherimoya's own forward: of uint8 [n, L], the logits and log-counts.
    """
    path = kept and kept / f"{_identity(model, input_length)}.npz"
    if path:
        try:
            with np.load(path) as held:
                return Proof(held["logits"], held["log_counts"], float(held["own_error"]))
        except FileNotFoundError:
            pass
        except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile) as fault:
            log.warning("%s cannot be read (%s): made again", path, fault)
    bases = sample(ROWS, input_length)
    truth = exact(model, bases)
    proof = Proof(truth[0].numpy(), truth[1].numpy(), error(own(bases), truth))
    if path:
        path.parent.mkdir(parents=True, exist_ok=True)
        with atomic.aside(path) as temporary, open(temporary, "wb") as file:
            np.savez(file, **vars(proof))
    return proof


def _identity(model: Cherimoya, input_length: int) -> str:
    """The hash of what decides a proof: weights, windows, and the GPU with its libraries."""
    digest = hashlib.sha256()
    where = [torch.__version__, torch.cuda.get_device_name()]
    decided = [model.residual_scale, model.trimming, str(model.igelu), input_length, ROWS]
    digest.update(json.dumps(where + decided).encode())
    for name, weight in sorted(model.state_dict().items()):
        digest.update(name.encode() + weight.cpu().numpy().tobytes())
    return digest.hexdigest()[:32]
