"""How long does a run take whose scores are in a store, all of them or all but one allele's?

    python tests/bench/store.py [--alleles 1000000] [--experiments 10] [--folds 1]

Simulates a genome, a VCF of SNVs on it and untrained models of the default size. A first run, on
the CPU, scores one allele and so founds the store. Then the store is filled with invented scores
of all alleles, in parts as some jobs would have added them. Measured, from the start of Snakemake
to summary.parquet, without nulls: a run all of whose scores are there, and one with a new allele
besides; then a lookup of a thousand alleles, and an export of all. Needs neither a GPU nor a
network. Writes results/store.json, anew after each, so that one that is cut off has left the
others.
"""

import argparse
import datetime
import json
import os
import platform
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pysam

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
sys.path[:0] = [str(ROOT / "workflow"), str(HERE)]

from prepare import simulate_genome, simulate_snvs  # noqa: E402
from whole_run import seconds_of_rules  # noqa: E402

from veff import forks  # noqa: E402
from veff.inputs import preparing  # noqa: E402
from veff.inputs.reference import Reference  # noqa: E402
from veff.models import experiment  # noqa: E402
from veff.store import contigs, part  # noqa: E402


def save_models(folder: Path, n: int, folds: int) -> None:
    from cherimoya import Cherimoya

    rows = ["experiment\tcheckpoint"]
    for i in range(n):
        for fold in range(folds):
            path = folder / f"{i}.{fold}.torch"
            Cherimoya(compile=False, random_state=i * folds + fold).save(path)
            rows.append(f"experiment{i}\t{path}")
    (folder / "models.tsv").write_text("\n".join(rows) + "\n")


def fill(store: Path, models: Path, scoreable: Path, hashes: list[str], jobs: int) -> None:
    """Invented scores of all alleles under all experiments, beside the parts that are there."""
    alleles = pq.read_table(scoreable)
    homes = {}
    for path in store.rglob("*.parquet"):
        said = json.loads(pq.read_schema(path).metadata[part.IDENTITY])
        homes[tuple(said["models_sha256"])] = path.parent, said
    rng = np.random.default_rng(0)
    for one in experiment.experiments(experiment.read(models)):
        folder, said = homes[tuple(one.sha256)]
        size = -(-len(alleles) // jobs)
        for first in range(0, len(alleles), size):
            some, one_fold = alleles.slice(first, size), len(one.folds) == 1
            rows = invented(some, hashes, part.schema(one), rng, one_fold)
            part.write(rows.sort_by(part.ORDER), said, folder)


def invented(
    alleles: pa.Table, hashes: list[str], schema: pa.Schema, rng, one_fold: bool
) -> pa.Table:
    n = len(alleles)
    values = {name: alleles[name] for name in list(part.KEYS)[1:]}
    values["contig"] = pa.array(hashes).take(alleles["contig"].combine_chunks())
    for field in schema:
        if field.name in values:
            continue
        if pa.types.is_integer(field.type):
            values[field.name] = np.zeros(n, np.int32)
        elif field.name.endswith("_sd") and one_fold:
            values[field.name] = pa.nulls(n, field.type)
        else:
            values[field.name] = rng.standard_normal(n)
    return pa.table({name: values[name] for name in schema.names}).cast(schema)


def simulate_variants(folder: Path, reference: Reference, n: int) -> tuple[Path, Path, Path]:
    """`n` distinct SNVs, the first thousand of them, and all with an insertion behind them."""
    simulate_snvs(folder / "some.vcf.gz", reference, n + n // 50)
    with pysam.BGZFile(str(folder / "some.vcf.gz")) as lines:
        rows = list(dict.fromkeys(line.decode() for line in lines))[: n + 2]  # two are the header
    last, contig = int(reference.lengths[-1]), len(reference.names) - 1
    ref = reference.fetch(contig, last - 1, last).decode()
    new = f"{reference.names[-1]}\t{last}\tnew\t{ref}\t{ref}T\t.\tPASS\tAF=0.01"
    paths = tuple(folder / f"{name}.vcf.gz" for name in ("all", "few", "more"))
    for path, some in zip(paths, (rows, rows[:1002], [*rows, new]), strict=True):
        with pysam.BGZFile(str(path), "w") as out:
            out.write("".join(f"{row}\n" for row in some).encode())
    return paths


def run(folder: Path, name: str, target: list[str], **config) -> dict:
    """One run of Snakemake, of a project with records of its own."""
    project = folder / f"{name}.project"
    for one in ("workflow", "config", "envs"):
        shutil.copytree(ROOT / one, project / one)
    config = {"outdir": folder / name, "models": folder / "models.tsv", "device": "cpu"} | config
    config |= {"reference": folder / "genome.fa", "store": folder / "store", "nulls": "none"}
    command = [sys.executable, "-m", "snakemake", "--cores", "all", "--scheduler", "greedy"]
    command += [*target, "--config", *(f"{key}={value}" for key, value in config.items())]
    began = time.monotonic()
    _, status, used = os.wait4(subprocess.Popen(command, cwd=project).pid, 0)
    seconds = round(time.monotonic() - began, 1)
    if status:
        sys.exit(f"the run {name} failed")
    jobs = [json.loads(path.read_text()) for path in (folder / name / "parts/jobs").glob("*")]
    return {
        "run_s": seconds,
        # Of all processes, which other work on the machine changes less.
        "cpu_s": round(used.ru_utime + used.ru_stime, 1),
        "largest_process_mb": used.ru_maxrss // 1024,
        "rules": seconds_of_rules(project / ".snakemake/metadata"),
        "scoring_jobs": [{key: job[key] for key in ("alleles", "seconds")} for job in jobs],
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--alleles", type=int, default=1_000_000)
    parser.add_argument("--experiments", type=int, default=10)
    parser.add_argument("--folds", type=int, default=1)
    parser.add_argument("--bases", type=int, default=100_000_000)
    parser.add_argument("--jobs", type=int, default=4, help="that filled the store")
    options = parser.parse_args()
    result = {
        "date": datetime.date.today().isoformat(),
        "cores": len(os.sched_getaffinity(0)),
        "load_before": round(os.getloadavg()[0], 1),
        "python": platform.python_version(),
        **vars(options),
    }
    collected = ["--until", "collect"]
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        simulate_genome(folder / "genome.fa", options.bases)
        save_models(folder, options.experiments, options.folds)
        run(folder, "founding", collected, variants="chr1:g.1000dup")
        reference = Reference.open(folder / "founding/reference")
        vcf, few, more = simulate_variants(folder, reference, options.alleles)
        scoreable = folder / "scoreable.parquet"
        outputs = folder / "alleles.parquet", scoreable
        summary = preparing.prepare(vcf, reference, *outputs, chunk_size=options.alleles)
        result["scoreable"] = summary["scoreable"]
        (models,) = (folder / "founding/models").glob("*/models.json")
        began = time.monotonic()
        # In a fork, since what this process held would count as memory of those it starts.
        hashes = contigs.hashes(reference)
        forks.forked(fill, folder / "store", models, scoreable, hashes, options.jobs)
        print(f"filled in {time.monotonic() - began:.1f} s", flush=True)
        sizes = (path.stat().st_size for path in (folder / "store").rglob("*.parquet"))
        result["store_mb"] = sum(sizes) // 1_000_000
        for key, name, target, variants in (
            ("all_found", "found", collected, vcf),
            ("one_new", "new", collected, more),
            ("lookup_of_1000", "lookup", ["store_lookup"], few),
            ("export", "export", ["store_export"], vcf),
        ):
            result[key] = run(folder, name, target, variants=variants)
            print(key, json.dumps(result[key]), flush=True)
            (HERE / "results" / "store.json").write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
