"""Measured effects beside the run's: planted errors of a table, every one of them counted."""

import csv

import pyarrow.parquet as pq
import pytest

import planted
from veff.atomic import read_json
from veff.errors import InputError
from veff.evaluation.evaluate import evaluate
from veff.evaluation.truth import Truth

COLUMNS = {"effect": "beta", "label": "label", "frequency": "eaf", "alt_frequency": "gnomad"}


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return planted.plant(tmp_path_factory.mktemp("planted"), 6000, length=130_000)


@pytest.fixture
def compare(run, tmp_path):
    """Evaluates a table, the planted one or one of these rows, and returns what was written."""

    def of(rows=None, **settings):
        table = run.table
        if rows is not None:
            table = tmp_path / "truth.tsv"
            table.write_text("".join("\t".join(map(str, row)) + "\n" for row in rows))
        out, aligned, shown = (tmp_path / name for name in ("e.tsv", "e.parquet", "e.json"))
        evaluate(
            {"t": Truth(table, **settings)},
            run.reference,
            alleles=run.alleles,
            scores=run.scores,
            folds=run.folds,
            max_allele_length=500,
            out=out,
            aligned=aligned,
            shown=shown,
        )
        with open(out, newline="") as handle:
            lines = list(csv.DictReader(handle, delimiter="\t"))
        return lines, pq.read_table(aligned).to_pylist(), read_json(shown)

    return of


def measures(lines, score="logfc", kind="all"):
    mine = [r for r in lines if (r["score"], r["class"]) == (score, kind)]
    return {row["measure"]: row for row in mine}


def counted(lines):
    return {r["measure"]: int(r["n"]) for r in lines if r["measure"].startswith("rows")}


def test_every_planted_error_is_counted_exactly(run, compare):
    lines, rows, _ = compare(**COLUMNS, block=5000)
    assert counted(lines) == run.counts
    assert [row["line"] for row in rows] == list(range(2, len(rows) + 2))


def test_the_planted_correlation_comes_back_and_would_not_have_without_aligning(compare):
    found = measures(compare(**COLUMNS, block=5000)[0])
    low, value, high = (float(found["pearson"][key]) for key in ("low", "value", "high"))
    assert low < planted.R < high
    assert low < value < high < low + 0.06
    # 20 % of the rows with the wrong sign leave 1 - 2 x 0.2 of it; strand errors change no sign
    # unless the SNV is palindromic.
    assert float(found["pearson_not_aligned"]["value"]) == pytest.approx(planted.R * 0.6, abs=0.04)


HEADINGS = ("chrom", "pos", "ref", "alt", "beta", "p", "share", "which", "of")


@pytest.fixture(scope="module")
def some(run):
    """The first SNVs of the run that are not palindromic: (chrom, pos, ref, alt)."""
    rows = pq.read_table(run.alleles).to_pylist()
    found = [row for row in rows if not row["palindromic"]]
    return [(row["chrom"], row["pos"], row["ref"], row["alt"]) for row in found[:40]]


def rows_of(some, value="0.5", which=3):
    return [(*one, value, 0.01, 0.8, one[which], "e") for one in some]


def test_the_column_of_the_effect_allele_decides_the_direction(compare, some):
    rows = [HEADINGS, *rows_of(some[:2]), *rows_of(some[2:4], which=2)]
    rows.append((*some[4], "0.5", 0.01, 0.8, "CCC", "e"))
    _, found, _ = compare(rows, effect="beta", effect_allele="which")
    assert [row["effect"] for row in found[:4]] == [0.5, 0.5, -0.5, -0.5]
    assert found[4]["fate"] == "no_effect_allele"


def test_effects_that_may_be_of_either_allele_are_refused(compare, some):
    with pytest.raises(InputError, match=r"truth\.tsv: nothing says .* effect_allele"):
        compare([HEADINGS, *rows_of(some)], effect="beta")


def test_an_allelic_ratio_is_a_log_fold_change_of_reads(compare, some):
    settings = {"allelic_ratio": "share", "effect_allele": "which"}
    _, found, _ = compare([HEADINGS, *rows_of(some)], **settings)
    assert [row["effect"] for row in found] == pytest.approx([2] * 40)  # 0.8 / 0.2 = 2**2


def test_a_standard_error_says_which_rows_are_positive(compare, some):
    values = (f"{0.02 * (i - 20)}" for i in range(40))
    rows = [(*one, value, 0.1, 0.8, one[3], "e") for one, value in zip(some, values, strict=True)]
    settings = {"effect": "beta", "effect_allele": "which", "standard_error": "p"}
    _, found, _ = compare([HEADINGS, *rows], **settings)
    assert [row["positive"] for row in found] == [abs(r["effect"]) >= 0.196 for r in found]


def test_matched_negatives_are_those_of_sets_with_both_kinds(compare, some):
    """Of 40 rows, pairs of a positive and a negative one; the last three sets are not whole."""
    rows = [HEADINGS]
    for i, one in enumerate(some):
        pair = "NA" if i == 39 else f"pair{i // 2}"
        rows.append((*one, "0.5", 0.01 if i % 2 or i == 36 else 0.9, 0.8, one[3], pair))
    settings = {"pvalue": "p", "matched": "of"}
    lines, found, _ = compare(rows, **settings)
    mine = measures(lines)
    assert [row["matched"] for row in found[-3:]] == ["pair18", "pair19", None]
    assert {int(mine[name]["n"]) for name in ("auroc", "auprc", "auroc_matched")} == {36}
    assert float(mine["positives"]["value"]) == 0.5


def test_rows_about_other_experiments_are_lost_and_said(compare, some):
    rows = rows_of(some)
    rows[3] = (*rows[3][:-1], "another")
    lines, found, _ = compare(
        [HEADINGS, *rows], effect="beta", effect_allele="which", experiment="of"
    )
    assert found[3]["fate"] == "unknown_experiment"
    assert counted(lines)["rows_lost_unknown_experiment"] == 1
    assert counted(lines)["rows_aligned"] == len(rows) - 1


def test_a_table_of_other_variants_ends_the_run_with_its_counts(compare, some):
    moved = [(c, pos + 1, "N", alt) for c, pos, _, alt in some]
    with pytest.raises(InputError, match=r"none of its 40 rows .*\(40 not_acgt\)"):
        compare([HEADINGS, *rows_of(moved)], effect="beta", effect_allele="which")


@pytest.mark.parametrize(
    ("settings", "value", "said"),
    [
        ({"effect": "slope"}, "1", r"truth\.tsv: no column 'slope'; it has 'chrom', 'pos'"),
        ({"effect": "beta"}, "x", r"truth\.tsv, line 2: effect \('beta'\) is 'x'; expected a num"),
        ({"effect": "beta", "pvalue": "beta"}, "1.5", r"line 2: pvalue .* not from 0 to 1"),
        ({"label": "beta"}, "maybe", r"line 2: label .* is 'maybe'; expected 1 or 0"),
    ],
)
def test_a_bad_table_is_refused_in_one_line(compare, some, settings, value, said):
    with pytest.raises(InputError, match=said):
        compare([HEADINGS, *rows_of(some, value)], **settings, effect_allele="which")


def test_the_report_gets_points_tenths_and_the_worst_disagreements(run, compare):
    _, _, shown = compare(**COLUMNS, block=5000)
    (page,) = shown["pages"]
    assert page["n"] == run.counts["rows_aligned"]
    assert len(page["points"]) == 2000
    assert sum(one["n"] for one in page["bins"]) == page["n"]
    measured = [one["measured"] for one in page["bins"]]
    assert measured == sorted(measured)
    products = [one["predicted"] * one["measured"] for one in page["worst"]]
    assert len(products) == 10
    assert products == sorted(products)
    assert products[0] < -1
