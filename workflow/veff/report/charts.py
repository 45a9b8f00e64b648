"""What do the report's numbers look like: Vega-Lite charts, made with Altair."""

from collections import defaultdict

import altair as alt

from veff.names import distinct, label
from veff.report.numbers import N_HISTOGRAMS, Numbers

# The page's own colours, which follow its theme (page.css); all that needs none is in its ink.
UP, DOWN, ALTERNATE = "var(--up-mark)", "var(--down-mark)", "var(--alternate)"
INK, GREY = "currentColor", "#808080"
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
    if numbers.kept.n_each > 1:
        found["agreement"] = _agreement(numbers)
        found["folds"] = _folds(numbers)
    return {name: finished(chart) for name, chart in found.items()} | {"locus": _locus()}


def data(rows) -> alt.Data:
    """Rows as a chart takes them."""
    return alt.Data(values=list(rows))


def finished(chart) -> dict:
    """The specification of a chart in the page's style, as wide as the page lets it be."""
    fit = {"type": "fit-x", "contains": "padding"}
    return _configured(chart.properties(width="container", autosize=fit))


def _configured(chart) -> dict:
    chart = chart.configure(font="system-ui, sans-serif", background="transparent")
    chart = chart.configure_axis(
        grid=True,
        gridColor=GREY,
        gridOpacity=0.2,
        domainColor=GREY,
        tickColor=GREY,
        labelColor=INK,
        titleColor=INK,
        titleFontWeight=500,
        labelFontSize=11,
        titleFontSize=12,
    )
    chart = chart.configure_legend(labelColor=INK, titleColor=INK)
    return chart.configure_view(stroke=None).to_dict()


def _direction(field: str) -> dict:
    """The colour of an effect."""
    return alt.condition(f"datum['{field}'] > 0", alt.value(UP), alt.value(DOWN))


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
        {
            "from": float(low),
            "to": float(high),
            "middle": float(low + high),
            "alleles": int(n),
            "null": float(null),
        }
        for low, high, n, null in columns
    ]
    # From 0.5 on, so that one allele is seen on the logarithmic axis.
    rows = [
        row | {"floor": 0.5, "middle": row["from"] + row["to"], "null": max(row["null"], 0.5)}
        for row in rows
    ]
    x = _effect("from:Q", numbers)
    y = alt.Y(
        "alleles:Q",
        title="alleles",
        scale=alt.Scale(type="log", domainMin=0.5, nice=False),
        axis=alt.Axis(format="~s", tickCount=4, values=_POWERS),
    )
    tooltip = [alt.Tooltip(f"{name}:Q", format=form) for name, form in _HISTOGRAM]
    chart = (
        alt.Chart(data(row for row in rows if row["alleles"]))
        .mark_rect()
        .encode(x=x, x2="to:Q", y=y, y2="floor:Q", tooltip=tooltip, color=_direction("middle"))
    )
    if one.null.any():
        line = alt.Chart(data(rows)).mark_line(
            color=INK, strokeWidth=1.5, interpolate="step-after"
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
        alt.Chart(data(rows))
        .mark_circle(size=18, opacity=0.8)
        .encode(
            x=x,
            y=alt.Y("logfc:Q", title=EFFECT),
            color=_direction("logfc"),
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
        alt.Chart(data(names))
        .mark_text(baseline="top", fontSize=11, color=INK, limit=70)
        .encode(x=alt.X("x:Q"), y=alt.value(246), text="name:N")
    )
    borders = [{"x": c["x2"] + ends[1] / 200} for c in numbers.contigs[:-1]]
    rules = alt.Chart(data(borders)).mark_rule(color=GREY, opacity=0.5).encode(x="x:Q")
    return (points + rules + text).properties(height=240)


def _volcano(numbers: Numbers):
    return (
        alt.Chart(data(numbers.volcano))
        .mark_rect(color=INK)
        .encode(
            x=_effect("x:Q", numbers),
            x2="x2:Q",
            y=alt.Y("y:Q", title="\u2212log10 p"),
            y2="y2:Q",
            opacity=alt.Opacity(
                "n:Q",
                title="alleles \u00d7 experiments",
                scale=alt.Scale(type="log", range=[0.12, 1]),
                legend=alt.Legend(orient="top", tickCount=4, format="~s", symbolType="square"),
            ),
            tooltip=[alt.Tooltip("n:Q", format=",", title="alleles \u00d7 experiments")],
        )
        .properties(height=280)
    )


_ROW = 16  # pixels
_NAMES = alt.Axis(labelLimit=190, grid=False, ticks=False, domain=False)


def _agreement(numbers: Numbers):
    """One thin line an experiment, and a thick one of all together."""
    counts = defaultdict(lambda: [0, 0.0])
    rows = []
    for one in numbers.answers:
        for low, high, n, share in one.agreement:
            counts[low, high][0] += n
            counts[low, high][1] += n * share
            rows.append(_share(one.name, low, high, n, share))
    all_ = [_share(ALL, *at, n, agree / n) for at, (n, agree) in sorted(counts.items())]
    x = alt.X(
        "class:N",
        title="size of the log2 fold change",
        sort=[row["class"] for row in all_],
        axis=alt.Axis(labelAngle=-30),
    )
    y = alt.Y(
        "share:Q",
        title="all folds agree in sign",
        scale=alt.Scale(domain=[0, 1]),
        axis=alt.Axis(format="%"),
    )
    tooltip = [
        "experiment:N",
        "class:N",
        alt.Tooltip("share:Q", format=".1%"),
        alt.Tooltip("alleles:Q", format=","),
    ]
    each = alt.Chart(data(rows)).encode(x=x, y=y, tooltip=tooltip, detail="experiment:N")
    each = each.mark_line(color=GREY, strokeWidth=1, opacity=0.6)
    every = alt.Chart(data(all_)).encode(x=x, y=y, tooltip=tooltip)
    every = every.mark_line(
        color=INK, strokeWidth=2.5, point=alt.OverlayMarkDef(size=40, color=INK)
    )
    return (each + every).properties(height=260)


ALL = "all experiments"


def _share(name: str, low: float, high: float, n: int, share: float) -> dict:
    size = f"{low:g} to {high:g}" if high < 1e9 else f"over {low:g}"
    return {"experiment": name, "class": size, "share": float(share), "alleles": int(n)}


def _folds(numbers: Numbers):
    names = distinct([label(row) for row in numbers.top])
    y = alt.Y("allele:N", title=None, sort=names, axis=_NAMES)
    x = alt.X("logfc:Q", title=EFFECT)
    folds = (
        alt.Chart(data(row | {"allele": names[row["rank"]]} for row in numbers.folds))
        .mark_circle(size=36, color=GREY, opacity=0.7)
        .encode(x=x, y=y, tooltip=["allele:N", alt.Tooltip("logfc:Q", format=".3g")])
    )
    answers = [
        {"allele": name, "logfc": row["max_logfc"]}
        for name, row in zip(names, numbers.top, strict=True)
    ]
    mean = (
        alt.Chart(data(answers))
        .mark_tick(thickness=3, size=12, orient="vertical")
        .encode(x=alt.X("logfc:Q"), y=alt.Y("allele:N", sort=names), color=_direction("logfc"))
    )
    return (folds + mean).properties(height=_ROW * len(names))


def _locus() -> dict:
    """The tracks around an allele, from above; locus.js gives them data and the ends of their
    axis, and leaves out those that have none.

    Data, by the names of the tracks: `profile` (x, reads, allele), `difference` (x, more, less),
    `alleles` (x, logfc, allele, experiment, href, here), `genes` and `peaks` (x, x2, row, name,
    at), `genes.text` and `peaks.text` (x, row, text), `here` (x).
    """
    here = _track("here").mark_rule(color=GREY, strokeDash=[2, 2]).encode(x=_along_x())
    reads = _track("profile").mark_line(strokeWidth=1.2, clip=True)
    reads = reads.encode(
        x=_along_x(),
        y=_up_y("reads:Q", "reads / bp"),
        color=alt.Color(
            "allele:N",
            title=None,
            scale=alt.Scale(domain=["reference", "alternate"], range=[INK, ALTERNATE]),
            legend=alt.Legend(orient="top", offset=2),
        ),
    )
    change = _track("difference").encode(x=_along_x())
    parts = [
        change.mark_area(color=colour, clip=True).encode(y=_up_y(f"{field}:Q", "difference"))
        for field, colour in (("more", UP), ("less", DOWN))
    ]
    stems = (
        _track("alleles")
        .mark_rule(clip=True, aria=False)
        .encode(
            x=_along_x(),
            y=_up_y("logfc:Q", "log2 FC", padding=8),
            y2=alt.datum(0),
            color=_direction("logfc"),
            opacity=_if_here(1, 0.6),
            size=_if_here(2.5, 1),
        )
    )
    heads = (
        _track("alleles")
        .mark_circle(clip=True, opacity=1)
        .encode(
            x=_along_x(),
            y=_up_y("logfc:Q", "log2 FC", padding=8),
            color=_direction("logfc"),
            size=_if_here(110, 45),
            href="href:N",
            tooltip=["allele:N", "experiment:N", alt.Tooltip("logfc:Q", format=".3g")],
        )
    )
    tracks = [
        alt.layer(here, reads).properties(name="profile", height=110),
        alt.layer(here, *parts).properties(name="difference", height=60),
        alt.layer(here, stems, heads).properties(name="alleles", height=90),
        _intervals("genes"),
        _intervals("peaks"),
    ]
    return _configured(alt.vconcat(*tracks, spacing=8).resolve_scale(x="shared"))


def _track(name: str) -> alt.Chart:
    return alt.Chart(alt.NamedData(name=name))


def _along_x() -> alt.X:
    axis = alt.Axis(format=",d", tickCount=5, grid=False)
    return alt.X("x:Q", title=None, scale=alt.Scale(nice=False, zero=False), axis=axis)


def _up_y(field: str, title: str, **scale) -> alt.Y:
    axis = alt.Axis(tickCount=3, minExtent=42, maxExtent=42)
    return alt.Y(field, title=title, axis=axis, scale=alt.Scale(**scale))


def _if_here(yes: float, no: float) -> dict:
    return alt.condition("datum.here", alt.value(yes), alt.value(no))


def _intervals(name: str):
    y = alt.Y("row:O", axis=None)
    bars = _track(name).mark_bar(color=GREY, height=6, yOffset=7, clip=True)
    bars = bars.encode(x=_along_x(), x2="x2:Q", y=y, tooltip=["name:N", "at:N"])
    text = _track(f"{name}.text").mark_text(align="left", dy=-5, fontSize=11, color=INK)
    return alt.layer(bars, text.encode(x=_along_x(), y=y, text="text:N")).properties(name=name)
