"""Many models in one run on a GPU: windows/s beside one model's, time to the first score, memory.

    python tests/bench/many_models.py [--models 50] [--snvs 20000]

Makes random SNVs on a simulated genome and so many untrained default-size models, each an
experiment, and scores them with the workflow: once with one model, once with all. Then scores
the same in this process, to see when the first batch is done and what the device holds. Writes
`results/many_models.json`. On a machine without a GPU, `--tiny` sees that it works.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).parents[2]
sys.path[:0] = [str(Path(__file__).parent), str(ROOT / "workflow")]

from veff import atomic, autotune  # noqa: E402

RESULT = Path(__file__).parent / "results/many_models.json"


def make(folder: Path, models: int, snvs: int, tiny: bool) -> None:
    """The genome, its SNVs, the models, and two sheets: of one model and of all."""
    from cherimoya import Cherimoya
    from prepare import simulate_genome, simulate_snvs

    from veff.inputs import reference

    simulate_genome(folder / "genome.fa", 600_000 if tiny else 20_000_000)
    reference.build(folder / "genome.fa", folder / "reference")
    genome = reference.Reference.open(folder / "reference")
    simulate_snvs(folder / "snvs.vcf.gz", genome, snvs)
    shape = {"n_filters": 16, "n_layers": 4} if tiny else {}
    rows = []
    for seed in range(models):
        path = folder / f"{seed}.torch"
        Cherimoya(**shape, compile=False, random_state=seed).save(path)
        rows.append(f"e{seed}\t{path}")
    for name, chosen in (("one", rows[:1]), ("all", rows)):
        text = "\n".join(["experiment\tcheckpoint", *chosen]) + "\n"
        (folder / f"{name}.tsv").write_text(text)


def run(folder: Path, name: str, chunk_size: int) -> dict:
    """One run of the workflow: its seconds, and what its scoring job says of itself."""
    out = folder / name
    config = [f"variants={folder / 'snvs.vcf.gz'}", f"reference={folder / 'genome.fa'}"]
    config += [f"models={folder / name}.tsv", f"outdir={out}", f"chunk_size={chunk_size}"]
    config += ["models_per_job=auto", "nulls=none", "top={n: 0}"]
    command = [sys.executable, "-m", "snakemake", "--cores", "all", "--resources", "gpu=1"]
    command += ["--quiet", "all", "--config", *config]
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    began = time.monotonic()
    subprocess.run(command, check=True, cwd=ROOT, env=os.environ | {"PATH": path})
    seconds = time.monotonic() - began
    jobs = [atomic.read_json(path) for path in sorted((out / "parts/jobs").glob("*.json"))]
    windows = sum(job["alleles"] * 2 * job["models"] for job in jobs)
    job_s = sum(job["seconds"] for job in jobs)
    return {
        "run_s": round(seconds, 1),
        "job_s": round(job_s, 2),
        "device": jobs[0]["device"],
        "models": jobs[0]["models"],
        "windows_per_s_of_job": round(windows / job_s),
    }


def alone(folder: Path) -> dict:
    """The same scoring jobs in this process, watched: the cache is warm from the runs.

    The job of all models comes first, and has this process's imports and start of the GPU in it.
    """
    began = time.perf_counter()
    (path,) = (folder / "all/autotune").glob("*.json")
    setup = atomic.read_json(path)
    autotune.enable({"device": "auto"}, setup["work"], [folder / "all/autotune"])
    import pyarrow.parquet as pq
    import torch
    import watch

    from veff.inputs.reference import Reference
    from veff.models import experiment
    from veff.scoring import score
    from veff.scoring.how import How

    scored = []

    class Scored(score._Scored):
        def add(self, batch: score.Batch) -> None:
            super().add(batch)
            if not scored:
                scored.append(watch.now())

    score._Scored = Scored
    found = {}
    for name in ("all", "one"):
        alleles = pq.ParquetFile(folder / name / "prepared/scoreable.parquet").read_row_group(0)
        checkpoints = experiment.read(folder / name / "models.json")
        reference = Reference.open(folder / name / "reference")
        with watch.loop() as marks:
            experiments, size = experiment.experiments(checkpoints), setup["batch_size"]
            for _ in score.score(alleles, reference, experiments, How(), batch_size=size):
                pass
        rate = watch.windows_per_s(marks, len(checkpoints))
        found[f"{name}: windows_per_s_in_loop"] = round(rate)
        if name == "all":
            found["start_to_first_scores_s"] = round(scored[0] - began, 2)
            found["start_to_first_batch_of_all_models_s"] = round(marks[0][0] - began, 2)
            on_gpu = torch.cuda.is_available()
            found["gpu_memory_mb"] = torch.cuda.max_memory_allocated() >> 20 if on_gpu else None
    return found


def host_mb() -> int:
    """The most memory that a process of the runs, or this one, has taken."""
    import resource

    who = (resource.RUSAGE_CHILDREN, resource.RUSAGE_SELF)
    return round(max(resource.getrusage(one).ru_maxrss for one in who) / 1024)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--models", type=int, default=50)
    parser.add_argument("--snvs", type=int, default=20_000)
    parser.add_argument("--tiny", action="store_true", help="small models")
    options = parser.parse_args()
    result = {"models": options.models, "snvs": options.snvs, "tiny": options.tiny}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        # In a process of its own, so that this one switches the cache on before Cherimoya.
        code = f"import many_models as m; from pathlib import Path as P; m.make(P({name!r}), "
        code += f"{options.models}, {options.snvs}, {options.tiny})"
        path = os.pathsep.join([*sys.path[:2], os.environ.get("PYTHONPATH", "")])
        made = os.environ | {"PYTHONPATH": path.rstrip(os.pathsep)}
        subprocess.run([sys.executable, "-c", code], check=True, env=made)
        for sheet in ("one", "all"):
            result[sheet] = run(folder, sheet, options.snvs)
            print(sheet, result[sheet], flush=True)
        result["in one process"] = alone(folder)
    result["host_memory_mb"] = host_mb()
    RESULT.parent.mkdir(exist_ok=True)
    RESULT.write_text(json.dumps(result, indent=1) + "\n")
    print(json.dumps(result, indent=1))


if __name__ == "__main__":
    main()
