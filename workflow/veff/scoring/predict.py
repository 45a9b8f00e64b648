"""What do the folds of an experiment predict for windows, and what is its answer?"""

from collections.abc import Iterable
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
        outputs = [self._predict(one, bases, n_rows) for one in self.predictors]
        predicted = {}
        for group in self.experiment.groups:
            predicted[group] = [output[group] for output in outputs]
            if len(outputs) > 1 and self.how.ensemble == "mean_prediction":
                predicted[group].append(mean(predicted[group]))
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

    def _predict(self, predictor: Predictor, bases: torch.Tensor, n_rows: int) -> list[Prediction]:
        """What one model predicts, for each of its groups."""
        channels = self.experiment.architecture.signal_groups

        def strand(bases: torch.Tensor) -> list[Prediction]:
            logits, log_counts = predictor.predict(bases, n_rows)
            profiles = map(effects.profile, logits.split(channels, 1))
            return list(zip(log_counts.unbind(1), profiles, strict=True))

        forward = strand(bases)
        if not self.how.reverse_complement:
            return forward
        reverse = strand(reverse_complement(bases))
        return [ensemble.both_strands(*pair) for pair in zip(forward, reverse, strict=True)]


def mean(folds: list[Prediction]) -> Prediction:
    """The average of the folds' predictions (`ensemble.mean_prediction`)."""
    h, p = (torch.stack(heads) for heads in zip(*folds, strict=True))
    return ensemble.mean_prediction(h, p)


def reverse_complement(bases: torch.Tensor) -> torch.Tensor:
    """The other strand of windows, uint8 [N, L] of ASCII; what is not A, C, G or T becomes N."""
    complement = torch.full((256,), windows.N, dtype=torch.uint8)
    complement[list(b"ACGT")] = torch.tensor(list(b"TGCA"), dtype=torch.uint8)
    return complement.to(bases.device)[bases.long()].flip(1)
