"""What the persistent autotune cache is worth to a scoring process of one batch.

    python tests/bench/autotune.py [--repeats 5] [--minutes 8] [--batch-size 1]

Every case runs in new processes, the default model at its native window, and is timed from outside
(`process_s`) and around its first forward (`first_forward_s`); benchmarks and compilations are
counted by hooks of its own, not by the cache's. The cold case, of nearly a minute a process, and
this project's own engine are repeated last, up to `--repeats`, while `--minutes` last. Writes
`results/autotune.json` after every case, and prints it as a table, as does `--table` alone. Needs
an NVIDIA GPU.
"""

import argparse
import hashlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from importlib.metadata import version
from pathlib import Path
from statistics import median

ROOT = Path(__file__).parents[2]
RESULT = Path(__file__).parent / "results/autotune.json"
CASES = {
    "cold": "nothing cached",
    "no choice": "binaries cached, but not the choice",
    "warm": "warm",
    "seeded": "warm from a seed, on a new node",
    "warm, fast engine": "warm, this project's engine",
}
WORK = {
    "task": "score",
    "n_filters": 128,
    "n_layers": 9,
    "expansion": 2,
    "signal_groups": [1],
    "n_control_tracks": 0,
    "input_length": 2114,
    "output_length": 1000,
    "precision": "fp32",
}


def process(work: dict, settings: dict | None, seeds: list[str]) -> dict:
    """One scoring process of one batch; without `settings` the cache is not switched on."""
    sys.path.insert(0, str(ROOT / "workflow"))
    from veff import autotune

    if settings is not None:
        autotune.enable(settings, [work], seeds)
    import torch
    import triton
    from cherimoya import Cherimoya
    from triton.runtime.autotuner import Autotuner

    from veff.cherimoya.engine import Predictor
    from veff.models.architecture import Architecture

    seen = {"benchmarks": 0, "compiles": 0}
    time_one = Autotuner._bench

    def bench(self, *args, **kwargs):
        seen["benchmarks"] += 1
        return time_one(self, *args, **kwargs)

    def compiled(*, cache_hit, **_):
        seen["compiles"] += not cache_hit

    Autotuner._bench = bench
    triton.knobs.compilation.listener = compiled

    architecture = Architecture.of(work)
    geometry = architecture.geometry
    model = Cherimoya(**architecture.arguments, compile=False, random_state=0).cuda()
    codes = torch.randint(
        4, (work["batch_size"], geometry.input_length), generator=torch.Generator().manual_seed(0)
    )
    bases = torch.tensor(list(b"ACGT"), dtype=torch.uint8)[codes].cuda()
    torch.cuda.synchronize()
    start = time.perf_counter()
    predictor = Predictor(
        model,
        geometry,
        device="cuda",
        precision=work["precision"],
        engine=work["engine"],
        batch_size=work["batch_size"],
    )
    outputs = [output.cpu() for output in predictor.predict(bases)]
    seconds = time.perf_counter() - start
    start = time.perf_counter()
    predictor.predict(bases)[1].cpu()
    digest = hashlib.sha256(b"".join(output.numpy().tobytes() for output in outputs))
    return {
        "first_forward_s": seconds,
        "next_forward_s": time.perf_counter() - start,
        **seen,
        "checksum": digest.hexdigest()[:16],
        "gpu": torch.cuda.get_device_name(),
        "report": autotune.report(),
    }


def setup(works: list[dict], settings: dict, folder: str) -> dict:
    sys.path.insert(0, str(ROOT / "workflow"))
    from veff import autotune

    return autotune.setup(settings, works, Path(folder))


def timed(command: str, *arguments, cache: Path | None = None) -> dict:
    """What `process` or `setup` returns in a new process, with its seconds from start to end."""
    variables = {k: v for k, v in os.environ.items() if not k.startswith("TRITON_CACHE")}
    if cache:
        variables["TRITON_CACHE_DIR"] = str(cache)
    start = time.perf_counter()
    done = subprocess.run(
        [sys.executable, __file__, "--run", command, json.dumps(arguments)],
        env=variables,
        capture_output=True,
        text=True,
    )
    seconds = time.perf_counter() - start
    if done.returncode:
        raise SystemExit(f"{command} failed:\n{done.stderr[-3000:]}")
    return {**json.loads(done.stdout.splitlines()[-1]), "process_s": seconds}


class Results:
    def __init__(self, **facts):
        self.facts, self.runs = facts, {case: [] for case in CASES}

    def add(self, case: str, run: dict) -> None:
        self.runs[case].append(run)
        n = len(self.runs[case])
        print(
            f"{case} {n}: first forward {run['first_forward_s']:.2f} s, "
            f"process {run['process_s']:.1f} s, {run['benchmarks']} benchmarks, "
            f"{run['compiles']} compiles, {run['checksum']}",
            flush=True,
        )
        self.write()

    def write(self) -> None:
        rows = [row(case, runs) for case, runs in self.runs.items() if runs]
        RESULT.parent.mkdir(exist_ok=True)
        aside = RESULT.with_suffix(".tmp")
        aside.write_text(json.dumps({**self.facts, "rows": rows}, indent=1) + "\n")
        os.replace(aside, RESULT)


def row(case: str, runs: list[dict]) -> dict:
    """Medians of a case's runs; counts must not differ, and differing checksums are all told."""
    numbers = ("first_forward_s", "process_s", "next_forward_s")
    sums = sorted({run["checksum"] for run in runs})
    warming = [run["report"]["warm_seconds"] for run in runs]
    return {
        "case": case,
        "n": len(runs),
        **{key: round(median(run[key] for run in runs), 4) for key in numbers},
        "benchmarks": max(run["benchmarks"] for run in runs),
        "compiles": max(run["compiles"] for run in runs),
        "checksum": sums[0] if len(sums) == 1 else sums,
        "enable_s": round(median(warming), 4),
        "all_first_forward_s": [round(run["first_forward_s"], 3) for run in runs],
        "all_process_s": [round(run["process_s"], 2) for run in runs],
    }


def table(result: dict) -> str:
    lines = [
        "| scoring process of one batch | first forward, s | whole process, s | benchmarks "
        "| compilations | checksum |",
        "|---|--:|--:|--:|--:|---|",
    ]
    for r in result["rows"]:
        sums = r["checksum"]
        told = f"`{sums[:8]}`" if isinstance(sums, str) else f"{len(sums)} different"
        lines.append(
            f"| {CASES[r['case']]} | {r['first_forward_s']:.2f} | {r['process_s']:.1f} "
            f"| {r['benchmarks']} | {r['compiles']} | {told} |"
        )
    return "\n".join(lines)


def measure(repeats: int, minutes: float, batch_size: int) -> None:
    end = time.monotonic() + 60 * minutes
    work = {**WORK, "batch_size": batch_size, "engine": "cherimoya"}
    fast = {**work, "engine": "fast"}
    with tempfile.TemporaryDirectory(prefix="veff-bench-") as folder:
        here = Path(folder)
        settings = {"device": "cuda", "cache_dir": str(here / "node")}
        seeds = [str(here / "run")]
        packages = {name: version(name) for name in ("torch", "triton", "cherimoya")}
        cold = timed("process", work, None, [], cache=here / "cold")
        results = Results(gpu=cold["gpu"], versions=packages, batch_size=batch_size)
        results.add("cold", cold)
        done = timed("setup", [work, fast], settings, seeds[0])
        results.facts["setup"] = done
        print(f"setup: {done['process_s']:.1f} s, {done['node']}", flush=True)
        for i in range(repeats):
            new = {**settings, "cache_dir": str(here / f"node{i}")}
            results.add("warm", timed("process", work, settings, seeds))
            results.add("seeded", timed("process", work, new, seeds))
            results.add("no choice", timed("process", work, None, [], cache=here / "cold"))
        while len(results.runs["cold"]) < repeats and time.monotonic() + 54 < end:
            shutil.rmtree(here / "again", ignore_errors=True)
            results.add("cold", timed("process", work, None, [], cache=here / "again"))
        while len(results.runs["warm, fast engine"]) < repeats and time.monotonic() + 10 < end:
            results.add("warm, fast engine", timed("process", fast, settings, seeds))
    judge(json.loads(RESULT.read_text()))


def judge(result: dict) -> None:
    """Say how the figures stand to what the project set out to reach."""
    rows = {row["case"]: row for row in result["rows"]}
    warm, seeded, without = rows["warm"], rows["seeded"], rows["no choice"]
    share = warm["process_s"] / without["process_s"]
    print(table(result))
    print(f"warm first forward {warm['first_forward_s']:.2f} s (to reach: 1.0)")
    print(f"whole process {share:.0%} of the one without the choice (to reach: 45 %)")
    one = isinstance(warm["checksum"], str) and warm["checksum"] == seeded["checksum"]
    print(f"checksums of warm and seeded runs {'equal' if one else 'DIFFER'}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--minutes", type=float, default=8)
    parser.add_argument("--batch-size", type=int, default=1)
    parser.add_argument("--table", action="store_true", help="print the table of the last run")
    parser.add_argument("--run", nargs=2, help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.run:
        command, arguments = asked.run
        print(json.dumps({"process": process, "setup": setup}[command](*json.loads(arguments))))
    elif asked.table:
        print(table(json.loads(RESULT.read_text())))
    else:
        measure(asked.repeats, asked.minutes, asked.batch_size)


if __name__ == "__main__":
    main()
