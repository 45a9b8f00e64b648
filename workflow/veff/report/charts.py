"""What do the report's numbers look like: Vega-Lite charts, made with Altair."""

import altair as alt

from veff.names import label
from veff.report.numbers import N_COLUMNS, N_HISTOGRAMS, N_ROWS, Numbers

# Okabe and Ito's colours, which colour-blind readers tell apart.
BLUE, ORANGE, GREY = "#0072B2", "#D55E00", "#777777"
DIVERGING = [BLUE, "#f4f4f4", ORANGE]
EFFECT = "log2 fold change"


def charts(numbers: Numbers) -> dict[str, dict]:
    """The charts by name, each as wide as the page lets it be; those without data left out."""
    if not numbers.n_scored:
        return {}
    found = {}
    shown = sorted(numbers.answers, key=lambda one: -one.largest)[:N_HISTOGRAMS]
    for i, one in enumerate(shown):
        found[f"effects-{i}"] = _histogram(one, numbers)
    found["genome"] = _genome(numbers)
    if numbers.volcano:
        found["volcano"] = _volcano(numbers)
    if len(numbers.answers) > 1:
        found["heatmap"] = _heatmap(numbers)
    if any(row["fold"] for row in numbers.folds):
        found["agreement"] = _agreement(numbers)
        found["folds"] = _folds(numbers)
    return {name: _finished(chart) for name, chart in found.items()}


def _data(rows) -> alt.Data:
    return alt.Data(values=list(rows))


def _finished(chart) -> dict:
    chart = chart.properties(width="container", autosize={"type": "fit-x", "contains": "padding"})
    chart = chart.configure(font="system-ui, sans-serif", background="transparent")
    chart = chart.configure_axis(
        grid=True,
        gridColor="#eeeeee",
        domainColor="#999999",
        tickColor="#999999",
        titleFontWeight=500,
    )
    return chart.configure_view(stroke=None).to_dict()


def _effect(field: str, numbers: Numbers) -> alt.X:
    """The axis that the classes of effects were made for."""
    last = float(numbers.edges[-1])
    ticks = [numbers.near_zero * 10**i for i in range(4)]
    ticks = [tick for tick in ticks if tick <= last]
    scale = alt.Scale(type="symlog", constant=numbers.near_zero, domain=[-last, last], nice=False)
    axis = alt.Axis(values=[*(-tick for tick in ticks), 0, *ticks], format="~g")
    return alt.X(field, title=EFFECT, scale=scale, axis=axis)


def _histogram(one, numbers: Numbers):
    edges = numbers.edges
    scale = one.n / max(one.null.sum(), 1)
    columns = zip(edges[:-1], edges[1:], one.histogram, one.null * scale, strict=True)
    rows = [
        {"from": float(low), "to": float(high), "alleles": int(n), "null": float(null)}
        for low, high, n, null in columns
    ]
    # From 0.5 on, so that one allele is seen on the logarithmic axis.
    rows = [row | {"floor": 0.5, "null": max(row["null"], 0.5)} for row in rows]
    x = _effect("from:Q", numbers)
    y = alt.Y(
        "alleles:Q",
        title="alleles",
        scale=alt.Scale(type="log", domainMin=0.5, nice=False),
        axis=alt.Axis(format="~s", tickCount=4, values=_POWERS),
    )
    tooltip = [alt.Tooltip(f"{name}:Q", format=form) for name, form in _HISTOGRAM]
    chart = (
        alt.Chart(_data(row for row in rows if row["alleles"]))
        .mark_rect(color=BLUE)
        .encode(x=x, x2="to:Q", y=y, y2="floor:Q", tooltip=tooltip)
    )
    if one.null.any():
        line = alt.Chart(_data(rows)).mark_line(
            color=ORANGE, strokeWidth=1.5, interpolate="step-after"
        )
        chart += line.encode(x=alt.X("from:Q"), y=alt.Y("null:Q"))
    return chart.properties(height=150)


_POWERS = [10**i for i in range(10)]
_HISTOGRAM = (("from", ".3g"), ("to", ".3g"), ("alleles", ","))


def _genome(numbers: Numbers):
    one = numbers.contigs[0] if len(numbers.contigs) == 1 else None
    ends = [numbers.contigs[0]["x"], max(numbers.contigs[-1]["x2"], 1)]
    if one:
        rows = [row | {"x": (row["x"] + one["first"]) / 1e6} for row in numbers.genome]
        ends = [(x + one["first"]) / 1e6 for x in ends]
        axis, title = alt.Axis(grid=False), f"{one['name']}, Mb"
    else:
        rows, axis, title = numbers.genome, None, None
    x = alt.X("x:Q", title=title, axis=axis, scale=alt.Scale(domain=ends, nice=False))
    points = (
        alt.Chart(_data(rows))
        .mark_circle(size=18, opacity=0.8)
        .encode(
            x=x,
            y=alt.Y("logfc:Q", title=EFFECT),
            color=alt.Color(
                "contig:N", legend=None, scale=alt.Scale(domain=[0, 1], range=[BLUE, GREY])
            ),
            tooltip=["allele:N", "experiment:N", alt.Tooltip("logfc:Q", format=".3g")],
        )
    )
    if one:
        return points.properties(height=240)
    room = ends[1] * 0.03
    names = [
        {"name": c["name"], "x": (c["x"] + c["x2"]) / 2}
        for c in numbers.contigs
        if c["x2"] - c["x"] > room
    ]
    text = (
        alt.Chart(_data(names))
        .mark_text(baseline="bottom", fontSize=10, color="#333333", limit=70)
        .encode(x=alt.X("x:Q"), y=alt.value(239), text="name:N")
    )
    return (points + text).properties(height=240)


def _volcano(numbers: Numbers):
    return (
        alt.Chart(_data(numbers.volcano))
        .mark_rect()
        .encode(
            x=_effect("x:Q", numbers),
            x2="x2:Q",
            y=alt.Y("y:Q", title="\u2212log10 p"),
            y2="y2:Q",
            color=alt.Color(
                "n:Q",
                title="alleles \u00d7 experiments",
                scale=alt.Scale(type="log", scheme="viridis", reverse=True),
                legend=alt.Legend(orient="top", tickCount=4, format="~s"),
            ),
            tooltip=[alt.Tooltip("n:Q", format=",", title="alleles \u00d7 experiments")],
        )
        .properties(height=280)
    )


def _heatmap(numbers: Numbers):
    alleles = [(f"{i}. {label(row)}", row) for i, row in enumerate(numbers.top[:N_ROWS], 1)]
    shown = sorted(numbers.answers, key=lambda one: -one.largest)[:N_COLUMNS]
    shown = [one for one in numbers.answers if one in shown]
    rows = [
        {"allele": name, "experiment": one.name, "logfc": one.of_top[row["allele_id"]]["logfc"]}
        for name, row in alleles
        for one in shown
        if row["allele_id"] in one.of_top
    ]
    limit = max(abs(row["logfc"]) for row in rows)
    return (
        alt.Chart(_data(rows))
        .mark_rect(stroke="white", strokeWidth=1)
        .encode(
            x=alt.X(
                "experiment:N",
                title=None,
                sort=[one.name for one in shown],
                axis=alt.Axis(orient="top", labelAngle=-40, labelLimit=150, grid=False),
            ),
            y=alt.Y("allele:N", title=None, sort=[name for name, _ in alleles], axis=_NAMES),
            color=alt.Color(
                "logfc:Q",
                title=EFFECT,
                scale=alt.Scale(domain=[-limit, 0, limit], range=DIVERGING),
                legend=alt.Legend(orient="bottom", gradientLength=180),
            ),
            tooltip=["allele:N", "experiment:N", alt.Tooltip("logfc:Q", format=".3g")],
        )
        .properties(height=_ROW * len(alleles))
    )


_ROW = 16  # pixels
_NAMES = alt.Axis(labelLimit=190, grid=False, ticks=False, domain=False)


def _agreement(numbers: Numbers):
    shown = sorted(numbers.answers, key=lambda one: -one.largest)[: len(OKABE_ITO)]
    names = [one.name for one in shown]
    rows = [
        {
            "class": f"{low:g} to {high:g}" if high < 1e9 else f"over {low:g}",
            "order": float(low),
            "experiment": one.name,
            "share": float(share),
            "alleles": int(n),
        }
        for one in shown
        for low, high, n, share in one.agreement
    ]
    return (
        alt.Chart(_data(rows))
        .mark_line(point=alt.OverlayMarkDef(size=40, filled=True), strokeWidth=1.5)
        .encode(
            x=alt.X(
                "class:N",
                title="size of the log2 fold change",
                sort=alt.SortField("order"),
                axis=alt.Axis(labelAngle=-30),
            ),
            y=alt.Y(
                "share:Q",
                title="all folds agree in sign",
                scale=alt.Scale(domain=[0, 1]),
                axis=alt.Axis(format="%"),
            ),
            color=alt.Color(
                "experiment:N",
                title=None,
                scale=alt.Scale(range=OKABE_ITO),
                sort=names,
                legend=alt.Legend(orient="top", columns=3, labelLimit=110),
            ),
            shape=alt.Shape("experiment:N", title=None, sort=names, legend=None),
            tooltip=[
                "experiment:N",
                "class:N",
                alt.Tooltip("share:Q", format=".1%"),
                alt.Tooltip("alleles:Q", format=","),
            ],
        )
        .properties(height=220)
    )


OKABE_ITO = [BLUE, ORANGE, "#009E73", "#CC79A7", "#000000", "#56B4E9", "#E69F00", "#999999"]


def _folds(numbers: Numbers):
    names = [f"{i}. {label(row)}" for i, row in enumerate(numbers.top[:N_ROWS], 1)]
    y = alt.Y("allele:N", title=None, sort=names, axis=_NAMES)
    x = alt.X("logfc:Q", title=EFFECT)
    folds = (
        alt.Chart(_data(row | {"allele": names[row["rank"]]} for row in numbers.folds))
        .mark_circle(size=36, color=BLUE, opacity=0.7)
        .encode(x=x, y=y, tooltip=["allele:N", "fold:Q", alt.Tooltip("logfc:Q", format=".3g")])
    )
    answers = [
        {"allele": name, "logfc": row["max_logfc"]}
        for name, row in zip(names, numbers.top, strict=False)
    ]
    mean = (
        alt.Chart(_data(answers))
        .mark_tick(color=ORANGE, thickness=2, size=12, orient="vertical")
        .encode(x=alt.X("logfc:Q"), y=alt.Y("allele:N", sort=names))
    )
    return (folds + mean).properties(height=_ROW * len(names))
