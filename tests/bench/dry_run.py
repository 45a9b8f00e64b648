"""How long does `snakemake -n` take, and how much memory, for the largest runs?

    python tests/bench/dry_run.py

All of CATv1 (1,518 experiments of five folds each) with a million alleles, and with a hundred
chunks; and one experiment with a hundred million alleles. The alleles are said to be prepared
already, so that all scoring jobs are planned. Writes `results/dry_run.json`.
"""

import json
import os
import re
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict, replace
from pathlib import Path

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "workflow"))

from veff import outdir, plan  # noqa: E402
from veff.models import sheet  # noqa: E402

RESULT = Path(__file__).parent / "results/dry_run.json"
# Experiments, alleles, and chunks where they are not what `auto` makes of the alleles.
CASES = ((1518, 10**6, None), (1518, 10**8, 100), (1, 10**8, None))


def project(folder: Path, experiments: int, alleles: int, chunks: int | None) -> list[str]:
    """The configuration of a run whose alleles are prepared."""
    accessions = [f"ENCSR{n % 1000:03d}AA{'ABCDEFGHIJ'[n // 1000]}" for n in range(experiments)]
    rows = [f"{accession}\t{accession}" for accession in accessions]
    (folder / "config").symlink_to(ROOT / "config")
    (folder / "models.tsv").write_text("\n".join(["experiment\tcatv1", *rows]) + "\n")
    for name in ("variants.vcf", "genome.fa"):
        (folder / name).touch()
    read = sheet.read(folder / "models.tsv", "a" * 40)
    bundles = sheet.bundles(read, plan.models_per_job("auto", read), {})
    cut = plan.cut(folder / "none", bundles, "cpu", None, gpu=False)
    as_if = replace(cut, gpu=True)
    size = plan.enough(alleles, as_if.chunk_size("auto"), as_if.most_chunks("auto"))
    chunks = chunks or -(-alleles // size)
    out = folder / "out"
    for name in (outdir.MARK, "reference", "prepared"):
        (out / name).mkdir(parents=True)
    prepared = {
        "chunks": chunks,
        "alleles": alleles,
        "scoreable": alleles,
        "classes": [],
        "cut": asdict(cut),
    }
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


def dry_run(experiments: int, alleles: int, chunks: int | None) -> dict:
    with tempfile.TemporaryDirectory() as folder:
        config = project(Path(folder), experiments, alleles, chunks)
        command = [sys.executable, "-m", "snakemake", "-n", "--quiet", "rules", "--cores", "1"]
        command += ["--snakefile", ROOT / "workflow/Snakefile"]
        command += ["--rerun-triggers", "mtime", "params", "input", "--config", *config]
        began = time.monotonic()
        with open(Path(folder) / "said", "w+") as output:
            process = subprocess.Popen(command, cwd=folder, stdout=output, stderr=output)
            _, status, usage = os.wait4(process.pid, 0)
            seconds = time.monotonic() - began
            output.seek(0)
            said = output.read()
    if status:
        sys.exit(said[-3000:])
    table = re.findall(r"^(\w+) +(\d+)$", said, re.MULTILINE)
    return {
        "experiments": experiments,
        "models": 5 * experiments,
        "alleles": alleles,
        "jobs": {name: int(count) for name, count in table},
        "wall_s": round(seconds, 1),
        "cpu_s": round(usage.ru_utime + usage.ru_stime, 1),
        "memory_mb": round(usage.ru_maxrss / 1024),
    }


def main() -> None:
    result = []
    for case in CASES:
        result.append(dry_run(*case))
        print(json.dumps(result[-1]), flush=True)
    RESULT.parent.mkdir(exist_ok=True)
    RESULT.write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
