"""The README's pictures, from the demo's results.

    python resources/demo/picture.py [RESULTS]      # default: results/demo

Writes docs/demo.png, docs/report.png (the first screen of the report, which takes a Chromium) and
docs/top.png (the figure of the largest effect that has attributions). Of the first, left: each
allele's predicted effect beside the effect that was planted; right: the profiles that the first
model of an experiment predicts for the two alleles with the largest effect.
"""

import csv
import shutil
import subprocess
import sys
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
import pyarrow.compute as pc
import pyarrow.parquet as pq
import torch
from cherimoya import Cherimoya

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
sys.path.insert(0, str(ROOT / "workflow"))

from veff.cherimoya.engine import Predictor  # noqa: E402
from veff.inputs.reference import Reference  # noqa: E402
from veff.models.architecture import Geometry  # noqa: E402
from veff.report.colours import ALTERNATE, DOWN, REFERENCE, UP  # noqa: E402
from veff.scoring import effects, windows  # noqa: E402

COLOURS = {"breaks": DOWN, "creates": UP, "spares": "#999999"}
EXPERIMENT = "cellA"


def effects_beside_truth(axes, results: Path) -> None:
    with open(HERE / "truth.tsv", newline="") as handle:
        truth = list(csv.DictReader(handle, delimiter="\t"))
    scores = pq.read_table(results / "scores.parquet").to_pandas()
    scores = scores[scores.experiment == EXPERIMENT].set_index("allele_id").logfc
    for kind, colour in COLOURS.items():
        rows = [i for i, row in enumerate(truth) if row["class"] == kind and i in scores.index]
        planted = [float(truth[i][f"logfc_{EXPERIMENT}"]) for i in rows]
        axes.scatter(planted, scores[rows], s=14, color=colour, label=f"{kind} a motif", lw=0)
    axes.axline((0, 0), slope=1, color="#cccccc", lw=0.8, zorder=0)
    axes.set(xlabel="planted log2 fold change", ylabel="predicted log2 fold change")
    axes.set_title(f"{EXPERIMENT}: {len(scores)} alleles, two folds averaged", fontsize=10)
    axes.legend(frameon=False, fontsize=8)


def profiles_of_the_largest(axes, results: Path) -> None:
    scores = pq.read_table(results / "scores.parquet")
    scores = scores.filter(pc.equal(scores["experiment"], EXPERIMENT))
    scores = scores.filter(pc.equal(scores["n_padded"], 0))
    largest = scores.take([int(np.argmax(np.abs(scores["logfc"].to_numpy())))]).to_pylist()[0]
    scoreable = pq.read_table(results / "prepared/scoreable.parquet")
    allele = scoreable.filter(pc.equal(scoreable["allele_id"], largest["allele_id"]))
    columns = [allele[name].to_numpy() for name in ("contig", "start", "ref_len")]
    reference = Reference.open(results / "reference")
    geometry = Geometry(2114, 1000)
    pair = windows.windows(reference, *columns, allele["alt"].to_pylist(), 2114)[:2]
    model = Cherimoya.load(HERE / f"models/{EXPERIMENT}.fold0.torch", compile=False)
    predictor = Predictor(model, geometry, device="cpu", batch_size=2)
    logits, h = predictor.predict(np.concatenate(pair))
    reads = effects.profile(logits)[:, 0] * effects.counts(h)
    around = torch.arange(1000) - 500
    for row, name, colour in ((0, "reference", REFERENCE), (1, "alternate", ALTERNATE)):
        allele_name = largest["ref" if row == 0 else "alt"]
        axes.plot(around, reads[row], color=colour, lw=1, label=f"{name} {allele_name}")
    axes.set(xlabel="bp from the variant", ylabel="expected reads per bp", xlim=(-250, 250))
    axes.set_title(f"{largest['chrom']}:{largest['pos']}, fold 0", fontsize=10)
    axes.legend(frameon=False, fontsize=8)


def report_s_first_screen(results: Path) -> None:
    chromium = shutil.which("chromium") or sys.exit("docs/report.png needs a Chromium")
    asked = ["--headless", "--no-sandbox", "--hide-scrollbars", "--window-size=1280,860"]
    asked += ["--virtual-time-budget=10000", f"--screenshot={ROOT / 'docs/report.png'}"]
    subprocess.run([chromium, *asked, (results / "report.html").resolve().as_uri()], check=True)


def figure_of_the_largest(results: Path) -> None:
    summary = pq.read_table(results / "summary.parquet", columns=["allele_id", "max_logfc"])
    effects = summary.to_pandas().set_index("allele_id").max_logfc.abs()
    attributed = pq.read_table(results / "attributions.parquet", columns=["allele_id"])
    largest = effects[attributed["allele_id"].unique().to_numpy()].idxmax()
    shutil.copy(results / f"top/{largest}.png", ROOT / "docs/top.png")


def main():
    results = Path(sys.argv[1] if len(sys.argv) > 1 else ROOT / "results/demo")
    figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.4), constrained_layout=True)
    effects_beside_truth(left, results)
    profiles_of_the_largest(right, results)
    for axes in (left, right):
        axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(ROOT / "docs/demo.png", dpi=130, metadata={"Software": None})
    figure_of_the_largest(results)
    report_s_first_screen(results)


if __name__ == "__main__":
    main()
