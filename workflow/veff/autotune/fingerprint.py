"""What decides whether a cached choice is valid here.

The fingerprint holds the parts of Triton's own key for Cherimoya's kernels, and what that key
leaves out: the GPU. To compute it takes seconds (Triton reads its compiler), so a node keeps it
in a file named by `facts`, which are had in milliseconds and change whenever it could.
"""

import contextlib
import functools
import hashlib
import importlib.util
import json
import os
import subprocess
import sys
import sysconfig
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from veff.autotune.gpus import Gpu

# Prefixes of the variables that Triton's compiler reads, less those that only say where it writes.
_COMPILER = ("TRITON_", "LLVM_", "MLIR_", "DISABLE_", "ENABLE_", "USE_", "NVPTX_", "PTXAS_")
_PLACES = ("TRITON_CACHE_", "TRITON_HOME", "TRITON_DUMP_DIR")


def of(gpu: Gpu, root: Path) -> dict:
    """The fingerprint of this environment on `gpu`: {part: text}, kept in `root` once computed."""
    here = facts(gpu)
    kept = root / f"facts-{digest(here)}.json"
    try:
        return json.loads(kept.read_text())
    except (OSError, ValueError):  # not computed yet, or damaged
        found = _compute_apart(gpu)
    aside = kept.with_suffix(f".{os.getpid()}")
    with contextlib.suppress(OSError):  # a full disk: computed again next time
        aside.write_text(json.dumps(found, indent=1, sort_keys=True))
        os.replace(aside, kept)
    return found


def facts(gpu: Gpu) -> dict:
    """What can be had without importing Triton, and changes when the fingerprint could."""
    library = _package("triton") / "_C" / "libtriton.so"
    status = library.stat()
    kernels = _package("cherimoya") / "cheri.py"
    return {
        "python": sysconfig.get_config_var("SOABI"),
        "triton": [_version("triton"), str(library), status.st_size, status.st_mtime_ns],
        "cherimoya": [_version("cherimoya"), hashlib.sha256(kernels.read_bytes()).hexdigest()],
        "gpu": list(gpu._replace(uuid="")),
        "environment": {
            name: value
            for name, value in sorted(os.environ.items())
            if name.startswith(_COMPILER) and not name.startswith(_PLACES)
        },
    }


def differences(theirs: dict, ours: dict) -> str:
    """The parts in which two fingerprints differ, as one line."""
    parts = sorted(
        name for name in theirs.keys() | ours.keys() if theirs.get(name) != ours.get(name)
    )
    return "; ".join(f"{name} {theirs.get(name)}, here {ours.get(name)}" for name in parts)


def digest(value: object) -> str:
    """16 hexadecimal digits that name `value` (plain built-ins)."""
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()[:16]


def compute(gpu: Gpu) -> dict:
    """The fingerprint, from Triton and Cherimoya themselves. Needs no GPU."""
    import triton
    from cherimoya import cheri
    from triton._C.libtriton import get_cache_invalidating_env_vars
    from triton.backends.compiler import GPUTarget
    from triton.compiler.compiler import make_backend
    from triton.runtime.autotuner import Autotuner
    from triton.runtime.cache import triton_key
    from triton.runtime.jit import JITFunction

    def short(text: str) -> str:
        return hashlib.sha256(text.encode()).hexdigest()[:16]

    major, minor = gpu.capability
    parts = {
        "triton": triton.__version__,
        "triton key": short(triton_key()),
        "backend": make_backend(GPUTarget("cuda", 10 * major + minor, 32)).hash(),
        "environment": str(sorted(get_cache_invalidating_env_vars().items())),
        "python": sysconfig.get_config_var("SOABI"),
        "GPU": gpu.name,
        "GPU cores": str(gpu.cores),
    }
    for name, kernel in sorted(vars(cheri).items()):
        if isinstance(kernel, Autotuner):
            parts[f"configurations of {name}"] = short("-".join(map(str, kernel.configs)))
            kernel = kernel.fn
        if isinstance(kernel, JITFunction):
            parts[f"kernel {name}"] = kernel.cache_key[:16]
    return parts


@functools.cache
def _compute_apart(gpu: Gpu) -> dict:
    """`compute` in another process: this one must not import Cherimoya yet."""
    command = [sys.executable, "-m", "veff.autotune.fingerprint", json.dumps(gpu)]
    done = subprocess.run(command, env=environment(), capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"the autotune fingerprint failed:\n{done.stderr[-2000:]}")
    return json.loads(done.stdout.splitlines()[-1])


def environment() -> dict[str, str]:
    """The environment of a child that imports veff."""
    here = str(Path(__file__).parents[2])
    path = [here, *filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep))]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(dict.fromkeys(path))}


def _package(name: str) -> Path:
    spec = importlib.util.find_spec(name)  # finds a top-level package without importing it
    if spec is None:
        raise RuntimeError(f"{name} is not installed in this environment")
    return Path(spec.origin).parent


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:  # on the path, but not installed
        return "unknown"


if __name__ == "__main__":
    uuid, name, capability, cores, driver = json.loads(sys.argv[1])
    print(json.dumps(compute(Gpu(uuid, name, tuple(capability), cores, driver))))
