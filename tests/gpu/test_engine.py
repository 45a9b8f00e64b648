import warnings

import numpy as np
import pytest
import torch
from cherimoya import Cherimoya, ControlWrapper

from project import DEMO
from veff.cherimoya import engine as engines
from veff.cherimoya import layout, memory, warmup
from veff.models.architecture import Architecture, Geometry
from veff.scoring import effects

DEFAULT = Geometry(2114, 1000)
SMALL = Geometry(453, 231)
ROWS = 64

pytestmark = pytest.mark.usefixtures("one_choice_a_kernel")


def a_model(geometry, seed=0, **kwargs):
    """An untrained model, made larger in its weights and given biases, as training does."""
    shape = {"n_filters": 32, "n_layers": 4, **kwargs}
    model = Cherimoya(**shape, trimming=geometry.trimming, compile=False, random_state=seed)
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for weight in model.parameters():
            weight.mul_(3).add_(torch.randn(weight.shape, generator=generator), alpha=0.02)
    return model.eval()


def random_bases(rows, geometry, seed=0, letters=b"ACGTN"):
    choices = np.frombuffer(letters, np.uint8)
    return np.random.default_rng(seed).choice(choices, (rows, geometry.input_length))


def one_hot(bases):
    return torch.stack([torch.from_numpy(bases == letter) for letter in b"ACGT"], 1).float()


@pytest.mark.parametrize(
    ("geometry", "shape"),
    [
        (SMALL, {}),
        (SMALL, {"signal_groups": [1, 2], "n_control_tracks": 2}),
        (SMALL, {"n_filters": 48, "expansion": 3}),
        (SMALL, {"n_filters": 12}),
        (DEFAULT, {"n_filters": 128, "n_layers": 9}),
    ],
    ids=["small", "groups and controls", "not a power of two", "training kernels", "default"],
)
def test_both_engines_predict_what_cherimoya_does(geometry, shape):
    model = a_model(geometry, **shape)
    bases = random_bases(ROWS, geometry)
    fast = engines.Predictor(model, geometry, device="cuda", batch_size=ROWS)
    assert fast.engine == "fast"
    own = engines.Predictor(model, geometry, device="cuda", engine="cherimoya", batch_size=ROWS)
    with torch.no_grad():
        logits, log_counts = ControlWrapper(model)(one_hot(bases).cuda())
    for predictor in (fast, own):
        z, h = predictor.predict(bases)
        assert z.is_cuda
        assert h.is_cuda
        torch.testing.assert_close(h, log_counts, rtol=0, atol=1e-5)
        torch.testing.assert_close(effects.profile(z), effects.profile(logits), rtol=0, atol=1e-5)
    # Cherimoya's CUDA blocks multiply in bf16, those of the CPU do not.
    with torch.no_grad():
        logits, log_counts = ControlWrapper(model.cpu())(one_hot(bases[:2]))
    assert (z[:2].cpu() - logits).abs().max() < 2**-6 * logits.abs().max()
    assert (h[:2].cpu() - log_counts).abs().max() < 2**-7 * log_counts.abs().max()


@pytest.mark.parametrize("shape", [{}, {"signal_groups": [1, 2], "n_control_tracks": 2}])
def test_bf16_stays_within_its_resolution_of_fp32(shape):
    model = a_model(SMALL, **shape)
    bases = random_bases(ROWS, SMALL)
    exact = engines.Predictor(model, SMALL, device="cuda", batch_size=ROWS).predict(bases)
    for engine in ("fast", "cherimoya"):
        predictor = engines.Predictor(
            model, SMALL, device="cuda", precision="bf16", engine=engine, batch_size=ROWS
        )
        assert predictor.engine == engine
        for ours, fp32 in zip(predictor.predict(bases), exact, strict=True):
            assert ours.dtype == torch.float32
            assert (ours - fp32).abs().max() < 2**-5 * fp32.abs().max()


def test_heads_and_first_convolution_are_not_rounded_to_tf32():
    model = a_model(DEFAULT, n_filters=128, n_layers=9)
    predictor = engines.Predictor(model, DEFAULT, device="cuda", batch_size=8)
    bases = random_bases(8, DEFAULT)
    x = torch.randn(8, 2114, 128, generator=torch.Generator().manual_seed(0)).cuda()
    with torch.no_grad():
        stem = predictor._stem(torch.from_numpy(bases).cuda()).transpose(1, 2).cpu()
        logits = predictor._profile_head(x).cpu()
        model = model.cpu().double()
        exact_stem = model.igelu(model.iconv(one_hot(bases).double()))
        exact_logits = model.fconv(x.cpu().double().transpose(1, 2))[..., 557:1557]
    # TF32 keeps 2**-11 of each factor.
    assert (stem - exact_stem).abs().max() < 2**-18 * exact_stem.abs().max()
    assert (logits - exact_logits).abs().max() < 2**-18 * exact_logits.abs().max()


@pytest.mark.parametrize("engine", ["fast", "cherimoya"])
@pytest.mark.parametrize("precision", ["fp32", "bf16"])
@pytest.mark.parametrize(
    ("geometry", "shape"),
    [(SMALL, {"signal_groups": [1, 2]}), (DEFAULT, {"n_filters": 128, "n_layers": 9})],
    ids=["small", "default"],
)
def test_a_row_has_the_same_bits_wherever_it_stands_and_beside_whatever(
    engine, precision, geometry, shape
):
    predictor = engines.Predictor(
        a_model(geometry, **shape),
        geometry,
        device="cuda",
        precision=precision,
        engine=engine,
        batch_size=ROWS,
    )
    bases = random_bases(ROWS, geometry)
    whole = predictor.predict(bases)
    order = np.random.default_rng(1).permutation(ROWS)
    padded = bases.copy()
    padded[5:] = ord("N")
    others = random_bases(ROWS, geometry, seed=2)
    others[-5:] = bases[:5]
    for ours, expected in (
        (predictor.predict(bases), whole),
        (predictor.predict(bases[order]), [one[order] for one in whole]),
        ([one[:5] for one in predictor.predict(padded)], [one[:5] for one in whole]),
        ([one[-5:] for one in predictor.predict(others)], [one[:5] for one in whole]),
    ):
        for one, other in zip(ours, expected, strict=True):
            assert torch.equal(one, other)


def test_scores_are_those_of_the_cpu_and_have_the_same_bits_in_every_row():
    n, channels, length = 65, 2, 999
    rng = torch.Generator().manual_seed(0)
    h = 3 + torch.randn(2, n, generator=rng)
    z = 2 * torch.randn(2, n, channels, length, generator=rng)
    h[1, 0], z[1, 0] = h[0, 0], z[0, 0]
    breakpoint = torch.randint(300, 600, (n,), generator=rng)
    shift = torch.randint(-30, 30, (n,), generator=rng)
    shift[0] = 0
    rows = (h[0], z[0], h[1], z[1], breakpoint, shift)

    def scores(device, some=slice(None)):
        h_ref, z_ref, h_alt, z_alt, *where = (one[some].to(device) for one in rows)
        if not where[1].any():
            where = ()
        return effects.score(h_ref, effects.profile(z_ref), h_alt, effects.profile(z_alt), *where)

    on_gpu = scores("cuda")
    for name, column in scores("cpu").items():
        torch.testing.assert_close(on_gpu[name].cpu(), column, rtol=1e-10, atol=1e-10)
    assert on_gpu["jsd"][0] == on_gpu["logfc"][0] == on_gpu["logfc_501"][0] == 0
    order = torch.randperm(n, generator=rng)
    for some in (order, torch.zeros(n).long()):
        for name, column in scores("cuda", some).items():
            assert torch.equal(column, on_gpu[name][some.cuda()]), name


def test_the_fast_engine_gives_way_where_a_layout_is_wrong(monkeypatch):
    right = engines.Predictor._profile_head
    monkeypatch.setattr(engines.Predictor, "_profile_head", lambda self, x: right(self, x.flip(1)))
    with pytest.warns(UserWarning, match="does not reproduce Cherimoya's own forward"):
        predictor = engines.Predictor(a_model(SMALL), SMALL, device="cuda", batch_size=ROWS)
    assert predictor.engine == "cherimoya"


def test_out_of_memory_goes_on_in_smaller_passes():
    rows = 256
    model = a_model(DEFAULT, n_filters=128, n_layers=9)
    predictor = engines.Predictor(model, DEFAULT, device="cuda", batch_size=rows)
    bases = torch.from_numpy(random_bases(rows, DEFAULT)).cuda()
    expected = predictor.predict(bases)
    torch.cuda.empty_cache()
    torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.memory_allocated()
    predictor.predict(bases)
    needed = torch.cuda.max_memory_allocated() - before
    torch.cuda.empty_cache()
    total = torch.cuda.get_device_properties("cuda").total_memory
    try:
        torch.cuda.set_per_process_memory_fraction((before + 0.75 * needed) / total)
        with pytest.warns(UserWarning, match="out of memory with 256 windows a pass; going on"):
            outputs = predictor.predict(bases)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            predictor.predict(bases)
    finally:
        torch.cuda.set_per_process_memory_fraction(1.0)
    for ours, other in zip(outputs, expected, strict=True):
        torch.testing.assert_close(ours, other, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("shape", [(3, 128, 2114), (2, 12, 65), (5, 48, 64), (1, 1, 1)])
def test_the_pass_that_changes_the_layout_has_the_bits_of_pytorchs_own_two(shape, dtype):
    generator = torch.Generator("cuda").manual_seed(0)
    x = torch.randn(shape, generator=generator, device="cuda").to(dtype)
    bias = torch.randn(shape[1], generator=generator, device="cuda")
    expected = (x + bias.to(dtype).view(1, -1, 1)).transpose(1, 2)
    moved = layout.channels_last(x, bias)
    assert moved.is_contiguous()
    assert torch.equal(moved, expected)


def test_the_memory_that_auto_assumes_is_enough():
    architecture = Architecture(128, 9, 2, (1,), 0, 2114, 1000)
    total = torch.cuda.get_device_properties("cuda").total_memory
    rows = 256
    for precision in ("fp32", "bf16"):
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats()
        before = torch.cuda.memory_allocated()
        engines.Predictor(
            a_model(DEFAULT, n_filters=128, n_layers=9),
            DEFAULT,
            device="cuda",
            precision=precision,
            batch_size=rows,
        )
        used = torch.cuda.max_memory_allocated() - before
        assert used <= rows * memory.row_bytes(architecture)
    assert memory.size("auto", [architecture], True) == (1024 if total > 12e9 else 512)


@pytest.mark.parametrize("precision", ["fp32", "bf16"])
def test_exercise_gives_the_same_digest_again(precision):
    work = {
        "task": "score",
        "n_filters": 32,
        "n_layers": 4,
        "expansion": 2,
        "signal_groups": [1],
        "n_control_tracks": 0,
        "input_length": SMALL.input_length,
        "output_length": SMALL.output_length,
        "batch_size": ROWS,
        "precision": precision,
        "engine": "fast",
    }
    assert warmup.exercise(work, "cuda") == warmup.exercise(work, "cuda")


@pytest.mark.parametrize("name", ["cellA.fold0", "cellA.fold1", "cellB.fold0", "cellB.fold1"])
def test_a_trained_model_runs_on_the_fast_engine(name):
    """Trained weights amplify what untrained ones hide: a rounding that differs before a block."""
    model = Cherimoya.load(DEMO / f"models/{name}.torch", compile=False)
    predictor = engines.Predictor(model, DEFAULT, device="cuda", batch_size=ROWS)
    assert predictor.engine == "fast"
