"""Experiments pooled into biosamples, and biosamples compared: held against definitions."""

import math

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from scipy.stats import combine_pvalues, kstest

from veff.inputs.classes import NAMES
from veff.models.biosamples import Biosample, read
from veff.outputs import biosamples
from veff.scoring.pooling import Pool, signed_z

IDENTITY = {"seed": 0, "scheme": "uniform", "regions_sha256": None, "reference_sha256": "a"}
N_NULL = 199
SNVS = np.zeros(40, int)


def identity(n=N_NULL, input_length=2114):
    return IDENTITY | {"n": n, "input_length": input_length}


def answers(logfc, sd=None, n_folds=5, ids=None):
    n = len(logfc)
    sd = pa.array(np.full(n, 0.1) if sd is None else sd, pa.float64(), from_pandas=True)
    table = {"allele_id": range(n) if ids is None else ids, "group": [0] * n, "logfc": logfc}
    return pa.table(table | {"logfc_sd": sd, "n_folds": pa.array([n_folds] * n, pa.int32())})


@pytest.fixture
def effects():
    """Of 40 alleles and 199 random SNVs under three experiments that resemble each other."""
    rng = np.random.default_rng(0)
    return rng.standard_t(3, (3, 40 + N_NULL)) + rng.standard_t(3, 40 + N_NULL)


def pooled(effects, assays, lengths=(2114,) * 3):
    sample = Biosample("liver", ("e0", "e1", "e2"), assays)
    pool = Pool(SNVS)
    for row, assay, weight, length in zip(effects, assays, sample.weights, lengths, strict=True):
        pool.add(answers(row[:40]), assay, weight)
        null = pa.table({"logfc": row[40:]})
        pool.judge(answers(row[:40]), weight, identity(input_length=length), null)
    return pool


@pytest.mark.parametrize(
    ("assays", "weights"),
    [
        (("DNase",) * 3, [1 / 3] * 3),
        (("DNase", "ATAC", "DNase"), [1 / 4, 1 / 2, 1 / 4]),
        (("DNase", "ATAC", ""), [1 / 3] * 3),
    ],
)
def test_p_is_the_share_of_random_snvs_with_as_large_a_stouffer_sum(effects, assays, weights):
    """Stouffer's sum from scipy, of one-sided p-values that the definition gives one by one."""

    def one_sided(x, null, counted):
        p = (counted + sum(abs(y) >= abs(x) for y in null)) / (1 + len(null))
        return p / 2 if x > 0 else 1 - p / 2

    def stouffer(column, counted):
        p = [
            one_sided(x, row[40:], counted)
            for x, row in zip(effects[:, column], effects, strict=True)
        ]
        return abs(combine_pvalues(p, "stouffer", weights=weights).statistic)

    null = np.array([stouffer(column, 0.5) for column in range(40, 40 + N_NULL)])
    expected = [
        (1 + np.sum(null >= stouffer(column, 1) - 1e-9)) / (1 + N_NULL) for column in range(40)
    ]
    pool = pooled(effects, assays)
    assert pool.p_value() == pytest.approx(expected, abs=1e-12)
    assert pool.logfc == pytest.approx(np.average(effects[:, :40], axis=0, weights=weights))


def test_the_largest_effect_of_a_biosample_is_judged_by_that_of_random_snvs(effects):
    pool = pooled(effects, ("DNase",) * 3)
    largest = np.abs(effects).max(0)
    expected = [(1 + np.sum(largest[40:] >= x)) / (1 + N_NULL) for x in largest[:40]]
    assert pool.max_p_value() == pytest.approx(expected)
    place = np.abs(effects[:, :40]).argmax(0)
    assert pool.max_experiment.tolist() == place.tolist()
    assert pool.max_logfc.tolist() == effects[place, np.arange(40)].tolist()


def test_random_snvs_of_windows_of_two_lengths_are_not_taken_for_the_same(effects):
    pool = pooled(effects, ("DNase",) * 3, (2114, 2114, 1000))
    of_two = Pool(SNVS)
    for row in effects[:2]:
        of_two.judge(answers(row[:40]), 1, identity(), pa.table({"logfc": row[40:]}))
    other = Pool(SNVS)
    third = effects[2]
    other.judge(answers(third[:40]), 1, identity(), pa.table({"logfc": third[40:]}))
    smaller = np.minimum(of_two.p_value(), other.p_value())
    assert pool.p_value() == pytest.approx(np.minimum(2 * smaller, 1))


def test_an_allele_is_judged_by_random_ones_of_its_class(effects):
    """Half of the alleles are insertions, whose null is ten times as large."""
    kinds = np.where(np.arange(40) % 2, NAMES.index("ins_1_5"), 0)
    both, snvs, insertions = Pool(kinds), Pool(SNVS), Pool(SNVS)
    for row in effects:
        own, null = answers(row[:40]), row[40:]
        for pool in (both, snvs, insertions):
            pool.add(own, "", 1 / 3)
        both.judge(own, 1 / 3, identity(), pa.table({"logfc": null}))
        both.judge(own, 1 / 3, identity() | {"class": "ins_1_5"}, pa.table({"logfc": 10 * null}))
        snvs.judge(own, 1 / 3, identity(), pa.table({"logfc": null}))
        insertions.judge(own, 1 / 3, identity(), pa.table({"logfc": 10 * null}))
    for found, of_snvs, of_insertions in (
        (both.p_value(), snvs.p_value(), insertions.p_value()),
        (both.max_p_value(), snvs.max_p_value(), insertions.max_p_value()),
    ):
        assert found.tolist() == np.where(kinds, of_insertions, of_snvs).tolist()
        assert np.mean(of_insertions > of_snvs) > 0.9


def test_replicates_that_say_the_same_do_not_add_up_to_evidence():
    """Copies of one experiment: Stouffer's own p would fall with their number."""
    rng = np.random.default_rng(1)
    row = rng.standard_t(3, 40 + N_NULL)
    one, ten = Pool(SNVS), Pool(SNVS)
    one.judge(answers(row[:40]), 1, identity(), pa.table({"logfc": row[40:]}))
    for _ in range(10):
        ten.judge(answers(row[:40]), 0.1, identity(), pa.table({"logfc": row[40:]}))
    sizes = np.abs(row)
    p = [(1 + np.sum(sizes[40:] >= x)) / (1 + N_NULL) for x in sizes[:40]]
    assert one.p_value() == pytest.approx(p)
    assert ten.p_value() == pytest.approx(p)


@pytest.mark.parametrize("n", [1, 2, 50])
@pytest.mark.parametrize("alike", [0.0, 0.9])
def test_the_pooled_p_is_uniform_where_alleles_are_random_snvs(n, alike):
    rng = np.random.default_rng(2)
    n_null, n_alleles = 20_000, 1000
    pool = Pool(np.zeros(n_alleles, int))
    shared = rng.standard_t(3, n_null + n_alleles)
    for _ in range(n):
        row = alike * shared + (1 - alike) * rng.standard_t(3, n_null + n_alleles)
        null = pa.table({"logfc": row[n_alleles:]})
        pool.judge(answers(row[:n_alleles]), 1 / n, identity(n_null), null)
    assert kstest(pool.p_value(), "uniform").pvalue > 0.01


def test_z_has_the_sign_and_the_order_of_the_effects():
    null = np.random.default_rng(3).normal(size=999)
    observed = np.array([-9.0, -1.0, -0.1, 0.0, 0.1, 1.0, 9.0])
    z, of_null = signed_z(observed, null)
    assert np.all(np.diff(z) > 0)
    assert z == pytest.approx(-z[::-1])
    assert np.isfinite(of_null).all()
    assert of_null == pytest.approx(null, abs=0.4)


def noise(*experiments):
    pool = Pool(SNVS[:1])
    for logfc, sd, n_folds, assay in experiments:
        pool.add(answers([logfc], [sd], n_folds), assay, 1)
    return pool.noise()[0]


def test_the_standard_error_is_what_folds_or_replicates_say_whichever_is_more():
    assert noise((1.0, 0.5, 5, "")) == pytest.approx(0.5 / math.sqrt(5))
    replicates = [1.0, 2.0, 4.0]
    of_them = np.std(replicates, ddof=1) / math.sqrt(3)
    assert noise(*((x, 0.1, 5, "") for x in replicates)) == pytest.approx(of_them)
    assert noise(*((x, 9.0, 5, "") for x in replicates)) == pytest.approx(9 / math.sqrt(15))
    # Assays do not repeat each other: their difference is no noise.
    of_folds = math.sqrt(0.5**2 / 5 + 0.3**2 / 5) / 2
    assert noise((1.0, 0.5, 5, "DNase"), (9.0, 0.3, 5, "ATAC")) == pytest.approx(of_folds)


def test_the_standard_error_is_unknown_for_one_fold_of_one_experiment():
    one = (1.0, math.nan, 1, "DNase")
    assert math.isnan(noise(one))
    assert noise(one, (2.0, math.nan, 1, "DNase")) == pytest.approx(math.sqrt(0.5 / 2))
    assert math.isnan(noise(one, (2.0, 0.1, 5, "ATAC")))


@pytest.mark.parametrize(
    ("experiments", "expected"),
    [
        ([(5, "DNase")], 4),
        ([(5, "DNase"), (3, "DNase"), (1, "ATAC")], 6),
        ([(1, "DNase"), (1, "DNase"), (1, "ATAC"), (1, "ATAC"), (1, "ATAC")], 3),
        ([(1, "DNase")], 0),
    ],
)
def test_degrees_of_freedom_are_of_folds_or_of_replicates(experiments, expected):
    pool = Pool(SNVS[:1])
    for n_folds, assay in experiments:
        pool.add(answers([1.0], [0.1], n_folds), assay, 1)
    assert pool.freedom().tolist() == [expected]


def alleles(statuses, scored_as):
    n = len(statuses)
    table = {"allele_id": range(n), "status": statuses}
    table |= {"scored_ref": ["A"] * n, "scored_alt": ["C"] * n}
    return pa.table(table | {"scored_as": pa.array(scored_as, pa.int64())})


class Nulls(dict):
    """Nulls by experiment and class, as `null.Nulls` gives them."""

    classes = ("snv",)

    def identity(self, key):
        return identity(len(self[key]))


def written(folder, samples, effects, sds, nulls=None, fdr=None, **more):
    """The table, and the columns for the summary, of alleles 0, 1 and 3; 2 has no scores."""
    ids = [0, 1, 3]
    rows = (
        answers(row, sd, ids=ids).append_column("experiment", pa.array(["e"] * 3))
        for row, sd in zip(effects, sds, strict=True)
    )
    table = alleles(["ok", "ok", "symbolic", "ok"], [0, 1, None, 3])
    told = biosamples.write(
        folder / "b.parquet", biosamples.SCHEMA, samples, rows, table, nulls=nulls, fdr=fdr
    )
    found = pq.read_table(folder / "b.parquet")
    assert found.schema.equals(biosamples.SCHEMA)
    assert told.schema.equals(biosamples.OF_ALLELES)
    return found.to_pylist(), told.to_pylist()


SAMPLES = [
    Biosample("liver", ("e0",), ("DNase",), "liver", "adult"),
    Biosample("heart", ("e1",), ("DNase",)),
    Biosample("lung", ("e2",), ("DNase",)),
    Biosample("skin", ("e3",), ("DNase",)),
]
#             allele 0, 1, 3
EFFECTS = [[1.0, 0.0, -2.0], [-3.0, 0.0, 2.0], [2.8, 0.0, -2.0], [-2.63, 0.0, 0.5]]
SDS = [[math.sqrt(5) * se for se in (0.1, 0.1, 0.01)]] * 4


@pytest.mark.parametrize("at_once", [1, 8, 100])
def test_biosamples_are_ranked_with_honest_ties(tmp_path, monkeypatch, at_once):
    monkeypatch.setattr(biosamples, "ROWS", at_once)
    rows, told = written(tmp_path, SAMPLES, EFFECTS, SDS)
    seen = [
        (r["allele_id"], r["biosample"], r["rank"], r["within_noise_of_best"], r["pooled_logfc"])
        for r in rows
    ]
    # Four standard errors of five folds each: the largest of t (8 degrees of freedom, a third of
    # 5 %) is 2.566 times sqrt(0.1^2 + 0.1^2), or 0.363. The rank is that of the size.
    assert seen == [
        (0, "heart", 1, True, -3.0),
        (0, "lung", 2, True, 2.8),
        (0, "skin", 3, False, -2.63),
        (0, "liver", 4, False, 1.0),
        (1, "liver", 1, True, 0.0),
        (1, "heart", 1, True, 0.0),
        (1, "lung", 1, True, 0.0),
        (1, "skin", 1, True, 0.0),
        (3, "liver", 1, True, -2.0),
        (3, "heart", 1, True, 2.0),
        (3, "lung", 1, True, -2.0),
        (3, "skin", 4, False, 0.5),
    ]
    assert [one["top_biosample"] for one in told] == ["heart", "liver", None, "liver"]
    assert [one["n_biosamples"] for one in told] == [4, 4, None, 4]
    assert [one["n_biosamples_within_noise"] for one in told] == [2, 4, None, 3]
    assert {one["n_biosamples_significant"] for one in told} == {None}
    assert (rows[8]["organ"], rows[8]["life_stage"], rows[9]["organ"]) == ("liver", "adult", None)


def test_a_biosample_within_noise_of_the_first_shares_its_place(tmp_path):
    effects = [row.copy() for row in EFFECTS]
    effects[3][0] = -2.64
    rows, told = written(tmp_path, SAMPLES, effects, SDS)
    within = {r["biosample"] for r in rows if r["allele_id"] == 0 and r["within_noise_of_best"]}
    assert within == {"heart", "lung", "skin"}
    assert told[0]["n_biosamples_within_noise"] == 3


@pytest.mark.parametrize("n_folds", [2, 5])
@pytest.mark.parametrize("n", [2, 10, 90])
@pytest.mark.parametrize("noisy", [1, 5])
def test_the_truly_first_shares_the_first_place_in_95_of_100(tmp_path, n_folds, n, noisy):
    """By simulation, with all equal, which is the hardest; one is noisier than the others."""
    rng = np.random.default_rng(n)
    n_alleles = 1000
    folds = rng.normal(size=(n, n_folds, n_alleles))
    folds[-1] *= noisy
    samples = [Biosample(f"b{i}", (f"e{i}",), ("",)) for i in range(n)]
    rows = (
        answers(10 + one.mean(0), one.std(0, ddof=1), n_folds).append_column(
            "experiment", pa.array(["e"] * n_alleles)
        )
        for one in folds
    )
    table = alleles(["ok"] * n_alleles, list(range(n_alleles)))
    path = tmp_path / "b.parquet"
    biosamples.write(path, biosamples.SCHEMA, samples, rows, table, nulls=None, fdr=None)
    found = pq.read_table(path, columns=["biosample", "within_noise_of_best"]).to_pydict()
    within = np.array(found["within_noise_of_best"])
    for one in ("b0", f"b{n - 1}"):
        kept = within[np.array(found["biosample"]) == one]
        assert kept.mean() > 0.95 - 3 * (0.05 * 0.95 / n_alleles) ** 0.5


def test_one_that_stands_out_has_the_first_place_alone(tmp_path):
    """Of 90 biosamples, under five folds."""
    n = 90
    samples = [Biosample(f"b{i}", (f"e{i}",), ("",)) for i in range(n)]
    effects = np.random.default_rng(0).normal(0, 0.1, (n, 3))
    effects[7] += 2
    rows, told = written(tmp_path, samples, effects, np.full((n, 3), 0.5))
    assert {r["biosample"] for r in rows if r["within_noise_of_best"]} == {"b7"}
    assert [one["n_biosamples_within_noise"] for one in told] == [1, 1, None, 1]


def test_how_many_share_the_first_place_is_unknown_where_one_has_no_standard_error(tmp_path):
    sds = [row.copy() for row in SDS]
    sds[0] = [math.nan] * 3
    rows, told = written(tmp_path, SAMPLES, EFFECTS, sds)
    first = {r["biosample"]: r["within_noise_of_best"] for r in rows if r["allele_id"] == 0}
    assert first == {"heart": True, "lung": True, "skin": False, "liver": None}
    third = {r["biosample"]: r["within_noise_of_best"] for r in rows if r["allele_id"] == 3}
    assert third == {"liver": True, "heart": None, "lung": None, "skin": None}
    assert [one["n_biosamples_within_noise"] for one in told] == [None] * 4


def test_specificity_is_that_of_its_definitions(tmp_path):
    _, told = written(tmp_path, SAMPLES, EFFECTS, SDS)
    x = np.abs([row[0] for row in EFFECTS])
    p = x / x.sum()
    assert told[0]["tau"] == pytest.approx(sum(1 - x / x.max()) / 3)
    assert told[0]["specificity_entropy"] == pytest.approx(-sum(p * np.log2(p)))
    assert told[1]["tau"] is None  # no effect anywhere
    assert told[1]["specificity_entropy"] is None
    only = [[1.0] * 3, *([[0.0] * 3] * 3)]
    _, told = written(tmp_path, SAMPLES, only, SDS)
    assert (told[0]["tau"], told[0]["specificity_entropy"]) == (1, 0)
    _, told = written(tmp_path, SAMPLES, [[-1.0] * 3] * 4, SDS)
    assert (told[0]["tau"], told[0]["specificity_entropy"]) == (0, 2)
    _, told = written(tmp_path, SAMPLES[:1], EFFECTS[:1], SDS[:1])
    assert told[0]["tau"] is None


@pytest.mark.parametrize(
    ("fdr", "expected"),
    [(None, [1, 0, None, 1]), (0.003, [1, 0, None, 1]), (0.0029, [0, 0, None, 0])],
)
def test_biosamples_in_which_an_allele_is_significant_are_counted(tmp_path, fdr, expected):
    null = pa.table({"logfc": np.linspace(-2.5, 2.5, 999)})
    nulls = Nulls({(name, "snv"): null for name in ("e0", "e1", "e2", "e3")})
    effects = [[0.0, 0.0, 9.0], [9.0, 0.0, 0.0], [2.4, 0.0, 0.0], [0.0, 0.0, 0.0]]
    # Without fdr 0.01 decides; with it p is 3 times 0.001, of three alleles.
    rows, told = written(tmp_path, SAMPLES, effects, SDS, nulls, fdr)
    assert [one["n_biosamples_significant"] for one in told] == expected
    smallest = min(row["pooled_pval"] for row in rows)
    assert smallest == 1 / 1000


def test_replicates_and_assays_are_pooled_and_the_largest_is_named(tmp_path):
    samples = [
        Biosample("liver", ("e0", "e1", "e2"), ("DNase", "ATAC", "DNase")),
        Biosample("lone", ("lone",), ("",)),
    ]
    rows, _ = written(tmp_path, samples, EFFECTS, SDS)
    first = rows[0] if rows[0]["biosample"] == "liver" else rows[1]
    assert first["pooled_logfc"] == pytest.approx((1.0 + 2.8) / 4 - 3.0 / 2)
    assert (first["n_experiments"], first["assays"]) == (3, "DNase,ATAC")
    assert (first["max_experiment"], first["max_logfc"]) == ("e1", -3.0)
    lone = rows[1] if first is rows[0] else rows[0]
    assert (lone["max_experiment"], lone["assays"]) == ("lone", None)


def test_an_experiment_without_a_biosample_is_one_of_its_own(tmp_path):
    path = tmp_path / "experiments.tsv"
    path.write_text(
        "experiment\tbiosample\tassay\torgan\tlife_stage\n"
        "a\tK562\tDNase\tblood\tadult\nb\t\t\t\t\nc\tK562\tATAC\tmarrow\tadult\n"
    )
    assert read(path) == [
        Biosample("K562", ("a", "c"), ("DNase", "ATAC"), "blood,marrow", "adult"),
        Biosample("b", ("b",), ("",)),
    ]
    path.write_text("experiment\tn_models\na\t1\nb\t5\n")
    assert [(one.name, one.experiments) for one in read(path)] == [("a", ("a",)), ("b", ("b",))]
