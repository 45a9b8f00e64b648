"""The GPU engine's kernels under Triton's interpreter, against a forward in float64.

The interpreter is chosen when Triton is imported, so they run in a process of their own. What it
cannot show, speed, tensor cores and the tanh of a GPU, is in `tests/gpu`.
"""

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from cherimoya import Cherimoya, ControlWrapper

from veff.cherimoya import proof

pytestmark = pytest.mark.skipif(not importlib.util.find_spec("triton"), reason="needs Triton")

UNIT = Path(__file__).parent
WORKFLOW = UNIT.parents[1] / "workflow"
SHAPES = [
    {"n_filters": 16, "n_layers": 2, "output": 101},
    {"n_filters": 20, "n_layers": 3, "expansion": 1, "signal_groups": [1, 2], "output": 33},
    {"n_filters": 33, "n_layers": 2, "expansion": 3, "n_control_tracks": 2, "output": 64},
    {"n_filters": 256, "n_layers": 5, "signal_groups": [2], "output": 1},
]

RUN = """
import json, sys
import numpy as np, torch
from test_kernels import a_model, bases_of
from veff.cherimoya import proof
from veff.cherimoya.kernels import Network
torch.set_num_threads(1)
found = []
for shape in json.loads(sys.argv[1]):
    model, geometry = a_model(shape)
    bases = bases_of(geometry)
    exact = proof.exact(model, bases)
    size = proof._log_expected(*exact).std().item()
    for stream in (torch.float32, torch.float16):
        network = Network(model, geometry, stream)
        error = proof.error(network(torch.from_numpy(bases)), exact)
        found.append([str(stream), error / size])
model, geometry = a_model(json.loads(sys.argv[1])[0])
bases = torch.from_numpy(bases_of(geometry))
with torch.no_grad():
    for block in model.blocks:
        block.linear1.weight.mul_(30)
        block.linear2.weight.mul_(1e5)
for stream in (torch.float32, torch.float16):
    logits, log_counts = Network(model, geometry, stream)(bases)
    found.append(["overflow", log_counts.isfinite().tolist()])
print(json.dumps(found))
"""


def a_model(shape):
    """A model with weights and biases of some size, as training makes them, and its geometry."""
    from veff.models.architecture import Geometry

    shape = dict(shape)
    output, trimming = shape.pop("output"), 46 + 2 ** shape["n_layers"] - 1
    model = Cherimoya(**shape, trimming=trimming, compile=False, random_state=0).eval()
    generator = torch.Generator().manual_seed(0)
    with torch.no_grad():
        for weight in model.parameters():
            weight.mul_(3).add_(torch.randn(weight.shape, generator=generator), alpha=0.02)
    return model, Geometry(output + 2 * trimming, output)


def bases_of(geometry):
    return proof.sample(2, geometry.input_length)


@pytest.fixture(scope="module")
def found():
    path = os.pathsep.join([str(UNIT), str(WORKFLOW), os.environ.get("PYTHONPATH", "")])
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", RUN, json.dumps(SHAPES)],
        env={**os.environ, "PYTHONPATH": path, "TRITON_INTERPRET": "1"},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


def test_the_kernels_are_as_close_to_float64_as_half_precision_products_allow(found):
    allowed = {"torch.float32": 2**-11, "torch.float16": 2**-8}
    errors = [(allowed[stream], error) for stream, error in found if stream in allowed]
    assert len(errors) == 2 * len(SHAPES)
    assert all(0 < error < limit for limit, error in errors), errors


def test_what_overflows_half_precision_is_not_finite_and_fits_the_wide_stream(found):
    wide, half = (finite for what, finite in found if what == "overflow")
    assert (wide, half) == ([[True]] * 2, [[False]] * 2)


@pytest.mark.parametrize("shape", SHAPES)
def test_the_float64_forward_is_cherimoya_s_own(shape):
    model, geometry = a_model(shape)
    bases = bases_of(geometry)
    one_hot = torch.stack([torch.from_numpy(bases == letter) for letter in b"ACGT"], 1)
    with torch.no_grad():
        own = ControlWrapper(model)(one_hot.float())
    for one, other in zip(proof.exact(model, bases), own, strict=True):
        assert one.dtype == torch.float64
        torch.testing.assert_close(one.float(), other, rtol=1e-4, atol=1e-5)


def test_an_error_is_that_of_log_counts_and_of_profiles_and_nan_where_there_is_none():
    z, h = torch.randn(2, 1, 50, dtype=torch.float64), torch.randn(2, 1, dtype=torch.float64)
    assert proof.error((z, h), (z, h)) == 0
    assert proof.error((z + 3, h), (z, h)) < 1e-12  # a profile does not change with it
    assert proof.error((z, h + 0.25), (z, h)) == pytest.approx(0.25)
    assert proof.error((2 * z, h), (z, h)) > 0.1
    assert np.isnan(proof.error((z, h * torch.nan), (z, h)))


def test_a_proof_is_made_once_for_a_checkpoint_and_again_where_it_is_damaged(
    tmp_path, monkeypatch
):
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda: "a GPU")
    model, geometry = a_model(SHAPES[0])
    asked = []

    def own(bases):
        asked.append(len(bases))
        z, h = proof.exact(model, bases)
        return z.float(), h.float() + 1e-3

    made = proof.of(model, geometry.input_length, own, tmp_path / "proofs")
    assert made.own_error == pytest.approx(1e-3, rel=0.01)
    assert made.error([torch.from_numpy(made.logits), torch.from_numpy(made.log_counts)]) == 0
    read = proof.of(model, geometry.input_length, own, tmp_path / "proofs")
    assert np.array_equal(read.logits, made.logits)
    assert read.own_error == made.own_error
    assert asked == [proof.ROWS]
    (file,) = (tmp_path / "proofs").iterdir()
    file.write_bytes(file.read_bytes()[:100])
    proof.of(model, geometry.input_length, own, tmp_path / "proofs")
    with torch.no_grad():
        model.linear.bias.add_(1)
    proof.of(model, geometry.input_length, own, tmp_path / "proofs")
    assert asked == [proof.ROWS] * 3
    assert len(list((tmp_path / "proofs").iterdir())) == 2


def test_the_engine_of_a_gpu_does_what_it_should_under_the_interpreter():
    path = os.pathsep.join([str(UNIT.parent), str(WORKFLOW), os.environ.get("PYTHONPATH", "")])
    done = subprocess.run(
        [sys.executable, "-W", "ignore::RuntimeWarning", UNIT / "kernels_engine.py"],
        env={**os.environ, "PYTHONPATH": path, "TRITON_INTERPRET": "1"},
        cwd=UNIT,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout
