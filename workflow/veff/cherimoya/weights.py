"""Which model do the bytes of a checkpoint make, if any?"""

import math
import pickle
import re
from typing import BinaryIO

import torch

from veff.cherimoya.lean import Cherimoya
from veff.errors import InputError

# What a configuration may say: the least and the most. The last layer of 16 reaches 32 kb.
BOUNDS = {
    "n_filters": (1, 4096),
    "n_layers": (1, 16),
    "expansion": (1, 64),
    "n_control_tracks": (0, 1024),
    "trimming": (0, 1 << 17),
}


def model(name: str, file: str | BinaryIO) -> Cherimoya:
    """The model of a checkpoint, on the CPU, ready to predict; `name` is for messages.

    Only weights are read: a file that holds code is refused. Raises `InputError` when it is not
    what `Cherimoya.save` wrote, when its configuration is none of a model, or when its weights
    are not finite numbers of 32 bits.
    """
    payload = _payload(name, file)
    config = _config(name, payload)
    weights = payload["state_dict"]
    try:
        # As Cherimoya.load does it. torch.compile is not used: it ignores the persistent
        # autotune cache.
        made = Cherimoya(**config, compile=False)
        expected = made.state_dict()
        made.load_state_dict(weights)
    except Exception as error:
        raise _fault(name, error) from None
    for key, weight in weights.items():
        if weight.dtype != expected[key].dtype:
            raise InputError(
                f"{name}: weights of {key} are {_kind(weight.dtype)}, expected "
                f"{_kind(expected[key].dtype)}; save the model in that precision"
            )
        if not weight.isfinite().all():
            raise InputError(f"{name}: weights of {key} are not finite; train it again")
    return made.eval()


def _payload(name: str, file: str | BinaryIO) -> dict:
    try:
        payload = torch.load(file, map_location="cpu", weights_only=True)
    except pickle.UnpicklingError as error:
        # Not what PyTorch says, which is advice to open it all the same.
        asked = re.search(r"GLOBAL ([\w.]{1,80})", str(error))
        why = f"it asks for {asked[1]}" if asked else "it is no such file"
        raise InputError(
            f"{name}: not a file of weights alone, so it was not opened ({why}); save the model "
            "again with Cherimoya.save"
        ) from None
    except Exception as error:
        raise _fault(name, error) from None
    if not isinstance(payload, dict):
        raise _no_checkpoint(name, f"it holds a {type(payload).__name__}")
    for key in ("config", "state_dict"):
        if not isinstance(payload.get(key), dict):
            raise _no_checkpoint(name, f"it has no dictionary {key!r}")
    for key, weight in payload["state_dict"].items():
        if not isinstance(weight, torch.Tensor):
            raise _no_checkpoint(name, f"its {str(key)[:80]!r} is no tensor")
    return payload


def _config(name: str, payload: dict) -> dict:
    config = payload["config"]
    if "n_outputs" in config:  # signal_groups since
        raise InputError(
            f"{name}: a checkpoint of Cherimoya before 0.2.0, which later ones do not read; train "
            "the model again"
        )
    for key, (least, most) in BOUNDS.items():
        value = config.get(key)
        if key not in config or (key == "trimming" and value is None):
            continue
        if type(value) is not int or not least <= value <= most:
            raise InputError(
                f"{name}: {key} is {str(value)[:20]}; expected a whole number from {least} to "
                f"{most}"
            )
    scale = config.get("residual_scale", 0.0)
    if type(scale) not in (int, float) or not math.isfinite(scale):
        raise InputError(f"{name}: residual_scale is {str(scale)[:20]}; expected a number")
    return config


def _no_checkpoint(name: str, why: str) -> InputError:
    return InputError(
        f"{name}: not a Cherimoya checkpoint, or cut short ({why}); fetch it again or save it "
        "with Cherimoya.save"
    )


def _fault(name: str, error: Exception) -> Exception:
    """What to raise for what PyTorch or Cherimoya raised over a file."""
    if isinstance(error, MemoryError) or "can't allocate memory" in str(error):
        return MemoryError()
    text = next(iter(str(error).splitlines()), "")
    if not text or "weights_only" in text:  # PyTorch's advice to open it all the same
        text = type(error).__name__
    return _no_checkpoint(name, text[:200])


def _kind(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")
