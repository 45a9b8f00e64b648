"""Train two folds on the demo's own genome, each on the half that the other one holds out.

    python resources/demo/heldout.py             # rewrites heldout/*.torch

The demo's other models never saw its genome, so that all of them hold all of it out. These ones
are for `ensemble: heldout`: what each fold says of the contigs that it was trained on is flattered
by having seen them. They are small, read 314 bp, and predict the 200 bp in the middle, so that two
CPU cores train them in minutes. Needs what `train.py` needs.
"""

import tempfile
from pathlib import Path

import numpy as np
import simulate
import torch
from cherimoya import Cherimoya
from cherimoya.io import PeakNegativeSampler
from cherimoya.training import fit

EXPERIMENT = "cellA"
HELD_OUT = ("simB", "simC", "simD"), ("simA",)  # by fold
OUTPUT, TRIMMING = 200, 57
INPUT = OUTPUT + 2 * TRIMMING
STEP = 25  # bp from one training window to the next
BATCH, EPOCHS = 64, 20
READS_SEED = 20243


def windows(contig, rng):
    """Windows of a contig, one-hot, uint8 [n, 4, INPUT], and reads, float32 [n, 1, OUTPUT]."""
    starts = np.arange(0, len(contig) - INPUT + 1, STEP)[:, None]
    mean = simulate.expected_signal(contig[None], EXPERIMENT)[0]
    # Drawn once for each base: windows that overlap have the same reads.
    reads = rng.poisson(mean)[starts + TRIMMING + np.arange(OUTPUT)]
    codes = contig[starts + np.arange(INPUT)]
    one_hot = (codes[:, None] == np.arange(4)[:, None]).astype(np.uint8)
    return torch.from_numpy(one_hot), torch.from_numpy(reads[:, None]).float()


def train(fold, folder):
    """Train a fold, and return its best epoch's model, by windows of the contigs that it sees."""
    rng = np.random.default_rng(READS_SEED)
    parts = [
        windows(codes, rng)
        for name, codes in simulate.simulate_genome().items()
        if name not in HELD_OUT[fold]
    ]
    X, y = map(torch.cat, zip(*parts, strict=True))
    n_valid = 5 * BATCH  # whole batches, from the end of a contig
    seen = len(X) - n_valid - INPUT // STEP - 1  # without those that overlap with them
    data = PeakNegativeSampler(
        X[:seen],
        y[:seen],
        X[:0],
        y[:0],
        negative_ratio=0,
        reverse_complement=True,
        random_state=fold,
    )
    path = Path(folder) / f"fold{fold}"
    model = Cherimoya(
        n_filters=16,
        n_layers=4,
        trimming=TRIMMING,
        name=str(path),
        compile=False,
        random_state=fold,
    )
    torch.manual_seed(fold)
    torch.nn.init.constant_(model.linear.bias, y[:seen].sum(dim=2).log1p().mean().item())
    fit(
        model,
        data,
        X[-n_valid:],
        y[-n_valid:],
        max_epochs=EPOCHS,
        batch_size=BATCH,
        n_warmup_steps=seen // BATCH,
        verbose=True,
        progress_bar=False,
    )
    best = Cherimoya.load(f"{path}.torch", compile=False)
    best.name = f"{EXPERIMENT}.heldout{fold}"
    return best


def main():
    out = simulate.HERE / "heldout"
    out.mkdir(exist_ok=True)
    for fold in range(len(HELD_OUT)):
        with tempfile.TemporaryDirectory() as folder:
            train(fold, folder).save(str(out / f"{EXPERIMENT}.fold{fold}.torch"))


if __name__ == "__main__":
    main()
