"""Train the demo's four models on simulated windows, with Cherimoya's own training.

    python resources/demo/train.py               # rewrites models/*.torch and training.json

Each experiment has two folds, which leave out different windows; each fold is trained from
several seeds at the same time, and the one that predicts the left-out windows' counts best is
kept. The demo's own variants play no part: `check.py` looks at those afterwards. Minutes on one
GPU. Needs what `cherimoya.training` imports, beyond the demo: lightning, scikit-learn, bpnet-lite.
"""

import argparse
import json
import math
import multiprocessing
import tempfile
import time
from concurrent.futures import ProcessPoolExecutor
from importlib.metadata import version
from pathlib import Path

import numpy as np
import simulate
import torch
from cherimoya import Cherimoya
from cherimoya.io import PeakNegativeSampler
from cherimoya.training import fit

WINDOW_SEED = 20242  # not the genome's: no model has seen the demo's contigs
FOLDS = 2
BATCH = 64
HELD_OUT = 15 * BATCH  # a fold's own windows, whole batches so that kernels see one shape


def simulate_windows(experiment, n):
    """One-hot windows, uint8 [n, 4, INPUT], and their reads, float32 [n, 1, OUTPUT]."""
    rng = np.random.default_rng(WINDOW_SEED)
    codes = simulate.simulate_sequences(rng, n, simulate.INPUT)
    mean = simulate.output_part(simulate.expected_signal(codes, experiment))
    one_hot = (codes[:, None] == np.arange(4)[:, None]).astype(np.uint8)
    return torch.from_numpy(one_hot), torch.from_numpy(rng.poisson(mean)[:, None]).float()


def train(experiment, fold, seed, n_windows, epochs, folder):
    """Train one candidate, save its best epoch in `folder`, and say how it did."""
    started = time.monotonic()
    torch.set_num_threads(2)
    X, y = simulate_windows(experiment, n_windows + FOLDS * HELD_OUT)
    held_out = torch.zeros(len(X), dtype=torch.bool)
    held_out[fold * HELD_OUT : (fold + 1) * HELD_OUT] = True
    X_train, y_train = X[~held_out][:n_windows], y[~held_out][:n_windows]
    data = PeakNegativeSampler(
        X_train,
        y_train,
        X[:0],
        y[:0],
        negative_ratio=0,
        reverse_complement=True,
        random_state=seed,
    )
    name = f"{experiment}.fold{fold}"
    path = Path(folder) / f"{name}.seed{seed}"
    model = Cherimoya(n_filters=32, n_layers=9, name=str(path), compile=False, random_state=seed)
    torch.manual_seed(seed)
    # Start the count head at the mean, which a short training would else spend its steps to reach.
    torch.nn.init.constant_(model.linear.bias, y_train.sum(dim=2).log1p().mean().item())
    trainer = fit(
        model,
        data,
        X[held_out],
        y[held_out],
        max_epochs=epochs,
        batch_size=BATCH,
        n_warmup_steps=2 * (n_windows // BATCH),
        verbose=True,
        progress_bar=False,
    )
    # Lightning's file carries this machine's path as the model's name.
    best = Cherimoya.load(f"{path}.torch", compile=False)
    best.name = name
    best.save(f"{path}.torch")
    pearson = float(trainer.checkpoint_callback.best_model_score)
    return {
        "model": name,
        "seed": seed,
        "held_out_count_pearson": None if math.isnan(pearson) else round(pearson, 5),
        "steps": epochs * (n_windows // BATCH),
        "seconds": round(time.monotonic() - started, 1),
        "file": f"{path}.torch",
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--out", type=Path, default=simulate.HERE, help="folder to write to")
    parser.add_argument("--windows", type=int, default=12_000, help="training windows")
    parser.add_argument("--epochs", type=int, default=16)
    parser.add_argument("--seeds", type=int, default=2, help="candidates for each fold")
    options = parser.parse_args()

    models = options.out / "models"
    models.mkdir(parents=True, exist_ok=True)
    gpu = torch.cuda.is_available()
    jobs = [
        (e, f, s)
        for e in simulate.EXPERIMENTS
        for f in range(FOLDS)
        for s in range(100 * f, 100 * f + options.seeds)
    ]
    with (
        tempfile.TemporaryDirectory() as folder,
        ProcessPoolExecutor(
            len(jobs) if gpu else 1, mp_context=multiprocessing.get_context("spawn")
        ) as pool,
    ):
        running = [
            pool.submit(train, *job, options.windows, options.epochs, folder) for job in jobs
        ]
        candidates = [future.result() for future in running]
        for name in sorted({c["model"] for c in candidates}):
            of_fold = [c for c in candidates if c["model"] == name]
            best = max(of_fold, key=lambda c: c["held_out_count_pearson"] or -1)
            for candidate in of_fold:
                candidate["kept"] = candidate is best
            (models / f"{name}.torch").write_bytes(Path(best["file"]).read_bytes())
    for candidate in candidates:
        del candidate["file"]
    log = {
        "device": torch.cuda.get_device_name() if gpu else "cpu",
        **{package: version(package) for package in ("cherimoya", "torch", "lightning")},
        "windows": options.windows,
        "epochs": options.epochs,
        "candidates": candidates,
    }
    (options.out / "training.json").write_text(json.dumps(log, indent=1) + "\n")


if __name__ == "__main__":
    main()
