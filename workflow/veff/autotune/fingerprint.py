"""What decides whether a cached choice is valid here.

Triton's own key guards all that it covers, so what must be compared before it is the GPU, which
it leaves out, and what lets the rest be known without importing Triton: its wheel's list of
hashes, and the bytes of Cherimoya's kernels and ours. That takes milliseconds. `triton_parts` are
the parts of the key themselves: a seed records them, and a miss says which of them differs.
"""

import functools
import hashlib
import importlib.util
import json
import os
import sysconfig
from importlib.metadata import PackageNotFoundError, distribution, version
from pathlib import Path

from packaging.version import Version

from veff.autotune.gpus import Gpu
from veff.errors import InputError

# What the variables begin with that change what Triton compiles, and those that do not.
_COMPILER = ("TRITON_", "MLIR_", "LLVM_IR_", "LLVM_PASS_", "NVPTX_", "PTXAS_", "USE_IR_LOC")
_COMPILER += ("DISABLE_LLVM_OPT", "DISABLE_MMA_", "DISABLE_PTXAS_OPT")
_PLACES = ("TRITON_CACHE_", "TRITON_HOME", "TRITON_DUMP_DIR", "TRITON_LIB", "TRITON_PRINT_")

# The oldest with which this project works, and what is wrong with those before.
OLDEST = {
    "cherimoya": (
        "0.3.1",
        "before, a gradient could hold what autotuning left behind, and kernels were not tuned "
        "over warps and stages",
    ),
    "triton": ("3.5.0", "before 3.4 it keeps no choice, and 3.4 has its key elsewhere"),
}

OURS = Path(__file__).parents[1] / "cherimoya" / "kernels.py"


def check_versions() -> None:
    """Raise InputError where an installed package is too old."""
    for name, (oldest, why) in OLDEST.items():
        found = _version(name)
        if found and Version(found) < Version(oldest):
            raise InputError(
                f"{name} {found} is installed, but {oldest} or later is needed: {why}"
            )


def here(gpu: Gpu) -> dict[str, str]:
    """The fingerprint of this environment on `gpu`, {part: text}."""
    kernels = [_package("cherimoya") / "cheri.py", OURS]
    variables = {
        name: value
        for name, value in sorted(os.environ.items())
        if name.startswith(_COMPILER) and not name.startswith(_PLACES)
    }
    major, minor = gpu.capability
    return {
        "GPU": gpu.name,
        "GPU cores": str(gpu.cores),
        "capability": f"{major}.{minor}",
        **_triton(),
        # Of the kernels the bytes decide; this is for people.
        "cherimoya": _version("cherimoya") or "unknown",
        "kernels": digest([file.read_text() for file in kernels]),
        "python": sysconfig.get_config_var("SOABI"),
        "variables": str(variables),
    }


def triton_parts() -> dict[str, str]:
    """The parts of Triton's key for Cherimoya's kernels and ours, on the active device."""
    from triton._C.libtriton import get_cache_invalidating_env_vars
    from triton.compiler.compiler import make_backend
    from triton.runtime import driver
    from triton.runtime.autotuner import Autotuner
    from triton.runtime.cache import triton_key
    from triton.runtime.jit import JITFunction

    modules = map(importlib.import_module, ("cherimoya.cheri", "veff.cherimoya.kernels"))
    kernels = {name: value for module in modules for name, value in vars(module).items()}
    parts = {
        "Triton's key": digest(triton_key()),
        "backend": make_backend(driver.active.get_current_target()).hash(),
        "Triton's variables": str(sorted(get_cache_invalidating_env_vars().items())),
    }
    for name, kernel in sorted(kernels.items()):
        if isinstance(kernel, Autotuner):
            parts[f"configurations of {name}"] = digest([str(c) for c in kernel.configs])
            kernel = kernel.fn
        if isinstance(kernel, JITFunction):
            parts[f"cache_key of {name}"] = kernel.cache_key[:16]
    return parts


def differences(theirs: dict, ours: dict) -> str:
    """The parts in which two fingerprints differ, as one line."""
    parts = sorted(n for n in theirs.keys() | ours.keys() if theirs.get(n) != ours.get(n))
    return "; ".join(f"{name} {theirs.get(name)}, here {ours.get(name)}" for name in parts)


def digest(value: object) -> str:
    """16 hexadecimal digits that name `value` (plain built-ins)."""
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()[:16]


@functools.cache
def _triton() -> dict[str, str]:
    """Triton's version and contents, by the hashes that its wheel came with."""
    library = (_package("triton") / "_C" / "libtriton.so").stat()
    try:
        wheel = distribution("triton")
    except PackageNotFoundError:  # on the path, but not installed
        return {"triton": "unknown", "triton's files": f"{library.st_size} {library.st_mtime_ns}"}
    lines = (wheel.read_text("RECORD") or "").splitlines()
    hashes = sorted(line for line in lines if line.startswith("triton/") and "sha256=" in line)
    return {"triton": wheel.version, "triton's files": f"{library.st_size} {digest(hashes)}"}


def _version(name: str) -> str | None:
    """The version of an installed package; None of one that is only on the path, or not there."""
    try:
        return version(name)
    except PackageNotFoundError:
        return None


def _package(name: str) -> Path:
    spec = importlib.util.find_spec(name)  # finds a top-level package without importing it
    if spec is None:
        raise RuntimeError(f"{name} is not installed in this environment")
    return Path(spec.origin).parent
