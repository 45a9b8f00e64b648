"""How many random indels and substitutions have p < 0.05 under a null of SNVs, or of their class?

    python tests/bench/null_classes.py results/demo [--n 300]

Of the first experiment of a run that is there (`make demo`), on a CPU: the share of `n` random
alleles of each class whose `abs_logfc.pval` is below 0.05 under a null of SNVs, and under one of
their class, each of `n` others. Writes results/null_classes.json.
"""

import argparse
import json
import sys
from pathlib import Path

import numpy as np

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parents[1] / "workflow"))

from veff import autotune  # noqa: E402

autotune.enable()

from veff.inputs.classes import NAMES, SNV  # noqa: E402
from veff.inputs.reference import Reference  # noqa: E402
from veff.models import experiment  # noqa: E402
from veff.scoring import null, sampling, score  # noqa: E402
from veff.scoring.how import How  # noqa: E402

CLASSES = ("mnv_2_5", "mnv_6_20", "ins_1_5", "ins_6_20", "del_1_5", "del_6_20")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("run", type=Path)
    parser.add_argument("--n", type=int, default=300)
    given = parser.parse_args()
    reference = Reference.open(given.run / "reference")
    one = experiment.experiments(experiment.read(given.run / "models.json"))[0]

    def scores(kind: str, seed: int):
        drawn = sampling.sample(
            reference, one.geometry.input_length, n=given.n, seed=seed, kind=kind
        )
        genome, alleles = drawn
        [(answers, _)] = score.score(
            alleles, genome, [one], How(device="cpu"), batch_size=64, threads=2
        )
        return answers.append_column("reference_counts", answers["ref_counts"])

    nulls = {kind: scores(kind, 0) for kind in (SNV, *CLASSES)}
    below = {}
    for kind in CLASSES:
        fresh = scores(kind, 1)
        below[kind] = {}
        for name, judge in (("of_snvs", SNV), ("of_its_class", kind)):
            classes = np.full(given.n, NAMES.index(judge))
            pval = null.judge(fresh, nulls, classes)["abs_logfc.pval"].to_numpy()
            below[kind][name] = round(float((pval < 0.05).mean()), 4)
        print(kind, below[kind], flush=True)
    said = {
        "experiment": one.name,
        "folds": [part.fold for part in one.folds],
        "n": given.n,
        "below_0.05": below,
    }
    (HERE / "results/null_classes.json").write_text(json.dumps(said, indent=2) + "\n")


if __name__ == "__main__":
    main()
