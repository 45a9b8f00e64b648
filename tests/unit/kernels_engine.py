"""The GPU's engine on a CPU: run as a process of its own, with TRITON_INTERPRET=1.

What Cherimoya's own forward on a GPU would be off by is made up.
"""

import sys
import warnings
from unittest.mock import Mock

import pytest
import torch
from test_kernels import SHAPES, a_model, bases_of
from triton import OutOfResources

from veff.cherimoya import engine as engines
from veff.cherimoya import kernels, proof, warmup

torch.set_num_threads(1)
SHAPE = SHAPES[0]


@pytest.fixture(autouse=True)
def gpu(monkeypatch):
    monkeypatch.setattr(engines, "on_gpu", lambda device: True)
    monkeypatch.setattr(warmup, "on_gpu", lambda device: True)
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda: "a GPU")
    monkeypatch.setattr(torch.cuda, "Event", Mock)  # nothing is queued
    own = engines.Predictor._own

    def off(self, bases):
        z, h = own(self, bases)
        noise = torch.randn(z.shape, generator=torch.Generator().manual_seed(0))
        return z + 2e-3 * z.std() * noise, h

    monkeypatch.setattr(engines.Predictor, "_own", off)


def predictor(change=None, batch_size=2, **how):
    model, geometry = a_model(SHAPE)
    if change:
        change(model)
    return engines.Predictor(model, geometry, device="cpu", batch_size=batch_size, **how)


@pytest.mark.parametrize("precision", ["fp32", "fast"])
def test_the_best_stream_is_taken_and_the_batch_decides_nothing(precision):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = predictor(precision=precision)
    assert found.engine == "fast"
    assert found._network.stream == engines.STREAMS[precision][0]
    model, geometry = a_model(SHAPE)
    bases = bases_of(geometry)
    assert proof.error(found.predict(bases), proof.exact(model, bases)) < 2e-3


def large(model):
    with torch.no_grad():
        model.blocks[-1].linear1.weight.mul_(100)
        model.blocks[-1].linear2.weight.mul_(1e6)


def test_a_model_that_overflows_half_precision_gets_the_wide_stream_with_one_warning():
    with pytest.warns(UserWarning, match="a stream in fp32") as said:
        found = predictor(large, precision="fast")
    assert len([one for one in said if one.category is UserWarning]) == 1
    assert found._network.stream == torch.float32


def test_a_window_that_overflows_is_predicted_in_fp32_and_the_other_keeps_its_bits(monkeypatch):
    found = predictor(precision="fast")
    bases = bases_of(a_model(SHAPE)[1])
    half, wide = found.predict(bases), predictor().predict(bases)
    right = kernels.Network.count_head

    def overflows(self, x):
        h = right(self, x)
        if self.stream == torch.float16:
            h[1] = torch.inf
        return h

    monkeypatch.setattr(kernels.Network, "count_head", overflows)
    with pytest.warns(UserWarning, match="overflows half precision"):
        outputs = found.predict(bases)
    for one, in_half, in_fp32 in zip(outputs, half, wide, strict=True):
        assert torch.equal(one[0], in_half[0])
        assert torch.equal(one[1], in_fp32[1])


@pytest.mark.parametrize("precision", ["fp32", "fast"])
def test_a_wrong_kernel_gives_way_to_cherimoya(monkeypatch, precision):
    right = kernels.Network.through_stem
    monkeypatch.setattr(kernels.Network, "through_stem", lambda self, x: right(self, x).flip(1))
    with pytest.warns(UserWarning, match="using Cherimoya's own forward"):
        assert predictor(precision=precision).engine == "cherimoya"


def test_a_gpu_too_small_for_the_kernels_gives_way_to_cherimoya(monkeypatch):
    def too_small(self, bases):
        raise OutOfResources(200_000, 100_000, "shared memory")

    monkeypatch.setattr(kernels.Network, "__call__", too_small)
    with pytest.warns(UserWarning, match="too small .*using Cherimoya's own forward"):
        assert predictor().engine == "cherimoya"


def test_a_proof_that_is_kept_needs_nothing_of_cherimoya_s(tmp_path, monkeypatch):
    predictor(proofs=tmp_path)

    def never(*_):
        raise AssertionError("called")

    monkeypatch.setattr(engines.Predictor, "_own", never)
    assert predictor(proofs=tmp_path).engine == "fast"


def test_out_of_memory_in_the_proof_goes_on_in_smaller_passes(monkeypatch):
    right = kernels.Network.__call__

    def room_for_one(self, bases):
        if len(bases) > 1:
            raise torch.OutOfMemoryError("no room")
        return right(self, bases)

    monkeypatch.setattr(kernels.Network, "__call__", room_for_one)
    monkeypatch.setattr(torch.cuda, "empty_cache", lambda: None)
    with pytest.warns(UserWarning, match="out of memory with 2 windows"):
        assert predictor().engine == "fast"


def test_exercise_runs_every_stream_that_a_proof_may_take(monkeypatch):
    ran, right = [], kernels.Network.__call__
    monkeypatch.setattr(
        kernels.Network, "__call__", lambda self, x: ran.append(self.stream) or right(self, x)
    )
    _, geometry = a_model(SHAPE)
    shape = {"n_filters": 16, "n_layers": 2, "expansion": 1, "signal_groups": [1]}
    lengths = {"input_length": geometry.input_length, "output_length": geometry.output_length}
    work = {"task": "score", **shape, "n_control_tracks": 0, **lengths, "batch_size": 2}
    warmup.exercise({**work, "precision": "fast", "engine": "fast"}, "cpu")
    assert set(ran) == {torch.float16, torch.float32}


if __name__ == "__main__":
    sys.exit(pytest.main([__file__, "-q", "-x", "-p", "no:cacheprovider", "--no-header"]))
