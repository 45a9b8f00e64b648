"""Are the checkpoints what they claim to be, and how is one loaded?"""

import hashlib
import logging
import pickle
from collections import Counter
from pathlib import Path

from cherimoya import Cherimoya

from veff.errors import InputError
from veff.sheet import Experiment

GEOMETRY = ("n_filters", "n_layers", "expansion", "signal_groups", "n_control_tracks")


def load(checkpoint: str | Path) -> Cherimoya:
    """The model of a checkpoint, on the CPU, ready to predict.

    Only weights are read: a file that holds code is refused. Raises `InputError` that names the
    file when it is not a checkpoint that `Cherimoya.save` wrote, or holds a weight that is not
    finite.
    """
    try:
        # torch.compile is not used: it ignores the persistent autotune cache.
        model = Cherimoya.load(checkpoint, compile=False)
    except pickle.UnpicklingError as error:
        raise InputError(
            f"{checkpoint}: not a file of weights alone, so it was not opened "
            f"({str(error).splitlines()[0]}); save the model again with Cherimoya.save"
        ) from error
    except (OSError, EOFError, RuntimeError, KeyError, TypeError, ValueError) as error:
        raise InputError(
            f"{checkpoint}: not a Cherimoya checkpoint, or cut short "
            f"({str(error).splitlines()[0]}); fetch it again or save it with Cherimoya.save"
        ) from error
    broken = [name for name, weight in model.state_dict().items() if not weight.isfinite().all()]
    if broken:
        raise InputError(f"{checkpoint}: weights of {broken[0]} are not finite; train it again")
    return model.eval()


def resolve(experiments: list[Experiment], max_allele_length: int) -> list[dict]:
    """One description a checkpoint, in the order of the sheet, after checking each.

    A description has `experiment`, `fold`, `checkpoint`, `sha256`, `n_parameters`, the geometry
    (`n_filters`, `n_layers`, `expansion`, `signal_groups`, `n_control_tracks`) and
    `input_length` and `output_length` in bp.

    Raises `InputError` when a checkpoint cannot be loaded, when the folds of an experiment
    differ in geometry, or when alleles may be longer than half of an output.
    """
    descriptions = [
        _describe(experiment, fold, checkpoint)
        for experiment in experiments
        for fold, checkpoint in enumerate(experiment.checkpoints)
    ]
    for one in descriptions:
        first = next(d for d in descriptions if d["experiment"] == one["experiment"])
        differing = [k for k in (*GEOMETRY, "input_length") if one[k] != first[k]]
        if differing:
            raise InputError(
                f"{one['checkpoint']}: {differing[0]} is {one[differing[0]]}, but the first fold "
                f"of {one['experiment']} has {first[differing[0]]}; folds must be alike"
            )
        if one["output_length"] < 2 * max_allele_length:
            raise InputError(
                f"{one['checkpoint']}: its output of {one['output_length']} bp is too short for "
                f"alleles of {max_allele_length} bp; set max_allele_length to at most "
                f"{one['output_length'] // 2}"
            )
    for sha256, count in Counter(one["sha256"] for one in descriptions).items():
        if count > 1:
            same = [one["checkpoint"] for one in descriptions if one["sha256"] == sha256]
            logging.warning("the same checkpoint under %d names: %s", count, ", ".join(same))
    return descriptions


def _describe(experiment: Experiment, fold: int, checkpoint: str) -> dict:
    model = load(checkpoint)
    return {
        "experiment": experiment.name,
        "fold": fold,
        "checkpoint": checkpoint,
        "sha256": hashlib.sha256(Path(checkpoint).read_bytes()).hexdigest(),
        "n_parameters": sum(p.numel() for p in model.parameters()),
        **{key: getattr(model, key) for key in GEOMETRY},
        "input_length": experiment.output_length + 2 * model.trimming,
        "output_length": experiment.output_length,
    }
