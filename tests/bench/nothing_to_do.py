"""How long does a finished run of human size take to say that there is nothing to be done?

    python tests/bench/nothing_to_do.py

A random FASTA file of 3.1 GB with its index, 10 checkpoints and a few alleles are run once, on the
CPU. Then the same command is given again, from the folder of the run and from another one, which
has none of Snakemake's records; and after a `touch` of the FASTA file, which is hashed again. It
needs 7 GB in the folder of temporary files. Writes `results/nothing_to_do.json`.
"""

import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pysam

ROOT = Path(__file__).parents[2]
RESULT = Path(__file__).parent / "results/nothing_to_do.json"
CONTIGS, LENGTH, WIDTH = 24, 129_000_000, 60
CHECKPOINTS = 10


def genome(path: Path) -> int:
    """Writes it; its size in bytes."""
    rng = np.random.default_rng(0)
    with path.open("wb") as fasta:
        for contig in range(1, CONTIGS + 1):
            bases = np.frombuffer(b"ACGT", np.uint8)[rng.integers(0, 4, LENGTH, np.uint8)]
            lines = np.full((LENGTH // WIDTH, WIDTH + 1), ord("\n"), np.uint8)
            lines[:, :WIDTH] = bases.reshape(-1, WIDTH)
            fasta.write(b">chr%d\n" % contig)
            fasta.write(lines)
    pysam.faidx(str(path))
    return path.stat().st_size


def project(folder: Path) -> list[str]:
    """The command of a run there."""
    from cherimoya import Cherimoya

    rows = ["experiment\tcheckpoint\toutput_length"]
    for seed in range(CHECKPOINTS):
        model = Cherimoya(n_filters=16, n_layers=4, trimming=75, compile=False, random_state=seed)
        model.save(folder / f"{seed}.torch")
        rows.append(f"e{seed}\t{seed}.torch\t101")
    (folder / "models.tsv").write_text("\n".join(rows) + "\n")
    with pysam.FastaFile(str(folder / "genome.fa")) as fasta:
        pairs = ((name, fasta.fetch(name, 5000, 5001)) for name in fasta.references)
        alleles = [f"{name}\t5001\t{base}\t{'ACGT'['CGTA'.index(base)]}" for name, base in pairs]
    (folder / "variants.tsv").write_text("\n".join(["chrom\tpos\tref\talt", *alleles]) + "\n")
    (folder / "config").symlink_to(ROOT / "config")
    command = [sys.executable, "-m", "snakemake", "--cores", "2"]
    command += ["--snakefile", str(ROOT / "workflow/Snakefile"), "--config"]
    command += ["variants=variants.tsv", "reference=genome.fa", "models=models.tsv"]
    command += [f"outdir={folder / 'out'}", "device=cpu", "nulls=none", "top={n: 0}"]
    return [*command, "batch_size=8", "max_allele_length=20"]


def run(command: list[str], folder: Path) -> tuple[dict, str]:
    """Seconds of the clock and of processors, and what was said."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    began = time.monotonic()
    done = subprocess.run(
        command, cwd=folder, env=os.environ | {"PATH": path}, capture_output=True, text=True
    )
    if done.returncode:
        sys.exit(done.stdout[-3000:] + done.stderr[-3000:])
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = used.ru_utime + used.ru_stime - before.ru_utime - before.ru_stime
    taken = {"wall_s": round(time.monotonic() - began, 1), "cpu_s": round(cpu, 1)}
    return taken, done.stdout + done.stderr


def again(command: list[str], folder: Path) -> dict:
    """What it takes to say that there is nothing to be done."""
    taken, said = run(command, folder)
    if "Nothing to be done" not in said:
        sys.exit(f"something was done:\n{said[-3000:]}")
    return taken


def main() -> None:
    with tempfile.TemporaryDirectory() as scratch:
        folder, elsewhere = Path(scratch, "run"), Path(scratch, "elsewhere")
        folder.mkdir()
        elsewhere.mkdir()
        size = genome(folder / "genome.fa")
        command = project(folder)
        result = {"fasta_bytes": size, "checkpoints": CHECKPOINTS}
        result["first_run"] = run(command, folder)[0]
        again(command, folder)
        result["again"] = [again(command, folder) for _ in range(3)]
        for path in folder.iterdir():
            if path.name not in ("out", ".snakemake"):
                (elsewhere / path.name).symlink_to(path)
        result["from_another_folder"] = again(command, elsewhere)
        os.utime(folder / "genome.fa")
        result["touched"] = again(command, folder)
    print(json.dumps(result, indent=1))
    RESULT.parent.mkdir(exist_ok=True)
    RESULT.write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
