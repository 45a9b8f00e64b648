"""What is in a checkpoint, and how is it loaded?"""

import hashlib
import logging
from pathlib import Path

import torch
from cherimoya import Cherimoya

from veff import limits
from veff.cherimoya import weights
from veff.errors import InputError
from veff.models.architecture import SHAPE, Architecture
from veff.models.experiment import Checkpoint, Unusable
from veff.models.sheet import HUB, Request

# What opening a checkpoint may take at most: of a processor, and of memory beyond PyTorch's.
SECONDS = 10
MEMORY = 2 << 30


def load(checkpoint: str | Path) -> Cherimoya:
    """The model of a checkpoint, on the CPU, ready to predict.

    Only weights are read: a file that holds code is refused. Raises `InputError` that names the
    file when it is not a checkpoint that `Cherimoya.save` wrote, or holds a weight that is not
    finite.
    """
    return weights.model(str(checkpoint), checkpoint)


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
        sha256, n_parameters, trimming, shape = limits.within(SECONDS, MEMORY, _look, path)
    except (InputError, limits.Exceeded) as error:
        fault = str(error)
        if isinstance(error, limits.Exceeded):
            fault = f"{path}: to open it takes {error}, so it was not; no checkpoint needs that"
        logging.error("%s", fault)
        return Unusable(request.name, fold, path, fault)
    lengths = {
        "input_length": request.output_length + 2 * trimming,
        "output_length": request.output_length,
    }
    return Checkpoint(
        request.name,
        fold,
        path,
        sha256,
        n_parameters,
        Architecture.of(shape | lengths),
        request.group,
        **published,
    )


def _look(path: str) -> tuple[str, int, int, dict]:
    """Hash, number of parameters, trimming and shape, in a process of its own."""
    torch.set_num_threads(1)  # a fork has none of the threads that its parent may have had
    model = load(path)
    return (
        hashlib.sha256(Path(path).read_bytes()).hexdigest(),
        sum(p.numel() for p in model.parameters()),
        model.trimming,
        {key: getattr(model, key) for key in SHAPE},
    )
