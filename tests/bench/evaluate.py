"""How good are other tools' formulas on the same predictions? And are the measures fast and right?

    python tests/bench/evaluate.py [--rows 1000000] [--trials 4000]

results/evaluate.json gets three parts. `formulas`: the demo's variants, predicted by Cherimoya's
plain forward, scored by each formula below and compared with the planted effects. `rows`: so many
rows with planted errors (`tests/planted.py`), the seconds that they take, and whether every count
is right. `coverage`: the share of 95 % intervals that hold the truth, in so many simulations.

The formulas are those of
- variant-scorer (github.com/kundajelab/variant-scorer, src/variant_scoring.py and
  src/variant_summary_across_folds.py): counts exp(h), log2 of their ratio, the Jensen-Shannon
  distance of the profiles, products of both; the mean of the folds' scores;
- Chorus (github.com/pinellolab/chorus, chorus/oracles/cherimoya_source/scoring.py): profile times
  expm1(h), averaged over the folds, its sum over 501 bp, log2((alternate + 1) / (reference + 1)).
  By default it uses the first fold alone;
- tangermeme (tangermeme.variant_effect), which returns what is predicted before and after and
  leaves the rest to its user: the difference of log-counts, as in Cherimoya's documentation, the
  mean of the folds'.
"""

import argparse
import datetime
import json
import os
import platform
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import torch
from cherimoya import Cherimoya
from scipy.spatial.distance import jensenshannon

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
sys.path[:0] = [str(ROOT / one) for one in ("workflow", "tests", "tests/unit", "resources/demo")]

import check  # noqa: E402
import simulate  # noqa: E402
from test_metrics import MEASURES, share_that_holds  # noqa: E402

import planted  # noqa: E402
from veff.evaluation import metrics  # noqa: E402
from veff.evaluation.bootstrap import Blocks  # noqa: E402
from veff.evaluation.evaluate import evaluate  # noqa: E402
from veff.evaluation.truth import Truth  # noqa: E402
from veff.scoring import effects, ensemble  # noqa: E402

BLOCK = 5000  # bp, of the demo's contigs, of 300 kb in all


def predictions(experiment: str, pairs: np.ndarray) -> tuple[torch.Tensor, torch.Tensor]:
    """Log-counts [folds, n, 2] and profiles [folds, n, 2, OUTPUT], of both alleles, float64."""
    windows = torch.from_numpy((pairs[:, :, None] == np.arange(4)[:, None]).astype(np.float32))
    h, p = [], []
    for path in sorted((simulate.HERE / "models").glob(f"{experiment}.*.torch")):
        model = Cherimoya.load(path, compile=False).eval()
        with torch.no_grad():
            out = [model(batch.flatten(0, 1)) for batch in windows.split(32)]
        logits, counts = (torch.cat(one).double() for one in zip(*out, strict=True))
        h.append(counts.view(-1, 2))
        p.append(logits.softmax(-1).view(len(pairs), 2, -1))
    return torch.stack(h), torch.stack(p)


def formulas(h: torch.Tensor, p: torch.Tensor, length_change: np.ndarray) -> dict:
    """Each tool's scores, by tool and name: those with a direction, and those without."""
    middle = p.shape[-1] // 2
    # Bases that only one allele has, and as many at the other's end, are cut out.
    breakpoint = torch.full((h.shape[1],), middle + 1)
    index = effects.shared(breakpoint, torch.from_numpy(length_change), p.shape[-1])

    def distances(ref: torch.Tensor, alt: torch.Tensor) -> np.ndarray:
        both = effects.aligned(ref[:, None], alt[:, None], index)
        return jensenshannon(*(one[:, 0].numpy() for one in both), base=2, axis=1)

    def chorus(profiles: np.ndarray) -> np.ndarray:
        """Of expected counts [n, 2, OUTPUT]."""
        ref, alt = profiles[..., middle - 250 : middle + 251].sum(-1).T
        return np.log2((alt + 1) / (ref + 1))

    counts = np.exp(h.numpy())
    logfc = np.log2(counts[..., 1] / counts[..., 0])
    jsd = np.stack([distances(*fold.unbind(1)) for fold in p])
    expected = (p * h.expm1()[..., None]).numpy()
    pairs = [ensemble.mean_prediction(h[..., i], p[:, :, i, None]) for i in (0, 1)]
    (h_ref, p_ref), (h_alt, p_alt) = pairs
    ours = effects.score(h_ref, p_ref, h_alt, p_alt, index)
    return {
        "cherimoya-veff": {
            name: ours[name].numpy() for name in ("logfc", "logfc_501", "jsd", "logfc_x_jsd")
        },
        "variant-scorer": {
            "logfc.mean": logfc.mean(0),
            "jsd.mean": jsd.mean(0),
            "logfc_x_jsd.mean": (logfc * jsd).mean(0),
        },
        "Chorus": {
            "raw_score, fold 0": chorus(expected[0]),
            "raw_score, ensemble": chorus(expected.mean(0)),
        },
        "tangermeme": {"difference of log-counts": np.diff(h.numpy())[..., 0].mean(0)},
    }


def against_planted(experiment: str) -> list[dict]:
    """A row a formula and measure, as `evaluation.tsv` has it."""
    pairs, truth = check.read_windows()
    effect = np.array([float(row[f"logfc_{experiment}"]) for row in truth])
    positive = np.array([row[f"sign_{experiment}"] != "0" for row in truth])
    longer = np.array([len(row["ref"]) - len(row["alt"]) for row in truth])
    contig = np.unique([row["chrom"] for row in truth], return_inverse=True)[1]
    blocks = Blocks.of(contig, np.array([int(row["pos"]) for row in truth]), BLOCK)
    rows = []
    for tool, scores in formulas(*predictions(experiment, pairs), longer).items():
        for name, score in scores.items():
            size = np.abs(score)
            found = {
                "auroc": (metrics.auroc(size, positive), "logit"),
                "auprc": (metrics.auprc(size, positive), "logit"),
            }
            if not name.startswith("jsd"):
                found["pearson"] = metrics.pearson(score, effect), "fisher"
                found["spearman"] = metrics.spearman(score, effect), "fisher"
            for measure, (one, link) in found.items():
                low, high = blocks.interval(one, np.ones(len(score), bool), link)
                row = {"experiment": experiment, "tool": tool, "score": name, "measure": measure}
                values = {"value": one.value, "low": low, "high": high}
                rows.append(row | {k: round(v, 4) for k, v in values.items() if np.isfinite(v)})
    return rows


def many_rows(n: int) -> dict:
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        run = planted.plant(folder, n, length=20 * n)
        columns = {"effect": "beta", "label": "label", "frequency": "eaf"}
        truth = Truth(run.table, **columns, alt_frequency="gnomad", block=20_000)
        load = os.getloadavg()[0]
        started, cpu = time.monotonic(), time.process_time()
        evaluate(
            {"t": truth},
            run.reference,
            alleles=run.alleles,
            scores=run.scores,
            folds=run.folds,
            max_allele_length=500,
            out=folder / "e.tsv",
            aligned=folder / "e.parquet",
            shown=folder / "e.json",
        )
        seconds, cpu = time.monotonic() - started, time.process_time() - cpu
        lines = [line.split("\t") for line in (folder / "e.tsv").read_text().splitlines()]
    lines = [dict(zip(lines[0], line, strict=True)) for line in lines[1:]]
    counts = {row["measure"]: int(row["n"]) for row in lines if row["measure"] in run.counts}
    mine = [row for row in lines if (row["score"], row["class"]) == ("logfc", "all")]
    shown = {
        row["measure"]: {key: float(row[key]) for key in ("value", "low", "high") if row[key]}
        for row in mine
    }
    return {
        "rows": run.counts["rows"],
        "load_before": round(load, 1),
        "seconds": round(seconds, 1),
        "seconds_of_cores": round(cpu, 1),
        "counts": counts,
        "counts_exact": counts == run.counts,
        "planted_r": planted.R,
        "logfc": shown,
    }


def coverage(trials: int) -> dict:
    """Of each measure the share of intervals that hold the truth."""
    shares = {name: round(share_that_holds(name, trials), 4) for name in MEASURES}
    return {"trials": trials, "of_95_percent": shares}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--trials", type=int, default=4_000)
    arguments = parser.parse_args()
    results = {
        "date": datetime.date.today().isoformat(),
        "machine": platform.machine(),
        "cores_of_machine": os.cpu_count(),
        "formulas": [row for one in simulate.EXPERIMENTS for row in against_planted(one)],
        "rows": many_rows(arguments.rows),
        "coverage": coverage(arguments.trials),
    }
    out = HERE / "results" / "evaluate.json"
    out.write_text(json.dumps(results, indent=1) + "\n")
    print(out.read_text())


if __name__ == "__main__":
    main()
