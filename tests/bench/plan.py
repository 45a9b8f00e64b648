"""What the plan of a run rests on: bytes on disk a row, and the speed of a CPU core.

    python tests/bench/plan.py [--snvs 20000]

Runs the workflow on the CPU with small untrained models of two folds, since bytes do not depend on
a model's size, and asks how large its results are; then counts how many windows a default-size
model does a second of CPU time on one core, and how long its attributions of the two windows of an
allele take for each shuffle. Writes results/plan.json.
"""

import argparse
import datetime
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE.parents[1] / "workflow"), str(HERE.parent)]

from veff import autotune  # noqa: E402

autotune.enable()

import torch  # noqa: E402
from cherimoya import Cherimoya  # noqa: E402

from project import ROOT, environment  # noqa: E402
from tiny import Tiny  # noqa: E402
from veff.cherimoya import attribution  # noqa: E402
from veff.cherimoya.engine import Predictor  # noqa: E402
from veff.cherimoya.proof import sample  # noqa: E402
from veff.models.architecture import Geometry  # noqa: E402

RESULT = HERE / "results/plan.json"
FOLDS = 2
# What grows with alleles x experiments, with these x folds, and with alleles alone.
SCORES = ("scores.parquet", "parts/answers/*")
TEXT = ("scores.tsv.gz",)
OF_FOLDS = ("folds.parquet", "parts/folds/*")
ALLELES = ("alleles.parquet", "prepared/scoreable.parquet", "summary.*", "annotated.vcf.gz")


def sizes(snvs: int) -> dict:
    with tempfile.TemporaryDirectory() as folder:
        folder = Path(folder)
        (folder / "config").symlink_to(ROOT / "config")
        tiny = Tiny(folder, scale=20)
        rng = np.random.default_rng(1)
        rows = []
        for name, bases in tiny.contigs.items():
            sites = rng.choice(len(bases), snvs * len(bases) // 100_000, replace=False)
            for site in np.sort(sites):
                alt = "ACGT".replace(bases[site], "")[rng.integers(3)]
                rows.append(f"{name}\t{site + 1}\t.\t{bases[site]}\t{alt}\t.\t.\t.\n")
        head = "##fileformat=VCFv4.2\n#CHROM\tPOS\tID\tREF\tALT\tQUAL\tFILTER\tINFO\n"
        (folder / "variants.vcf").write_text(head + "".join(rows))
        tiny.experiment("cell", seeds=tuple(range(FOLDS)))
        models = [f"cell\t{folder}/cell.{fold}.torch\t101\n" for fold in range(FOLDS)]
        sheet = "experiment\tcheckpoint\toutput_length\n" + "".join(models)
        (folder / "models.tsv").write_text(sheet)
        config = [
            *("variants=variants.vcf", "reference=genome.fa", "models=models.tsv", "outdir=out"),
            *("max_allele_length=50", "nulls={n: 1000}", "top={n: 0}", "device=cpu"),
        ]
        command = [sys.executable, "-m", "snakemake", "--cores", "2", "--snakefile"]
        command += [str(ROOT / "workflow/Snakefile"), "--config", *config]
        subprocess.run(command, cwd=folder, env=environment(), check=True)

        def measured(patterns: tuple[str, ...]) -> int:
            files = [path for pattern in patterns for path in (folder / "out").glob(pattern)]
            return sum(path.stat().st_size for path in files)

        return {
            "snvs": len(rows),
            "bytes_a_score": round(measured(SCORES) / len(rows)),
            "bytes_a_score_as_text": round(measured(TEXT) / len(rows)),
            "bytes_a_fold": round(measured(OF_FOLDS) / len(rows) / FOLDS),
            "bytes_an_allele": round(measured(ALLELES) / len(rows)),
        }


def windows_a_cpu_second(rows: int = 16) -> float:
    torch.set_num_threads(1)
    model = Cherimoya(compile=False, random_state=0)
    predictor = Predictor(model, Geometry(2114, 1000), device="cpu", batch_size=rows)
    rates = []
    for _ in range(5):
        began = time.process_time()
        predictor.predict(sample(rows, 2114))
        rates.append(rows / (time.process_time() - began))
    return round(float(np.median(rates)), 1)


def cpu_seconds_a_shuffle(shuffles: int = 4) -> float:
    torch.set_num_threads(1)
    model = Cherimoya(compile=False, random_state=0).eval()
    windows = np.random.default_rng(1).choice(np.frombuffer(b"ACGT", np.uint8), (2, 2114))
    taken = []
    for _ in range(3):
        began = time.process_time()
        references = attribution.shuffled(windows[0], shuffles)
        attribution.attributions(model, windows, 0, "cpu", references)
        taken.append((time.process_time() - began) / shuffles)
    return round(float(np.median(taken)), 2)


def cpu_name() -> str:
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    return next(line.split(": ")[1] for line in lines if line.startswith("model name"))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--snvs", type=int, default=20_000)
    options = parser.parse_args()
    found = {"date": str(datetime.date.today()), "cpu": cpu_name()}
    found |= {"windows_a_cpu_second": windows_a_cpu_second()}
    found |= {"cpu_seconds_a_shuffle": cpu_seconds_a_shuffle()} | sizes(options.snvs)
    RESULT.write_text(json.dumps(found, indent=1) + "\n")
    print(json.dumps(found, indent=1))


if __name__ == "__main__":
    main()
