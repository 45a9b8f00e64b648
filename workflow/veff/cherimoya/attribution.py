"""Which bases does a model's log-count rest on?"""

import numpy as np
import torch
from cherimoya.deep_lift_shap import deep_lift_shap
from tangermeme.ersatz import dinucleotide_shuffle

from veff.cherimoya.lean import Cherimoya, cheri
from veff.errors import InputError


def attributions(
    model: Cherimoya,
    bases: np.ndarray,
    group: int,
    device: torch.device | str,
    references: torch.Tensor,
) -> np.ndarray:
    """DeepLIFT/SHAP attributions of the log-count for two windows, float32 [2, L].

    `bases` is uint8 [2, L] of A, C, G and T in ASCII. Both windows are compared with the same
    `references` [n, 4, L], as `one_hot` makes them, so that the sums of the two rows differ by as
    much as the log-counts (natural logs of 1 + count) do.

    Raises InputError where Cherimoya's kernels would spoil a gradient while they are autotuned.
    """
    refuse_spoiled_gradients()
    found = deep_lift_shap(
        model,
        one_hot(bases),
        group=group,
        # Constant, since Triton benchmarks each number of rows on its own.
        batch_size=len(references),
        references=references.expand(2, -1, -1, -1),
        device=device,
        # The fast path is compiled by Inductor, which keeps no choice between processes.
        fast=False,
    )
    return found.sum(1).numpy()


def refuse_spoiled_gradients() -> None:
    """Raise InputError where the backward kernel, which writes over what it reads, is autotuned
    without that being restored: then the first gradient of each shape is of what the timings left
    (Cherimoya before 0.3.0)."""
    kernel = getattr(cheri, "_bwd_apply_kernel", None)  # none without Triton
    if hasattr(kernel, "configs") and "Conv_ptr" not in (kernel.restore_value or ()):
        raise InputError(
            f"{cheri.__file__}: this Cherimoya's first gradients are wrong, so nothing can be "
            "attributed: install 0.3.1 or later, or set top: {n: 0}"
        )


def shuffled(bases: np.ndarray, n: int) -> torch.Tensor:
    """`n` dinucleotide shuffles of a window, uint8 [L], as `one_hot` makes them."""
    return dinucleotide_shuffle(one_hot(bases[None]), n=n, random_state=0)[0]


def one_hot(bases: np.ndarray) -> torch.Tensor:
    """float32 [n, 4, L] of uint8 [n, L]."""
    letters = np.frombuffer(b"ACGT", np.uint8)
    return torch.from_numpy((bases[:, None] == letters[:, None]).astype(np.float32))
