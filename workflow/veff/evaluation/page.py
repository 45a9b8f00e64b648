"""What does the report show of an experiment beside a table of measured effects?"""

import numpy as np
import pyarrow as pa

MOST = 12  # experiments that the report has charts of
POINTS = 2000  # of a scatter, at most, evenly spaced among the rows
BINS = 10  # of the calibration, with as many rows each
WORST = 10


def of(truth: str, experiment: str, group: int, rows: pa.Table, logfc: np.ndarray) -> dict:
    """Points of a scatter, bins of a calibration plot, and the worst disagreements.

    `rows` are those of `aligning.align` that were found, `logfc` what is predicted for each. The
    worst are the rows with the largest product of measured and predicted effect that has the
    wrong sign, each in standard deviations: where both say much, and opposite things.
    """
    effect = rows["effect"].to_numpy()
    where = np.flatnonzero(np.isfinite(effect))
    x, y = logfc[where], effect[where]
    shown = {"truth": truth, "experiment": experiment, "group": group, "n": len(where)}
    if len(where) < 3 or x.std() == 0 or y.std() == 0:
        return shown | {"points": [], "bins": [], "worst": []}
    some = np.unique(np.linspace(0, len(where) - 1, min(POINTS, len(where))).astype(int))
    disagreement = -x * y / (x.std() * y.std())
    worst = np.argsort(-disagreement, kind="stable")[:WORST]
    worst = worst[disagreement[worst] > 0]
    return shown | {
        "points": [{"predicted": float(x[i]), "measured": float(y[i])} for i in some],
        "bins": [
            {
                "predicted": float(x[one].mean()),
                "measured": float(y[one].mean()),
                "error": float(y[one].std(ddof=1) / np.sqrt(len(one))),
                "n": len(one),
            }
            for one in np.array_split(np.argsort(x, kind="stable"), BINS)
            if len(one) > 1
        ],
        "worst": [_row(rows, int(where[i]), float(x[i]), float(y[i])) for i in worst],
    }


def _row(rows: pa.Table, i: int, predicted: float, measured: float) -> dict:
    keys = {"chrom": "contig", "pos": "scored_pos", "ref": "scored_ref", "alt": "scored_alt"}
    place = {key: rows[name][i].as_py() for key, name in keys.items()}
    more = {name: rows[name][i].as_py() for name in ("allele_id", "line", "flipped")}
    return place | more | {"predicted": predicted, "measured": measured}
