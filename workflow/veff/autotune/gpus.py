"""Which NVIDIA GPU this process uses, and when: one of those it may see, found without torch."""

import contextlib
import ctypes
import fcntl
import importlib.util
import logging
import os
import re
import threading
import time
from pathlib import Path
from typing import NamedTuple

from veff.autotune import node
from veff.errors import Passing

log = logging.getLogger(__name__)

_claimed: "Gpu | None" = None
_lock_file: int | None = None  # of the claimed GPU, open until the process ends
_mine = False  # whether it is locked
waited = 0.0  # seconds in which another process had the claimed GPU


class Gpu(NamedTuple):
    uuid: str
    name: str
    capability: tuple[int, int]
    cores: int  # CUDA cores, 128 a multiprocessor on Hopper; of a MIG slice its multiprocessors


def visible() -> list[Gpu]:
    """The GPUs that CUDA would show this process, in its order; [] without a driver or NVML."""
    try:
        import pynvml
    except ImportError:
        if Path("/proc/driver/nvidia").exists():
            log.warning("an NVIDIA driver is here but nvidia-ml-py is not: no GPU is used")
        return []
    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError:
        return []
    try:
        return [_describe(pynvml, handle) for handle in _handles(pynvml)]
    finally:
        pynvml.nvmlShutdown()


def claim(model: str | None = None) -> Gpu | None:
    """Choose one of the visible GPUs (of `model`) for this process.

    Where only one is visible, the user or the scheduler chose; see `turn`. Otherwise it is the
    first GPU that no other process of this user holds, after waiting while all are taken: it is
    locked until this process ends, and CUDA_VISIBLE_DEVICES is narrowed to it. Returns None where
    there is no GPU; raises InputError where none of them is of the model.
    """
    global _claimed, _lock_file
    if _claimed is None:
        # NVML counts in PCI order and CUDA, unless told, by speed: an index must mean one GPU.
        os.environ.setdefault("CUDA_DEVICE_ORDER", "PCI_BUS_ID")
        gpus = visible()
        fitting = [gpu for gpu in gpus if model is None or is_model(gpu.name, model)]
        if gpus and not fitting:
            raise Passing(  # another node may have one
                f"gpu_model is {model}, but the GPU of this job is "
                f"{', '.join(sorted({gpu.name for gpu in gpus}))}: have the scheduler give "
                f"{model} only (Slurm does by itself; elsewhere choose a queue or a node label), "
                "or change gpu_model or leave it out"
            )
        if len(gpus) > 1:
            _claimed = _lock_one(fitting)
            os.environ["CUDA_VISIBLE_DEVICES"] = _claimed.uuid
        elif gpus:
            _claimed = gpus[0]
            _lock_file = _open_lock(f"{_claimed.uuid}{_of_job()}")
    return _claimed


def turn() -> None:
    """Wait while another process of this user (under a scheduler: of this job) computes on the
    claimed GPU, then have it until this process ends.

    So the next job of a GPU can start, which takes seconds, while one computes, and yet has the
    whole GPU and its memory when it computes itself.
    """
    global _mine, waited
    if _mine or _lock_file is None:
        return
    began = time.monotonic()
    try:
        fcntl.flock(_lock_file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        log.info("another job computes on the GPU: waiting for it")
        fcntl.flock(_lock_file, fcntl.LOCK_EX)
        waited += time.monotonic() - began
    _mine = True


def is_mine() -> bool:
    """Whether the claimed GPU is locked for this process."""
    return _mine


def start() -> None:
    """Have the driver start the claimed GPU while Python imports torch, which uses its context."""
    threading.Thread(target=_make_context, daemon=True).start()


def memory() -> int:
    """The bytes of the claimed GPU, as PyTorch counts them, whose import takes seconds."""
    cuda, device, size = ctypes.CDLL("libcuda.so.1"), ctypes.c_int(), ctypes.c_size_t()
    failed = (
        cuda.cuInit(0)
        or cuda.cuDeviceGet(ctypes.byref(device), 0)
        or cuda.cuDeviceTotalMem_v2(ctypes.byref(size), device)
    )
    if failed:
        raise RuntimeError(f"the driver does not tell the GPU's memory: CUDA error {failed}")
    return size.value


def is_model(name: str, model: str) -> bool:
    """Whether a GPU that NVML calls `name` ("NVIDIA A100-SXM4-80GB") is a `model`, as clusters
    write it: "a100", "nvidia_a100", "a100_80gb". Each of its words is one of the name, whole."""

    def within(word: str) -> bool:
        letters = "[^a-z0-9]*".join(word)  # "rtx4090" is "RTX 4090"
        return bool(re.search(f"(?<![a-z0-9]){letters}(?![a-z0-9])", name.lower()))

    return all(map(within, re.findall("[a-z0-9]+", model.lower())))


def torch_has_cuda() -> bool:
    """Whether the installed torch is built with CUDA, read without importing it."""
    spec = importlib.util.find_spec("torch")
    if spec is None:
        return False
    text = Path(spec.origin).with_name("version.py").read_text()
    return re.search(r"^cuda\b.*=\s*['\"]", text, re.MULTILINE) is not None


def _make_context() -> None:
    with contextlib.suppress(OSError):  # no driver: torch says so
        cuda = ctypes.CDLL("libcuda.so.1")
        device, context = ctypes.c_int(), ctypes.c_void_p()
        # Each gives 0, or the number of an error, which torch will meet too.
        _ = (
            cuda.cuInit(0)
            or cuda.cuDeviceGet(ctypes.byref(device), 0)
            or cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), device)
        )


def _lock_one(gpus: list[Gpu]) -> Gpu:
    """The first that no other process has; where nothing can be locked, the first of all."""
    global _lock_file, _mine
    told = False
    while True:
        for gpu in gpus:
            descriptor = _open_lock(gpu.uuid)
            if descriptor is None:
                return gpu
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                os.close(descriptor)
                continue
            _lock_file, _mine = descriptor, True
            return gpu
        if not told:
            log.warning("all %d visible GPUs are taken by other jobs: waiting for one", len(gpus))
            told = True
        time.sleep(0.2)


def _open_lock(name: str) -> int | None:
    """The file of a lock, open; None, with a warning, where this node has no place for it."""
    # One place for every job of this user on the node, whatever its environment.
    try:
        folder = node.private(Path("/tmp"), f"veff-gpus-{os.geteuid()}")
    except OSError as error:
        log.warning("no GPU is locked, so two jobs may take one: %s", error)
        return None
    return os.open(folder / f"{name}.lock", os.O_RDWR | os.O_CREAT, 0o600)


def _of_job() -> str:
    """What tells jobs of a scheduler apart, which may have given them parts of one GPU."""
    names = ("SLURM_JOB_ID", "LSB_JOBID", "PBS_JOBID", "JOB_ID")
    return next((f".{os.environ[name]}" for name in names if os.environ.get(name)), "")


def _handles(pynvml) -> list:
    physical = []
    for index in range(pynvml.nvmlDeviceGetCount()):
        try:
            physical.append(pynvml.nvmlDeviceGetHandleByIndex(index))
        except pynvml.NVMLError:  # a cgroup hides it, as it does from CUDA
            continue
    chosen = os.environ.get("CUDA_VISIBLE_DEVICES")
    if chosen is None:
        return [part for handle in physical for part in _slices(pynvml, handle)]
    handles = []
    for word in (word.strip() for word in chosen.split(",")):
        handle = _resolve(pynvml, physical, word)
        if handle is None:  # CUDA, too, ignores what follows a word that names no GPU
            break
        handles.append(handle)
    return handles


def _resolve(pynvml, physical: list, word: str):
    if word.isdecimal():
        return _slices(pynvml, physical[int(word)])[0] if int(word) < len(physical) else None
    if not word.startswith(("GPU-", "MIG-")):
        return None
    parts = [part for handle in physical for part in [handle, *_slices(pynvml, handle)]]
    return next((p for p in parts if pynvml.nvmlDeviceGetUUID(p).startswith(word)), None)


def _slices(pynvml, handle) -> list:
    """The MIG slices of a GPU that is divided into some, else the GPU itself."""
    try:
        if pynvml.nvmlDeviceGetMigMode(handle)[0] != pynvml.NVML_DEVICE_MIG_ENABLE:
            return [handle]
        slices = []
        for index in range(pynvml.nvmlDeviceGetMaxMigDeviceCount(handle)):
            try:
                slices.append(pynvml.nvmlDeviceGetMigDeviceHandleByIndex(handle, index))
            except pynvml.NVMLError:  # a slot without a slice
                continue
        return slices or [handle]
    except pynvml.NVMLError:
        return [handle]


def _describe(pynvml, handle) -> Gpu:
    try:
        whole = pynvml.nvmlDeviceGetDeviceHandleFromMigDeviceHandle(handle)
        cores = pynvml.nvmlDeviceGetAttributes(handle).multiprocessorCount
    except pynvml.NVMLError:  # not a slice
        whole, cores = handle, pynvml.nvmlDeviceGetNumGpuCores(handle)
    return Gpu(
        uuid=pynvml.nvmlDeviceGetUUID(handle),
        name=pynvml.nvmlDeviceGetName(handle),
        capability=tuple(pynvml.nvmlDeviceGetCudaComputeCapability(whole)),
        cores=cores,
    )
