"""The whole workflow on a GPU: what does the persistent autotune cache save each scoring job?

    python tests/bench/main_job.py REFERENCE.fa.gz [--snvs 100000] [--jobs 5]

Makes random SNVs on the reference and one default-size, untrained model, then runs
`snakemake --profile gpu` twice: as it is, and on a copy of the workflow whose scoring script does
not switch the cache on (compiled kernels are still cached there, by Triton itself, as for anyone
who runs Cherimoya twice). Both arms run in turn on one machine. Writes `results/main_job.json`.
Needs an NVIDIA GPU.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path
from statistics import median

import numpy as np
import pysam
from cherimoya import Cherimoya

ROOT = Path(__file__).parents[2]
RESULT = Path(__file__).parent / "results/main_job.json"
SWITCH = "autotune.enable("


def make_snvs(reference: Path, path: Path, n: int) -> None:
    """`n` SNVs at distinct random positions with a known base, as a sites-only VCF."""
    with pysam.FastxFile(str(reference)) as fasta:
        contig = next(iter(fasta))
    bases = np.frombuffer(contig.sequence.upper().encode(), np.uint8)
    known = np.flatnonzero(np.isin(bases, np.frombuffer(b"ACGT", np.uint8)))
    rng = np.random.default_rng(0)
    positions = np.sort(rng.choice(known, n, replace=False))
    with path.open("w") as vcf:
        vcf.write("##fileformat=VCFv4.2\n")
        vcf.write(f"##contig=<ID={contig.name},length={len(bases)}>\n")
        vcf.write("#CHROM\tPOS\tID\tREF\tALT\tQUAL\tFILTER\tINFO\n")
        for position, step in zip(positions, rng.integers(1, 4, n), strict=True):
            ref = chr(bases[position])
            alt = "ACGT"[("ACGT".index(ref) + step) % 4]
            vcf.write(f"{contig.name}\t{position + 1}\t.\t{ref}\t{alt}\t.\t.\t.\n")


def without_the_switch(folder: Path) -> Path:
    """A copy of the project whose scoring jobs do not switch the persistent cache on."""
    for part in ("workflow", "config", "envs"):
        shutil.copytree(ROOT / part, folder / part)
    (folder / "gpu").symlink_to("workflow/profiles/gpu")
    script = folder / "workflow/scripts/score.py"
    lines = script.read_text().splitlines(keepends=True)
    kept = [line for line in lines if SWITCH not in line]
    if len(kept) != len(lines) - 1:
        raise SystemExit(f"{script}: expected one line with {SWITCH!r}; adapt this benchmark")
    script.write_text("".join(kept))
    return folder


def run(project: Path, outdir: Path, config: list[str]) -> dict:
    """One run of the workflow: its seconds, and what each scoring job said of itself."""
    began = time.monotonic()
    command = [sys.executable, "-m", "snakemake", "--profile", "gpu"]
    command += ["--snakefile", project / "workflow/Snakefile", "--directory", project]
    command += ["--config", f"outdir={outdir}", *config]
    environment = os.environ | {"TRITON_CACHE_DIR": str(outdir.parent / "triton")}
    subprocess.run(command, check=True, cwd=project, env=environment)
    seconds = time.monotonic() - began
    jobs = [json.loads(path.read_text()) for path in sorted((outdir / "parts/jobs").glob("*"))]
    return {
        "run_s": round(seconds, 2),
        "job_s": round(median(job["seconds"] for job in jobs), 2),
        "jobs": jobs,
        "setup": json.loads((outdir / "provenance.json").read_text())["setup"],
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("reference", type=Path)
    parser.add_argument("--snvs", type=int, default=100_000)
    parser.add_argument("--jobs", type=int, default=5)
    parser.add_argument("--folder", type=Path, default=Path("results/bench"))
    options = parser.parse_args()
    folder = options.folder.absolute()
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    variants, sheet, checkpoint = (folder / n for n in ("snvs.vcf", "models.tsv", "model.torch"))
    make_snvs(options.reference, variants, options.snvs)
    Cherimoya(compile=False, random_state=0).save(checkpoint)
    sheet.write_text(f"experiment\tcheckpoint\ndefault\t{checkpoint}\n")
    config = [f"variants={variants}", f"reference={options.reference.absolute()}"]
    config += [f"models={sheet}", f"chunk_size={-(-options.snvs // options.jobs)}"]
    config += ["device=cuda", "nulls=none"]

    result = {"snvs": options.snvs}
    result["cache on"] = run(ROOT, folder / "on", config)
    off = without_the_switch(folder / "off_project")
    result["knob off"] = run(off, folder / "off", config)
    on, off = (result[arm]["job_s"] for arm in ("cache on", "knob off"))
    result["job_time_saved"] = round(1 - on / off, 3)
    RESULT.write_text(json.dumps(result, indent=1) + "\n")
    print(f"a job takes {on} s with the cache, {off} s without")


if __name__ == "__main__":
    main()
