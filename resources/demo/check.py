"""Check the demo's models against the planted truth, with Cherimoya's plain forward alone.

    python resources/demo/check.py [models folder]

For each experiment, each fold and the folds' mean: does |logfc| separate the variants that change
a motif active there from those that do not, and has it the right sign? Uses nothing of veff.
Exits 1 if a model falls short.
"""

import csv
import sys
from pathlib import Path

import numpy as np
import pysam
import simulate
import torch
from cherimoya import Cherimoya
from scipy.stats import mannwhitneyu

MIN_AUROC, MIN_SIGN = 0.95, 0.95


def read_windows():
    """One-hot windows of the scored alleles, float32 [n, 2, 4, INPUT], and their truth rows."""
    with pysam.FastxFile(str(simulate.HERE / "genome.fa.gz")) as fasta:
        genome = {contig.name: simulate.encode(contig.sequence) for contig in fasta}
    with open(simulate.HERE / "truth.tsv", newline="") as file:
        rows = [r for r in csv.DictReader(file, delimiter="\t") if r["class"] != "not_scored"]
    pairs = np.stack(
        [
            simulate.window_pair(genome[r["chrom"]], int(r["pos"]) - 1, r["ref"], r["alt"])
            for r in rows
        ]
    )
    one_hot = pairs[:, :, None] == np.arange(4)[:, None]
    return torch.from_numpy(one_hot.astype(np.float32)), rows


def log_fold_change(path, windows):
    """log2((alt counts + 1) / (ref counts + 1)) for each allele: float [n]."""
    model = Cherimoya.load(path, compile=False).eval()
    with torch.no_grad():
        log_counts = [model(batch.flatten(0, 1))[1] for batch in windows.split(32)]
    reference, alternate = torch.cat(log_counts).double().view(-1, 2).unbind(1)
    return ((alternate - reference) / np.log(2)).numpy()


def measure(logfc, sign):
    """(AUROC of |logfc| for sign != 0, share of right signs, median |logfc| of both classes)."""
    changes = sign != 0
    size = np.abs(logfc)
    auroc = mannwhitneyu(size[changes], size[~changes]).statistic / (
        changes.sum() * (~changes).sum()
    )
    right = (np.sign(logfc) == sign)[changes].mean()
    return auroc, right, np.median(size[changes]), np.median(size[~changes])


def main():
    models = Path(sys.argv[1]) if len(sys.argv) > 1 else simulate.HERE / "models"
    windows, truth = read_windows()
    passed = True
    print("model          AUROC  sign right  median |logfc|: changing  sparing  r with planted")
    for experiment in simulate.EXPERIMENTS:
        sign = np.array([int(row[f"sign_{experiment}"]) for row in truth])
        planted = np.array([float(row[f"logfc_{experiment}"]) for row in truth])
        paths = sorted(models.glob(f"{experiment}.*.torch"))
        folds = {path.stem: log_fold_change(path, windows) for path in paths}
        if not folds:
            sys.exit(f"{models}: no model named {experiment}.*.torch; train.py makes them")
        for name, logfc in {**folds, experiment: np.mean(list(folds.values()), axis=0)}.items():
            auroc, right, changing, sparing = measure(logfc, sign)
            correlation = np.corrcoef(logfc, planted)[0, 1]
            good = auroc >= MIN_AUROC and right >= MIN_SIGN
            passed &= bool(good)
            print(
                f"{name:14} {auroc:.4f}  {right:10.1%}  {changing:24.4f}  {sparing:7.4f}"
                f"  {correlation:14.4f}{'' if good else '  FAILED'}"
            )
    sys.exit(0 if passed else 1)


if __name__ == "__main__":
    main()
