"""What does the page show of the scores beside measured effects?"""

from pathlib import Path

import altair as alt

from veff.atomic import read_json
from veff.names import cut
from veff.report.charts import GREY, INK, data, finished

MEASURES = {
    "pearson": "Pearson's r",
    "spearman": "Spearman's rho",
    "sign_concordance": "same sign",
    "auroc": "AUROC",
    "auroc_matched": "AUROC within sets",
    "auprc": "average precision",
    "pearson_not_aligned": "r without aligning",
}
MEASURED = "measured effect of ALT"


class Evaluation:
    """What `veff.evaluation` wrote for the report: tables of text, and charts by their names."""

    def __init__(self, shown: Path):
        found = read_json(shown)
        self.truths: dict[str, dict] = {}
        for row in found["rows"]:
            one = self.truths.setdefault(
                row["truth"], {"name": cut(row["truth"]), "counts": {}, "measures": {}}
            )
            if row["experiment"]:
                several = f" {row['group']}" if row["group"] else ""
                own = one["measures"].setdefault(cut(row["experiment"]) + several, {})
                own[row["measure"]] = _words(row)
            elif row["n"]:
                words = row["measure"].removeprefix("rows_").replace("_", " ")
                one["counts"][words] = row["n"]
        for one in self.truths.values():
            there = {name for own in one["measures"].values() for name in own}
            one["columns"] = {key: name for key, name in MEASURES.items() if key in there}
        self.pages = [page for page in found["pages"] if page["points"]]
        for page in self.pages:
            page["title"] = f"{cut(page['truth'])}: {cut(page['experiment'])}"
        self.charts = {
            f"evaluation-{kind}-{i}": finished(draw(page))
            for i, page in enumerate(self.pages)
            for kind, draw in (("scatter", _scatter), ("calibration", _calibration))
        }


def _words(row: dict) -> str:
    value, low, high = (f"{float(row[key] or 'nan'):.3g}" for key in ("value", "low", "high"))
    return value if low == "nan" else f"{value} ({low} to {high})"


def _axes() -> tuple[alt.X, alt.Y]:
    return (
        alt.X("predicted:Q", title="predicted log2 fold change"),
        alt.Y("measured:Q", title=MEASURED),
    )


def _scatter(page: dict):
    x, y = _axes()
    points = alt.Chart(data(page["points"])).mark_circle(size=14, color=INK, opacity=0.35)
    return points.encode(x=x, y=y, tooltip=["predicted:Q", "measured:Q"]).properties(height=260)


def _calibration(page: dict):
    """The mean measured effect of tenths of the rows by their predicted one, with its error."""
    rows = [
        one
        | {"low": one["measured"] - 1.96 * one["error"]}
        | {"high": one["measured"] + 1.96 * one["error"]}
        for one in page["bins"]
    ]
    x, y = _axes()
    base = alt.Chart(data(rows))
    bars = base.mark_rule(color=GREY).encode(x=x, y=alt.Y("low:Q", title=MEASURED), y2="high:Q")
    points = base.mark_circle(size=40, color=INK, opacity=1).encode(
        x=x, y=y, tooltip=["predicted:Q", "measured:Q", "n:Q"]
    )
    return (bars + points).properties(height=260)
