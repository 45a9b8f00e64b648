"""The demo as shipped, and the answers that were planted in it."""

import csv
import gzip
import json

import numpy as np
import pyarrow.parquet as pq
import pysam
import pytest
import torch
from scipy.stats import mannwhitneyu

from project import DEMO, ROOT


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
def test_effects_tell_motif_changes_from_the_rest_with_the_right_sign(demo, truth, experiment):
    logfc = {
        key(r): r["logfc"] for r in read(demo, "scores.parquet") if r["experiment"] == experiment
    }
    signs = {k: int(truth[k][f"sign_{experiment}"]) for k in logfc}
    changing = np.array([logfc[k] for k, sign in signs.items() if sign])
    sparing = np.array([logfc[k] for k, sign in signs.items() if not sign])
    u = mannwhitneyu(np.abs(changing), np.abs(sparing)).statistic
    assert u / len(changing) / len(sparing) >= 0.95
    expected = np.array([sign for sign in signs.values() if sign])
    assert np.mean(np.sign(changing) == expected) >= 0.95


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
    summary = {key(r): r for r in read(demo, "summary.parquet")}
    with pysam.VariantFile(str(demo.outdir / "annotated.vcf.gz")) as vcf:
        for record in vcf:
            statuses = record.info["CHERI_STATUS"]
            assert len(statuses) == len(record.alts)
            for alt, status, logfc in zip(
                record.alts, statuses, record.info["CHERI_MAX_LOGFC"], strict=True
            ):
                row = summary[record.chrom, record.pos, record.ref, alt]
                assert status == row["status"] or status == "duplicate"
                assert logfc == pytest.approx(row["max_logfc"], rel=1e-4)


def test_tsv_and_parquet_have_the_same_rows(demo):
    with gzip.open(demo.outdir / "scores.tsv.gz", "rt", newline="") as handle:
        rows = list(csv.DictReader(handle, delimiter="\t"))
    assert [{k: str(v) for k, v in row.items()} for row in read(demo, "scores.parquet")] == [
        {k: str(float(v)) if k in FLOATS else v for k, v in row.items()} for row in rows
    ]


FLOATS = {"ref_counts", "alt_counts", "logfc", "logfc_501", "jsd", "abs_logfc"}
FLOATS |= {"logfc_x_jsd", "abs_logfc_x_jsd"}


def test_provenance_accounts_for_every_allele_and_names_what_was_used(demo):
    record = json.loads((demo.outdir / "provenance.json").read_text())
    assert sum(record["alleles"]["statuses"].values()) == record["alleles"]["alleles"]
    assert {"cherimoya", "torch", "snakemake"} <= set(record["versions"])
    assert len({model["sha256"] for model in record["models"]}) == 4
    assert record["scoring"]["jobs"] == record["alleles"]["chunks"] * 2


def test_the_run_ends_with_the_largest_effects_and_where_the_results_are(demo):
    ending = demo.said[demo.said.index("alleles have scores") :]
    largest = max(read(demo, "summary.parquet"), key=lambda r: abs(r["max_logfc"] or 0))
    assert f"{largest['max_logfc']:.3f}" in ending.splitlines()[2]
    assert "scores.tsv.gz" in ending
    assert "autotune: 0 benchmarks" in ending


def test_the_readme_opens_the_demo_as_it_says(demo):
    """The README's lines of Python run on the demo's output."""
    readme = (ROOT / "README.md").read_text()
    code = readme.split("```python\n")[1].split("```")[0]
    code = code.replace("results/demo", str(demo.outdir))
    exec(compile(code, "README.md", "exec"), {})
