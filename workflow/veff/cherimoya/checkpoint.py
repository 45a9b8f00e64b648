"""What is in a checkpoint, and how is it loaded?"""

import hashlib
import io
import logging
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

import torch

from veff import limits
from veff.cherimoya import weights
from veff.cherimoya.lean import Cherimoya
from veff.errors import InputError
from veff.inputs.identity import Input
from veff.models.architecture import SHAPE, Architecture
from veff.models.experiment import Checkpoint, Unusable
from veff.models.sheet import HUB, Request

# What opening a checkpoint may take at most: of a processor, and of memory beyond PyTorch's.
SECONDS = 10
MEMORY = 2 << 30


def load(checkpoint: str | Path, sha256: str | None = None) -> Cherimoya:
    """The model of a checkpoint, on the CPU, ready to predict.

    Only weights are read: a file that holds code is refused. Raises `InputError` that names the
    file when it is not a checkpoint that `Cherimoya.save` wrote, or holds a weight that is not
    finite.
    """
    return weights.model(str(checkpoint), _content(checkpoint, sha256))


def _content(checkpoint: str | Path, sha256: str | None) -> io.BytesIO:
    """The bytes of the file, read once: what is hashed is what is loaded."""
    try:
        with Input.expecting(checkpoint, sha256).open("rb") as file:
            return io.BytesIO(file.read())
    except OSError as error:
        raise InputError(f"{checkpoint}: cannot be read ({error.strerror})") from error


def inspect(
    requests: list[Request],
    downloads: dict[str, dict[str, str]],
    sha256: Mapping[str, str] = MappingProxyType({}),
) -> list[Checkpoint | Unusable]:
    """Each checkpoint that is asked for, in the order given, after loading it.

    `downloads` are as `catv1.download` has them; `sha256` is what the user's own files had when
    the run began, by their paths.
    """
    return [
        _inspect(request, fold, checkpoint, downloads, sha256.get(checkpoint))
        for request in requests
        for fold, checkpoint in enumerate(request.checkpoints)
    ]


def _inspect(
    request: Request, fold: int, checkpoint: str, downloads: dict, sha256: str | None
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
        sha256, n_parameters, trimming, shape = limits.within(SECONDS, MEMORY, _look, path, sha256)
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
        test_chroms=tuple(request.test_chroms[fold]) if request.test_chroms else (),
    )


def _look(path: str, sha256: str | None) -> tuple[str, int, int, dict]:
    """Hash, number of parameters, trimming and shape, in a process of its own."""
    torch.set_num_threads(1)  # a fork has none of the threads that its parent may have had
    content = _content(path, sha256)
    model = weights.model(path, content)
    return (
        hashlib.sha256(content.getbuffer()).hexdigest(),
        sum(p.numel() for p in model.parameters()),
        model.trimming,
        {key: getattr(model, key) for key in SHAPE},
    )
