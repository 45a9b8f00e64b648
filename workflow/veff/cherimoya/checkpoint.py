"""What is in a checkpoint, and how is it loaded?"""

import hashlib
import logging
import pickle
from pathlib import Path

from cherimoya import Cherimoya

from veff.errors import InputError
from veff.models.architecture import SHAPE, Architecture
from veff.models.experiment import Checkpoint, Unusable
from veff.models.sheet import HUB, Request


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


def inspect(
    requests: list[Request], downloads: dict[str, dict[str, str]]
) -> list[Checkpoint | Unusable]:
    """Each checkpoint that is asked for, in the order given, after loading it.

    `downloads` are as `catv1.download` has them.
    """
    return [
        _inspect(request, fold, checkpoint, downloads)
        for request in requests
        for fold, checkpoint in enumerate(request.checkpoints)
    ]


def _inspect(
    request: Request, fold: int, checkpoint: str, downloads: dict
) -> Checkpoint | Unusable:
    published = {}
    path = checkpoint
    if checkpoint.startswith(HUB):
        name = checkpoint.removeprefix(HUB)
        found = downloads[name]
        if "error" in found:
            return Unusable(request.name, fold, checkpoint, found["error"])
        path, published = found["checkpoint"], {"file": name, "commit": found["commit"]}
    try:
        model = load(path)
    except InputError as error:
        logging.error("%s", error)
        return Unusable(request.name, fold, path, str(error))
    shape = {key: getattr(model, key) for key in SHAPE}
    lengths = {
        "input_length": request.output_length + 2 * model.trimming,
        "output_length": request.output_length,
    }
    return Checkpoint(
        request.name,
        fold,
        path,
        hashlib.sha256(Path(path).read_bytes()).hexdigest(),
        sum(p.numel() for p in model.parameters()),
        Architecture.of(shape | lengths),
        request.group,
        **published,
    )


def _line(error: Exception) -> str:
    return next(iter(str(error).splitlines()), type(error).__name__)
