"""What does the page show of credible sets?"""

from pathlib import Path

import altair as alt
import pyarrow.compute as pc
import pyarrow.parquet as pq

from veff.names import cut, label
from veff.report.charts import INK, UP, data, finished

MOST = 12  # credible sets: those with the largest pip_x_abs_logfc
MEMBERS = 500  # of a set that are drawn, from the first on
NAMED = 3  # of a set that have their names in the chart
LISTED = 10
COLUMNS = ["allele_id", "chrom", "pos", "ref", "alt", "id", "max_experiment", "max_logfc",
           "max_pval", "pip", "credible_set", "pip_x_abs_logfc", "credible_set_rank"]  # fmt: skip


class CredibleSets:
    """The credible sets of a run's summary: the alleles that lead each, and a chart of each."""

    def __init__(self, summary: Path):
        rows = pq.read_table(summary, columns=COLUMNS)
        rows = rows.filter(pc.is_valid(rows["credible_set_rank"]))
        self.n = len(pc.unique(rows["credible_set"]))
        first = rows.filter(pc.equal(rows["credible_set_rank"], 1))
        first = first.sort_by([("pip_x_abs_logfc", "descending"), ("allele_id", "ascending")])
        self.sets, self.charts = [], {}
        for name in pc.unique(first["credible_set"]).to_pylist()[:MOST]:
            own = rows.filter(pc.equal(rows["credible_set"], name))
            own = own.sort_by([("credible_set_rank", "ascending"), ("allele_id", "ascending")])
            members = own.slice(0, MEMBERS).to_pylist()
            shown = {"name": cut(name), "n": len(own), "drawn": len(members)}
            self.charts[f"credible-set-{len(self.sets)}"] = finished(_chart(members))
            self.sets.append(shown | {"rows": members[:LISTED]})


def _chart(members: list[dict]):
    """Probability against predicted effect; what ranks first has its name."""
    rows = [
        {
            "logfc": row["max_logfc"],
            "pip": row["pip"],
            "allele": label(row),
            "experiment": cut(row["max_experiment"]),
            "rank": row["credible_set_rank"],
            "name": label(row) if i < NAMED else "",
        }
        for i, row in enumerate(members)
    ]
    base = alt.Chart(data(rows)).encode(
        x=alt.X("logfc:Q", title="largest predicted log2 fold change"),
        y=alt.Y("pip:Q", title="posterior inclusion probability"),
    )
    first = alt.condition("datum.rank == 1", alt.value(UP), alt.value(INK))
    points = base.mark_circle(size=50, opacity=0.6).encode(
        color=first, tooltip=["allele:N", "experiment:N", "logfc:Q", "pip:Q", "rank:Q"]
    )
    names = base.mark_text(dy=-9, color=INK, fontSize=11).encode(text="name:N")
    return (points + names).properties(height=260)
