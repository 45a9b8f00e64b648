import warnings

import numpy as np
import pytest
import torch
from cherimoya import Cherimoya, ControlWrapper

from project import DEMO
from veff.autotune import gpus
from veff.cherimoya import engine as engines
from veff.cherimoya import kernels, memory, proof, warmup
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


def on_gpu(model, geometry, **how):
    return engines.Predictor(model, geometry, device="cuda", batch_size=ROWS, **how)


SHAPES = [
    (SMALL, {}),
    (SMALL, {"signal_groups": [1, 2], "n_control_tracks": 2}),
    (SMALL, {"n_filters": 48, "expansion": 3}),
    (SMALL, {"n_filters": 80, "expansion": 1, "signal_groups": [2, 1]}),
    (Geometry(454, 232), {"n_filters": 16, "n_layers": 6}),
    (Geometry(455, 101), {"n_filters": 256, "expansion": 4}),
    (SMALL, {"n_filters": 512, "n_layers": 3}),
    (DEFAULT, {"n_filters": 128, "n_layers": 9}),
]


@pytest.mark.parametrize("precision", ["fp32", "fast"])
@pytest.mark.parametrize(("geometry", "shape"), SHAPES, ids=lambda one: str(one))
def test_the_fast_engine_is_as_close_to_float64_as_cherimoya_s_own(geometry, shape, precision):
    model = a_model(geometry, **shape)
    bases = random_bases(ROWS, geometry, seed=3)
    truth = proof.exact(model, bases[:8])
    predictor = on_gpu(model, geometry, precision=precision)
    assert predictor.engine == "fast"
    own = on_gpu(model, geometry, engine="cherimoya")
    errors = [
        proof.error([one[:8] for one in engine.predict(bases)], truth)
        for engine in (predictor, own)
    ]
    print(f"{precision} {predictor._network.stream}: {errors[0] / errors[1]:.2f} of own")
    assert errors[0] <= engines.ALLOWED[precision] * errors[1]
    for output, own_output in zip(predictor.predict(bases), own.predict(bases), strict=True):
        assert output.is_cuda
        assert output.dtype == torch.float32
        assert output.shape == own_output.shape


def test_where_cherimoya_multiplies_in_fp32_its_own_forward_is_used():
    model = a_model(SMALL, n_filters=12)
    with pytest.warns(UserWarning, match="using Cherimoya's own forward"):
        predictor = on_gpu(model, SMALL)
    assert predictor.engine == "cherimoya"
    bases = random_bases(ROWS, SMALL)
    with torch.no_grad():
        logits, log_counts = ControlWrapper(model)(one_hot(bases).cuda())
    z, h = predictor.predict(bases)
    torch.testing.assert_close(z, logits, rtol=0, atol=1e-5)
    torch.testing.assert_close(h, log_counts, rtol=0, atol=1e-5)


@pytest.mark.parametrize("stream", [torch.float32, torch.float16])
def test_stem_and_heads_keep_the_bits_of_their_weights(stream):
    model = a_model(DEFAULT, n_filters=128, n_layers=9).cuda()
    network = kernels.Network(model, DEFAULT, stream)
    bases = random_bases(8, DEFAULT)
    x = torch.randn(8, 2114, 128, generator=torch.Generator().manual_seed(0)).to(stream)
    stem = network.through_stem(torch.from_numpy(bases).cuda()).transpose(1, 2).cpu()
    logits, log_counts = network.profile_head(x.cuda()).cpu(), network.count_head(x.cuda()).cpu()
    with torch.no_grad():
        model, x = model.cpu().double(), x.double()
        exact_stem = model.igelu(model.iconv(one_hot(bases).double()))
        exact_logits = model.fconv(x.transpose(1, 2))[..., 557:1557]
        exact_counts = model.linear(x[:, 557:1557].mean(1))
    # TF32 keeps 2**-11 of each factor, as does the stream in fp16 of what the stem writes.
    kept = 2**-18 if stream == torch.float32 else 2**-11
    assert (stem - exact_stem).abs().max() < kept * exact_stem.abs().max()
    assert (logits - exact_logits).abs().max() < 2**-18 * exact_logits.abs().max()
    assert (log_counts - exact_counts).abs().max() < 2**-20 * exact_counts.abs().max()


@pytest.mark.parametrize("stream", [torch.float32, torch.float16])
@pytest.mark.parametrize("shape", [{"n_filters": n} for n in (32, 64, 128, 256, 512)])
def test_no_configuration_decides_a_bit(stream, shape, monkeypatch):
    network = kernels.Network(a_model(SMALL, **shape).cuda(), SMALL, stream)
    bases = torch.from_numpy(random_bases(5, SMALL)).cuda()
    outputs = []
    hidden = network.blocks[0][2].shape[1]
    for config in kernels._fitting(kernels.NARROW + kernels.WIDE, {}, network.padded, hidden):
        monkeypatch.setattr(kernels._mlp, "configs", [config])
        outputs.append(network(bases))
    for z, h in outputs[1:]:
        assert torch.equal(z, outputs[0][0])
        assert torch.equal(h, outputs[0][1])


@pytest.mark.parametrize("engine", ["fast", "cherimoya"])
@pytest.mark.parametrize("precision", ["fp32", "fast"])
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
        index = effects.shared(*where, length) if where[1].any() else None
        return effects.score(h_ref, effects.profile(z_ref), h_alt, effects.profile(z_alt), index)

    on_gpu = scores("cuda")
    for name, column in scores("cpu").items():
        torch.testing.assert_close(on_gpu[name].cpu(), column, rtol=1e-10, atol=1e-10)
    assert on_gpu["jsd"][0] == on_gpu["logfc"][0] == on_gpu["logfc_501"][0] == 0
    order = torch.randperm(n, generator=rng)
    for some in (order, torch.zeros(n).long()):
        for name, column in scores("cuda", some).items():
            assert torch.equal(column, on_gpu[name][some.cuda()]), name


@pytest.mark.parametrize("precision", ["fp32", "fast"])
@pytest.mark.parametrize(
    ("part", "wrong"),
    [("through_stem", lambda x: x.flip(1)), ("count_head", lambda h: h * torch.nan)],
)
def test_the_fast_engine_gives_way_where_a_kernel_is_wrong(monkeypatch, part, wrong, precision):
    right = getattr(kernels.Network, part)
    monkeypatch.setattr(kernels.Network, part, lambda self, x: wrong(right(self, x)))
    with pytest.warns(UserWarning, match="using Cherimoya's own forward"):
        predictor = on_gpu(a_model(SMALL), SMALL, precision=precision)
    assert predictor.engine == "cherimoya"


def test_the_batch_size_decides_no_bit():
    model, bases = a_model(SMALL), random_bases(ROWS, SMALL)
    whole = on_gpu(model, SMALL).predict(bases)
    few = engines.Predictor(model, SMALL, device="cuda", batch_size=3).predict(bases[:3])
    for one, other in zip(few, whole, strict=True):
        assert torch.equal(one, other[:3])


def test_a_model_that_overflows_half_precision_gets_the_wide_stream_with_one_warning():
    model = a_model(SMALL)
    with torch.no_grad():
        model.blocks[-1].linear1.weight.mul_(100)
        model.blocks[-1].linear2.weight.mul_(1e6)
    with pytest.warns(UserWarning, match="a stream in fp32") as said:
        predictor = on_gpu(model, SMALL, precision="fast")
    assert len(said) == 1
    assert predictor.engine == "fast"
    assert all(one.isfinite().all() for one in predictor.predict(random_bases(ROWS, SMALL)))


def test_a_window_that_overflows_is_predicted_in_fp32_and_the_others_keep_their_bits(monkeypatch):
    model, bases = a_model(SMALL), random_bases(ROWS, SMALL)
    predictor = on_gpu(model, SMALL, precision="fast")
    half = predictor.predict(bases)
    wide = on_gpu(model, SMALL).predict(bases)
    right = kernels.Network.count_head

    def overflows(self, x):
        h = right(self, x)
        if self.stream == torch.float16:
            h[7] = torch.inf
        return h

    monkeypatch.setattr(kernels.Network, "count_head", overflows)
    started = predictor.start(bases)
    predictor.start(bases[::-1].copy())  # before the first is asked for
    with pytest.warns(UserWarning, match="overflows half precision"):
        found = started()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        predictor.predict(bases)
    others = torch.arange(ROWS) != 7
    for one, in_half, in_fp32 in zip(found, half, wide, strict=True):
        assert torch.equal(one[7], in_fp32[7])
        assert torch.equal(one[others], in_half[others])


def test_a_proof_that_is_kept_launches_nothing_of_cherimoya_s(tmp_path, monkeypatch):
    model = a_model(SMALL)
    on_gpu(model, SMALL, proofs=tmp_path)

    def never(*_):
        raise AssertionError("launched")

    monkeypatch.setattr(engines.Predictor, "_own", never)
    assert on_gpu(model, SMALL, proofs=tmp_path).engine == "fast"


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
        assert torch.equal(ours, other)


def test_the_memory_that_auto_assumes_is_enough():
    architecture = Architecture(128, 9, 2, (1,), 0, 2114, 1000)
    total = torch.cuda.get_device_properties("cuda").total_memory
    assert gpus.memory() == total
    rows = 256
    for precision in ("fp32", "fast"):
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
    assert memory.size("auto", [architecture], gpus.memory) == (1024 if total > 12e9 else 512)


@pytest.mark.parametrize("precision", ["fp32", "fast"])
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


@pytest.mark.parametrize("precision", ["fp32", "fast"])
@pytest.mark.parametrize("name", ["cellA.fold0", "cellA.fold1", "cellB.fold0", "cellB.fold1"])
def test_a_trained_model_s_logfc_is_closer_to_float64_than_cherimoya_s_own(name, precision):
    """Trained weights amplify what untrained ones hide: a rounding that differs before a block."""
    model = Cherimoya.load(DEMO / f"models/{name}.torch", compile=False)
    n = 64
    bases = random_bases(2 * n, DEFAULT, letters=b"ACGT")
    bases[n:] = bases[:n]
    following = dict(zip(b"ACGT", b"CGTA", strict=True))
    bases[n:, 1057] = [following[base] for base in bases[:n, 1057]]

    def logfc(log_counts):
        h = log_counts.double().cpu()
        return (h[n:] - h[:n]) / np.log(2)

    def logfc_of(predictor):
        parts = [predictor.predict(part)[1] for part in np.split(bases, 2 * n // ROWS)]
        return logfc(torch.cat(parts))

    truth = logfc(proof.exact(model, bases)[1])
    predictor = on_gpu(model, DEFAULT, precision=precision)
    assert predictor.engine == "fast"
    assert predictor._network.stream == engines.STREAMS[precision][0]
    own = on_gpu(model, DEFAULT, engine="cherimoya")
    ours, theirs = (
        (logfc_of(engine) - truth).abs().median().item() for engine in (predictor, own)
    )
    print(f"{name} {precision}: {ours / theirs:.2f} of own")
    assert ours <= {"fp32": 0.5, "fast": 1}[precision] * theirs
