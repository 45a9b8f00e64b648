import warnings
from dataclasses import replace

import numpy as np
import pytest
import torch
from cherimoya import Cherimoya, ControlWrapper
from hypothesis import given, settings
from hypothesis import strategies as st

from veff.cherimoya import attribution, memory, processor, proof, warmup
from veff.cherimoya import engine as engines
from veff.errors import InputError
from veff.models.architecture import Architecture, Geometry

SMALL = {"n_filters": 16, "n_layers": 4}
GEOMETRY = Geometry(251, 101)


@pytest.fixture(autouse=True)
def one_thread():
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def a_model(geometry=GEOMETRY, seed=0, **kwargs):
    """An untrained model, made larger in its weights and given biases, as training does."""
    model = Cherimoya(
        **{**SMALL, **kwargs}, trimming=geometry.trimming, compile=False, random_state=seed
    )
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for weight in model.parameters():
            weight.mul_(3).add_(torch.randn(weight.shape, generator=generator), alpha=0.02)
    return model.eval()


def random_bases(rows, length, seed=0, letters=b"ACGTN"):
    choices = np.frombuffer(letters, np.uint8)
    return np.random.default_rng(seed).choice(choices, (rows, length))


def own_forward(model, bases):
    """Cherimoya's forward as its documentation shows it, on a one-hot made column by column."""
    one_hot = torch.stack([torch.from_numpy(bases == letter) for letter in b"ACGT"], 1).float()
    with torch.no_grad():
        return ControlWrapper(model)(one_hot)


@settings(max_examples=25, deadline=None)
@given(
    filters=st.sampled_from([16, 20, 33, 64]),
    layers=st.integers(4, 8),
    expansion=st.integers(1, 3),
    groups=st.sampled_from([[1], [2], [1, 1], [1, 2], [2, 1, 3]]),
    controls=st.integers(0, 2),
    output=st.integers(1, 120),
    seed=st.integers(0, 1000),
)
def test_both_engines_predict_what_cherimoya_does(
    filters, layers, expansion, groups, controls, output, seed
):
    trimming = 46 + 2**layers - 1
    geometry = Geometry(output + 2 * trimming, output)
    model = a_model(
        geometry,
        seed,
        n_filters=filters,
        n_layers=layers,
        expansion=expansion,
        signal_groups=groups,
        n_control_tracks=controls,
    )
    bases = random_bases(2, geometry.input_length, seed)
    logits, log_counts = own_forward(model, bases)
    for engine in ("fast", "cherimoya"):
        predictor = engines.Predictor(model, geometry, device="cpu", engine=engine, batch_size=2)
        assert predictor.engine == engine
        z, h = predictor.predict(bases)
        assert z.dtype == h.dtype == torch.float32
        assert z.shape == (2, sum(groups), output)
        assert h.shape == (2, len(groups))
        torch.testing.assert_close(z, logits, rtol=1e-5, atol=1e-5)
        torch.testing.assert_close(h, log_counts, rtol=1e-5, atol=1e-5)


def test_a_base_that_is_not_acgt_is_an_all_zero_column():
    model = a_model()
    predictor = engines.Predictor(model, GEOMETRY, device="cpu", batch_size=1)
    bases = random_bases(1, GEOMETRY.input_length, letters=b"ACGT")
    outputs = []
    for letter in b"NRacgt\x00":
        bases[:, 100:150] = letter
        outputs.append(predictor.predict(bases)[0])
    assert all(torch.equal(z, outputs[0]) for z in outputs)
    one_hot = torch.stack([torch.from_numpy(bases == letter) for letter in b"ACGT"], 1)
    assert not one_hot[:, :, 100:150].any()
    torch.testing.assert_close(outputs[0], own_forward(model, bases)[0], rtol=0, atol=1e-5)


@pytest.mark.parametrize("engine", ["fast", "cherimoya"])
@pytest.mark.parametrize("precision", ["fp32", "fast"])
@pytest.mark.parametrize("filters", [16, 20])
def test_a_row_has_the_same_bits_wherever_it_stands_and_beside_whatever(
    engine, precision, filters
):
    geometry = Geometry(253, 103)
    predictors = {
        n: engines.Predictor(
            a_model(geometry, n_filters=filters),
            geometry,
            device="cpu",
            precision=precision,
            engine=engine,
            batch_size=n,
        )
        for n in (1, 3, 7)
    }
    bases = random_bases(7, geometry.input_length)
    z, h = predictors[7].predict(bases)
    order = np.random.default_rng(1).permutation(7)
    shuffled_z, shuffled_h = predictors[7].predict(bases[order])
    assert torch.equal(shuffled_z, z[order])
    assert torch.equal(shuffled_h, h[order])
    padded = bases[:3].copy()
    padded[1:] = ord("N")
    for some in (padded, bases[:3]):
        z_of_3, h_of_3 = predictors[3].predict(some)
        assert torch.equal(z_of_3[0], z[0])
        assert torch.equal(h_of_3[0], h[0])
    for row in range(7):
        alone_z, alone_h = predictors[1].predict(bases[row : row + 1])
        assert torch.equal(alone_z[0], z[row])
        assert torch.equal(alone_h[0], h[row])


@pytest.mark.parametrize("engine", ["fast", "cherimoya"])
def test_the_number_of_threads_decides_no_bit(engine):
    geometry = Geometry(2114, 1000)
    model = a_model(geometry, n_filters=32, n_layers=9)
    bases = random_bases(3, geometry.input_length)
    outputs = []
    for threads in (1, 2, 5):
        torch.set_num_threads(threads)
        predictor = engines.Predictor(model, geometry, device="cpu", engine=engine, batch_size=3)
        outputs.append(predictor.predict(bases))
        assert torch.get_num_threads() == threads
        assert not any(one.requires_grad for one in outputs[-1])
    for z, h in outputs[1:]:
        assert torch.equal(z, outputs[0][0])
        assert torch.equal(h, outputs[0][1])


def test_a_cpu_computes_in_fp32_whichever_the_precision():
    bases = random_bases(4, GEOMETRY.input_length)
    how = {"device": "cpu", "batch_size": 4}
    fp32 = engines.Predictor(a_model(), GEOMETRY, **how).predict(bases)
    fast = engines.Predictor(a_model(), GEOMETRY, precision="fast", **how).predict(bases)
    for one, other in zip(fp32, fast, strict=True):
        assert torch.equal(one, other)


@pytest.mark.parametrize("packed", [True, False])
def test_on_a_cpu_the_fast_engine_is_no_further_from_float64_than_cherimoya(monkeypatch, packed):
    if packed and not processor.PACKED:
        pytest.skip("this PyTorch has no oneDNN")
    monkeypatch.setattr(processor, "PACKED", packed)
    geometry = Geometry(1001, 501)
    for seed in range(3):
        model = a_model(geometry, seed, n_filters=32, n_layers=6)
        bases = random_bases(1, geometry.input_length, seed)
        truth = proof.exact(model, bases)
        ours = processor.Network(model, geometry)(torch.from_numpy(bases))
        allowed = max(proof.error(own_forward(model, bases), truth), 1e-7)
        assert proof.error(ours, truth) <= allowed


def test_the_fast_engine_gives_way_where_a_layout_is_wrong(monkeypatch):
    right = processor.Network._profile_head

    def taps_backwards(self, x):
        forwards = self.profile
        self.profile = forwards.view(self.channels, self.taps, -1).flip(1).flatten(0, 1)
        z = right(self, x)
        self.profile = forwards
        return z

    monkeypatch.setattr(processor.Network, "_profile_head", taps_backwards)
    model = a_model()
    with pytest.warns(UserWarning, match="does not reproduce Cherimoya's own forward"):
        predictor = engines.Predictor(model, GEOMETRY, device="cpu", batch_size=2)
    assert predictor.engine == "cherimoya"
    bases = random_bases(2, GEOMETRY.input_length)
    for ours, own in zip(predictor.predict(bases), own_forward(model, bases), strict=True):
        torch.testing.assert_close(ours, own, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(
    ("head", "wrong"),
    [("_profile_head", lambda z: z.roll(1, -1)), ("_count_head", lambda h: h * 1.1)],
)
def test_the_fast_engine_gives_way_where_a_head_is_off(monkeypatch, head, wrong):
    right = getattr(processor.Network, head)
    monkeypatch.setattr(processor.Network, head, lambda self, x: wrong(right(self, x)))
    with pytest.warns(UserWarning, match="does not reproduce"):
        predictor = engines.Predictor(a_model(), GEOMETRY, device="cpu", batch_size=2)
    assert predictor.engine == "cherimoya"


def test_not_a_number_is_no_agreement():
    model = a_model()
    with torch.no_grad():
        model.fconv.bias.fill_(torch.nan)
    with pytest.warns(UserWarning, match="does not reproduce"):
        engines.Predictor(model, GEOMETRY, device="cpu", batch_size=2)


class OtherForward(Cherimoya):
    def forward(self, X, X_ctl=None):
        profile, counts = super().forward(X, X_ctl)
        return profile, counts + 1


def _with(layer, conv):
    def change(model):
        setattr(model, layer, conv(model))
        return model

    return change


def _as_other_class(model):
    model.__class__ = OtherForward
    return model


@pytest.mark.parametrize(
    "change",
    [
        _with("fconv", lambda m: torch.nn.Conv1d(m.n_filters, 1, 51, padding=25)),
        _with("fconv", lambda m: torch.nn.Conv1d(m.n_filters, 1, 75, padding=37, bias=False)),
        _as_other_class,
    ],
    ids=["profile kernel", "no bias", "subclass"],
)
def test_unknown_layers_are_left_to_cherimoya(change):
    model = change(a_model())
    with pytest.warns(UserWarning, match="does not know this model's layers"):
        predictor = engines.Predictor(model, GEOMETRY, device="cpu", batch_size=2)
    bases = random_bases(2, GEOMETRY.input_length)
    for ours, own in zip(predictor.predict(bases), own_forward(model, bases), strict=True):
        torch.testing.assert_close(ours, own, rtol=1e-5, atol=1e-5)


def test_a_window_without_room_for_the_profile_kernel_is_left_to_cherimoya():
    geometry = Geometry(200, 180)
    model = a_model(geometry)
    with pytest.warns(UserWarning, match="does not know"):
        predictor = engines.Predictor(model, geometry, device="cpu", batch_size=1)
    bases = random_bases(1, 200)
    torch.testing.assert_close(
        predictor.predict(bases)[0], own_forward(model, bases)[0], rtol=1e-5, atol=1e-5
    )


@pytest.mark.parametrize(
    ("geometry", "kwargs", "message"),
    [
        (Geometry(251, 103), {}, "does not leave 103"),
        (Geometry(252, 101), {}, "does not leave 101"),
        (GEOMETRY, {"precision": "fp16"}, "'fp32' or 'fast'"),
        (GEOMETRY, {"engine": "slow"}, "'fast' or 'cherimoya'"),
    ],
)
def test_what_does_not_fit_the_model_is_refused(geometry, kwargs, message):
    with pytest.raises(ValueError, match=message):
        engines.Predictor(a_model(), geometry, device="cpu", batch_size=2, **kwargs)


@pytest.mark.parametrize("shape", [(1, 251), (3, 251), (2, 250)])
def test_another_batch_shape_is_refused(shape):
    predictor = engines.Predictor(a_model(), GEOMETRY, device="cpu", batch_size=2)
    with pytest.raises(ValueError, match=r"this predictor takes \(2, 251\)"):
        predictor.predict(random_bases(*shape))


def test_out_of_memory_goes_on_in_smaller_passes(monkeypatch):
    predictor = engines.Predictor(a_model(), GEOMETRY, device="cpu", batch_size=8)
    bases = random_bases(8, GEOMETRY.input_length)
    expected = predictor.predict(bases)
    right, sizes = engines.Predictor._forward, []

    def with_room_for_two(self, bases):
        sizes.append(len(bases))
        if len(bases) > 2:
            raise torch.OutOfMemoryError("no room")
        return right(self, bases)

    monkeypatch.setattr(engines.Predictor, "_forward", with_room_for_two)
    predictor._pass_size = 8
    with pytest.warns(UserWarning, match="out of memory") as said:
        outputs = predictor.predict(bases)
    assert [str(one.message).split(";")[0] for one in said] == [
        "cpu: out of memory with 8 windows a pass",
        "cpu: out of memory with 4 windows a pass",
    ]
    assert sizes == [8, 4, 2, 2, 2, 2]
    for ours, other in zip(outputs, expected, strict=True):
        torch.testing.assert_close(ours, other, rtol=1e-5, atol=1e-5)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        predictor.predict(bases)


def test_rows_of_no_use_are_zeros_on_a_cpu_and_change_nothing():
    model = a_model(signal_groups=[1, 2])
    predictor = engines.Predictor(model, GEOMETRY, device="cpu", batch_size=6)
    bases = random_bases(6, GEOMETRY.input_length)
    whole, some = predictor.predict(bases), predictor.predict(bases, 2)
    for all_rows, two in zip(whole, some, strict=True):
        assert two.shape == all_rows.shape
        assert torch.equal(two[:2], all_rows[:2])
        assert not two[2:].any()


def test_out_of_memory_with_one_window_is_an_error(monkeypatch):
    def no_room(self, bases):
        raise torch.OutOfMemoryError("no room")

    monkeypatch.setattr(engines.Predictor, "_forward", no_room)
    with pytest.raises(torch.OutOfMemoryError):
        engines.Predictor(a_model(), GEOMETRY, device="cpu", batch_size=2)


DEFAULT = Architecture(128, 9, 2, (1,), 0, 2114, 1000)


@pytest.mark.parametrize(
    ("gigabytes", "expected"), [(141, 1024), (24, 1024), (8, 512), (4, 256), (0.1, 32)]
)
def test_auto_takes_the_largest_batch_that_a_gpu_holds(gigabytes, expected):
    small = replace(DEFAULT, n_filters=8)
    found = memory.size("auto", [small, DEFAULT, small], lambda: int(gigabytes * 1e9))
    assert found == expected


def test_a_batch_size_given_is_used_and_a_cpu_needs_no_estimate():
    assert memory.size(100, [DEFAULT], pytest.fail) == 100
    assert memory.size("auto", [DEFAULT], None) == 32


def test_a_gpu_asked_for_but_not_there_is_an_error(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    assert engines.device("auto") == engines.device("cpu") == torch.device("cpu")
    with pytest.raises(InputError, match="sees no NVIDIA GPU"):
        engines.device("cuda")


def test_exercise_depends_on_the_work_alone():
    work = {
        "task": "score",
        **SMALL,
        "expansion": 2,
        "signal_groups": [1, 2],
        "n_control_tracks": 1,
        "input_length": 251,
        "output_length": 101,
        "batch_size": 3,
        "precision": "fp32",
        "engine": "fast",
    }
    torch.manual_seed(1)
    first = warmup.exercise(work, "cpu")
    torch.manual_seed(2)
    assert warmup.exercise(dict(work), "cpu") == first
    assert len(first) == 64
    assert warmup.exercise({**work, "n_filters": 32}, "cpu") != first


def test_of_attributions_which_are_added_in_any_order_no_bits_are_compared(monkeypatch):
    attributed = []

    def attributions(*arguments):
        attributed.append(plain(*arguments))
        return attributed[-1] * (1 + 1e-3 * len(attributed))  # as from time to time

    plain = attribution.attributions
    monkeypatch.setattr(attribution, "attributions", attributions)
    work = {**SMALL, "expansion": 2, "signal_groups": [1], "n_control_tracks": 0}
    work |= {"task": "attribute", "input_length": 251, "output_length": 101, "batch_size": 2}
    assert warmup.exercise(work, "cpu") == warmup.exercise(work, "cpu")
    assert len(attributed) == 2
    assert all(np.abs(one).max() > 0 for one in attributed)


def test_no_benchmark_and_no_tf32_decides_a_result():
    assert not torch.backends.cudnn.benchmark
    assert torch.backends.cudnn.deterministic
    assert not torch.backends.cudnn.allow_tf32
    assert torch.get_float32_matmul_precision() == "highest"
