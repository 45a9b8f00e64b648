"""What a run does when it is cut differently, killed, fed nothing, or told nonsense."""

import csv
import gzip
import json
import os
import re
import shutil
import signal
import time

import pyarrow.parquet as pq
import pysam
import pytest

from project import DEMO, Project

RESULTS = ("alleles.parquet", "scores.parquet", "scores.tsv.gz", "folds.parquet")
RESULTS += ("biosamples.parquet", "summary.parquet", "summary.tsv.gz", "annotated.vcf.gz")
TARGETS = [f"out/{name}" for name in RESULTS]
PERSON = "{variants: small.vcf, sample: child}"
OF_HAPLOTYPES = ("haplotypes.parquet", "imbalance.parquet", "phasing.parquet")


def prepared(folder):
    """A project on 17 of the demo's records, which two samples have, with one of its models."""
    project = Project(folder)
    with pysam.VariantFile(str(DEMO / "variants.vcf.gz")) as vcf:
        header, records = str(vcf.header), [str(record).rstrip() for record in vcf]
    header = header.rstrip() + "\tFORMAT\tmother\tchild\n"
    genotypes = ("0|1\t1|0", "1|1\t0|1", "0/1\t0|0", "1|0\t1|1")
    rows = [f"{row}\tGT\t{genotypes[i % 4]}\n" for i, row in enumerate(records[5:22])]
    variants = project.write("small.vcf", header + "".join(rows))
    sheet = project.write(
        "models.tsv", f"experiment\tcheckpoint\ncellA\t{DEMO}/models/cellA.fold0.torch\n"
    )
    project.files = {"variants": variants.name, "models": sheet.name}
    project.files |= {"nulls": "{n: 20, dir: kept}", "top": "{n: 0}", "batch_size": 8}
    return project


@pytest.fixture
def small(tmp_path):
    return prepared(tmp_path)


@pytest.fixture(scope="module")
def one_run(tmp_path_factory):
    """A run in one chunk."""
    project = prepared(tmp_path_factory.mktemp("one_run"))
    project.run(**project.files, haplotypes="true", background=PERSON)
    return project


@pytest.fixture
def done(one_run, tmp_path):
    """That run, to go on from."""
    shutil.copytree(one_run.folder, tmp_path, symlinks=True, dirs_exist_ok=True)
    project = Project(tmp_path)
    project.files = one_run.files
    return project


def results(outdir, names=RESULTS):
    return {name: (outdir / name).read_bytes() for name in names}


def times(folder):
    return {path.name: path.stat().st_mtime_ns for path in folder.iterdir()}


def chunks(project):
    return pq.ParquetFile(project.outdir / "prepared/scoreable.parquet").num_row_groups


def test_three_chunks_give_the_bytes_of_one_though_one_was_first_out_of_memory(done, monkeypatch):
    names = (*RESULTS, *OF_HAPLOTYPES)
    whole = results(done.outdir, names)
    assert chunks(done) == 1
    targets = [f"out/{name}" for name in names]
    monkeypatch.setenv("NO_MEMORY_ONCE", str(done.folder / "told"))
    said = done.run(*targets, "--retries", "1", **done.files, chunk_size=6, haplotypes="true")
    assert chunks(done) == 3
    assert results(done.outdir, names) == whole
    assert said.count("error: out of memory: give it more") == 1
    assert "Traceback" not in said
    asked = re.findall(r"rule score:\n(?:    .*\n)*?    resources: .*mem_mb=(\d+)", said)
    first = int(asked[0])
    assert sorted(map(int, asked)) == [first] * 3 + [2 * first]


def test_a_killed_run_goes_on_where_it_was_and_seventeen_chunks_give_the_bytes_of_one(done):
    # Without haplotypes, which would be in the VCF, and of which each would be a job here.
    names = [name for name in RESULTS if name != "annotated.vcf.gz"]
    targets = [f"out/{name}" for name in names]
    whole = results(done.outdir, names)
    jobs = done.outdir / "parts/jobs"
    shutil.rmtree(jobs)
    (done.outdir / "scores.parquet").unlink()
    process = done.start(*targets, **done.files, chunk_size=1)
    while len(list(jobs.glob("*.json"))) < 5:
        assert process.poll() is None
        time.sleep(0.1)
    os.killpg(process.pid, signal.SIGKILL)
    process.communicate()
    before = {path: path.stat().st_mtime_ns for path in jobs.glob("*.json")}
    assert not (done.outdir / "scores.parquet").exists()
    done.run("--unlock", **done.files, chunk_size=1)
    done.run(*targets, **done.files, chunk_size=1)
    kept = [path for path, written in before.items() if path.stat().st_mtime_ns == written]
    # On two cores the fifth job starts when Snakemake has taken note of three that finished.
    assert len(kept) >= 3
    assert chunks(done) == len(list(jobs.glob("*.json"))) == 17
    assert results(done.outdir, names) == whole


def test_a_second_run_has_nothing_to_do(done):
    more = {"haplotypes": "true", "background": PERSON}
    assert "Nothing to be done" in done.run(**done.files | more)


def test_what_a_person_carries_alone_has_the_scores_on_the_reference(one_run):
    scores = pq.read_table(one_run.outdir / "scores.parquet").to_pylist()
    rows = pq.read_table(one_run.outdir / "personal.parquet").to_pylist()
    assert len(rows) == 2 * len(scores)
    assert any(row["carried"] for row in rows)
    same = [row["logfc"] == scores[i // 2]["logfc"] for i, row in enumerate(rows)]
    assert all(one or row["background"] for one, row in zip(same, rows, strict=True))
    assert not all(same)
    assert '<section id="personal">' in (one_run.outdir / "report.html").read_text()


@pytest.fixture(scope="module")
def fewer(one_run, tmp_path_factory):
    """That run, and beside it another on nine alleles fewer, which founded a store."""
    folder = tmp_path_factory.mktemp("fewer")
    shutil.copytree(one_run.folder, folder, symlinks=True, dirs_exist_ok=True)
    project = Project(folder)
    project.files = one_run.files
    project.made = times(folder / "kept")
    lines = folder.joinpath("small.vcf").read_text().splitlines(keepends=True)
    project.write("fewer.vcf", "".join(lines[:-9]))
    other = project.files | {"variants": "fewer.vcf", "outdir": "other", "store": "store"}
    project.run("other/scores.parquet", **other)
    return project


def test_a_null_outlives_its_run_and_does_not_change_with_the_variants(fewer):
    assert times(fewer.folder / "kept") == fewer.made
    one, other = (pq.read_table(fewer.folder / d / "scores.parquet") for d in ("out", "other"))
    assert len(other) == len(one) - 9
    assert other == one.slice(0, len(other))


def test_scores_of_another_run_come_from_the_store_with_the_bytes_of_computed_ones(fewer):
    whole = results(fewer.outdir)
    stored = fewer.files | {"store": "store", "outdir": "stored", "chunk_size": 6}
    stored |= {"haplotypes": "true"}
    of_haplotypes = results(fewer.outdir, OF_HAPLOTYPES)
    targets = [f"stored/{name}" for name in (*RESULTS, *OF_HAPLOTYPES, "closing.txt")]
    said = fewer.run(*targets, **stored)
    assert "8 of 17 scores (alleles x experiments) are in the store" in said
    outdir = fewer.folder / "stored"
    assert results(outdir) == whole
    jobs = [json.loads(path.read_text()) for path in (outdir / "parts/jobs").iterdir()]
    assert sorted(job["alleles"] for job in jobs) == [3, 6]
    assert "store: 8 scores found, 9 computed" in (outdir / "closing.txt").read_text()
    # The nulls, of pairs of SNVs too, are those that the first run kept.
    assert results(outdir, OF_HAPLOTYPES) == of_haplotypes
    (log,) = (outdir / "logs/null_of_pairs").iterdir()
    assert "a null of" not in log.read_text()
    assert times(fewer.folder / "kept") == fewer.made
    kept = [pq.read_schema(path).metadata[b"nulls"] for path in fewer.folder.glob("kept/*")]
    assert sum(b"snv_pair" in identity for identity in kept) == 1

    said = fewer.run("store_lookup", "store_export", **stored)
    assert "store: 17 of 17 scores found" in said
    assert "score" not in {line.split()[0] for line in said.splitlines() if line}
    scores = pq.read_table(outdir / "scores.parquet").to_pylist()
    with gzip.open(outdir / "store_lookup.tsv.gz", "rt") as handle:
        rows = list(csv.DictReader(handle, delimiter="\t"))
    assert [float(row["logfc"]) for row in rows] == [row["logfc"] for row in scores]
    with pysam.VariantFile(str(outdir / "store.vcf.gz")) as records:
        exported = {(r.chrom, r.pos, r.ref, r.alts[0]) for r in records}
    assert exported == {(r["chrom"], r["pos"], r["ref"], r["alt"]) for r in scores}


def test_without_nulls_there_are_scores_and_nothing_made_from_nulls(done):
    done.run(*TARGETS, **done.files | {"nulls": "none"})
    names = pq.read_schema(done.outdir / "scores.parquet").names
    assert {"logfc", "jsd", "logfc_sd", "n_folds"} <= set(names)
    assert [name for name in names if "pval" in name or "quantile" in name] == []
    assert pq.read_table(done.outdir / "summary.parquet")["max_pval"].null_count == 17
    assert not (done.outdir / "nulls").exists()


def test_what_decides_a_score_scores_again_and_nothing_else_does(done):
    def planned(**config):
        said = done.run("-n", **done.files | config)
        return {line.split()[0] for line in said.splitlines() if line.split()[1:] == ["1"]}

    assert {"setup", "score"} <= planned(precision="fast")
    done.write("peaks.bed", "simA\t0\t9\n")
    others = {"autotune": "{strict: true}", "annotations": "{peaks: peaks.bed}"}
    others["fine_mapping"] = "{pip: prob, credible_set: [trait, cs]}"
    again = planned(**others, info_experiments="0")
    assert {"nearby", "fine_mapping", "collect", "annotate"} <= again
    assert not {"setup", "score", "prepare"} & again


def test_what_is_planned_again_as_before_is_not_scored_again(done):
    parts = done.outdir / "parts"
    for kind in ("haplotypes", "background"):
        os.utime(parts / kind / "virtual.parquet")
    (parts / "background/.virtual.parquet.sha256").write_text("of something else")
    # By it Snakemake sees that small files are the same.
    shutil.rmtree(done.folder / ".snakemake/metadata")
    said = done.run("-n", **done.files, haplotypes="true", background=PERSON)
    assert re.search(r"^score_background +1$", said, re.MULTILINE)
    assert not re.search(r"^score_haplotypes +\d+$", said, re.MULTILINE)


def test_a_dry_run_ends_with_the_plan_which_on_a_cluster_counts_on_its_gpus(done):
    said = done.run("-n", **done.files).splitlines()[-4:]
    assert said[0] == "plan: 17 alleles, 17 of them to be scored, under 1 experiment (1 model)"
    assert said[1].startswith("plan: 1 scoring job, 1 of them done: chunks of 17 alleles")
    assert "0 CPU core hours" in said[2]
    auto = {"outdir": "new", "device": "auto", "chunk_size": "auto"}
    elsewhere = done.run("-n", "--jobs", "9", **done.files | auto)
    *_, first, jobs, hours, _ = elsewhere.splitlines()
    assert first == "plan: alleles not yet counted, under 1 experiment (1 model)"
    assert "each million alleles 1 scoring job:" in jobs
    assert "GPU hours" in hours


def test_until_prepare_stops_after_the_checks(small):
    said = small.run("--until", "prepare", **small.files)
    assert "plan: alleles not yet counted" in said
    assert "\n17 alleles: 17 ok (" in said
    assert (small.outdir / "alleles.parquet").exists()
    assert not (small.outdir / "parts").exists()


def test_no_variants_give_empty_valid_outputs(done):
    header = done.folder.joinpath("small.vcf").read_text().split("#CHROM")[0]
    columns = "#CHROM\tPOS\tID\tREF\tALT\tQUAL\tFILTER\tINFO\tFORMAT\tmother\n"
    empty = done.write("empty.vcf", header + columns)
    done.write("region.bed", "chrsimA\t5000\t5004\n")
    more = {"haplotypes": "true", "regions": "region.bed", "tile": 0}
    said = done.run(**done.files | {"variants": empty.name, "top": "{n: 1}"} | more)
    assert "\n0 of 0 alleles have scores\n" in said
    assert len(pq.read_table(done.outdir / "edits.parquet")) == 4 * 4
    assert (done.outdir / "saturation/region1.svg").is_file()
    assert "interaction" in pq.read_schema(done.outdir / "haplotypes.parquet").names
    assert len(pq.read_table(done.outdir / "scores.parquet")) == 0
    assert len(pq.read_table(done.outdir / "attributions.parquet")) == 0
    assert "No allele could be scored" in (done.outdir / "report.html").read_text()
    assert "logfc" in pq.read_schema(done.outdir / "scores.parquet").names
    with pysam.VariantFile(str(done.outdir / "annotated.vcf.gz")) as vcf:
        assert list(vcf) == []
    without = {"variants": "null", "regions": "region.bed", "outdir": "without"}
    assert "\n0 alleles" in done.run("--until", "annotate", **done.files | without)
    with pysam.VariantFile(str(done.folder / "without/annotated.vcf.gz")) as vcf:
        assert list(vcf) == []


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({"chunksize": "5"}, "config: chunksize: unknown key; did you mean chunk_size? allowed"),
        ({"chunk_size": "some"}, "config: chunk_size: got 'some'; allowed: auto or integer"),
        ({"variants": "no.vcf"}, "config: variants: there is no file 'no.vcf'"),
    ],
)
def test_a_faulty_configuration_is_one_line_before_any_job(small, config, message):
    said = small.run(**small.files | config, fails=True)
    assert [line for line in said.splitlines() if message in line] != []
    assert "Traceback" not in said
    assert not small.outdir.exists()


def test_alleles_may_stand_in_the_configuration_itself(small):
    alleles = "simA:11271:C:T,simA:18455:T:C,simA:g.20611del"
    small.run("out/alleles.parquet", **small.files | {"variants": alleles})
    rows = pq.read_table(small.outdir / "alleles.parquet").to_pylist()
    assert [row["id"] for row in rows] == alleles.split(",")
    assert {row["status"] for row in rows} == {"ok"}


def test_a_row_that_cannot_be_read_ends_the_run_naming_file_and_line(small):
    text = small.folder.joinpath("small.vcf").read_text()
    broken = small.write("broken.vcf", text + "simA\tmany\t.\tA\tC\t.\t.\t.\n")
    said = small.run("--retries", "1", **small.files | {"variants": broken.name}, fails=True)
    n = len(text.splitlines()) + 1
    assert f"error: broken.vcf, line {n}" in said.replace(
        f"broken.vcf:{n}", f"broken.vcf, line {n}"
    )
    assert not (small.outdir / "alleles.parquet").exists()
    assert "Trying to restart job" in said
    # The second attempt said it again, and did nothing else.
    assert len((small.outdir / "logs/prepare.log").read_text().splitlines()) == 1


def test_a_checkpoint_that_is_none_ends_the_run_naming_it(small):
    small.write("bad.torch", "not a model")
    small.write("models.tsv", "experiment\tcheckpoint\nx\tbad.torch\n")
    said = small.run(**small.files, fails=True)
    assert "error: bad.torch: not a" in said
