"""How long does `snakemake -n` take, and how much memory, for all of CATv1?

    python tests/bench/dry_run.py [--experiments 1518] [--chunks 100]

The sheet has that many accessions with five folds each, and the alleles are said to be prepared
already, so that all scoring jobs are planned. Writes `results/dry_run.json`.
"""

import argparse
import json
import os
import re
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).parents[2]
RESULT = Path(__file__).parent / "results/dry_run.json"


def project(folder: Path, experiments: int, chunks: int) -> list[str]:
    """The configuration of a run whose alleles are prepared."""
    accessions = [f"ENCSR{n % 1000:03d}AA{'ABCDEFGHIJ'[n // 1000]}" for n in range(experiments)]
    rows = [f"{accession}\t{accession}" for accession in accessions]
    (folder / "config").symlink_to(ROOT / "config")
    (folder / "models.tsv").write_text("\n".join(["experiment\tcatv1", *rows]) + "\n")
    for name in ("variants.vcf", "genome.fa"):
        (folder / name).touch()
    out = folder / "out"
    for name in ("reference", "prepared"):
        (out / name).mkdir(parents=True)
    prepared = {"chunks": chunks, "alleles": 1_000_000 * chunks, "models_a_job": 50}
    (out / "prepared/summary.json").write_text(json.dumps(prepared))
    made = ("reference/bases.u8", "reference/contigs.json", "prepared/scoreable.parquet")
    for name in (*made, "alleles.parquet"):
        (out / name).touch()
    # The summary of `prepare` is not older than what it was made from.
    os.utime(out / "prepared/summary.json")
    return [
        f"variants={folder / 'variants.vcf'}",
        f"reference={folder / 'genome.fa'}",
        f"models={folder / 'models.tsv'}",
        f"outdir={out}",
        "catv1_revision=" + "a" * 40,
        "device=cpu",
        "models_per_job=auto",
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--experiments", type=int, default=1518)
    parser.add_argument("--chunks", type=int, default=100)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        config = project(Path(folder), options.experiments, options.chunks)
        command = [sys.executable, "-m", "snakemake", "-n", "--quiet", "rules", "--cores", "1"]
        command += ["--snakefile", ROOT / "workflow/Snakefile"]
        command += ["--rerun-triggers", "mtime", "params", "input", "--config", *config]
        began = time.monotonic()
        ran = subprocess.run(command, cwd=folder, capture_output=True, text=True)
        seconds = time.monotonic() - began
    if ran.returncode:
        sys.exit(ran.stdout[-3000:] + ran.stderr[-3000:])
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    table = re.findall(r"^(\w+) +(\d+)$", ran.stdout, re.MULTILINE)
    result = {
        "experiments": options.experiments,
        "models": 5 * options.experiments,
        "chunks": options.chunks,
        "jobs": {name: int(count) for name, count in table},
        "wall_s": round(seconds, 1),
        "cpu_s": round(usage.ru_utime + usage.ru_stime, 1),
        "memory_mb": round(usage.ru_maxrss / 1024),
    }
    RESULT.parent.mkdir(exist_ok=True)
    RESULT.write_text(json.dumps(result, indent=1) + "\n")
    print(json.dumps(result, indent=1))


if __name__ == "__main__":
    main()
