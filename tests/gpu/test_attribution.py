"""Attributions on a GPU: those of the CPU, and nothing left to benchmark after the exercise."""

import json
import os
import subprocess
import sys

import numpy as np
import pytest

from project import DEMO
from veff.autotune import warm

WORK = {
    "task": "attribute",
    "n_filters": 32,
    "n_layers": 9,
    "expansion": 2,
    "signal_groups": [1],
    "n_control_tracks": 0,
    "input_length": 2114,
    "output_length": 1000,
    "batch_size": 4,
    "precision": "fp32",
    "engine": "cherimoya",
}


def test_attributions_are_those_of_the_cpu():
    from veff.cherimoya import attribution, checkpoint

    bases = np.random.default_rng(0).choice(np.frombuffer(b"ACGT", np.uint8), (2, 2114))
    found = {}
    for device in ("cpu", "cuda"):
        model = checkpoint.load(DEMO / "models/cellA.fold0.torch").to(device)
        references = attribution.shuffled(bases[0], 4)
        found[device] = attribution.attributions(model, bases, 0, device, references)
    scale = np.abs(found["cpu"]).max()
    # The fused blocks multiply in bf16 on a GPU.
    assert found["cuda"] == pytest.approx(found["cpu"], abs=0.05 * scale)


def test_a_second_process_benchmarks_nothing(tmp_path):
    """Exercise in one process, attributions of a trained model in the next, on one cache."""
    code = [
        "import json, sys, torch, numpy as np",
        "from veff.cherimoya import attribution, checkpoint, warmup",
        "from veff.autotune import ledger",
        f"work = json.loads({json.dumps(json.dumps(WORK))})",
        "bases = np.random.default_rng(1).choice(np.frombuffer(b'ACGT', np.uint8), (2, 2114))",
        f"path = {str(DEMO / 'models/cellB.fold1.torch')!r}",
        "if sys.argv[1] == 'exercise': warmup.exercise(work, 'cuda')",
        "else: attribution.attributions(checkpoint.load(path).to('cuda'), bases, 0, 'cuda', "
        "attribution.shuffled(bases[0], work['batch_size']))",
        "print(json.dumps(ledger.counts()))",
    ]
    variables = {
        **os.environ,
        "PYTHONPATH": warm.python_path(),
        "TRITON_CACHE_AUTOTUNING": "1",
        "TRITON_CACHE_DIR": str(tmp_path),
        "TRITON_CACHE_MANAGER": "veff.autotune.manager:Manager",
    }
    counts = []
    for step in ("exercise", "attribute"):
        command = [sys.executable, "-c", "\n".join(code), step]
        done = subprocess.run(command, env=variables, capture_output=True, text=True, check=True)
        counts.append(json.loads(done.stdout.splitlines()[-1]))
    assert counts[0]["benchmarks"] > 0
    assert counts[1]["benchmarks"] == counts[1]["compile_misses"] == 0
