"""Planted scores of three experiments, summed up allele by allele."""

import numpy as np
import pyarrow as pa
import pytest

from veff.outputs import summary
from veff.outputs.summary import Summary

N = 5  # alleles, of which number 2 is not scored
KINDS = np.array([0, 0, -1, 0, 0])  # SNVs
SCORED = [0, 1, 3, 4]
#         allele 0, 1, 3, 4
LOGFC = {
    "e0": [0.5, -1.0, 0.0, 2.0],
    "e1": [-0.5, -2.0, 0.0, 1.0],
    "e2": [0.4, 3.0, 0.0, -0.5],
}
PVAL = {
    "e0": [0.2, 0.005, 1.0, 0.001],
    "e1": [0.009, 0.001, 1.0, 0.02],
    "e2": [0.01, 0.0001, 1.0, 0.5],
}


@pytest.fixture
def alleles():
    text = {name: [name] * N for name in ("chrom", "id", "ref", "alt", "status", "effect_is")}
    return pa.table({"allele_id": range(N), "record": range(N), "pos": range(N)} | text)


def rows(experiment, **more):
    logfc = LOGFC[experiment]
    n = len(logfc)
    table = {"allele_id": SCORED, "experiment": [experiment] * n, "group": [0] * n}
    return pa.table(table | {"logfc": logfc, "jsd": np.abs(logfc) / 10} | more)


def column(alleles, name, tables):
    best = Summary(alleles, KINDS)
    for table in tables:
        best.add(table)
    result = best.table()
    assert result["allele_id"].to_pylist() == list(range(N))
    assert result.schema.equals(summary.SCHEMA)
    return result[name].to_pylist()


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("max_experiment", ["e0", "e2", None, "e0", "e0"]),
        ("max_logfc", [0.5, 3.0, None, 0.0, 2.0]),
        ("max_jsd", [0.05, 0.3, None, 0.0, 0.2]),
        ("max_experiment_pval", [0.2, 0.0001, None, 1.0, 0.001]),
        ("n_experiments", [3, 3, None, 3, 3]),
        # Below 0.01, not at it.
        ("n_significant", [1, 3, None, 0, 1]),
        # An effect of 0 has the sign of 0 alone.
        ("direction_consistency", [2 / 3, 1 / 3, None, 1.0, 2 / 3]),
    ],
)
def test_each_allele_has_its_largest_effect_and_counts_over_experiments(alleles, name, expected):
    tables = [rows(one, **{"abs_logfc.pval": PVAL[one]}) for one in LOGFC]
    assert column(alleles, name, tables) == expected


def test_with_a_false_discovery_rate_significance_is_that_of_the_run(alleles):
    flags = {"e0": [True, False, False, True], "e1": [True] * 4, "e2": [False] * 4}
    tables = [
        rows(one, **{"abs_logfc.pval": PVAL[one], "significant_in_run": flags[one]})
        for one in LOGFC
    ]
    assert column(alleles, "n_significant", tables) == [2, 1, None, 1, 2]


@pytest.mark.parametrize("name", ["max_experiment_pval", "max_pval", "n_significant"])
def test_without_nulls_nothing_is_said_of_p_values(alleles, name):
    assert column(alleles, name, map(rows, LOGFC)) == [None] * N


def test_the_group_of_the_largest_effect_speaks_for_its_experiment(alleles):
    table = pa.table(
        {
            "allele_id": np.repeat(SCORED, 2),
            "experiment": ["e0"] * 8,
            "group": [0, 1] * 4,
            "logfc": [0.1, -0.2, 3.0, 1.0, 0.0, 0.0, -4.0, 5.0],
            "jsd": np.arange(8) / 10,
            "abs_logfc.pval": [0.5, 0.001, 0.2, 0.001, 1.0, 0.001, 0.001, 0.3],
        }
    )
    assert column(alleles, "max_logfc", [table]) == [-0.2, 3.0, None, 0.0, 5.0]
    assert column(alleles, "max_jsd", [table]) == [0.1, 0.2, None, 0.4, 0.7]
    assert column(alleles, "max_experiment_pval", [table]) == [0.001, 0.2, None, 1.0, 0.3]
    assert column(alleles, "n_significant", [table]) == [1, 0, None, 0, 0]
    assert column(alleles, "n_experiments", [table]) == [1, 1, None, 1, 1]


def test_what_lies_at_the_alleles_stands_behind_their_effects(alleles):
    genes = pa.array(["a", "b", None, "d", "e"])
    field = pa.field("closest_gene_1", pa.string(), metadata={"description": "a gene"})
    more = pa.table([genes], schema=pa.schema([field]))
    table = Summary(alleles, KINDS).table(more)
    assert table.schema.names == [*summary.SCHEMA.names, "closest_gene_1"]
    assert table.schema.field("closest_gene_1").metadata == field.metadata
    assert table["closest_gene_1"].to_pylist() == genes.to_pylist()
    assert Summary(alleles.slice(0, 0), KINDS[:0]).table(more.slice(0, 0)).schema == table.schema


def test_a_run_without_scores_has_every_allele_and_no_value(alleles):
    for name in summary.SCHEMA.names[len(summary.KEYS) :]:
        assert column(alleles, name, []) == [None] * N


def null_of(sizes, **drawn):
    identity = {"n": len(sizes), "seed": 0, "scheme": "uniform", "regions_sha256": None}
    identity |= {"reference_sha256": "abc", "input_length": 2114}
    return identity | drawn, pa.table({"logfc": sizes})


def test_the_largest_effect_is_judged_by_the_largest_effects_of_the_same_random_snvs(alleles):
    best = Summary(alleles, KINDS, fdr=0.5)
    for name, null in (("e0", [0.1, 2.5, 0.1]), ("e1", [0.3, 0.2, 0.4]), ("e2", [3.0, 0.0, 0.1])):
        best.add(rows(name, **{"abs_logfc.pval": PVAL[name]}))
        best.add_null(*null_of(null))
    table = best.table()
    # The SNVs' largest effects are 3.0, 2.5 and 0.4; the alleles' 0.5, 3.0, 0 and 2.0.
    assert table["max_pval"].to_pylist() == [3 / 4, 2 / 4, None, 4 / 4, 3 / 4]


def test_a_duplicate_is_as_significant_as_the_allele_that_it_repeats_and_counts_once(alleles):
    status = pa.array(["ok", "duplicate", "symbolic", "ok", "ok"])
    alleles = alleles.set_column(alleles.schema.get_field_index("status"), "status", status)
    best = Summary(alleles, KINDS, fdr=0.2)
    logfc = [9.0, 9.0, 0.0, 0.0]
    best.add(rows("e0").set_column(3, "logfc", pa.array(logfc)))
    best.add_null(*null_of(np.linspace(0.1, 1, 19)))
    # Of three distinct alleles the smallest p is 1/20, 3/20 adjusted; of four it would be 1/10.
    expected = [True, True, None, False, False]
    assert best.table()["max_significant_in_run"].to_pylist() == expected
