"""The demo as shipped, and the answers that were planted in it."""

import csv
import gzip
import json
import sys
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pysam
import pytest
import torch
from scipy.stats import false_discovery_control, mannwhitneyu

from project import DEMO
from veff.scoring import columns


def key(row):
    return row["chrom"], int(row["pos"]), row["ref"], row["alt"]


@pytest.fixture(scope="module")
def truth():
    with open(DEMO / "truth.tsv", newline="") as handle:
        return {key(row): row for row in csv.DictReader(handle, delimiter="\t")}


@pytest.fixture(scope="module")
def records():
    with pysam.VariantFile(str(DEMO / "variants.vcf.gz")) as vcf:
        return [(r.chrom, r.pos, r.id, r.ref, r.alts) for r in vcf]


def read(project, name):
    return pq.read_table(project.outdir / name).to_pylist()


def test_the_screen_holds_the_plan_how_far_it_is_and_the_end(demo):
    lines = demo.said.splitlines()
    assert len(lines) <= 40, demo.said
    assert any("plan: 304 alleles, 300 of them to be scored" in line for line in lines)
    assert any("of 1,600 alleles x experiments" in line for line in lines)
    assert lines[-1].startswith("autotune: 0 benchmarks in ")
    assert "gpu" not in demo.said.lower()


def test_every_input_allele_comes_out_once_in_order_with_a_status(demo, records):
    expected = [
        (number, chrom, pos, ref, alt)
        for number, (chrom, pos, _, ref, alts) in enumerate(records)
        for alt in alts
    ]
    rows = read(demo, "alleles.parquet")
    assert [(r["record"], r["chrom"], r["pos"], r["ref"], r["alt"]) for r in rows] == expected
    assert [r["allele_id"] for r in rows] == list(range(len(rows)))
    assert all(r["status"] and (r["status"] == "ok" or r["reason"]) for r in rows)


def test_what_was_planted_as_not_scoreable_has_a_reason_and_no_score(demo, truth):
    statuses = {key(r): r["status"] for r in read(demo, "alleles.parquet")}
    planted = {k for k, row in truth.items() if row["class"] == "not_scored"}
    assert {k for k, status in statuses.items() if status not in ("ok", "duplicate")} == planted
    scored = {key(r) for r in read(demo, "scores.parquet")}
    assert scored == set(statuses) - planted


@pytest.mark.parametrize("experiment", ["cellA", "cellB"])
@pytest.mark.parametrize("score", [*columns.JUDGED, "effect_percentile"])
def test_effects_tell_motif_changes_from_the_rest_with_the_right_sign(
    demo, truth, experiment, score
):
    rows = [r for r in read(demo, "scores.parquet") if r["experiment"] == experiment]
    values = {key(r): r[score] for r in rows}
    signs = {k: int(truth[k][f"sign_{experiment}"]) for k in values}
    changing = np.array([values[k] for k, sign in signs.items() if sign])
    sparing = np.array([values[k] for k, sign in signs.items() if not sign])
    u = mannwhitneyu(np.abs(changing), np.abs(sparing)).statistic
    assert u / len(changing) / len(sparing) >= 0.95
    if score.startswith("logfc"):
        expected = np.array([sign for sign in signs.values() if sign])
        assert np.mean(np.sign(changing) == expected) >= 0.95


def test_p_values_are_small_where_a_motif_changes_and_in_their_bounds(demo, truth):
    """The smallest of the demo's null of 100 SNVs is 1/101, two-sided 2/101."""
    rows = read(demo, "scores.parquet")
    for name in columns.JUDGED:
        p = np.array([r[f"{name}.pval"] for r in rows])
        assert p.min() >= (1 if name in columns.ONE_SIDED else 2) / 101
        assert p.max() <= 1
    changes = np.array([int(truth[key(r)][f"sign_{r['experiment']}"]) != 0 for r in rows])
    p = np.array([r["abs_logfc.pval"] for r in rows])
    assert np.mean(p[changes] < 0.05) > 0.8
    assert np.mean(p[~changes] < 0.05) < 0.3


def test_the_folds_of_each_answer_are_summed_up(demo):
    folds = {}
    for row in read(demo, "folds.parquet"):
        folds.setdefault((row["experiment"], row["allele_id"]), []).append(row)
    for row in read(demo, "scores.parquet"):
        own = folds[row["experiment"], row["allele_id"]]
        assert row["n_folds"] == len(own) == 2
        assert row["jsd_sd"] == pytest.approx(np.std([f["jsd"] for f in own], ddof=1), abs=1e-12)
        alike = sum(np.sign(f["logfc"]) == np.sign(row["logfc"]) for f in own)
        assert row["folds_agree"] == alike


def test_the_summary_counts_experiments_and_their_directions(demo):
    by_allele = {}
    for row in read(demo, "scores.parquet"):
        by_allele.setdefault(row["allele_id"], []).append(row)
    for row in read(demo, "summary.parquet"):
        own = by_allele.get(row["allele_id"], [])
        assert row["n_experiments"] == (len(own) or None)
        if own:
            largest = max(own, key=lambda r: r["abs_logfc"])
            assert row["max_experiment"] == largest["experiment"]
            assert row["max_experiment_pval"] == largest["abs_logfc.pval"]
            assert row["n_significant"] == sum(r["abs_logfc.pval"] < 0.01 for r in own)
            alike = [np.sign(r["logfc"]) == np.sign(row["max_logfc"]) for r in own]
            assert row["direction_consistency"] == np.mean(alike)


def test_lists_over_all_experiments_are_those_of_scipy(demo):
    rows = [r for r in read(demo, "summary.parquet") if r["status"] == "ok"]
    p = [r["max_pval"] for r in rows]
    assert [r["max_qval"] for r in rows] == pytest.approx(false_discovery_control(p))
    assert all(r["max_qval"] <= r["max_fwer"] <= 1 for r in rows)


def test_a_biosample_of_one_experiment_says_what_that_does(demo):
    """The demo's sheet has an experiment for each of two biosamples."""
    scores = {(r["allele_id"], r["experiment"]): r for r in read(demo, "scores.parquet")}
    tops = {r["allele_id"]: r["top_biosample"] for r in read(demo, "summary.parquet")}
    rows = read(demo, "biosamples.parquet")
    assert len(rows) == len(scores)
    for row in rows:
        answer = scores[row["allele_id"], row["max_experiment"]]
        assert row["pooled_logfc"] == row["max_logfc"] == answer["logfc"]
        assert row["pooled_pval"] == row["max_pval"] == answer["abs_logfc.pval"]
        assert row["pooled_se"] == pytest.approx(answer["logfc_sd"] / 2**0.5)
        assert row["biosample"][-1] == row["organ"][-1] == row["max_experiment"][-1]
        assert row["life_stage"] == {"A": "adult", "B": "embryonic"}[row["organ"][-1]]
        assert row["assays"] == "simulated"
        assert (row["biosample"] == tops[row["allele_id"]]) == (row["rank"] == 1)


def test_the_summary_has_the_closest_genes_and_the_peaks_at_each_allele(demo):
    for row in read(demo, "summary.parquet"):
        first, last = row["pos"] - 1, row["pos"] - 2 + len(row["ref"])
        away = sorted(
            (max(start - last, first - (end - 1), 0), start, name)
            for contig, start, end, name in demo.genes
            if contig == row["chrom"]
        )
        (far, _, name) = away[0] if away else (None, None, None)
        assert (row["gene_distance_1"], row["closest_gene_1"]) == (far, name)
        starts = [start for contig, start, *_ in demo.genes if contig == row["chrom"]]
        nearest = min((max(start - last, first - start, 0) for start in starts), default=None)
        assert nearest == (None if row["tss_distance"] is None else abs(row["tss_distance"]))
        assert row["peak_overlap"] == (row["chrom"] == "simA" and last >= 2000 and first < 9000)
    with gzip.open(demo.outdir / "summary.tsv.gz", "rt") as handle:
        assert handle.readline().rstrip().split("\t")[-2:] == ["tss_distance", "peak_overlap"]


def test_the_planted_effects_are_found_again_in_the_evaluation_and_the_report(demo):
    with open(demo.outdir / "evaluation.tsv", newline="") as handle:
        lines = list(csv.DictReader(handle, delimiter="\t"))
    counts = {r["measure"]: int(r["n"]) for r in lines if not r["experiment"]}
    assert (counts["rows_aligned"], counts["rows_lost_duplicate"]) == (600, 2)
    for experiment in ("cellA", "cellB"):
        of_answer = {"experiment": experiment, "ensemble": "answer", "score": "logfc"}
        found = {
            row["measure"]: float(row["value"])
            for row in lines
            if of_answer.items() <= row.items() and row["class"] == "all"
        }
        assert found["pearson"] > 0.85
        assert found["sign_concordance"] > 0.95
        assert found["auroc"] > 0.95
    assert {row["ensemble"] for row in lines} >= {"answer", "fold 0", "fold 1", "mean of folds"}
    assert {row["class"] for row in lines} == {"all", "SNV", "insertion", "deletion"}
    report = (demo.outdir / "report.html").read_text()
    assert '<section id="evaluation">' in report
    assert "evaluation-scatter-1" in report


def test_tables_say_what_their_columns_are_and_what_made_them(demo):
    schema = pq.read_schema(demo.outdir / "scores.parquet")
    assert all(field.metadata[b"description"] for field in schema)
    formula = schema.field("jsd.pval").metadata[b"formula"].decode()
    assert formula == "(1 + #{null >= observed}) / (1 + n)"
    made_by = json.loads(schema.metadata[b"veff"])
    record = json.loads((demo.outdir / "provenance.json").read_text())
    hashes = [model["sha256"] for model in record["models"]]
    of_a, of_b = (made_by["experiments"][name] for name in ("cellA", "cellB"))
    assert [*of_a["models_sha256"], *of_b["models_sha256"]] == hashes
    scored = [r for r in read(demo, "alleles.parquet") if r["status"] == "ok"]
    longer = {len(r["alt"]) - len(r["ref"]) for r in scored} - {0}
    classes = {f"{'ins' if n > 0 else 'del'}_{'1_5' if abs(n) <= 5 else '6_20'}" for n in longer}
    for one in (of_a, of_b):
        assert set(one["nulls_of_other_classes"]) == classes
        for null in (one["null"], *one["nulls_of_other_classes"].values()):
            assert (demo.outdir / "nulls" / f"{null}.parquet").is_file()
        assert one["reference_set"] == "reference windows of the null"


def test_neither_record_nor_report_says_where_the_files_are_on_this_machine(demo):
    folders = {str(demo.outdir.parent), str(DEMO.parents[1]), sys.prefix, str(Path.home())}
    for name in ("provenance.json", "report.html"):
        text = (demo.outdir / name).read_text()
        assert "genome.fa.gz" in text
        assert [folder for folder in folders if f"{folder}/" in text] == []


def test_snv_scores_equal_those_of_tangermeme(demo):
    """Windows cut from the FASTA as text and edited by tangermeme, under the same model."""
    from cherimoya import Cherimoya
    from tangermeme.utils import one_hot_encode
    from tangermeme.variant_effect import substitution_effect

    rows = [
        r for r in read(demo, "folds.parquet") if r["experiment"] == "cellB" and r["fold"] == 1
    ]
    rows = [r for r in rows if len(r["ref"]) == len(r["alt"]) == 1 and r["n_padded"] == 0][:12]
    with pysam.FastxFile(str(DEMO / "genome.fa.gz")) as fasta:
        genome = {contig.name: contig.sequence.upper() for contig in fasta}
    half = 2114 // 2
    starts = [r["pos"] - 1 - half for r in rows]
    text = [genome[r["chrom"]][s : s + 2114] for r, s in zip(rows, starts, strict=True)]
    x = torch.stack([one_hot_encode(one).float() for one in text])
    edits = torch.tensor([[i, half, "ACGT".index(r["alt"])] for i, r in enumerate(rows)])
    model = Cherimoya.load(DEMO / "models/cellB.fold1.torch", compile=False).eval()
    before, after = substitution_effect(model, x, edits, device="cpu", batch_size=4)
    expected = (after[1] - before[1])[:, 0].double() / np.log(2)
    assert [r["logfc"] for r in rows] == pytest.approx(expected.tolist(), abs=1e-5)
    assert [r["ref_counts"] for r in rows] == pytest.approx(
        before[1].expm1()[:, 0].tolist(), rel=1e-5
    )


def test_the_annotated_vcf_has_all_records_in_order_and_an_index(demo, records):
    path = demo.outdir / "annotated.vcf.gz"
    with pysam.VariantFile(str(path)) as vcf:
        assert [(r.chrom, r.pos, r.id, r.ref, r.alts) for r in vcf] == records
    chrom, pos, *_ = records[-1]
    with pysam.VariantFile(str(path)) as vcf:
        assert any(r.pos == pos for r in vcf.fetch(chrom, pos - 1, pos))


def test_info_fields_have_one_value_an_alternate_allele(demo):
    rows = iter(read(demo, "summary.parquet"))
    with pysam.VariantFile(str(demo.outdir / "annotated.vcf.gz")) as vcf:
        for record in vcf:
            values = zip(
                record.alts,
                record.info["CHERI_STATUS"],
                record.info["CHERI_MAX_LOGFC"],
                record.info["CHERI_PVAL"],
                strict=True,
            )
            for alt, status, *numbers in values:
                row = next(rows)
                assert (alt, status) == (row["alt"], row["status"])
                for number, expected in zip(
                    numbers, (row["max_logfc"], row["max_experiment_pval"]), strict=True
                ):
                    assert number == (expected and pytest.approx(expected, rel=1e-4))
    assert next(rows, None) is None


def test_tsv_and_parquet_have_the_same_rows(demo):
    with gzip.open(demo.outdir / "scores.tsv.gz", "rt", newline="") as handle:
        rows = list(csv.DictReader(handle, delimiter="\t"))
    expected = read(demo, "scores.parquet")
    numbers = {k for k, v in expected[0].items() if isinstance(v, int | float)}
    for row in rows:
        row |= {k: float(row[k]) for k in numbers}
        assert row.pop("logfc_effect") == ""  # a VCF names no effect allele
    assert {row.pop("logfc_effect") for row in expected} == {None}
    assert rows == expected


def test_provenance_accounts_for_every_allele_and_names_what_was_used(demo):
    record = json.loads((demo.outdir / "provenance.json").read_text())
    assert sum(record["alleles"]["statuses"].values()) == record["alleles"]["alleles"]
    assert {"cherimoya", "torch", "snakemake"} <= set(record["versions"])
    assert len({model["sha256"] for model in record["models"]}) == 4
    assert record["scoring"]["jobs"] == record["alleles"]["chunks"] * 2


def test_the_run_ends_with_the_largest_effects_and_where_the_results_are(demo):
    ending = demo.said[demo.said.index("alleles have scores") :]
    largest = max(read(demo, "summary.parquet"), key=lambda r: abs(r["max_logfc"] or 0))
    assert f"{largest['max_logfc']:#.3g}" in ending.splitlines()[2]
    assert "scores.tsv.gz" in ending
    assert "autotune: 0 benchmarks" in ending
