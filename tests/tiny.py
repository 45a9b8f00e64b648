"""Small untrained models on a small random genome, to score for real in seconds."""

from dataclasses import asdict, replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import torch
from cherimoya import Cherimoya

from veff.inputs import identity, reference
from veff.inputs.reference import Reference
from veff.models.architecture import Geometry
from veff.models.experiment import Checkpoint, Experiment
from veff.scoring import score
from veff.scoring.how import How

GEOMETRY = Geometry(251, 101)
ARCHITECTURE = {
    "n_filters": 16,
    "n_layers": 4,
    "expansion": 2,
    "signal_groups": [1],
    "n_control_tracks": 0,
}


def a_fold(experiment: str, **changes) -> Checkpoint:
    """A checkpoint of that experiment, as a row of models.json with these values says it."""
    row = {"experiment": experiment, "fold": 0, "checkpoint": "x.torch", "sha256": "of x"}
    row |= {"n_parameters": 1, "group": None, **ARCHITECTURE, **asdict(GEOMETRY)}
    return Checkpoint.of(row | changes)


def held_out(experiment: Experiment, *chroms: str) -> Experiment:
    """The experiment with these contigs, with commas between, held out by its folds."""
    pairs = zip(experiment.folds, chroms, strict=True)
    folds = [replace(fold, test_chroms=tuple(text.split(","))) for fold, text in pairs]
    return Experiment(experiment.name, tuple(folds))


class Tiny:
    """A genome of two contigs, alleles on it, and models of a few filters."""

    def __init__(self, folder: Path, seed: int = 0, scale: int = 1):
        self.folder = folder
        rng = np.random.default_rng(seed)
        self.contigs = {
            name: rng.choice(np.frombuffer(b"ACGT", np.uint8), n).tobytes().decode()
            for name, n in (("one", 3000 * scale), ("two", 2000 * scale))
        }
        self.reference = self.genome("genome", self.contigs)

    def genome(self, name: str, contigs: dict[str, str]) -> Reference:
        fasta = self.folder / f"{name}.fa"
        fasta.write_text("".join(f">{name}\n{bases}\n" for name, bases in contigs.items()))
        reference.build(fasta, self.folder / name)
        return Reference.open(self.folder / name)

    def experiment(
        self, name: str, seeds: tuple[int, ...] = (0,), geometry: Geometry = GEOMETRY, **shape
    ) -> Experiment:
        """An experiment whose folds were saved."""
        shape = ARCHITECTURE | shape
        folds = []
        for fold, seed in enumerate(seeds):
            path = self.folder / f"{name}.{fold}.torch"
            model = Cherimoya(
                **shape,
                trimming=geometry.trimming,
                compile=False,
                random_state=seed,
            )
            generator = torch.Generator().manual_seed(seed)
            with torch.no_grad():
                for weight in model.parameters():
                    weight.mul_(3).add_(torch.randn(weight.shape, generator=generator), alpha=0.02)
                # Effects on the counts as large as a trained model's, around a few reads.
                model.linear.weight.mul_(20)
                model.linear.bias.fill_(3.0)
            model.save(path)
            own = {"fold": fold, "checkpoint": str(path), "sha256": identity.sha256(path), **shape}
            folds.append(a_fold(name, **own, **asdict(geometry)))
        return Experiment(name, tuple(folds))

    def alleles(self, n: int = 30, seed: int = 0) -> pa.Table:
        """SNVs, indels and several alleles of one site, some near a contig's end, in order."""
        rng = np.random.default_rng(seed)
        rows = set()
        while len(rows) < n:
            contig = int(rng.integers(2))
            length = len(list(self.contigs.values())[contig])
            start = int(rng.choice([rng.integers(0, length - 20), rng.integers(0, 60)]))
            ref_len = int(rng.choice([0, 1, 1, 1, 3, 12]))
            for _ in range(rng.integers(1, 4)):
                alt = "".join(rng.choice(list("ACGT"), rng.choice([0, 1, 1, 1, 2, 9])))
                rows.add((contig, start, ref_len, alt))
        contig, start, ref_len, alt = zip(*sorted(rows)[:n], strict=True)
        return pa.table(
            {
                "allele_id": np.arange(n),
                "contig": pa.array(contig, pa.int32()),
                "start": pa.array(start, pa.int64()),
                "ref_len": pa.array(ref_len, pa.int32()),
                "alt": pa.array(alt, pa.string()),
            }
        )

    def score(
        self, alleles: pa.Table, *experiments: Experiment, genome=None, batch_size=8, **how
    ) -> tuple:
        how = How(**{"device": "cpu"} | how)
        scored = score.score(
            alleles, genome or self.reference, experiments, how, batch_size=batch_size
        )
        answers, fold_answers = zip(*scored, strict=True)
        return list(answers), list(fold_answers)
