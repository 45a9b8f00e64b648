"""How long does a whole run take on a GPU, from a VCF to all its outputs, cold and warm?

    python tests/bench/whole_run.py [--alleles 262144] [--bases 100000000]

Simulates a genome, a VCF of SNVs and indels on it, and a default-size model and a smaller one of
two folds, all untrained. Then runs `snakemake --profile gpu` twice, each with a folder of results
of its own: cold, with an empty Triton cache, and warm, with what the first left. Keeps the
seconds of each rule, as Snakemake's own records have them, what the scoring jobs said of
themselves, and whether Python keeps torch's bytecode: an installation by pip or conda does, and
where PYTHONDONTWRITEBYTECODE has it left out each process starts seconds later. Needs an NVIDIA
GPU and no network; `--device cpu` tries the script out, with a few alleles, no nulls and no
drawings, and writes nothing. Writes `results/whole_run.json`, after the cold run already, so that
a run that is cut off has left that.
"""

import argparse
import json
import os
import platform
import shutil
import subprocess
import sys
import tempfile
import time
from datetime import datetime
from importlib.util import cache_from_source, find_spec
from pathlib import Path

ROOT = Path(__file__).parents[2]
RESULT = Path(__file__).parent / "results/whole_run.json"
sys.path[:0] = [str(ROOT / "workflow"), str(Path(__file__).parent)]

from prepare import simulate_genome, simulate_indels, simulate_snvs  # noqa: E402

from veff.inputs import formats, reference  # noqa: E402

SHARE_OF_INDELS = 8  # one allele of so many


def simulate_variants(folder: Path, n_alleles: int) -> None:
    """SNVs and indels on the genome, in its order."""
    reference.build(folder / "genome.fa", folder / "reference")
    genome = reference.Reference.open(folder / "reference")
    rows = []
    for simulate, n in ((simulate_snvs, n_alleles), (simulate_indels, n_alleles)):
        n = n // SHARE_OF_INDELS if simulate is simulate_indels else n - n // SHARE_OF_INDELS
        simulate(folder / "some.vcf.gz", genome, n)
        header, some = [], []
        for line in formats.lines(folder / "some.vcf.gz"):
            (header if line.startswith(b"#") else some).append(line)
        rows += some
    rows.sort(key=lambda row: (int(row[3 : row.index(b"\t")]), int(row.split(b"\t", 2)[1])))
    (folder / "variants.vcf").write_bytes(b"".join(header + rows))
    shutil.rmtree(folder / "reference")


def save_models(folder: Path) -> None:
    """Two architectures, so two bundles of kernels to choose."""
    from cherimoya import Cherimoya

    rows = ["experiment\tcheckpoint"]
    shapes = {"default": ({}, 1), "small": ({"n_filters": 64, "n_layers": 8}, 2)}
    for name, (shape, folds) in shapes.items():
        for seed in range(folds):
            model = Cherimoya(**shape, compile=False, random_state=seed)
            model.save(folder / f"{name}.{seed}.torch")
            rows.append(f"{name}\t{folder / f'{name}.{seed}.torch'}")
    (folder / "models.tsv").write_text("\n".join(rows) + "\n")


def seconds_of_rules(records: Path) -> dict[str, list[list[float]]]:
    """When each job of a rule began and ended, in seconds from the start of the first job."""
    spans = set()  # a record is of an output, of which a job may have several
    for path in filter(Path.is_file, records.rglob("*")):
        one = json.loads(path.read_text())
        spans.add((round(one["starttime"], 1), round(one["endtime"], 1), one["rule"]))
    first = min(spans)[0]
    found = {}
    for began, ended, rule in sorted(spans):
        found.setdefault(rule, []).append([round(began - first, 1), round(ended - first, 1)])
    return found


def run(folder: Path, name: str, config: list[str], profile: list[str]) -> dict:
    """One run of the workflow."""
    outdir = folder / name
    project = folder / f"{name}.project"  # with records of its own, as a fresh clone
    for part in ("workflow", "config", "envs"):
        shutil.copytree(ROOT / part, project / part)
    command = [sys.executable, "-m", "snakemake", *profile]
    command += ["--config", f"outdir={outdir}", *config]
    command += [f"autotune={json.dumps({'cache_dir': str(folder / 'node')})}"]
    cache = {"TRITON_CACHE_DIR": str(folder / "triton"), "XDG_CACHE_HOME": str(folder / "cache")}
    began = time.monotonic()
    subprocess.run(command, check=True, cwd=project, env=os.environ | cache)
    seconds = time.monotonic() - began
    jobs = [json.loads(path.read_text()) for path in sorted((outdir / "parts/jobs").glob("*"))]
    return {
        "run_s": round(seconds, 1),
        "rules": seconds_of_rules(project / ".snakemake/metadata"),
        "jobs": [{key: job[key] for key in ("alleles", "models", "seconds")} for job in jobs],
        "benchmarks": [job["autotune"]["benchmarks"] for job in jobs],
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--alleles", type=int, default=262_144)
    parser.add_argument("--bases", type=int, default=100_000_000)
    parser.add_argument("--jobs", type=int, default=1, help="so many chunks")
    parser.add_argument("--device", choices=["cuda", "cpu"], default="cuda")
    options = parser.parse_args()
    result = {
        "date": datetime.now().date().isoformat(),
        "alleles": options.alleles,
        "cores": len(os.sched_getaffinity(0)),
        "python": platform.python_version(),
        "bytecode": Path(cache_from_source(find_spec("torch").origin)).exists(),
    }
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        simulate_genome(folder / "genome.fa", options.bases)
        simulate_variants(folder, options.alleles)
        save_models(folder)
        config = [f"variants={folder}/variants.vcf", f"reference={folder}/genome.fa"]
        config += [f"models={folder}/models.tsv", f"device={options.device}"]
        config += [f"chunk_size={-(-options.alleles // options.jobs)}"]
        profile = ["--profile", "workflow/profiles/gpu"]
        if options.device == "cpu":
            profile = ["--cores", "all", "--scheduler", "greedy"]
            config += ["nulls=none", "top={n: 0}"]
        for name in ("cold", "warm"):
            result[name] = run(folder, name, config, profile)
            print(name, json.dumps(result[name]), flush=True)
            if options.device == "cuda":
                RESULT.write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
