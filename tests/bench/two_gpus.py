"""One run on two GPUs of one machine: are both busy, is the cache warmed once, are the bytes those
of a run on one GPU?

    python tests/bench/two_gpus.py [--snvs 400000] [--jobs 8]

Makes random SNVs on a simulated genome and one default-size, untrained model, and runs
`snakemake --profile gpu --resources gpu=2` on a cold cache, then with `gpu=1`. Writes
`results/two_gpus.json`. Needs two NVIDIA GPUs.
"""

import argparse
import hashlib
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import pynvml
from cherimoya import Cherimoya

ROOT = Path(__file__).parents[2]
RESULT = Path(__file__).parent / "results/two_gpus.json"
sys.path[:0] = [str(Path(__file__).parent), str(ROOT / "workflow")]

from main_job import make_snvs  # noqa: E402
from prepare import simulate_genome  # noqa: E402


class Watch(threading.Thread):
    """Samples, every 0.1 s, the share of time in which each GPU computes, until it is stopped."""

    def __init__(self, n_gpus: int):
        super().__init__(daemon=True)
        self.handles = [pynvml.nvmlDeviceGetHandleByIndex(i) for i in range(n_gpus)]
        self.samples: list[tuple[float, list[int]]] = []
        self.stopped = threading.Event()

    def run(self) -> None:
        while not self.stopped.wait(0.1):
            shares = [pynvml.nvmlDeviceGetUtilizationRates(one).gpu for one in self.handles]
            self.samples.append((time.time(), shares))


def run(folder: Path, n_gpus: int, config: list[str]) -> dict:
    """One run of the workflow: its seconds, how the GPUs were used, what the jobs said."""
    out = folder / f"{n_gpus} GPU"
    command = [sys.executable, "-m", "snakemake", "--profile", "gpu", "--quiet", "all"]
    command += ["--resources", f"gpu={n_gpus}", "--config", f"outdir={out}", *config]
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    watch, began = Watch(2), time.time()
    watch.start()
    subprocess.run(command, check=True, cwd=ROOT, env=os.environ | {"PATH": path})
    ended = time.time()
    watch.stopped.set()
    watch.join()
    (setup,) = (out / "autotune").glob("*.json")
    records = sorted((out / "parts/jobs").glob("*.json"))
    jobs = [json.loads(record.read_text()) for record in records]
    warmed, scored = setup.stat().st_mtime, max(one.stat().st_mtime for one in records)
    samples = [shares for when, shares in watch.samples if warmed < when < scored]
    nodes = [json.loads(setup.read_text())["node"], *(job["autotune"]["node"] for job in jobs)]
    return {
        "run_s": round(ended - began, 1),
        "scoring_s": round(scored - warmed, 1),
        "mean_use_of_gpus": [
            round(sum(of_one) / len(samples) / 100, 3) for of_one in zip(*samples, strict=True)
        ],
        "both_in_use": round(sum(all(shares) for shares in samples) / len(samples), 3),
        "node_was": {node: nodes.count(node) for node in sorted(set(nodes))},
        "benchmarks_of_jobs": sum(job["autotune"]["benchmarks"] for job in jobs),
        "sha256_of_scores": hashlib.sha256((out / "scores.parquet").read_bytes()).hexdigest(),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--snvs", type=int, default=400_000)
    parser.add_argument("--jobs", type=int, default=8)
    options = parser.parse_args()
    pynvml.nvmlInit()
    if pynvml.nvmlDeviceGetCount() < 2:
        raise SystemExit("needs two NVIDIA GPUs")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        simulate_genome(folder / "genome.fa", 60_000_000)
        make_snvs(folder / "genome.fa", folder / "snvs.vcf", options.snvs)
        Cherimoya(compile=False, random_state=0).save(folder / "model.torch")
        (folder / "models.tsv").write_text(f"experiment\tcheckpoint\ne\t{folder}/model.torch\n")
        config = [f"variants={folder}/snvs.vcf", f"reference={folder}/genome.fa"]
        config += [f"models={folder}/models.tsv", f"chunk_size={-(-options.snvs // options.jobs)}"]
        config += ["device=cuda", "nulls=none", "top={n: 0}"]
        config.append(f"autotune={{cache_dir: {folder}/node}}")
        result = {"snvs": options.snvs, "jobs": options.jobs, "gpu": gpu_name()}
        for n_gpus in (2, 1):
            result[f"{n_gpus} GPU"] = run(folder, n_gpus, config)
            print(n_gpus, result[f"{n_gpus} GPU"], flush=True)
    two, one = (result[f"{n_gpus} GPU"] for n_gpus in (2, 1))
    result["same_bytes"] = two["sha256_of_scores"] == one["sha256_of_scores"]
    result["scoring_speed_up"] = round(one["scoring_s"] / two["scoring_s"], 2)
    RESULT.write_text(json.dumps(result, indent=1) + "\n")
    print(json.dumps(result, indent=1))


def gpu_name() -> str:
    return pynvml.nvmlDeviceGetName(pynvml.nvmlDeviceGetHandleByIndex(0))


if __name__ == "__main__":
    main()
