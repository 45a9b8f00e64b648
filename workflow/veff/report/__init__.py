"""The run as one page to look at: HTML that needs no network, whatever its size."""

import base64
import csv
import io
import json
from collections.abc import Iterable
from itertools import groupby
from pathlib import Path

import altair
import jinja2
import pyarrow.parquet as pq
import vl_convert
import yaml
from markupsafe import Markup

from veff import autotune
from veff.inputs.reference import Reference
from veff.names import cut, label
from veff.report.charts import OKABE_ITO, charts
from veff.report.numbers import (
    N_COLUMNS,
    N_HISTOGRAMS,
    N_ROWS,
    N_UNSCORED,
    Numbers,
    numbers,
)
from veff.scoring import columns
from veff.tables import aside, read_json

__all__ = ["build"]

HERE = Path(__file__).parent
# Of the annotations, what the table of top alleles has: heading, what it means.
ANNOTATIONS = {
    "closest_gene_1": ("closest gene", "and its distance; the summary has two more"),
    "peak_overlap": ("peak", "whether the allele overlaps one of annotations.peaks"),
    "peak_experiments": ("in peaks of", "the experiments whose own peaks the allele overlaps"),
    "hits_motifs": ("motif hits", "the motifs of the hits that the allele overlaps"),
}
# What a model sheet may hold thousands of.
N_MODELS = 50


def build(
    out: Path,
    *,
    alleles: Path,
    summary: Path,
    scores: Path,
    folds: Path,
    provenance: Path,
    reference: Reference,
    nulls: Iterable[Path] = (),
    figures: Iterable[Path] = (),
) -> None:
    """Write the report of a run to `out`.

    `alleles`, `summary`, `scores` and `folds` are the run's tables and `provenance` its record;
    `nulls` are the files of the experiments' nulls; `figures` are PNGs named by `allele_id`. What
    the input says is shown as text, cut to a length, and the page forbids the browser to load
    anything from elsewhere.
    """
    record = read_json(provenance)
    names = {model["experiment"] for model in record["models"]}
    places = _places(nulls, record["models"])
    found = numbers(alleles, summary, scores, folds, reference, places)
    known = pq.read_schema(summary).names
    page = _environment().get_template("page.html")
    drawn = charts(found)
    html = page.render(
        numbers=found,
        record=record,
        config=_configuration(record["config"]),
        statuses={k: n for k, n in record["alleles"]["statuses"].items() if n},
        unscored_tsv=_tsv(found.unscored),
        histograms=_histograms(found),
        n_histograms=N_HISTOGRAMS,
        n_lines=len(OKABE_ITO),
        n_columns=N_COLUMNS,
        n_rows=N_ROWS,
        n_unscored=N_UNSCORED,
        n_models=N_MODELS,
        charts=drawn,
        columns=len(found.answers),
        has_p=bool(found.volcano),
        has_null=any(one.null.any() for one in found.answers),
        annotations={name: said for name, said in ANNOTATIONS.items() if name in known},
        figures=_figures(found, {int(path.stem): path for path in figures}),
        experiments=len(names),
        autotune=autotune.last_line(record["scoring"]["autotune"]),
        style=Markup((HERE / "page.css").read_text()),
        script=Markup((HERE / "page.js").read_text()),
        vega=Markup(_javascript() if drawn else ""),
        specs=Markup(_inside_script(drawn)),
    )
    with aside(out) as temporary:
        temporary.write_text(html, encoding="utf-8")


def _places(nulls: Iterable[Path], models: list[dict]) -> dict[str, tuple[Path, int]]:
    """For each experiment with a null, the file that holds it, and which row group of it."""
    held = {}
    for path in nulls:
        # What the null of each row group depends on, as `veff.scoring.null` writes it.
        identities = json.loads((pq.read_schema(path).metadata or {}).get(b"nulls", b"[]"))
        for i, identity in enumerate(identities):
            held[*identity["models_sha256"], identity["group"]] = path, i
    found = {}
    for name, folds in groupby(models, lambda model: model["experiment"]):
        folds = list(folds)
        key = (*(fold["sha256"] for fold in folds), folds[0].get("group"))
        if key in held:
            found[name] = held[key]
    return found


def _environment() -> jinja2.Environment:
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(HERE),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {"cut": cut, "label": label, "thousands": lambda n: f"{n:,}"}
    environment.filters["annotation"] = _annotation
    environment.filters["digits"] = lambda x, n: "" if x is None else f"{x:.{n}f}"
    environment.filters["significant"] = lambda x: "" if x is None else f"{x:.2g}"
    environment.filters["three"] = "{:#.3g}".format  # significant digits
    return environment


def _annotation(row: dict, name: str) -> str:
    """A value of one of `ANNOTATIONS`, for a person to read."""
    value = row[name]
    if value in (None, False, columns.NONE):
        return ""
    if value is True:
        return "yes"
    away = row["gene_distance_1"] if name == "closest_gene_1" else 0
    far = f"{away / 1000:,.1f} kb" if away >= 1000 else f"{away} bp"
    return f"{cut(value)}, {far}" if away else cut(value)


def _javascript() -> str:
    """Vega, Vega-Lite and Vega-Embed, of the version whose charts Altair makes."""
    version = altair.SCHEMA_VERSION.removeprefix("v").rsplit(".", 1)[0]
    code = vl_convert.javascript_bundle("window.vegaEmbed = vegaEmbed;", vl_version=version)
    return code.replace("</script", "<\\/script")


def _inside_script(value) -> str:
    """JSON that ends no script element."""
    return json.dumps(value, separators=(",", ":")).replace("<", "\\u003c")


def _configuration(config: dict) -> str:
    """The configuration as people write it, a line a value, none of them long."""
    lines = yaml.safe_dump(config, sort_keys=False, allow_unicode=True, width=10**6).splitlines()
    return "\n".join(cut(line, 200) for line in lines)


def _tsv(rows: list[dict]) -> str:
    """The rows as a data URL of tab-separated text; '' for none."""
    if not rows:
        return ""
    text = io.StringIO()
    writer = csv.DictWriter(text, list(rows[0]), delimiter="\t", lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    encoded = base64.b64encode(text.getvalue().encode()).decode()
    return f"data:text/tab-separated-values;charset=utf-8;base64,{encoded}"


def _histograms(found: Numbers) -> list[str]:
    """The experiments whose histograms are drawn, as `charts` orders them."""
    return [one.name for one in sorted(found.answers, key=lambda one: -one.largest)[:N_HISTOGRAMS]]


def _figures(found: Numbers, figures: dict[int, Path]) -> list[dict]:
    """The pictures of top alleles, from the largest effect on."""
    return [
        {
            "id": row["allele_id"],
            "name": label(row),
            "png": base64.b64encode(figures[row["allele_id"]].read_bytes()).decode(),
        }
        for row in found.top
        if row["allele_id"] in figures
    ]
