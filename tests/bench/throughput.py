"""How fast alleles are scored on this machine's GPU, beside what users write today.

    python tests/bench/throughput.py [--parts forward stages ...] [--results FILE]

Parts, in the order in which they run; each writes its results at once:
    forward     windows/s of each engine, precision and batch size, and GPU memory
    stages      where a batch's milliseconds go in the fast engine
    accuracy    against a float64 forward on the CPU, default-size and demo models
    end_to_end  VCF and FASTA in, table out; the share of time in which the GPU computes; memory
    users       pysam windows, tangermeme's one-hot and predict; one variant a call
    cost        against the number of alleles and of models
    region      every change of 200 bp under ten experiments
    scaling     two processes on two GPUs, where there are two

The genome, its SNVs and the models are simulated; weights do not change the time. On a machine
without a GPU, `--tiny` runs all parts in a few minutes to see that they work.
"""

import argparse
import copy
import datetime
import json
import logging
import multiprocessing
import os
import resource
import sys
import tempfile
import time
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path

import numpy as np

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE.parents[1] / "workflow")]

from veff import autotune  # noqa: E402

autotune.enable()

import pandas as pd  # noqa: E402
import pyarrow.parquet as pq  # noqa: E402
import pysam  # noqa: E402
import torch  # noqa: E402
import watch  # noqa: E402
from cherimoya import Cherimoya, ControlWrapper  # noqa: E402
from prepare import simulate_genome, simulate_snvs  # noqa: E402
from tangermeme.predict import predict as tangermeme_predict  # noqa: E402
from tangermeme.utils import one_hot_encode  # noqa: E402

from veff import tables  # noqa: E402
from veff.cherimoya import checkpoint, engine, proof  # noqa: E402
from veff.edited import planning  # noqa: E402
from veff.inputs import preparing, reference  # noqa: E402
from veff.models.architecture import Geometry  # noqa: E402
from veff.models.experiment import Experiment, experiments  # noqa: E402
from veff.models.sheet import Request  # noqa: E402
from veff.scoring import effects, score  # noqa: E402
from veff.scoring.how import How  # noqa: E402

GEOMETRY = Geometry(2114, 1000)
PARTS = ("forward", "stages", "accuracy", "end_to_end", "users", "cost", "region", "scaling")


class Bench:
    """Sizes, scratch files, and the results so far."""

    def __init__(self, parts: list[str], results: Path, tiny: bool, scratch: Path):
        self.parts, self.file, self.tiny, self.scratch = parts, results, tiny, scratch
        self.device = engine.device("auto")
        self.on_gpu = self.device.type == "cuda"
        self.shape = {"n_filters": 16, "n_layers": 9} if tiny else {}
        self.batches = (4, 8) if tiny else (64, 256, 1024)
        self.results = json.loads(results.read_text()) if results.exists() else {}

    def run(self) -> None:
        for part in self.parts:
            say(f"== {part}")
            began = time.perf_counter()
            found = globals()[part](self)
            self.results[part] = {
                **found,
                "seconds": round(time.perf_counter() - began, 1),
                "machine": {
                    "date": datetime.date.today().isoformat(),
                    "device": torch.cuda.get_device_name() if self.on_gpu else "cpu",
                    "cores": len(os.sched_getaffinity(0)),
                    "torch": torch.__version__,
                    "tiny": self.tiny,
                },
            }
            self.file.parent.mkdir(parents=True, exist_ok=True)
            self.file.write_text(json.dumps(self.results, indent=1) + "\n")

    def wait(self) -> None:
        if self.on_gpu:
            torch.cuda.synchronize()

    def model(self, seed: int = 0) -> Cherimoya:
        """With weights of the size that training gives them: half precision is not refused."""
        model = Cherimoya(
            **self.shape, trimming=GEOMETRY.trimming, compile=False, random_state=seed
        )
        with torch.no_grad():
            for weight in model.parameters():
                weight.mul_(3)
            model.linear.bias.fill_(5.0)
        return model.eval()

    def predictor(self, **how) -> engine.Predictor:
        return engine.Predictor(self.model(), GEOMETRY, device=self.device, **how)

    def seconds(self, call, at_least: float = 2.0) -> float:
        """Of one call: the mean over as many as take `at_least` seconds, after a first one."""
        call()
        self.wait()
        n, began = 0, time.perf_counter()
        while time.perf_counter() - began < (0.2 if self.tiny else at_least):
            for _ in range(3):
                call()
            self.wait()
            n += 3
        return (time.perf_counter() - began) / n

    @cached_property
    def genome(self) -> Path:
        fasta = self.scratch / "genome.fa"
        simulate_genome(fasta, 600_000 if self.tiny else 120_000_000)
        pysam.faidx(str(fasta))
        reference.build(fasta, self.scratch / "reference")
        return fasta

    def snvs(self, n: int) -> Path:
        self.genome  # noqa: B018
        vcf = self.scratch / f"{n}.vcf.gz"
        if not vcf.exists():
            simulate_snvs(vcf, reference.Reference.open(self.scratch / "reference"), n)
        return vcf

    def prepared(self, n: int, chunk_size: int) -> Path:
        scoreable = self.scratch / f"{n}.{chunk_size}.scoreable.parquet"
        if not scoreable.exists():
            vcf, genome = self.snvs(n), reference.Reference.open(self.scratch / "reference")
            alleles = self.scratch / "alleles.parquet"
            preparing.prepare(vcf, genome, alleles, scoreable, chunk_size=chunk_size)
        return scoreable

    def experiments(self, n: int) -> list[Experiment]:
        """Experiments of one model each."""
        requests = []
        for seed in range(n):
            path = self.scratch / f"model{seed}.torch"
            model = self.model(seed)
            if not path.exists():
                model.save(path)
            requests.append(Request(f"e{seed}", (str(path),)))
        return experiments(checkpoint.inspect(requests, {}))

    def score(
        self,
        n_alleles: int,
        n_models: int = 1,
        chunk: int = 0,
        chunk_size: int = 0,
        precision: str = "fp32",
    ) -> None:
        """Score and write a chunk, as the scoring script does."""
        scored = score.score(
            pq.ParquetFile(self.prepared(n_alleles, chunk_size or n_alleles)).read_row_group(
                chunk
            ),
            reference.Reference.open(self.scratch / "reference"),
            self.experiments(n_models),
            How(precision=precision),
            batch_size=self.batches[-1],
            proofs=self.scratch / "proofs",
        )
        paths = [self.scratch / f"{name}.{os.getpid()}.parquet" for name in ("answers", "folds")]
        tables.write_parquets(paths, scored)


def say(*what) -> None:
    print(*what, flush=True)


@contextmanager
def as_cherimoya_ships():
    """The switches as `import cherimoya` leaves them: what a user of it runs with."""
    ours = torch.backends.cudnn.deterministic, torch.get_float32_matmul_precision()
    torch.backends.cudnn.benchmark = torch.backends.cudnn.allow_tf32 = True
    torch.backends.cudnn.deterministic = False
    torch.set_float32_matmul_precision("high")
    try:
        yield
    finally:
        torch.backends.cudnn.benchmark = torch.backends.cudnn.allow_tf32 = False
        torch.backends.cudnn.deterministic = ours[0]
        torch.set_float32_matmul_precision(ours[1])


def random_bases(rows: int) -> np.ndarray:
    choices = np.frombuffer(b"ACGT", np.uint8)
    return np.random.default_rng(0).choice(choices, (rows, GEOMETRY.input_length))


def forward(bench: Bench) -> dict:
    rates, memory = {}, {}

    def measured(name: str, precision: str, batch: int, call) -> None:
        if bench.on_gpu:
            torch.cuda.empty_cache()
            torch.cuda.reset_peak_memory_stats()
        rate = batch / bench.seconds(call)
        rates.setdefault(name, {}).setdefault(precision, {})[batch] = round(rate, 1)
        say(f"{name} {precision} batch {batch}: {rate:,.0f} windows/s")
        if bench.on_gpu:
            peak = torch.cuda.max_memory_allocated() / 2**20
            memory.setdefault(name, {}).setdefault(precision, {})[batch] = round(peak)

    for precision in ("fp32", "fast"):
        for batch in bench.batches:
            bases = torch.from_numpy(random_bases(batch)).to(bench.device)
            for which in ("fast", "cherimoya"):
                predictor = bench.predictor(precision=precision, engine=which, batch_size=batch)
                measured(
                    predictor.engine, precision, batch, lambda p=predictor, b=bases: p.predict(b)
                )
            model, one_hot = bench.model().to(bench.device), to_one_hot(bases)

            def as_shipped(model=model, one_hot=one_hot, half=precision == "fast"):
                with torch.no_grad(), torch.autocast(bench.device.type, torch.bfloat16, half):
                    model(one_hot)

            with as_cherimoya_ships():
                measured("cherimoya as shipped", precision, batch, as_shipped)
    ratios = {}
    for precision in ("fp32", "fast"):
        best = {name: max(by[precision].values()) for name, by in rates.items()}
        ratios[precision] = round(best["fast"] / best["cherimoya as shipped"], 3)
    say(f"fast engine, against Cherimoya as shipped at its best batch: {ratios}")
    return {"windows_per_s": rates, "peak_mb": memory, "ratio": ratios}


def to_one_hot(bases: torch.Tensor) -> torch.Tensor:
    acgt = torch.tensor(list(b"ACGT"), dtype=torch.uint8, device=bases.device)
    return (bases.unsqueeze(1) == acgt.unsqueeze(1)).float()


def stages(bench: Bench) -> dict:
    batch, found = bench.batches[-1], {}
    for precision in ("fp32", "fast"):
        predictor = bench.predictor(precision=precision, batch_size=batch)
        bases = torch.from_numpy(random_bases(batch)).to(bench.device)
        ms = kernels_ms(bench, lambda b=bases, p=predictor: p.predict(b)) if bench.on_gpu else {}
        ms["all"] = bench.seconds(lambda b=bases, p=predictor: p.predict(b))
        logits, log_counts = predictor.predict(bases)
        n = batch // 2
        h = log_counts[:, 0]
        ms["scores"] = bench.seconds(
            lambda z=logits, h=h, n=n: effects.score(
                h[:n], effects.profile(z[:n]), h[n:], effects.profile(z[n:])
            )
        )
        found[precision] = {name: round(1000 * value, 3) for name, value in ms.items()}
        say(precision, found[precision])
    return {"batch": batch, "ms": found}


def kernels_ms(bench: Bench, call) -> dict:
    """Seconds of each kernel in one call, all its launches together."""
    call()
    bench.wait()
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as profile:
        for _ in range(10):
            call()
        bench.wait()
    cuda = torch.autograd.DeviceType.CUDA
    return {
        event.key[:40]: event.device_time_total / 1e7
        for event in profile.key_averages()
        if event.device_type == cuda and event.device_time_total > 1e3
    }


def accuracy(bench: Bench) -> dict:
    """Of SNVs under a model: the largest and the median error of each answer."""
    n = 4 if bench.tiny else 32
    ref = random_bases(n)
    alt, middle = ref.copy(), GEOMETRY.input_length // 2
    following = dict(zip(b"ACGT", b"CGTA", strict=True))
    alt[:, middle] = [following[base] for base in ref[:, middle]]
    bases = torch.from_numpy(np.concatenate([ref, alt]))
    tested = {"default size, untrained": bench.model()}
    for path in sorted((HERE.parents[1] / "resources" / "demo").rglob("*.torch")):
        model = checkpoint.load(path)
        if model.trimming == GEOMETRY.trimming and model.n_control_tracks == 0:
            tested[f"demo {path.stem}"] = model

    def answers(logits: torch.Tensor, log_counts: torch.Tensor) -> dict:
        z, h = logits[:, : model.signal_groups[0]].cpu(), log_counts[:, 0].cpu()
        p = effects.profile(z)
        scores = effects.score(h[:n], p[:n], h[n:], p[n:])
        kept = ("logfc", "logfc_501", "jsd")
        return {"logits": z, "log_counts": h, **{name: scores[name] for name in kept}}

    found = {}
    for name, model in tested.items():
        torch.set_num_threads(len(os.sched_getaffinity(0)))
        exact = answers(*proof.exact(model, bases.numpy()))
        torch.set_num_threads(1)
        found[name] = {"size": {key: float(value.abs().median()) for key, value in exact.items()}}
        for precision in ("fp32", "fast"):
            for which in ("fast", "cherimoya"):
                predictor = engine.Predictor(
                    copy.deepcopy(model),
                    GEOMETRY,
                    device=bench.device,
                    precision=precision,
                    engine=which,
                    batch_size=2 * n,
                )
                ours = answers(*predictor.predict(bases))
                errors = {key: (ours[key].double() - exact[key]).abs() for key in exact}
                found[name][f"{precision} {which}"] = {
                    key: {"median": float(error.median()), "max": float(error.max())}
                    for key, error in errors.items()
                }
                say(
                    name,
                    precision,
                    which,
                    {k: f"{float(e.max()):.1e}" for k, e in errors.items()},
                )
    return {"snvs": n, "models": found}


def busy_share(bench: Bench, call) -> float | None:
    """The share of time, from the first kernel or copy to the last, in which one runs."""
    if not bench.on_gpu:
        return None
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as profile:
        call()
        bench.wait()
    cuda = torch.autograd.DeviceType.CUDA
    spans = sorted(
        (event.time_range.start, event.time_range.end)
        for event in profile.events()
        if event.device_type == cuda
    )
    busy, reached = 0, spans[0][0]
    for begin, end in spans:
        busy += max(end - max(begin, reached), 0)
        reached = max(reached, end)
    return busy / (reached - spans[0][0])


def end_to_end(bench: Bench) -> dict:
    """The whole way through this project, after process start."""
    n = 200 if bench.tiny else 1_000_000
    vcf, steps = bench.snvs(n), {}

    def timed(step: str, call):
        began = time.perf_counter()
        result = call()
        bench.wait()
        steps[step] = round(time.perf_counter() - began, 2)
        say(f"{step}: {steps[step]} s")
        return result

    bench.experiments(1)
    for precision in ("fp32", "fast"):  # the kernels' tuning is not in question here
        bench.predictor(batch_size=bench.batches[-1], precision=precision)
    if bench.on_gpu:
        torch.cuda.reset_peak_memory_stats()
    timed("reference", lambda: reference.build(bench.genome, bench.scratch / "reference"))
    genome = reference.Reference.open(bench.scratch / "reference")
    alleles = bench.scratch / "alleles.parquet"
    scoreable = bench.scratch / f"{n}.{n}.scoreable.parquet"
    timed("prepare", lambda: preparing.prepare(vcf, genome, alleles, scoreable, chunk_size=n))
    loop, rates, busy = {}, {}, {}
    few = 100 if bench.tiny else 100_000
    bench.prepared(few, few)
    for precision in ("fp32", "fast"):
        how = {"precision": precision}
        with watch.loop() as marks:
            timed(f"score {precision}", lambda how=how: bench.score(n, **how))
        loop[precision] = round(watch.windows_per_s(marks), 1)
        scoring = steps[f"score {precision}"]
        rates[precision] = {
            "scoring job": round(n / scoring, 1),
            "VCF to table": round(n / (steps["prepare"] + scoring), 1),
        }
        share = busy_share(bench, lambda how=how: bench.score(few, **how))
        busy[precision] = share and round(share, 4)
        say(
            f"{precision}: SNVs/s {rates[precision]}, in the loop {loop[precision]:,.0f} windows/s"
        )
    say(f"GPU busy {busy}")
    return {
        "snvs": n,
        "steps_s": steps,
        "snvs_per_s": rates,
        "loop_windows_per_s": loop,
        "gpu_busy": busy,
        "peak_gpu_mb": torch.cuda.max_memory_allocated() >> 20 if bench.on_gpu else None,
        "peak_rss_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10,
    }


def pairs(vcf: Path, fasta: Path, n: int):
    """Reference and alternate windows of the first `n` SNVs whose windows lie in a contig."""
    length, half, made = GEOMETRY.input_length, GEOMETRY.input_length // 2, 0
    with pysam.VariantFile(str(vcf)) as records, pysam.FastaFile(str(fasta)) as genome:
        for record in records:
            start = record.start - half
            ref = genome.fetch(record.chrom, max(start, 0), start + length).upper()
            if len(ref) < length:
                continue
            yield record, ref, ref[:half] + record.alts[0] + ref[half + 1 :]
            made += 1
            if made == n:
                return


def users(bench: Bench) -> dict:
    """What a user of Cherimoya and tangermeme writes, with the switches that these set."""
    rates = {}
    model = ControlWrapper(bench.model())
    how = {"device": bench.device.type}

    def table(vcf: Path, n: int, batch: int) -> None:
        rows, ref, alt = [], [], []
        for record, one, other in pairs(vcf, bench.genome, n):
            rows.append((record.chrom, record.pos, record.ref, record.alts[0]))
            ref.append(one_hot_encode(one))
            alt.append(one_hot_encode(other))
        (z, h), (z_alt, h_alt) = (
            tangermeme_predict(model, torch.stack(x).float(), batch_size=batch, **how)
            for x in (ref, alt)
        )
        p, q = (y.flatten(1).softmax(1) for y in (z, z_alt))
        frame = pd.DataFrame(rows, columns=["chrom", "pos", "ref", "alt"])
        frame["logfc"] = ((h_alt - h) / np.log(2))[:, 0].numpy()
        frame["jsd"] = effects.jsd(p, q).numpy()
        frame.to_csv(bench.scratch / "users.tsv", sep="\t", index=False)

    with as_cherimoya_ships():
        # Whole batches only: each other size would be benchmarked while the clock runs.
        for batch, numbers in ((64, (4096, 20480)), (1024, (4096, 20480))):
            for n in (16,) if bench.tiny else numbers:
                vcf = bench.snvs(n + n // 10)
                table(vcf, min(batch, n), batch)
                began = time.perf_counter()
                table(vcf, n, batch)
                rate = n / (time.perf_counter() - began)
                rates.setdefault(f"tangermeme, batch {batch}", {})[n] = round(rate, 1)
                say(f"tangermeme, batch {batch}, {n} SNVs: {rate:,.0f} SNVs/s")

        n = 8 if bench.tiny else 512
        alone, began = bench.model().to(bench.device), None
        with torch.no_grad():
            for i, (_, *both) in enumerate(pairs(bench.snvs(n + n // 10), bench.genome, n)):
                if i == 1:  # the first one's kernels may have been compiled
                    began = time.perf_counter()
                (z, h), (z_alt, h_alt) = (
                    alone(one_hot_encode(one).float()[None].to(bench.device)) for one in both
                )
                effects.jsd(effects.profile(z), effects.profile(z_alt)).item()
                (h_alt - h).item()
        rate = (n - 1) / (time.perf_counter() - began)
        rates["one variant a call"] = {n: round(rate, 1)}
        say(f"one variant a call: {rate:,.0f} SNVs/s")
    return {"snvs_per_s": rates}


def cost(bench: Bench) -> dict:
    """Seconds of one scoring job, against alleles with one model and models with few alleles."""
    # `end_to_end` has the million.
    numbers = (50, 100) if bench.tiny else (1_000, 10_000, 100_000)
    of_models, few = ((1, 2), 20) if bench.tiny else ((1, 5, 20, 50), 10_000)
    by_alleles, by_models = {}, {}
    bench.predictor(batch_size=bench.batches[-1])

    def seconds(n_alleles: int, n_models: int) -> float:
        bench.prepared(n_alleles, n_alleles), bench.experiments(n_models)
        began = time.perf_counter()
        bench.score(n_alleles, n_models)
        return round(time.perf_counter() - began, 2)

    for n in numbers:
        by_alleles[n] = seconds(n, 1)
        say(f"{n} alleles, 1 model: {by_alleles[n]} s")
    for n in of_models:
        by_models[n] = seconds(few, n)
        say(f"{few} alleles, {n} models: {by_models[n]} s")
    return {"s_by_alleles": by_alleles, "s_by_models": by_models, "alleles_of_models": few}


def region(bench: Bench) -> dict:
    """Every substitution, deletion and tile of 200 bp, under ten experiments of a model each."""
    bench.genome  # noqa: B018
    genome = reference.Reference.open(bench.scratch / "reference")
    bed = bench.scratch / "region.bed"
    bed.write_text(f"{genome.names[0]}\t50000\t{50_020 if bench.tiny else 50_200}\n")
    virtual, planned = bench.scratch / "virtual.parquet", bench.scratch / "planned.parquet"
    own = {"tile": 10, "span": 500, "chunk_size": 10**6, "virtual": virtual, "planned": planned}
    began = time.perf_counter()
    planning.plan(bed, None, genome, **own)
    plan_s = time.perf_counter() - began
    table, models = pq.read_table(virtual), bench.experiments(2 if bench.tiny else 10)
    how = {"batch_size": bench.batches[-1], "proofs": bench.scratch / "proofs"}

    def once() -> float:
        """Of all that a scoring job does when the GPU is warm; models are loaded again."""
        began = time.perf_counter()
        for _ in score.score(table, genome, models, How(), **how):
            pass
        bench.wait()
        return time.perf_counter() - began

    first, *again = [once() for _ in range(4)]
    return {
        "edits": len(table),
        "experiments": len(models),
        "plan_s": round(plan_s, 3),
        "first_s": round(first, 3),
        "warm_s": round(float(np.median(again)), 3),
    }


def score_on(gpu: int, ready, begin, done, scratch: Path, n: int, tiny: bool) -> None:
    """In a process of its own: chunk `gpu` of two, on that GPU."""
    visible = os.environ.get("CUDA_VISIBLE_DEVICES", "0,1").split(",")
    os.environ["CUDA_VISIBLE_DEVICES"] = visible[gpu]
    torch.set_num_threads(1)
    bench = Bench([], scratch / "none.json", tiny, scratch)
    bench.predictor(batch_size=bench.batches[-1])
    ready.put(gpu)
    begin.wait()
    bench.score(n, chunk=gpu, chunk_size=n // 2)
    done.put(gpu)


def scaling(bench: Bench) -> dict:
    """Two halves of the alleles on two GPUs at once, against one half on one."""
    if torch.cuda.device_count() < 2:
        say("not run: fewer than two GPUs")
        return {"not_run": "fewer than two GPUs"}
    n = 400_000
    bench.prepared(n, n // 2), bench.experiments(1)
    seconds = {}
    context = multiprocessing.get_context("spawn")
    for gpus in (1, 2):
        ready, begin, done = context.Queue(), context.Event(), context.Queue()
        jobs = [
            context.Process(
                target=score_on, args=(gpu, ready, begin, done, bench.scratch, n, bench.tiny)
            )
            for gpu in range(gpus)
        ]
        for job in jobs:
            job.start()
        for _ in jobs:
            ready.get()
        began = time.perf_counter()
        begin.set()
        for _ in jobs:
            done.get()
        seconds[gpus] = round(time.perf_counter() - began, 2)
        say(f"{gpus} GPUs, {gpus * n // 2} SNVs: {seconds[gpus]} s")
        for job in jobs:
            job.join()
    return {"seconds": seconds, "speed_up": round(2 * seconds[1] / seconds[2], 3)}


def speed_table(results: dict) -> str:
    rates, whole = results["forward"]["windows_per_s"], results["end_to_end"]
    names = {
        "fast": "this engine",
        "cherimoya as shipped": "Cherimoya's own, as it ships (TF32, not deterministic)",
        "cherimoya": "Cherimoya's own, deterministic as here",
    }
    lines = ["| windows/s at the best batch | fp32 | fast |", "|---|--:|--:|"]
    for name, what in names.items():
        best = [max(rates[name][precision].values()) for precision in ("fp32", "fast")]
        lines.append(f"| {what} | " + " | ".join(f"{rate:,.0f}" for rate in best) + " |")
    loop = " | ".join(f"{rate:,.0f}" for rate in whole["loop_windows_per_s"].values())
    lines.append(f"| inside the scoring loop, {whole['snvs']:,} SNVs | {loop} |")
    lines += ["", "| SNVs/s, one model | |", "|---|--:|"]
    for precision, by_step in whole["snvs_per_s"].items():
        for name, rate in by_step.items():
            lines.append(f"| {name}, {precision}, {whole['snvs']:,} SNVs | {rate:,.0f} |")
    for name, by_number in results["users"]["snvs_per_s"].items():
        for n, rate in by_number.items():
            lines.append(f"| {name}, {int(n):,} SNVs | {rate:,.0f} |")
    return "\n".join(lines)


def accuracy_table(results: dict) -> str:
    shown = {
        "fp32": "fp32 fast",
        "fast": "fast fast",
        "Cherimoya's own": "fp32 cherimoya",
        "its own, autocast to bf16": "fast cherimoya",
    }
    lines = [
        "| `logfc`, error against float64, median (largest) | " + " | ".join(shown) + " |",
        "|---|" + "--:|" * len(shown),
    ]
    for model, found in results["accuracy"]["models"].items():
        errors = [found[key]["logfc"] for key in shown.values()]
        told = [f"{error['median']:.1e} ({error['max']:.1e})" for error in errors]
        lines.append(f"| {model} | " + " | ".join(told) + " |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=PARTS)
    parser.add_argument("--results", type=Path, default=HERE / "results" / "throughput.json")
    parser.add_argument("--tiny", action="store_true", help="small models and numbers")
    parser.add_argument("--table", action="store_true", help="print the tables of the last run")
    arguments = parser.parse_args()
    if arguments.table:
        results = json.loads(arguments.results.read_text())
        print(speed_table(results), accuracy_table(results), sep="\n\n")
        return
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    pysam.set_verbosity(0)  # of the simulated VCF's missing header lines
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as scratch:
        Bench(arguments.parts, arguments.results, arguments.tiny, Path(scratch)).run()


if __name__ == "__main__":
    main()
