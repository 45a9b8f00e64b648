"""A stand-in for nvidia-ml-py: the GPUs are those that STANDIN_GPUS names, "NAME; NAME"."""

import os

NVML_DEVICE_MIG_ENABLE = 1


class NVMLError(Exception):
    pass


def _names():
    return [n.strip() for n in os.environ.get("STANDIN_GPUS", "").split(";") if n.strip()]


def nvmlInit():
    if not _names():
        raise NVMLError("no driver")


def nvmlShutdown():
    pass


def nvmlDeviceGetCount():
    return len(_names())


def nvmlDeviceGetHandleByIndex(index):
    return index


def nvmlDeviceGetUUID(handle):
    return os.environ.get("STANDIN_UUID", "GPU-0000000") + str(handle)


def nvmlDeviceGetName(handle):
    return _names()[handle]


def nvmlDeviceGetCudaComputeCapability(handle):
    return (9, 0)


def nvmlDeviceGetNumGpuCores(handle):
    return 16896


def nvmlDeviceGetMigMode(handle):
    return [0, 0]


def nvmlDeviceGetDeviceHandleFromMigDeviceHandle(handle):
    raise NVMLError("not a MIG device")
