"""Marks each test by the folder that it stands in, and skips what this machine cannot run."""

from pathlib import Path

import pytest

import browser
from project import SHARED

KINDS = ("unit", "workflow", "cluster", "gpu", "fuzz")
RUNS = ("demo", "forty", "one_run")  # fixtures that run the workflow


def has_nvidia_gpu():
    import torch

    return torch.cuda.is_available()


@pytest.hookimpl(tryfirst=True)  # pytest-xdist reads the groups in the same hook
def pytest_collection_modifyitems(items):
    root = Path(__file__).parent
    for item in items:
        kind = item.path.relative_to(root).parts[0]
        if kind in KINDS:
            item.add_marker(kind)
        # Over several processes, what shares a costly fixture stays in one.
        shared = [name for name in RUNS if name in item.fixturenames]
        item.add_marker(pytest.mark.xdist_group(shared[0] if shared else item.path.name))
    # What takes longest begins first (pytest-xdist keeps it so with --no-loadscope-reorder).
    items.sort(key=lambda item: not item.get_closest_marker("workflow"))
    on_gpu = [item for item in items if item.get_closest_marker("gpu")]
    if on_gpu and not has_nvidia_gpu():
        for item in on_gpu:
            item.add_marker(pytest.mark.skip(reason="needs an NVIDIA GPU"))


@pytest.fixture(scope="module")
def chromium():
    with browser.chromium() as started:
        yield started


@pytest.fixture(scope="session")
def shared_data():
    """For a test that reads from `project.SHARED`."""
    if not SHARED.is_dir():
        pytest.skip(f"needs data that are not part of the project: there is no {SHARED}")
