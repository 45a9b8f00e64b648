"""Which bases does a model's log-count rest on?"""

import numpy as np
import torch
from cherimoya import Cherimoya
from cherimoya.deep_lift_shap import deep_lift_shap
from tangermeme.ersatz import dinucleotide_shuffle


def attributions(
    model: Cherimoya, bases: np.ndarray, group: int, device: torch.device | str, shuffles: int
) -> np.ndarray:
    """DeepLIFT/SHAP attributions of the log-count for two windows, float32 [2, L].

    `bases` is uint8 [2, L] of A, C, G and T in ASCII. Both windows are compared with the same
    dinucleotide shuffles, those of the first, so that the sums of the two rows differ by as much
    as the log-counts (natural logs of 1 + count) do.
    """
    one_hot = (bases[:, None] == np.frombuffer(b"ACGT", np.uint8)[:, None]).astype(np.float32)
    x = torch.from_numpy(one_hot)
    found = deep_lift_shap(
        model,
        x,
        group=group,
        # Constant, since Triton benchmarks each number of rows on its own.
        batch_size=shuffles,
        references=dinucleotide_shuffle(x[:1], n=shuffles, random_state=0).expand(2, -1, -1, -1),
        device=device,
        # The fast path is compiled by Inductor, which keeps no choice between processes.
        fast=False,
    )
    return found.sum(1).numpy()
