import numpy as np
import pytest
import torch
from cherimoya import Cherimoya, ControlWrapper, ExpectedCountsWrapper
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.spatial.distance import jensenshannon
from tangermeme.variant_effect import substitution_effect

from veff.cherimoya import engine
from veff.models.architecture import Geometry
from veff.scoring import effects
from veff.scoring.windows import alignment


def predictions(n, channels=1, length=1000, seed=0, spread=2.0):
    """Random h [n] and logits [n, channels, length], float32 as a model gives them."""
    generator = torch.Generator().manual_seed(seed)
    h = 3 + 2 * torch.randn(n, generator=generator)
    return h, spread * torch.randn(n, channels, length, generator=generator)


def no_indel(n, length=1000):
    return torch.full((n,), length // 2 + 1), torch.zeros(n, dtype=torch.int64)


def scores_of(h_ref, z_ref, h_alt, z_alt, *where):
    index = effects.shared(*where, z_ref.shape[-1]) if where else None
    return effects.score(h_ref, effects.profile(z_ref), h_alt, effects.profile(z_alt), index)


def softmax(z):
    e = np.exp(z - z.max())
    return e / e.sum()


def by_hand(h_ref, z_ref, h_alt, z_alt, breakpoint, shift):
    """The scores of one allele from DESIGN's table in float64, one step and position at a time."""
    h_ref, h_alt = float(h_ref), float(h_alt)
    p_ref, p_alt = softmax(z_ref.double().numpy()), softmax(z_alt.double().numpy())
    length = p_ref.shape[1]
    ref, alt = max(np.exp(h_ref) - 1, 0), max(np.exp(h_alt) - 1, 0)
    centre = range(max(length // 2 - 250, 0), min(length // 2 + 251, length))
    s_ref, s_alt = (
        sum(p[c, t] * n for c in range(len(p)) for t in centre)
        for p, n in ((p_ref, ref), (p_alt, alt))
    )
    kept_ref, kept_alt = [], []
    for t in range(length - abs(shift)):
        behind = t >= breakpoint
        kept_ref.append(p_ref[:, t + (shift if behind and shift > 0 else 0)])
        kept_alt.append(p_alt[:, t + (-shift if behind and shift < 0 else 0)])
    # scipy renormalises.
    jsd = jensenshannon(np.ravel(kept_ref), np.ravel(kept_alt), base=2)
    logfc = (h_alt - h_ref) / np.log(2)
    return {
        "ref_counts": ref,
        "alt_counts": alt,
        "logfc": logfc,
        "logfc_501": np.log2((s_alt + 1) / (s_ref + 1)),
        "jsd": jsd,
        "abs_logfc": abs(logfc),
        "logfc_x_jsd": logfc * jsd,
        "abs_logfc_x_jsd": abs(logfc) * jsd,
    }


@settings(max_examples=30, deadline=None)
@given(
    channels=st.integers(1, 3),
    length=st.sampled_from([60, 101, 500, 502, 1000]),
    shift=st.integers(-40, 40),
    breakpoint=st.integers(0, 110),
    spread=st.sampled_from([0.1, 2.0, 20.0]),
    seed=st.integers(0, 1000),
)
def test_every_score_is_what_its_definition_gives(
    channels, length, shift, breakpoint, spread, seed
):
    h_ref, z_ref = predictions(1, channels, length, seed, spread)
    h_alt, z_alt = predictions(1, channels, length, seed + 1, spread)
    columns = scores_of(
        h_ref, z_ref, h_alt, z_alt, torch.tensor([breakpoint]), torch.tensor([shift])
    )
    assert tuple(columns) == effects.SCORES
    expected = by_hand(h_ref[0], z_ref[0], h_alt[0], z_alt[0], breakpoint, shift)
    for name, column in columns.items():
        assert column.shape == (1,)
        assert column.dtype == torch.float64
        assert column.item() == pytest.approx(expected[name], rel=1e-9, abs=1e-9), name


def test_identical_predictions_have_no_effect_at_all():
    h, z = predictions(8, channels=2)
    h[1], z[2], z[3] = -1, 0, 400 * z[3]
    columns = scores_of(h, z, h.clone(), z.clone(), *no_indel(8))
    for name in set(effects.SCORES) - {"ref_counts", "alt_counts"}:
        assert (columns[name] == 0).all(), name
    assert torch.equal(columns["ref_counts"], columns["alt_counts"])


def test_disjoint_profiles_are_at_distance_one():
    p, q = torch.zeros(2, 1, 1, 1000, dtype=torch.float64)
    p[..., :500], q[..., 500:] = 1 / 500, 1 / 500
    assert effects.jsd(p, q).item() == 1
    # From logits: what is 800 below is nothing.
    z = torch.zeros(1, 1, 1000)
    z[..., 500:] = -800
    assert effects.jsd(effects.profile(z), effects.profile(z.flip(2))).item() == 1


@pytest.mark.parametrize("shift", [0, 30, -30])
def test_a_logit_spread_of_800_gives_finite_scores(shift):
    h, z = predictions(4, seed=1)
    z_alt = z.clone()
    z[:, :, 10], z[:, :, 20] = -400, 400
    # All of row 1's reads at positions that an indel leaves out.
    z[1], z[1, :, -20:] = -400, 400
    z_alt[:, :, 900] = 800
    shifts = torch.full((4,), shift)
    columns = scores_of(h, z, h, z_alt, no_indel(4)[0], shifts)
    for name, column in columns.items():
        assert column.isfinite().all(), name
    assert ((columns["jsd"] >= 0) & (columns["jsd"] <= 1)).all()


def test_counts_below_zero_are_zero():
    h = torch.tensor([-5.0, -1e-3, 0.0, np.log(3.0)])
    assert effects.counts(h).tolist() == pytest.approx([0, 0, 0, 2], abs=1e-6)
    _, z = predictions(4)
    columns = scores_of(h, z, h.flip(0), z, *no_indel(4))
    assert all(column.isfinite().all() for column in columns.values())
    # The fold change is that of the head itself, also below zero.
    assert columns["logfc"][0] == pytest.approx((np.log(3) + 5) / np.log(2), rel=1e-6)


@pytest.mark.parametrize("shift", [0, 1, 7, -1, -7])
def test_a_track_that_only_moves_with_the_genome_is_no_effect(shift):
    """A planted answer: each base of the genome has its own signal, whichever allele it is on."""
    length, breakpoint = 200, 120
    rng = np.random.default_rng(0)
    left, right = rng.random(breakpoint), rng.random(200)
    of_allele = [rng.random(max(shift, 0)) * 50, rng.random(max(-shift, 0)) * 50]
    p_ref, p_alt = (
        torch.from_numpy(np.concatenate([left, own, right])[:length]).view(1, 1, -1)
        for own in of_allele
    )
    p_ref, p_alt = p_ref / p_ref.sum(), p_alt / p_alt.sum()
    index = effects.shared(torch.tensor([breakpoint]), torch.tensor([shift]), length)
    both = effects.aligned(p_ref, p_alt, index)
    torch.testing.assert_close(*both, rtol=1e-12, atol=1e-12)
    assert effects.jsd(*both).item() < 1e-7
    for p in both:
        assert p.sum().item() == pytest.approx(1, abs=1e-12)
        assert not p[..., length - abs(shift) :].any()
    assert shift == 0 or effects.jsd(p_ref, p_alt) > 0.1


@pytest.mark.parametrize(
    ("ref_len", "alt_len"), [(1, 1), (3, 1), (1, 4), (0, 2), (5, 0), (2, 2), (0, 9)]
)
def test_the_breakpoint_of_windows_pairs_each_base_of_the_genome_with_itself(ref_len, alt_len):
    """Profiles that say which base of the genome stands where, so that pairs can be read off."""
    geometry = Geometry(61, 21)
    genome, start, half = np.arange(1.0, 200), 100, geometry.input_length // 2
    ref = genome[start - half :]
    inserted = np.full(alt_len, 1000.0)
    alt = np.concatenate([genome[start - half : start], inserted, genome[start + ref_len :]])
    breakpoint, shift = alignment([ref_len], [alt_len], geometry)
    first = geometry.trimming
    before = [
        torch.from_numpy(one[first : first + geometry.output_length].copy()).view(1, 1, -1)
        for one in (ref, alt)
    ]
    where = torch.from_numpy(breakpoint), torch.from_numpy(shift)
    both = effects.aligned(*before, effects.shared(*where, geometry.output_length))
    kept = geometry.output_length - abs(ref_len - alt_len)
    # The leftmost base is the same under both alleles: it undoes the renormalisation.
    ours, theirs = ((p / p[..., :1] * ref[first]).flatten()[:kept].round() for p in both)
    paired = min(ref_len, alt_len)
    own = range(half - first, half - first + paired)
    assert [t for t in range(kept) if ours[t] != theirs[t]] == list(own)
    # Nothing in between is skipped but the longer allele's surplus.
    assert (theirs == 1000).sum() == paired
    assert ours.diff().sum() == kept - 1 + max(ref_len - alt_len, 0)


def test_channels_of_a_group_share_one_softmax():
    geometry = Geometry(151, 31)
    model = Cherimoya(
        n_filters=16,
        n_layers=3,
        signal_groups=[2, 1],
        trimming=geometry.trimming,
        compile=False,
        random_state=0,
    ).eval()
    with torch.no_grad():
        model.linear.bias.fill_(2.0)
    predictor = engine.Predictor(model, geometry, device="cpu", batch_size=2)
    bases = np.random.default_rng(0).choice(np.frombuffer(b"ACGT", np.uint8), (2, 151))
    logits, log_counts = predictor.predict(bases)
    one_hot = torch.stack([torch.from_numpy(bases == letter) for letter in b"ACGT"], 1).float()
    with torch.no_grad():
        expected = ExpectedCountsWrapper(ControlWrapper(model))(one_hot)
    for group, channels in enumerate([slice(0, 2), slice(2, 3)]):
        p = effects.profile(logits[:, channels])
        assert p.sum((1, 2)).tolist() == pytest.approx([1, 1])
        ours = p * effects.counts(log_counts[:, group]).view(-1, 1, 1)
        torch.testing.assert_close(
            ours, expected[:, channels], rtol=1e-5, atol=1e-6, check_dtype=False
        )


@pytest.mark.parametrize("controls", [0, 2])
def test_snvs_score_as_with_tangermeme(controls):
    geometry = Geometry(401, 201)
    n = 6
    model = Cherimoya(
        n_filters=16,
        n_layers=4,
        n_control_tracks=controls,
        trimming=geometry.trimming,
        compile=False,
        random_state=0,
    ).eval()
    with torch.no_grad():
        for weight in model.parameters():
            weight.mul_(4)
        model.linear.weight.mul_(30)
        model.linear.bias.fill_(3.0)
    rng = np.random.default_rng(0)
    ref = rng.choice(np.frombuffer(b"ACGT", np.uint8), (n, geometry.input_length))
    middle = geometry.input_length // 2
    to = (np.searchsorted(np.frombuffer(b"ACGT", np.uint8), ref[:, middle]) + 1) % 4
    alt = ref.copy()
    alt[:, middle] = np.frombuffer(b"ACGT", np.uint8)[to]
    one_hot = torch.stack([torch.from_numpy(ref == letter) for letter in b"ACGT"], 1).float()
    substitutions = torch.tensor([[row, middle, int(base)] for row, base in enumerate(to)])
    before, after = substitution_effect(
        ControlWrapper(model), one_hot, substitutions, device="cpu"
    )

    predictor = engine.Predictor(model, geometry, device="cpu", batch_size=n)
    (z_ref, h_ref), (z_alt, h_alt) = predictor.predict(ref), predictor.predict(alt)
    columns = scores_of(
        h_ref[:, 0],
        z_ref,
        h_alt[:, 0],
        z_alt,
        *map(torch.from_numpy, alignment(np.ones(n), np.ones(n), geometry)),
    )
    for row in range(n):
        expected = by_hand(
            before[1][row, 0], before[0][row], after[1][row, 0], after[0][row], middle, 0
        )
        for name, value in expected.items():
            assert columns[name][row].item() == pytest.approx(value, rel=1e-5, abs=1e-5), name
    assert (columns["abs_logfc"] > 1e-3).all()
    assert (columns["jsd"] > 1e-3).all()


@pytest.mark.parametrize("length", [999, 1000])
def test_a_row_scores_the_same_bits_whatever_stands_beside_it(length):
    n = 33
    h_ref, z_ref = predictions(n, 2, length, 0)
    h_alt, z_alt = predictions(n, 2, length, 1)
    rng = torch.Generator().manual_seed(0)
    breakpoint = torch.randint(300, 600, (n,), generator=rng)
    shift = torch.randint(-30, 30, (n,), generator=rng)
    shift[:3] = 0
    rows = (h_ref, z_ref, h_alt, z_alt, breakpoint, shift)
    whole = scores_of(*rows)
    for name, column in scores_of(*(one[:3] for one in rows[:4])).items():
        assert torch.equal(column, whole[name][:3]), name
    order = torch.randperm(n, generator=rng)
    for some in (order, order[:1], order[:7], torch.arange(n).flip(0), torch.zeros(n).long()):
        columns = scores_of(*(one[some] for one in rows))
        for name, column in columns.items():
            assert torch.equal(column, whole[name][some]), name
    before = torch.get_num_threads()
    torch.set_num_threads(4)
    try:
        columns = scores_of(*rows)
    finally:
        torch.set_num_threads(before)
    for name, column in columns.items():
        assert torch.equal(column, whole[name]), name
