"""A stand-in CUDA driver, for what can be tested without a GPU.

Real under it: Triton's knob, key, pruning, files and compilation to sm_90, on Cherimoya's own
kernels. Not there: a launch does nothing, a time is made up (and differs from process to process,
as on a GPU). Never take a time or a score from it.
"""

import functools
import hashlib
import importlib.util
import os
import random
import sys
import types

launches = []


@functools.cache
def activate():
    from triton.backends.compiler import GPUTarget
    from triton.backends.driver import DriverBase
    from triton.runtime import driver

    class Utils:
        def load_binary(self, name, kernel, shared, device):
            return object(), name, 32, 0, 1024

        def unload_module(self, module):
            pass

        def get_device_properties(self, device):
            return {
                "max_shared_mem": 232448,
                "max_num_regs": 65536,
                "multiprocessor_count": 132,
                "warpSize": 32,
                "sm_clock_rate": 1,
                "mem_clock_rate": 1,
                "mem_bus_width": 1,
            }

    class Launcher:
        def __init__(self, source, metadata):
            self.choice = (metadata.name, metadata.num_warps, metadata.num_stages)

        def __call__(self, *grid_and_arguments):
            launches.append((*self.choice, grid_and_arguments[:3]))

    class StandIn(DriverBase):
        launcher_cls = Launcher
        utils = Utils()

        @classmethod
        def is_active(cls):
            return True

        def get_current_target(self):
            return GPUTarget("cuda", 90, 32)

        def get_current_device(self):
            return 0

        def get_current_stream(self, device=0):
            return 0

        def set_current_device(self, device):
            pass

        def get_active_torch_device(self):
            import torch

            return torch.device("cpu")

        def map_python_to_cpp_type(self, kind):
            return kind

        def get_benchmarker(self):
            def benchmark(call, *, quantiles, **_):
                call()
                print("benchmark", file=sys.stderr, flush=True)
                return [random.random()] * len(quantiles)

            return benchmark

    driver.set_active(StandIn())


def kernels():
    """`cherimoya.cheri` without what else the package imports, which takes seconds."""
    if "cherimoya" not in sys.modules:
        spec = importlib.util.find_spec("cherimoya")
        package = types.ModuleType("cherimoya")
        package.__path__ = spec.submodule_search_locations
        sys.modules["cherimoya"] = package
    return importlib.import_module("cherimoya.cheri")


@functools.cache
def _thin_out(module):
    if step := os.environ.get("STANDIN_STEP"):  # all configurations take a minute to compile
        for kernel in vars(module).values():
            if hasattr(kernel, "configs"):
                kernel.configs = kernel.configs[:: int(step)]


def exercise(work, device):
    """In place of `warmup.exercise`: the kernels of a model's blocks at the shape `work`.

    Returns a hash of what was launched, with which options: of the choices, that is.
    """
    activate()
    import torch

    cheri = kernels()
    _thin_out(cheri)
    n, length, filters = work["batch_size"], work["input_length"], work["n_filters"]
    hidden = work["expansion"] * filters
    launches.clear()
    for layer in range(work["n_layers"]):
        cheri._fwd_inf_forward(
            torch.zeros(n, length, filters),
            torch.zeros(3, filters),
            2**layer,
            torch.zeros(hidden, filters, dtype=torch.bfloat16),
            torch.zeros(filters, hidden, dtype=torch.bfloat16),
        )
    # The launches of benchmarks come before the last ones of each kernel, and do not count.
    last = sorted({launch[0]: launch for launch in launches}.values())
    return hashlib.sha256(repr(last).encode()).hexdigest()
