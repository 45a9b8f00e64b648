"""What is in a checkpoint, and how is it loaded?"""

import hashlib
import logging
import pickle
from pathlib import Path

from cherimoya import Cherimoya

from veff.errors import InputError
from veff.models.descriptions import GEOMETRY
from veff.models.sheet import HUB


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
            f"({_line(error)}); save the model again with Cherimoya.save"
        ) from error
    except (OSError, EOFError, RuntimeError, KeyError, TypeError, ValueError) as error:
        raise InputError(
            f"{checkpoint}: not a Cherimoya checkpoint, or cut short "
            f"({_line(error)}); fetch it again or save it with Cherimoya.save"
        ) from error
    broken = [name for name, weight in model.state_dict().items() if not weight.isfinite().all()]
    if broken:
        raise InputError(f"{checkpoint}: weights of {broken[0]} are not finite; train it again")
    return model.eval()


def inspect(experiments: list[dict], downloads: dict[str, dict[str, str]]) -> list[dict]:
    """One description a checkpoint, in the order given, after loading each.

    `experiments` are as `sheet.Experiment.predicting` has them, `downloads` as
    `catv1.download` does. A description has `experiment`, `fold`, `checkpoint` (its path),
    `sha256`, `n_parameters`, the geometry (`n_filters`, `n_layers`, `expansion`,
    `signal_groups`, `n_control_tracks`), `input_length` and `output_length` in bp, and `group`;
    one from the hub has `catv1`, its file and commit. Where a checkpoint cannot be used,
    `error` says why, instead of what would have been read from it.
    """
    return [
        _describe(experiment, fold, checkpoint, downloads)
        for experiment in experiments
        for fold, checkpoint in enumerate(experiment["checkpoints"])
    ]


def _describe(experiment: dict, fold: int, checkpoint: str, downloads: dict) -> dict:
    description = {
        "experiment": experiment["name"],
        "fold": fold,
        "checkpoint": checkpoint,
        "output_length": experiment["output_length"],
        "group": experiment["group"],
    }
    if checkpoint.startswith(HUB):
        name = checkpoint.removeprefix(HUB)
        found = downloads[name]
        if "error" in found:
            return description | {"error": found["error"]}
        description["checkpoint"] = found["checkpoint"]
        description["catv1"] = {"file": name, "commit": found["commit"]}
    try:
        model = load(description["checkpoint"])
    except InputError as error:
        logging.error("%s", error)
        return description | {"error": str(error)}
    return description | {
        "sha256": hashlib.sha256(Path(description["checkpoint"]).read_bytes()).hexdigest(),
        "n_parameters": sum(p.numel() for p in model.parameters()),
        **{key: getattr(model, key) for key in GEOMETRY},
        "input_length": experiment["output_length"] + 2 * model.trimming,
    }


def _line(error: Exception) -> str:
    return next(iter(str(error).splitlines()), type(error).__name__)
