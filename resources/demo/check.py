"""Check the demo's models against the planted truth, with Cherimoya's plain forward alone.

    python resources/demo/check.py [models folder]

For each experiment, each fold and the folds' mean: does |logfc| separate the variants that change
a motif active there from those that do not, and has it the right sign? How do effects and counts
compare with the planted ones? Uses nothing of veff. Exits 1 if a model falls short.
"""

import csv
import sys
from pathlib import Path

import numpy as np
import pysam
import simulate
import torch
from cherimoya import Cherimoya
from scipy.stats import linregress, mannwhitneyu

MIN_AUROC, MIN_SIGN = 0.95, 0.95


def read_windows():
    """Windows of the scored alleles, codes [n, 2, INPUT], and their truth rows."""
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
    return pairs, rows


def log_counts(path, pairs):
    """log2(counts + 1) of both alleles: float [n, 2]."""
    one_hot = pairs[:, :, None] == np.arange(4)[:, None]
    windows = torch.from_numpy(one_hot.astype(np.float32))
    model = Cherimoya.load(path, compile=False).eval()
    with torch.no_grad():
        predicted = [model(batch.flatten(0, 1))[1] for batch in windows.split(32)]
    return torch.cat(predicted).double().view(-1, 2).numpy() / np.log(2)


def expected_log_counts(pairs, experiment):
    """The same as it is planted: float [n, 2]."""
    signal = simulate.expected_signal(pairs.reshape(-1, pairs.shape[-1]), experiment)
    return np.log2(simulate.output_part(signal).sum(axis=1) + 1).reshape(-1, 2)


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
    pairs, truth = read_windows()
    passed = True
    print(
        "model          AUROC  sign right  median |logfc|: changing  sparing"
        "  r, slope on planted: logfc  counts"
    )
    for experiment in simulate.EXPERIMENTS:
        sign = np.array([int(row[f"sign_{experiment}"]) for row in truth])
        planted = expected_log_counts(pairs, experiment)
        paths = sorted(models.glob(f"{experiment}.*.torch"))
        folds = {path.stem: log_counts(path, pairs) for path in paths}
        if not folds:
            sys.exit(f"{models}: no model named {experiment}.*.torch; train.py makes them")
        for name, counts in {**folds, experiment: np.mean(list(folds.values()), axis=0)}.items():
            auroc, right, changing, sparing = measure(np.diff(counts)[:, 0], sign)
            effects = linregress(np.diff(planted)[:, 0], np.diff(counts)[:, 0])
            levels = linregress(planted.ravel(), counts.ravel())
            good = auroc >= MIN_AUROC and right >= MIN_SIGN
            passed &= bool(good)
            print(
                f"{name:14} {auroc:.4f}  {right:10.1%}  {changing:24.4f}  {sparing:7.4f}"
                f"  {effects.rvalue:18.2f}, {effects.slope:.2f}"
                f"  {levels.rvalue:.2f}, {levels.slope:.2f}{'' if good else '  FAILED'}"
            )
    sys.exit(0 if passed else 1)


if __name__ == "__main__":
    main()
