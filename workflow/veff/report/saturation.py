"""What does every change of a region do: a heat map a region, and a track an experiment?"""

import re
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
import pyarrow.dataset as ds
import pyBigWig
from matplotlib.colors import LinearSegmentedColormap

from veff.atomic import aside
from veff.edited.collecting import Region, along, regions
from veff.inputs.reference import Reference
from veff.names import cut, distinct
from veff.report.colours import DOWN, UP
from veff.report.style import STYLE
from veff.tables import dataset

MOST = 10  # experiments that a heat map shows, those with the largest effects
COLOURS = LinearSegmentedColormap.from_list("effect", [DOWN, "#ffffff", UP])
NEEDED = ["edit", "region", "kind", "contig", "start", "alt", "experiment", "group", "logfc"]


def write(
    edits: Path, experiments: list[str], reference: Reference, figures: Path, tracks: Path
) -> None:
    """Draw each region of a table of edits to `figures`, as PNG and SVG, numbered in their order;
    and write the mean effect of a base's substitutions to `tracks`, a bigWig an experiment.

    Of several signal groups the first one is shown.
    """
    by_region: dict[str, dict[str, Region]] = {}
    names = distinct([re.sub(r"[^0-9A-Za-z_.-]", "_", cut(one)) for one in experiments], "{}_{}")
    with aside(figures) as figures_aside, aside(tracks) as tracks_aside:
        figures_aside.mkdir()
        tracks_aside.mkdir()
        for experiment, name in zip(experiments, names, strict=True):
            rows = dataset(edits).to_table(NEEDED, filter=ds.field("experiment") == experiment)
            if not len(rows):
                continue
            found = list(regions(rows.filter(ds.field("group") == rows["group"][0])))
            for one in found:
                by_region.setdefault(one.name, {})[experiment] = one
            _bigwig(tracks_aside / f"{name}.bw", reference, along(found))
        for number, of in enumerate(by_region.values(), 1):
            _draw(of, figures_aside / f"region{number}")


def _draw(of: dict[str, Region], path: Path) -> None:
    """The heat map of a region: for each experiment A, C, G, T and the deletion by position."""
    size = {name: np.nanmax(np.abs(one.logfc), initial=0) for name, one in of.items()}
    shown = sorted(of, key=lambda name: -size[name])[:MOST]
    largest = max(size.values()) or 1.0
    first = next(iter(of.values()))
    n = first.logfc.shape[1]
    with plt.rc_context(STYLE):
        figure, axes = plt.subplots(
            len(shown),
            figsize=(min(2.5 + 0.09 * n, 24), 0.6 + 1.1 * len(shown)),
            layout="constrained",
            squeeze=False,
            sharex=True,
        )
        for ax, name in zip(axes[:, 0], shown, strict=True):
            drawn = ax.imshow(
                of[name].logfc,
                aspect="auto",
                interpolation="nearest",
                cmap=COLOURS,
                vmin=-largest,
                vmax=largest,
                extent=(first.start + 0.5, first.start + n + 0.5, 4.5, -0.5),
            )
            there, column = np.nonzero(np.isnan(of[name].logfc[:4]))
            ax.plot(first.start + 1 + column, there, ".", color="#999999", ms=2)
            ax.set(yticks=range(5), yticklabels=[*"ACGT", "–"], ylabel=cut(name, 24))  # noqa: RUF001
        axes[-1, 0].ticklabel_format(axis="x", useOffset=False, style="plain")
        axes[-1, 0].set_xlabel(f"position on {cut(first.contig)}; dots: the reference's bases")
        figure.colorbar(drawn, ax=axes[:, 0].tolist(), label="log2 fold change")
        title = first.name + (f" ({MOST} of {len(of)} experiments)" if len(of) > MOST else "")
        figure.suptitle(title, x=0.01, ha="left", fontsize=10, fontweight="bold")
        for kind, metadata in (("svg", {"Date": None}), ("png", {"Software": None})):
            figure.savefig(path.with_suffix(f".{kind}"), format=kind, dpi=110, metadata=metadata)
        plt.close(figure)


def _bigwig(path: Path, reference: Reference, values: dict[str, dict[int, float]]) -> None:
    lengths = dict(zip(reference.names, reference.lengths.tolist(), strict=True))
    with pyBigWig.open(str(path), "w") as file:
        file.addHeader(list(lengths.items()))
        for contig in filter(values.get, lengths):
            places = sorted(values[contig])
            file.addEntries(
                [contig] * len(places),
                places,
                ends=[place + 1 for place in places],
                values=[values[contig][place] for place in places],
            )
