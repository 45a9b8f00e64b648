"""When were the first and the last batch of a scoring loop done, the GPU waited for?"""

import time
from collections.abc import Iterator
from contextlib import contextmanager

import torch

from veff.scoring import score


def now() -> float:
    """Seconds, when what was asked of the GPU is done."""
    if torch.cuda.is_available():
        torch.cuda.synchronize()
    return time.perf_counter()


@contextmanager
def loop() -> Iterator[list[tuple[float, int]]]:
    """Two pairs, of the first batch and of the last: when, and how many alleles were done."""
    marks, plain = [], score._Progress

    class Watched(plain):
        def say(self, n: int) -> None:
            super().say(n)
            if not marks or self.done == self.n_alleles:
                marks.append((now(), self.done))

    score._Progress = Watched
    try:
        yield marks
    finally:
        score._Progress = plain


def windows_per_s(marks: list[tuple[float, int]], models: int = 1) -> float:
    """Between the two, under so many models."""
    (began, first), (ended, last) = marks[0], marks[-1]
    return 2 * (last - first) * models / (ended - began)
