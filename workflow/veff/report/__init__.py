"""The run as one page to look at: HTML that needs no network, whatever its size.

One more section is a ``<section>`` in page.html and what `build` gives it; one of an allele's page
is a function in ``SECTIONS`` of allele.js, and its data a key of `build`'s header.
"""

import base64
import csv
import io
import json
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from itertools import groupby
from math import isnan
from pathlib import Path
from types import MappingProxyType

import altair
import jinja2
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import vl_convert
import yaml
from markupsafe import Markup

from veff import autotune, forks
from veff.atomic import aside, read_json
from veff.inputs.reference import Reference
from veff.names import cut, label
from veff.report import biosamples as pooled
from veff.report import locus
from veff.report.charts import charts
from veff.report.evaluation import Evaluation
from veff.report.finemapping import CredibleSets
from veff.report.kept import annotation
from veff.report.numbers import N_HISTOGRAMS, N_UNSCORED, Numbers, numbers

__all__ = ["build"]

HERE = Path(__file__).parent
# The genome browsers of an assembly: addresses to put a place, or gnomAD's name of a variant, in.
UCSC = "https://genome.ucsc.edu/cgi-bin/hgTracks?db={}&position="
GNOMAD = "https://gnomad.broadinstitute.org/variant/{}?dataset="
ENSEMBL = "https://{}.ensembl.org/{}/Location/View?r="
LINKS = {
    "hg38": {
        "ucsc": UCSC.format("hg38"),
        "ensembl": ENSEMBL.format("www", "Homo_sapiens"),
        "gnomad": GNOMAD + "gnomad_r4",
    },
    "hg19": {
        "ucsc": UCSC.format("hg19"),
        "ensembl": ENSEMBL.format("grch37", "Homo_sapiens"),
        "gnomad": GNOMAD + "gnomad_r2_1",
    },
    "T2T-CHM13": {"ucsc": UCSC.format("hs1")},
    "mm39": {"ucsc": UCSC.format("mm39"), "ensembl": ENSEMBL.format("www", "Mus_musculus")},
    "mm10": {
        "ucsc": UCSC.format("mm10"),
        "ensembl": ENSEMBL.format("nov2020.archive", "Mus_musculus"),
    },
}
# What a model sheet may hold thousands of.
N_MODELS = 50
LABELLED = ["allele_id", "chrom", "pos", "ref", "alt"]
SCRIPTS = ("search.js", "elements.js", "allele.js", "locus.js", "heat.js", "page.js")


def build(
    out: Path,
    *,
    alleles: Path,
    summary: Path,
    scores: Path,
    folds: Path,
    provenance: Path,
    experiments: Path,
    reference: Reference,
    biosamples: Path | None = None,
    nulls: Iterable[Path] = (),
    figures: Iterable[Path] = (),
    profiles: Path | None = None,
    words: Path | None = None,
    genes: Path | None = None,
    peaks: Path | None = None,
    peaks_of: Mapping[str, Path] = MappingProxyType({}),
    evaluation: Path | None = None,
    haplotypes: Path | None = None,
    personal: Path | None = None,
) -> None:
    """Write the report of a run to `out`.

    `alleles`, `summary`, `scores` and `folds` are the run's tables, `provenance` its record and
    `experiments` what the model sheet says of each experiment; `biosamples` is the table of what
    their biosamples say, pooled; `nulls` are the files of the
    experiments' nulls, `figures` PNGs named by `allele_id`, `profiles` the table of what is
    predicted for these and `words` that of what is said of them; `genes`, `peaks` and `peaks_of`
    are what `locus.around` takes; `evaluation`, `haplotypes` and `personal` are what
    `veff.evaluation`, `veff.haplotypes` and `veff.personal` wrote for this page. The
    page has the name of the folder that `out` is in. What the input says is shown as text, cut to
    a length, and the page forbids the browser to load anything from elsewhere.
    """
    beside_this = forks.pool(1)  # since it holds Python's lock for a second
    bundle = beside_this.submit(_javascript)
    beside_this.shutdown(wait=False)
    record = read_json(provenance)
    names = {model["experiment"] for model in record["models"]}
    places = _places(nulls, record["models"])
    found = numbers(alleles, summary, scores, folds, reference, places)
    name = out.absolute().parent.name
    has_p = bool(found.volcano)
    has_max_p = any(row.get("max_pval") is not None for row in found.top)
    pictures = {int(path.stem): path for path in figures}
    beside = Evaluation(evaluation) if evaluation else None
    credible = CredibleSets(summary) if "pip" in pq.read_schema(summary).names else None
    samples = pooled.largest(found.kept, biosamples)
    annotations = {"genes": genes, "peaks": peaks, "peaks_of": peaks_of}
    header = {
        "run": name,
        "links": LINKS.get(record["reference"]["assembly"], {}),
        "experiments": _experiments(found, experiments),
        "also": _duplicates(alleles, found),
        "unscored": found.unscored,
        "has_p": has_p,
        "has_max_p": has_max_p,
        "figures": len(pictures),
        "clustered": found.kept.clustered(),
        "biosamples": samples,
        "biosamples_shown": pooled.N_ROWS,
        "profiles": locus.profiles(found.kept, profiles),
        "around": locus.around(found.kept, found.answers, reference, **annotations),
        "reach": locus.REACH,
        "n_loci": locus.N_LOCI,
    }
    with ThreadPoolExecutor(1) as pool:  # compresses while the charts are made
        block = pool.submit(found.kept.block, header, reference) if found.n_scored else None
        drawn = charts(found)
        for more in filter(None, (beside, credible)):
            drawn |= more.charts
    page = _environment().get_template("page.html")
    html = page.render(
        name=name,
        numbers=found,
        record=record,
        config=_configuration(record["config"]),
        statuses={k: n for k, n in record["alleles"]["statuses"].items() if n},
        unscored_tsv=_tsv(found.unscored),
        histograms=_histograms(found),
        n_histograms=N_HISTOGRAMS,
        n_unscored=N_UNSCORED,
        n_models=N_MODELS,
        charts=drawn,
        evaluation=beside,
        credible=credible,
        haplotypes=read_json(haplotypes) if haplotypes else [],
        on_page=set(found.kept.alleles["allele_id"].to_pylist()),
        personal=read_json(personal) if personal else [],
        columns=len(found.answers),
        has_p=has_p,
        has_max_p=has_max_p,
        has_null=any(one.null.any() for one in found.answers),
        annotations=found.kept.annotations,
        samples=samples,
        figures=_figures(found, pictures, words),
        experiments=len(names),
        autotune=autotune.last_line(record["scoring"]["autotune"]),
        style=Markup((HERE / "page.css").read_text()),
        script=Markup("".join((HERE / file).read_text() for file in SCRIPTS)),
        vega=Markup(bundle.result() if drawn else ""),
        specs=Markup(_inside_script(drawn)),
        block=Markup(block.result() if block else ""),
    )
    with aside(out) as temporary:
        temporary.write_text(html, encoding="utf-8")


def _places(nulls: Iterable[Path], models: list[dict]) -> dict[str, tuple[Path, int]]:
    """For each experiment with a null, the file with that of SNVs, and which row group of it."""
    held = {}
    for path in nulls:
        # What the null of each row group depends on, as `veff.scoring.null` writes it.
        identities = json.loads((pq.read_schema(path).metadata or {}).get(b"nulls", b"[]"))
        for i, identity in enumerate(identities):
            if "class" not in identity:
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
    environment.filters["annotation"] = annotation
    environment.filters["file"] = lambda path: cut(Path(path).name, 120)
    environment.filters["signed"] = lambda x: ("\u2212" if x < 0 else "+") + f"{abs(x):#.3g}"
    environment.filters["digits"] = lambda x, n: "" if x is None else f"{x:.{n}f}"
    environment.filters["significant"] = lambda x: "" if x is None or isnan(x) else f"{x:.2g}"
    environment.filters["three"] = "{:#.3g}".format  # significant digits
    return environment


def _experiments(found: Numbers, table: Path) -> list[dict[str, str]]:
    """Names, biosamples and assays of the experiments, in the order of the answers."""
    with open(table, newline="") as handle:
        about = {row["experiment"]: row for row in csv.DictReader(handle, delimiter="\t")}
    return [
        {"name": one.name, "short": one.short}
        | {key: cut(about[one.experiment].get(key) or "") for key in ("biosample", "assay")}
        for one in found.answers
    ]


def _duplicates(alleles: Path, found: Numbers) -> dict[int, str]:
    """The identifiers of records that repeat an allele, by the place of that in the page."""
    table = ds.dataset(alleles).to_table(columns=["allele_id", "id", "scored_as", "status"])
    table = table.filter(pc.equal(table["status"], "duplicate"))
    place = {allele: i for i, allele in enumerate(found.kept.alleles["allele_id"].to_pylist())}
    names: dict[int, str] = {}
    for row in table.to_pylist():
        at = place.get(row["scored_as"])
        if at is not None and row["id"] not in ("", "."):
            names[at] = cut(f"{names.get(at, '')} {row['id']}".strip(), 200)
    return names


def _javascript() -> str:
    """Vega, Vega-Lite and Vega-Embed, of the version whose charts Altair makes, and licences."""
    version = altair.SCHEMA_VERSION.removeprefix("v").rsplit(".", 1)[0]
    code = vl_convert.javascript_bundle("window.vegaEmbed = vegaEmbed;", vl_version=version)
    licences = (HERE / "licences.txt").read_text()
    return f"/*\n{licences}*/\n" + code.replace("</script", "<\\/script")


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


def _figures(found: Numbers, figures: dict[int, Path], words: Path | None) -> list[dict]:
    """The pictures of top alleles, from the largest effect on, and what is said of each."""
    said = dict(zip(*pq.read_table(words).to_pydict().values(), strict=True)) if words else {}
    return [
        {
            "id": row["allele_id"],
            "name": label(row),
            "words": said.get(row["allele_id"], ""),
            "png": base64.b64encode(figures[row["allele_id"]].read_bytes()).decode(),
        }
        for row in found.kept.alleles.select(LABELLED).to_pylist()
        if row["allele_id"] in figures
    ]
