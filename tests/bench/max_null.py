"""What the null of the largest effect over all experiments, and the biosamples, add to a run.

    python tests/bench/max_null.py [--alleles 20000] [--experiments 200] [--nulls 10000]

Made-up answers of experiments, five of a biosample, and of their nulls of SNVs and of insertions
are collected as the workflow does it; results/max_null.json has the CPU seconds of the whole, of
what makes max_pval, max_qval and max_fwer, and of biosamples.parquet. Beside them stands what one
NVIDIA H200 takes at least to score the same, which is the rest of a run.
"""

import argparse
import datetime
import functools
import json
import os
import platform
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parents[1] / "workflow"))

from veff import plan, tables  # noqa: E402
from veff.models.biosamples import Biosample  # noqa: E402
from veff.outputs import biosamples, collect, summary  # noqa: E402
from veff.scoring import columns, null  # noqa: E402
from veff.scoring.maxima import MaxNull  # noqa: E402

A_BIOSAMPLE = 5  # experiments
CLASSES = ("snv", "ins_1_5")
IDENTITY = {"seed": 0, "scheme": "uniform", "regions_sha256": None, "reference_sha256": "a"}
SECONDS: Counter[str] = Counter()


def timed(owner, name: str, label: str) -> None:
    """Add up the CPU seconds of a function, where `owner` looks it up."""
    function = getattr(owner, name)

    @functools.wraps(function)
    def wrapped(*arguments, **named):
        began = time.process_time()
        try:
            return function(*arguments, **named)
        finally:
            SECONDS[label] += time.process_time() - began

    setattr(owner, name, wrapped)


def scores(rng, n: int) -> dict[str, np.ndarray]:
    return {name: rng.standard_t(3, n) for name in columns.SCORES}


def experiment(rng, name: str, n: int) -> pa.Table:
    table = {"experiment": [name] * n, "allele_id": np.arange(n), "group": np.zeros(n, np.int32)}
    spread = {
        key: pa.array(np.ones(n), pa.float64()).cast(column.kind)
        for key, column in columns.SPREAD.items()
    }
    return pa.table(table | {"n_padded": np.zeros(n, np.int32)} | scores(rng, n) | spread)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--alleles", type=int, default=20_000)
    parser.add_argument("--experiments", type=int, default=200)
    parser.add_argument("--nulls", type=int, default=10_000)
    arguments = parser.parse_args()
    n, rng = arguments.alleles, np.random.default_rng(0)
    load = round(os.getloadavg()[0], 1)
    names = [f"e{i}" for i in range(arguments.experiments)]
    identities = {
        (name, kind): IDENTITY
        | {"experiment": name, "n": arguments.nulls, "input_length": 2114}
        | ({} if kind == "snv" else {"class": kind})
        for name in names
        for kind in CLASSES
    }
    for function in ("add", "p_value"):
        timed(MaxNull, function, "max_null_s")
    for function in ("q_value", "family_wise"):
        timed(summary, function, "max_null_s")
    timed(biosamples, "write", "biosamples_s")
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        ids = np.arange(n)
        text = {key: pa.array(["chr1"] * n) for key in ("chrom", "id", "ref", "effect_is")}
        long = np.where(ids % 10, "C", "CTT")
        alleles = {"allele_id": ids, "record": ids, "pos": ids + 1, **text, "alt": long}
        alleles |= {"status": ["ok"] * n, "scored_as": ids}
        alleles |= {"scored_ref": ["A"] * n, "scored_alt": long}
        pq.write_table(pa.table(alleles), folder / "alleles.parquet")
        own = (experiment(rng, name, n) for name in names)
        tables.write_parquet(folder / "answers.parquet", own)
        folds = (
            experiment(rng, name, n).append_column("fold", pa.array(np.zeros(n, np.int32)))
            for name in names
        )
        tables.write_parquet(folder / "folds.parquet", folds)
        drawn = (
            pa.table({"group": np.zeros(arguments.nulls, np.int32)} | scores(rng, arguments.nulls))
            for _ in identities
        )
        drawn = [one.append_column("reference_counts", one["ref_counts"]) for one in drawn]
        null.write(folder / "nulls.parquet", drawn, list(identities.values()))
        samples = [
            Biosample(f"b{i}", tuple(names[i : i + A_BIOSAMPLE]), ("DNase",) * A_BIOSAMPLE)
            for i in range(0, len(names), A_BIOSAMPLE)
        ]
        outputs = ("scores", "folds_out", "biosamples_out", "summary", "summary_tsv")
        began = time.process_time()
        collect.collect(
            folder / "alleles.parquet",
            [[folder / "answers.parquet"]],
            [[folder / "folds.parquet"]],
            names,
            nulls=null.Nulls([folder / "nulls.parquet"], identities),
            samples=samples,
            **{name: folder / f"{name}.out" for name in outputs},
        )
        seconds = time.process_time() - began
        size = (folder / "biosamples_out.out").stat().st_size
    to_score = (n + arguments.nulls * len(CLASSES)) * len(names) / plan.GPU_RATE
    results = {
        "date": datetime.date.today().isoformat(),
        "machine": platform.machine(),
        "cores_of_machine": os.cpu_count(),
        "load_before": load,
        **vars(arguments),
        "collect_s": round(seconds, 2),
        **{key: round(value, 2) for key, value in SECONDS.items()},
        "max_null_of_collect": round(SECONDS["max_null_s"] / seconds, 4),
        "scoring_on_h200_at_least_s": round(to_score, 1),
        "max_null_of_run_at_most": round(SECONDS["max_null_s"] / (seconds + to_score), 4),
        "biosamples_of_run_at_most": round(SECONDS["biosamples_s"] / (seconds + to_score), 4),
        "biosamples_bytes_a_row": round(size / n / len(samples), 1),
    }
    (HERE / "results" / "max_null.json").write_text(json.dumps(results, indent=1) + "\n")
    print(json.dumps(results))


if __name__ == "__main__":
    main()
