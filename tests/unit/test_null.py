import json
from dataclasses import asdict, replace

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import kstest

from tiny import GEOMETRY, Tiny, a_fold
from veff.errors import InputError
from veff.inputs.classes import NAMES, PAIR
from veff.models.architecture import Geometry
from veff.models.experiment import Experiment
from veff.scoring import columns, null, sampling
from veff.scoring.how import How

SETTINGS = {"n": 40, "seed": 0, "scheme": "uniform", "regions": None, "classes": ["snv"]}
HOW = How()
FEW = st.lists(st.sampled_from([-2.0, -0.5, 0.0, 0.25, 3.0]), min_size=1, max_size=9)


@pytest.fixture(scope="module")
def tiny(tmp_path_factory):
    return Tiny(tmp_path_factory.mktemp("tiny"))


def synthetic(n, seed=0, groups=1, **planted):
    """Scores of one experiment as they could be, in a table; `planted` replaces columns."""
    rng = np.random.default_rng(seed)
    n *= groups
    logfc, jsd = rng.standard_t(2, n), rng.random(n)
    table = {
        "allele_id": np.tile(np.arange(n // groups), groups),
        "experiment": ["e"] * n,
        "group": np.repeat(np.arange(groups, dtype=np.int32), n // groups),
        "ref_counts": rng.lognormal(3, 1, n),
        "alt_counts": rng.lognormal(3, 1, n),
        "logfc": logfc,
        "logfc_501": rng.standard_t(2, n),
        "jsd": jsd,
        "abs_logfc": np.abs(logfc),
        "logfc_x_jsd": logfc * jsd,
        "abs_logfc_x_jsd": np.abs(logfc) * jsd,
        "reference_counts": rng.lognormal(3, 1, n),
    }
    return pa.table(table | planted)


def judge(scores, random, fdr=None):
    """Scores of SNVs, judged by their null."""
    return null.judge(scores, {"snv": random}, np.zeros(len(scores), int), fdr)


@settings(max_examples=200, deadline=None)
@given(observed=FEW, random=FEW)
def test_p_values_are_counted_as_defined_and_never_0_nor_above_1(observed, random):
    n = len(random)
    for x, one, two in zip(
        observed,
        null.p_value(np.array(observed), np.array(random), one_sided=True),
        null.p_value(np.array(observed), np.array(random), one_sided=False),
        strict=True,
    ):
        above = (1 + sum(y >= x for y in random)) / (1 + n)
        below = (1 + sum(y <= x for y in random)) / (1 + n)
        assert one == above
        assert two == min(1, 2 * min(above, below))
        assert 0 < one <= 1
        assert 0 < two <= 1


def test_quantiles_are_counted_as_variant_scorer_does():
    peaks, counts = np.array([5.0, 1, 9, 5]), np.array([0.5, 1, 5, 6, 100])
    ours = null.quantile(counts, np.sort(peaks))
    assert ours.tolist() == [max(np.mean(peaks < x), 1 / 4) for x in counts]
    assert ours.tolist() == [0.25, 0.25, 0.25, 0.75, 1]


def test_every_column_is_what_its_definition_gives():
    scores, random = synthetic(30, 1), synthetic(50, 2)
    judged = judge(scores, random)
    assert judged.column_names == scores.column_names + list(columns.NULL)
    s = {name: judged[name].to_numpy() for name in judged.column_names[3:]}
    r = {name: random[name].to_numpy() for name in (*columns.SCORES, "reference_counts")}
    for i in range(30):
        ref = max(np.mean(r["reference_counts"] < s["ref_counts"][i]), 1 / 50)
        alt = max(np.mean(r["reference_counts"] < s["alt_counts"][i]), 1 / 50)
        assert (s["ref_quantile"][i], s["alt_quantile"][i]) == (ref, alt)
        assert s["active_allele_quantile"][i] == max(ref, alt)
        assert s["jsd_x_active_allele_quantile"][i] == s["jsd"][i] * max(ref, alt)
        above = np.sum(r["jsd"] >= s["jsd"][i])
        assert s["jsd.pval"][i] == (1 + above) / 51
        as_small = np.sum(np.abs(r["logfc_501"]) <= abs(s["logfc_501"][i]))
        assert s["effect_percentile"][i] == max(as_small, 1) / 50
        tails = [np.sum(r["logfc"] >= s["logfc"][i]), np.sum(r["logfc"] <= s["logfc"][i])]
        assert s["logfc.pval"][i] == min(1, 2 * (1 + min(tails)) / 51)


def test_directions_count_for_scores_that_have_one():
    assert columns.ONE_SIDED == [
        "jsd",
        "abs_logfc",
        "abs_logfc_x_jsd",
        "abs_logfc_x_active_allele_quantile",
        "jsd_x_active_allele_quantile",
        "abs_logfc_x_jsd_x_active_allele_quantile",
    ]


def test_products_have_p_values_under_the_products_of_the_null():
    scores, random = synthetic(5, 1), synthetic(60, 2)
    judged, of_null = judge(scores, random), judge(random, random)
    name = "logfc_x_jsd_x_active_allele_quantile"
    expected = null.p_value(judged[name].to_numpy(), of_null[name].to_numpy(), one_sided=False)
    assert judged[f"{name}.pval"].to_pylist() == expected.tolist()


def test_each_signal_group_is_judged_by_its_own_null():
    scores, random = synthetic(20, 1, groups=2), synthetic(50, 2, groups=2)
    whole = judge(scores, random, fdr=0.2)
    for group in range(2):
        rows = scores.slice(20 * group, 20), random.slice(50 * group, 50)
        assert judge(*rows, fdr=0.2) == whole.slice(20 * group, 20)


def test_no_column_but_the_run_dependent_one_depends_on_other_alleles():
    scores, random = synthetic(200, 1), synthetic(500, 2)
    whole = judge(scores, random, fdr=0.5)
    names = [name for name in whole.column_names if name != "significant_in_run"]
    assert set(whole.column_names) - set(names) == set(columns.FDR)
    for start, n in ((0, 1), (7, 5), (50, 150)):
        part = judge(scores.slice(start, n), random, fdr=0.5)
        assert part.select(names) == whole.select(names).slice(start, n)


def test_significance_is_benjamini_and_hochbergs_step_up():
    effects = np.r_[np.full(20, 100.0), np.random.default_rng(0).standard_normal(80)]
    scores = synthetic(100, 1, abs_logfc=np.abs(effects))
    random = synthetic(999, 2, abs_logfc=np.abs(np.random.default_rng(3).standard_normal(999)))
    judged = judge(scores, random, fdr=0.05)
    p = judged["abs_logfc.pval"].to_numpy()
    ranked = np.sort(p)
    passing = [k for k in range(1, 101) if ranked[k - 1] <= 0.05 * k / 100]
    expected = p <= ranked[max(passing) - 1]
    assert judged["significant_in_run"].to_pylist() == expected.tolist()
    assert expected[:20].all()
    assert expected[20:].mean() < 0.1


@pytest.mark.parametrize("name", columns.JUDGED)
def test_p_values_of_what_is_no_different_from_the_null_are_uniform(name):
    judged = judge(synthetic(1000, 10), synthetic(4000, 20))
    assert kstest(judged[f"{name}.pval"].to_numpy(), "uniform").pvalue > 0.01


def test_p_values_of_fresh_random_snvs_under_a_model_are_uniform(tiny):
    experiment = tiny.experiment("calibration", (7,))

    def scores(seed, n):
        genome, alleles = sampling.sample(tiny.reference, GEOMETRY.input_length, n=n, seed=seed)
        return tiny.score(alleles, experiment, genome=genome, batch_size=64)[0][0]

    random = scores(2, 400)
    random = random.append_column("reference_counts", random["ref_counts"])
    judged = judge(scores(1, 200), random)
    for name in ("logfc", "logfc_501", "jsd", "abs_logfc_x_jsd"):
        assert kstest(judged[f"{name}.pval"].to_numpy(), "uniform").pvalue > 0.01, name


def test_each_class_is_judged_by_its_own_null_and_by_the_activity_of_snvs():
    kinds = np.array([NAMES.index(name) for name in ("snv", "del_1_5", "ins_6_20")] * 10)
    scores = synthetic(30, 1, groups=2)
    nulls = {name: synthetic(50 + i, i, groups=2) for i, name in enumerate(NAMES)}
    whole = null.judge(scores, nulls, np.tile(kinds, 2)).to_pandas()
    active = nulls["snv"].select(["group", "reference_counts"]).to_pandas()
    for row, kind in zip(whole.to_dict("records"), np.tile(kinds, 2), strict=True):
        own = nulls[NAMES[kind]].to_pandas()
        own = own[own["group"] == row["group"]]
        assert row["jsd.pval"] == (1 + (own["jsd"] >= row["jsd"]).sum()) / (1 + len(own))
        reference_set = active["reference_counts"][active["group"] == row["group"]]
        share = (reference_set < row["ref_counts"]).mean()
        assert row["ref_quantile"] == max(share, 1 / len(reference_set))


@pytest.mark.parametrize("kind", ["del_6_20", "ins_1_5", "mnv_6_20"])
def test_random_alleles_are_usual_in_their_class_and_unusual_among_snvs(tiny, kind):
    experiment = tiny.experiment("calibration", (7,))

    def scores(seed, n, kind):
        how = {"n": n, "seed": seed, "kind": kind}
        genome, alleles = sampling.sample(tiny.reference, GEOMETRY.input_length, **how)
        found = tiny.score(alleles, experiment, genome=genome, batch_size=64)[0][0]
        return found.append_column("reference_counts", found["ref_counts"])

    nulls = {one: scores(2, 2000, one) for one in ("snv", kind)}
    fresh = scores(1, 200, kind)
    of_class, of_snvs = (
        null.judge(fresh, nulls, np.full(200, NAMES.index(one))) for one in (kind, "snv")
    )
    for name in ("logfc", "logfc_501", "jsd", "abs_logfc_x_jsd", "abs_logfc"):
        assert kstest(of_class[f"{name}.pval"].to_numpy(), "uniform").pvalue > 0.01, name
    assert kstest(of_snvs["abs_logfc.pval"].to_numpy(), "uniform").pvalue < 1e-3


def make(tiny, folder, experiments, settings=SETTINGS, how=HOW, scored=None):
    """Nulls made in `folder`, and the calls of the scorer."""
    wanted = null.identities(experiments, tiny.reference.sha256, settings, how)
    calls = [] if scored is None else scored

    def score(alleles, genome, models):
        calls.append([one.name for one in models])
        return tiny.score(alleles, *models, genome=genome)[0]

    return null.make(experiments, tiny.reference, settings, wanted, folder, score), wanted


def test_a_null_is_the_answers_to_random_snvs_by_the_scoring_loop(tiny, tmp_path):
    experiment = tiny.experiment("a", (0, 1))
    (made,), _ = make(tiny, tmp_path, [experiment])
    _, alleles = sampling.sample(tiny.reference, GEOMETRY.input_length, n=40, seed=0)
    (expected,), _ = tiny.score(alleles, experiment)
    assert made.select(["group", *columns.SCORES]).equals(
        expected.select(["group", *columns.SCORES])
    )
    assert made["reference_counts"] == made["ref_counts"]


def test_the_reference_set_of_an_experiment_with_peaks_are_its_peaks(tiny, tmp_path):
    peaks = tmp_path / "a.bed"
    rest = "\tpeak\t0\t.\t9\t5\t5"
    peaks.write_text(f"one\t500\t520{rest}\t3\ntwo\t900\t950{rest}\t-1\none\t0\t90\n")
    regions = tmp_path / "regions.bed"
    regions.write_text("two\t500\t1500\n")
    settings = SETTINGS | {"peaks": {"a": peaks}, "regions": regions}
    a, b = tiny.experiment("a", (0,)), tiny.experiment("b", (0,))
    (of_a, of_b), wanted = make(tiny, tmp_path / "nulls", [a, b], settings)
    assert of_a.drop_columns("reference_counts") == of_b.drop_columns("reference_counts")
    assert of_b["reference_counts"] == of_b["ref_counts"]
    assert null.digest(wanted["a", "snv"]) != null.digest(wanted["b", "snv"])
    # The third has no whole window; the first has a summit, the second only a middle.
    snvs = {"allele_id": [0, 1], "contig": pa.array([0, 1], pa.int32()), "start": [503, 925]}
    snvs |= {"ref_len": pa.array([1, 1], pa.int32()), "alt": ["A", "A"]}
    (at_peaks,), _ = tiny.score(pa.table(snvs), a)
    assert set(of_a["reference_counts"].to_pylist()) == set(at_peaks["ref_counts"].to_pylist())


def test_nulls_are_kept_and_only_missing_ones_are_scored(tiny, tmp_path):
    a, b = tiny.experiment("a", (0,)), tiny.experiment("b", (1,), Geometry(205, 55))
    calls = []
    (first,), _ = make(tiny, tmp_path, [a], scored=calls)
    both, _ = make(tiny, tmp_path, [a, b], scored=calls)
    again, _ = make(tiny, tmp_path, [b, a], scored=calls)
    assert calls == [["a"], ["b"]]
    assert both[0] == again[1] == first
    assert both[1] == again[0] != first
    assert len(list(tmp_path.iterdir())) == 2


def test_a_class_that_comes_along_is_scored_alone_and_changes_no_other(tiny, tmp_path):
    a, calls = tiny.experiment("a", (0,)), []
    classes = {name: SETTINGS | {"classes": ["snv", *name]} for name in [(), ("ins_1_5",)]}
    both = SETTINGS | {"classes": ["snv", "ins_1_5", "del_6_20"]}
    (snvs,), _ = make(tiny, tmp_path, [a], classes[()], scored=calls)
    with_one, _ = make(tiny, tmp_path, [a], classes["ins_1_5",], scored=calls)
    with_two, _ = make(tiny, tmp_path, [a], both, scored=calls)
    assert calls == [["a"]] * 3
    assert with_one == [snvs, with_two[1]]
    assert with_two[0] == snvs
    elsewhere, wanted = make(tiny, tmp_path / "new", [a], both | {"classes": ["snv", "del_6_20"]})
    assert elsewhere == [snvs, with_two[2]]
    assert list(wanted) == [("a", "snv"), ("a", "del_6_20")]
    _, deletions = sampling.sample(
        tiny.reference, GEOMETRY.input_length, n=40, seed=0, kind="del_6_20"
    )
    (expected,), _ = tiny.score(deletions, a)
    assert elsewhere[1].select(columns.SCORES) == expected.select(columns.SCORES)


def test_a_class_has_one_null_whatever_the_peaks(tmp_path):
    peaks = tmp_path / "peaks.bed"
    peaks.write_text("one\t5\t9\n")
    own = Experiment("a", (a_fold("a"),))
    settings = SETTINGS | {"classes": ["snv", "ins_1_5"]}
    without, with_peaks = (
        list(map(null.digest, null.identities([own], "", settings | more, HOW).values()))
        for more in ({}, {"peaks": {"a": peaks}})
    )
    assert without[0] != with_peaks[0]
    assert without[1] == with_peaks[1]
    assert without[1] not in (without[0], with_peaks[0])


def test_an_experiment_of_another_name_and_the_same_models_has_the_same_null(tiny, tmp_path):
    experiment, calls = tiny.experiment("a", (0,)), []
    renamed = replace(experiment, name="z")
    make(tiny, tmp_path, [experiment], scored=calls)
    make(tiny, tmp_path, [renamed], scored=calls)
    assert calls == [["a"]]


def test_a_null_is_kept_under_the_name_that_it_always_had():
    """So that a folder of nulls that a site has made stays of use."""
    one = Experiment("a", (a_fold("a", sha256="of a"),))
    (identity,) = null.identities([one], "of the reference", SETTINGS, HOW).values()
    assert identity == {
        "models_sha256": ["of a"],
        "group": None,
        "input_length": 251,
        "output_length": 101,
        "peaks_sha256": None,
        "n": 40,
        "seed": 0,
        "scheme": "uniform",
        "regions_sha256": None,
        "reference_sha256": "of the reference",
        "ensemble": "mean_prediction",
        "reverse_complement": False,
        "precision": "fp32",
        "version": 1,
    }


@pytest.mark.parametrize(
    "change",
    [
        {"seed": 1},
        {"n": 41},
        {"scheme": "shuffled"},
        {"regions": "regions.bed"},
        {"peaks": {"a": "regions.bed"}},
        {"ensemble": "mean_score"},
        {"reverse_complement": True},
        {"precision": "fast"},
        {"version": 2},
        {"reference_sha256": "other"},
        {"sha256": "other"},
        {"output_length": 91},
        {"input_length": 261},
        {"group": 0},
    ],
    ids=lambda change: next(iter(change)),
)
@pytest.mark.parametrize("kind", ["snv", PAIR])
def test_whatever_changes_a_null_changes_its_name(tmp_path, monkeypatch, change, kind):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "regions.bed").write_text("one\t200\t300\n")

    def digest(change):
        def changed(these):
            return {key: change.get(key, value) for key, value in these.items()}

        fold = changed(
            {"sha256": "of a", "input_length": 251, "output_length": 101, "group": None}
        )
        own = Experiment("a", (a_fold("a", **fold),))
        sha256 = change.get("reference_sha256", "of the reference")
        settings = changed(SETTINGS | {"peaks": {}, "classes": [kind]})
        (identity,) = null.identities(
            [own], sha256, settings, How(**changed(asdict(HOW)))
        ).values()
        return null.digest(identity)

    assert digest({}) == digest({})
    same = kind == PAIR and "peaks" in change  # which are a reference set, of SNVs' windows
    assert (digest(change) == digest({})) == same


def test_the_content_of_the_regions_counts_not_their_path(tmp_path):
    digests = set()
    for name, text in (("x", "one\t5\t9\n"), ("y", "one\t5\t9\n"), ("z", "one\t5\t8\n")):
        (tmp_path / name).write_text(text)
        own = Experiment("a", (a_fold("a"),))
        regions = SETTINGS | {"regions": tmp_path / name}
        (identity,) = null.identities([own], "", regions, HOW).values()
        digests.add(null.digest(identity))
    assert len(digests) == 2


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"sha256": "other"}, "not the null of a: models_sha256 is ['of a'], expected ['other']"),
        ({"input_length": 261}, "not the null of a: input_length is 251, expected 261"),
        ({"output_length": 91}, "not the null of a: output_length is 101, expected 91"),
    ],
)
def test_the_null_of_another_model_or_geometry_is_refused(tmp_path, change, message):

    def identities(**change):
        fold = a_fold("a", **{"sha256": "of a"} | change)
        return null.identities([Experiment("a", (fold,))], "genome", SETTINGS, HOW)

    path = tmp_path / "null.parquet"
    null.write(path, [synthetic(5)], list(identities().values()))
    assert len(null.Nulls([path], identities())["a", "snv"]) == 5
    with pytest.raises(InputError) as error:
        null.Nulls([path], identities(**change))["a", "snv"]
    assert message in str(error.value)
    assert str(path) in str(error.value)


def test_a_file_under_anothers_name_is_refused_where_nulls_are_kept(tiny, tmp_path):
    a, b = tiny.experiment("a", (0,)), tiny.experiment("b", (1,))
    _, wanted = make(tiny, tmp_path, [a, b])
    one, other = (tmp_path / f"{null.digest(identity)}.parquet" for identity in wanted.values())
    one.write_bytes(other.read_bytes())
    with pytest.raises(InputError, match=f"{one.name}: not the null of a: models_sha256"):
        make(tiny, tmp_path, [a, b])


def test_a_file_that_is_no_null_or_damaged_is_refused(tmp_path):
    path = tmp_path / "null.parquet"
    pq.write_table(synthetic(5), path)
    with pytest.raises(InputError, match=r"null\.parquet: no null there; remove the file"):
        null.Nulls([path], {("a", "snv"): {"n": 5}})["a", "snv"]
    path.write_bytes(path.read_bytes()[:-9])
    with pytest.raises(InputError, match=r"null\.parquet: not a Parquet file, or cut short"):
        null.Nulls([path], {("a", "snv"): {"n": 5}})


def test_nulls_are_found_whatever_file_and_place_they_stand_in(tmp_path):
    identities = [{"models_sha256": [name]} for name in "abc"]
    wanted = {(name, "snv"): one for name, one in zip("abc", identities, strict=True)}
    null.write(tmp_path / "0", [synthetic(1, 1), synthetic(2, 2)], [identities[2], identities[0]])
    null.write(tmp_path / "1", [synthetic(3, 3)], [identities[1]])
    nulls = null.Nulls([tmp_path / "1", tmp_path / "0"], wanted)
    assert [len(nulls[name, "snv"]) for name in "abc"] == [2, 3, 1]
    metadata = pq.read_schema(tmp_path / "1").metadata[null.METADATA]
    assert json.loads(metadata) == [identities[1]]


def test_a_damaged_null_is_made_again(tiny, tmp_path, caplog):
    experiment = tiny.experiment("a", (0,))
    (first,), _ = make(tiny, tmp_path, [experiment])
    (path,) = tmp_path.iterdir()
    whole = path.read_bytes()
    for damaged in (whole[:-50], whole[:200] + bytes([whole[200] ^ 1]) + whole[201:]):
        path.write_bytes(damaged)
        (again,), _ = make(tiny, tmp_path, [experiment])
        assert again.equals(first)
        assert path.read_bytes() == whole
        assert f"{path.name}: damaged" in caplog.text
