"""What do the folds of an experiment predict for windows, and what is its answer?"""

from collections.abc import Callable, Iterable
from copy import copy
from pathlib import Path

import torch

from veff.autotune import gpus
from veff.cherimoya.engine import Predictor
from veff.cherimoya.lean import Cherimoya
from veff.models.experiment import Experiment
from veff.scoring import effects, ensemble, windows
from veff.scoring.how import How

Prediction = tuple[torch.Tensor, torch.Tensor]  # log-counts [N], profiles [N, channels, T]


class Folds:
    """The models of an experiment on a device, ready for batches of `batch_size` windows.

    `models` are theirs, in order; of more, those that it does not need stay. `proofs` is a
    folder, see `Predictor`.
    """

    def __init__(
        self,
        experiment: Experiment,
        models: Iterable[Cherimoya],
        how: How,
        device: torch.device,
        batch_size: int,
        proofs: Path | None = None,
    ):
        gpus.turn()
        self.experiment = experiment
        self.how = how
        self.predictors = [
            Predictor(
                model,
                experiment.geometry,
                device=device,
                precision=how.precision,
                engine=how.engine,
                batch_size=batch_size,
                proofs=proofs,
            )
            for model in models
        ]

    def only(self, which: Iterable[bool]) -> "Folds":
        """Some of the folds, as if there were no others."""
        some = copy(self)
        some.predictors = [one for one, kept in zip(self.predictors, which, strict=True) if kept]
        return some

    def predict(self, bases: torch.Tensor, n_rows: int) -> dict[int, list[Prediction]]:
        """For each signal group that is reported, what each fold predicts for windows.

        Where the experiment's answer is the score of a prediction of its own, that comes last,
        behind the folds'. `bases` is uint8 [batch_size, L] on the device, of which the first
        `n_rows` are of use.
        """
        return self.start(bases, n_rows)()

    def start(self, bases: torch.Tensor, n_rows: int) -> Callable[[], dict[int, list[Prediction]]]:
        """As `predict`, but a GPU is not waited for: a function that gives it."""
        started = [self._start(one, bases, n_rows) for one in self.predictors]

        def predicted() -> dict[int, list[Prediction]]:
            outputs = [output() for output in started]
            found = {}
            for group in self.experiment.groups:
                found[group] = [output[group] for output in outputs]
                if len(outputs) > 1 and self.how.ensemble == "mean_prediction":
                    found[group].append(mean(found[group]))
            return found

        return predicted

    def answer(
        self, scores: torch.Tensor, answering: torch.Tensor | None = None
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Of the scores [K or K + 1, N] of what `predict` gave: the folds' [K, N], and the
        experiment's [N]. `answering`, bool [K, N], are the folds that make it, if not all do."""
        of_folds, rest = scores[: len(self.predictors)], scores[len(self.predictors) :]
        if answering is not None:
            return of_folds, ensemble.heldout_score(of_folds, answering)
        return of_folds, rest[0] if len(rest) else ensemble.mean_score(of_folds)

    def _start(
        self, predictor: Predictor, bases: torch.Tensor, n_rows: int
    ) -> Callable[[], list[Prediction]]:
        """What one model predicts, for each of its groups."""
        channels = self.experiment.architecture.signal_groups
        strands = [bases, reverse_complement(bases)] if self.how.reverse_complement else [bases]
        started = [predictor.start(strand, n_rows) for strand in strands]

        def predicted() -> list[Prediction]:
            by_strand = []
            for outputs in started:
                logits, log_counts = outputs()
                profiles = map(effects.profile, logits.split(channels, 1))
                by_strand.append(zip(log_counts.unbind(1), profiles, strict=True))
            if len(by_strand) == 1:
                return list(by_strand[0])
            return [ensemble.both_strands(*pair) for pair in zip(*by_strand, strict=True)]

        return predicted


def mean(folds: list[Prediction]) -> Prediction:
    """The average of the folds' predictions (`ensemble.mean_prediction`)."""
    h, p = (torch.stack(heads) for heads in zip(*folds, strict=True))
    return ensemble.mean_prediction(h, p)


def reverse_complement(bases: torch.Tensor) -> torch.Tensor:
    """The other strand of windows, uint8 [N, L] of ASCII; what is not A, C, G or T becomes N."""
    complement = torch.full((256,), windows.N, dtype=torch.uint8)
    complement[list(b"ACGT")] = torch.tensor(list(b"TGCA"), dtype=torch.uint8)
    return complement.to(bases.device)[bases.long()].flip(1)
