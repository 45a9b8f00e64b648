"""Which folds of an experiment did not train on the contig of an allele?

Of each fold the model sheet says which contigs it held out (`test_chroms`). Under `ensemble:
heldout` only these folds answer.
"""

import numpy as np
import pyarrow as pa

from veff.errors import InputError
from veff.inputs.reference import Reference
from veff.models.experiment import Experiment


def check(alleles: pa.Table, reference: Reference, experiments: list[Experiment]) -> None:
    """Raise `InputError` that names a contig of these alleles that no fold of one held out."""
    contigs = np.unique(alleles["contig"].to_numpy())
    for one in experiments:
        without = contigs[~_held_out(one, reference)[:, contigs].any(0)]
        if len(without):
            raise InputError(
                f"{one.name}: no fold held out {reference.names[without[0]]!r}, where alleles to "
                "score are; leave them out, or set another ensemble than heldout (test_chroms in "
                "the model sheet says what a fold held out)"
            )


def answering(experiment: Experiment, reference: Reference, alleles: pa.Table) -> np.ndarray:
    """Which folds answer for which alleles, bool [folds, n]: at least one for each.

    Where none held out the contig, which only happens in a null (`check`), it is one fold, each in
    its turn: so that the answers there scatter as one fold's do.
    """
    held = _held_out(experiment, reference)[:, alleles["contig"].to_numpy()]
    nobody = np.flatnonzero(~held.any(0))
    held[alleles["allele_id"].to_numpy()[nobody] % len(held), nobody] = True
    return held


def _held_out(experiment: Experiment, reference: Reference) -> np.ndarray:
    """bool [folds, contigs]"""
    held = np.zeros((len(experiment.folds), len(reference.names)), bool)
    for mine, fold in zip(held, experiment.folds, strict=True):
        for name in fold.test_chroms:
            mine[list(reference.meaning(name).contigs)] = True
    return held
