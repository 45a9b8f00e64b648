"""Credible sets: what the list says of each allele, and the rank within a set."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from veff.errors import InputError
from veff.outputs import finemapping
from veff.report.finemapping import CredibleSets

FINNGEN = Path(__file__).parents[3] / "shared/data/lists/FinnGen_R9.AB1_EBV.SUSIE.snp.bgz"
SUSIE = finemapping.Headings("prob", ["trait", "region", "cs"])


def alleles(folder, records):
    table = {"allele_id": np.arange(len(records)), "record": records}
    pq.write_table(pa.table(table), folder / "alleles.parquet")
    return folder / "alleles.parquet"


def members(tmp_path, text, records, headings=SUSIE):
    (tmp_path / "list.tsv").write_text(text)
    out = tmp_path / "out.parquet"
    finemapping.write(out, tmp_path / "list.tsv", alleles(tmp_path, records), headings)
    return pq.read_table(out).to_pydict()


LIST = """trait\tregion\tchrom\tpos\tref\talt\tprob\tcs
T\tr1\tchr1\t10\tA\tG,C\t0.9\t1
T\tr1\tchr1\t20\tA\tG\tNA\t-1
T\tr1\tchr1
T\tr2\tchr1\t30\tA\tG\t1e-3\t2
"""


def test_each_allele_has_what_its_row_says(tmp_path):
    found = members(tmp_path, LIST, [0, 0, 1, 2, 3])
    assert found["pip"] == [0.9, 0.9, None, None, 0.001]
    assert found["credible_set"] == ["T r1 1", "T r1 1", None, None, "T r2 2"]


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("0.9", "90", r"list\.tsv, line 2: prob is '90'; expected a probability, from 0 to 1"),
        ("0.9", "high", r"line 2: prob is 'high'; expected a probability"),
        ("prob", "PP", r"list\.tsv: no column 'prob'; it has 'trait'"),
        ("trait", "##fileformat=VCFv4.2\n#CHROM", r"list\.tsv: fine_mapping names columns of a"),
    ],
)
def test_what_is_no_probability_or_no_column_is_refused_in_one_line(tmp_path, old, new, said):
    with pytest.raises(InputError, match=said):
        members(tmp_path, LIST.replace(old, new, 1), [0, 1, 2, 3])


def ranked(pip, sets, logfc):
    table = {"allele_id": range(len(pip)), "pip": pip, "credible_set": sets}
    members = pa.table({k: list(v) for k, v in table.items()}, schema=finemapping.MEMBERS)
    return finemapping.ranked(members, pa.chunked_array([pa.array(logfc, pa.float64())]))


def test_a_rank_counts_the_alleles_of_the_set_with_a_larger_product():
    rng = np.random.default_rng(1)
    n = 300
    pip, logfc = rng.random(n).round(1).tolist(), rng.normal(size=n).round(1).tolist()
    sets = [None if one == 9 else f"set{one}" for one in rng.integers(10, size=n)]
    pip[3], logfc[4] = None, None
    found = ranked(pip, sets, logfc).to_pylist()
    product = [
        None if None in pair else pair[0] * abs(pair[1]) for pair in zip(pip, logfc, strict=True)
    ]
    for row, own, name in zip(found, product, sets, strict=True):
        assert row["pip_x_abs_logfc"] == own
        rivals = [p for p, s in zip(product, sets, strict=True) if s == name and p is not None]
        expected = None if None in (own, name) else 1 + sum(p > own for p in rivals)
        assert row["credible_set_rank"] == expected


def test_two_alleles_keep_their_order_in_any_company():
    few = ranked([0.5, 0.2], ["s", "s"], [0.1, -0.3])
    many = ranked([0.5, 0.2, 0.9, 0.01], ["s", "s", "s", "t"], [0.1, -0.3, 5.0, 99.0])
    assert few["pip_x_abs_logfc"].to_pylist() == many["pip_x_abs_logfc"].to_pylist()[:2]
    assert few["credible_set_rank"].to_pylist() == [2, 1]
    assert many["credible_set_rank"].to_pylist() == [3, 2, 1, 1]


def test_finngens_credible_sets_add_up_to_their_95_percent(tmp_path):
    if not FINNGEN.is_file():
        pytest.skip("needs ../shared/data/lists")
    out = tmp_path / "out.parquet"
    finemapping.write(out, FINNGEN, alleles(tmp_path, np.arange(89)), SUSIE)
    rows = [row for row in pq.read_table(out).to_pylist() if row["credible_set"]]
    assert {row["credible_set"] for row in rows} == {"AB1_EBV chr6:1412516-4412516 1"}
    assert len(rows) == 4
    assert 0.95 <= sum(row["pip"] for row in rows) <= 1


def test_the_report_shows_each_set_with_its_first_alleles(tmp_path):
    n = 40
    pip, sets = [0.5, *[0.01] * (n - 1)], ["a"] * 20 + ["b"] * 20
    own = ranked(pip, sets, np.linspace(1, 2, n).tolist())
    about = {
        "allele_id": range(n),
        "chrom": ["chr1"] * n,
        "pos": range(1, n + 1),
        "id": ["."] * n,
        "ref": ["A"] * n,
        "alt": ["G"] * n,
        "max_experiment": ["e"] * n,
        "max_logfc": np.linspace(1, 2, n),
        "max_pval": [0.01] * n,
    }
    rows = pa.table(
        {k: list(v) for k, v in about.items()} | dict(zip(own.schema.names, own, strict=True))
    )
    pq.write_table(rows, tmp_path / "summary.parquet")
    found = CredibleSets(tmp_path / "summary.parquet")
    assert [(one["name"], one["n"]) for one in found.sets] == [("a", 20), ("b", 20)]
    assert [row["allele_id"] for row in found.sets[0]["rows"]][:2] == [0, 19]
    points = found.charts["credible-set-1"]
    (values,) = points["datasets"].values() if "datasets" in points else [points["data"]["values"]]
    assert [one["rank"] for one in values] == list(range(1, 21))
    assert [bool(one["name"]) for one in values] == [True] * 3 + [False] * 17
