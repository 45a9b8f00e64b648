"""What does an allele change: its profiles and attributions as a picture."""

from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
from matplotlib.collections import PatchCollection
from matplotlib.patches import PathPatch
from matplotlib.path import Path as Outline
from matplotlib.textpath import TextPath
from matplotlib.transforms import Affine2D

from veff.motifs.marks import Mark
from veff.names import cut
from veff.report.colours import ALTERNATE, DOWN, REFERENCE, UP
from veff.report.style import STYLE
from veff.scoring.explain import Explanation

BASES = {"A": "#009E73", "C": "#56B4E9", "G": "#E6B800", "T": "#8C564B"}
FLANK = 30  # bp of the logos on each side of the alleles
LONGEST = 40  # bp of an allele that a logo shows


def draw(one: Explanation, png: Path, svg: Path, mark: Mark | None = None) -> None:
    """Both alleles' profiles, their difference, logos of their attributions, and the motif's."""
    row = one.allele
    title = (
        f"{cut(row['chrom'], 20)}:{row['pos']} {cut(row['ref'], 20)}>{cut(row['alt'], 20)} "
        f"in {cut(row['max_experiment'])}: log2 fold change {one.logfc:#.3g}"
    )
    with plt.rc_context(STYLE):
        rows = 2 if one.attribution is None else 4 + bool(mark)
        figure, axes = plt.subplots(
            rows, figsize=(9, 1.7 * rows), layout="constrained", squeeze=True
        )
        figure.suptitle(title, x=0.01, ha="left", fontsize=10, fontweight="bold")
        _profiles(axes[0], axes[1], one)
        if one.attribution is not None:
            _logos(axes[2:4], one)
            if mark:
                _motif(axes[4], mark, axes[3])
        else:
            axes[1].set_xlabel("bp from the variant (no attributions: a window has an N)")
        if one.shown:
            figure.supxlabel(one.shown, x=0.01, ha="left", fontsize=8)
        figure.align_ylabels()
        for path, kind in ((png, "png"), (svg, "svg")):
            metadata = {"Date": None} if kind == "svg" else {"Software": None}
            figure.savefig(path, format=kind, dpi=110, metadata=metadata)
        plt.close(figure)


def _profiles(above: plt.Axes, below: plt.Axes, one: Explanation) -> None:
    """The alternate's profile, and the difference, at the positions that both alleles have."""
    zero = one.variant - one.geometry.trimming
    x = np.arange(one.geometry.output_length) - zero
    ref, alt = one.in_reference(one.reads, one.geometry.trimming)
    above.plot(x, ref, color=REFERENCE, lw=1, label=_name("reference", one, 0))
    above.plot(x, alt, color=ALTERNATE, lw=1, label=_name("alternate", one, 1))
    above.set(ylabel="reads / bp", ylim=(0, None))
    # Above the axes, where no curve runs.
    above.legend(frameon=False, fontsize=8, loc="lower right", bbox_to_anchor=(1, 1), ncols=2)
    change = alt - ref
    for colour, part in ((UP, change.clip(min=0)), (DOWN, change.clip(max=0))):
        below.fill_between(x, part, color=colour, lw=0)
    below.axhline(0, color="#999999", lw=0.6)
    below.set(ylabel="alternate −\nreference", xlabel="bp from the variant")  # noqa: RUF001
    for axes in (above, below):
        axes.set_xlim(x[0], x[-1])
        axes.axvline(0, color="#bbbbbb", lw=0.6, zorder=0)


def _name(kind: str, one: Explanation, row: int) -> str:
    bases = one.allele["ref" if row == 0 else "alt"]
    return f"{kind} {cut(bases, 20)}"


def _logos(axes, one: Explanation) -> None:
    """The alleles' attributions around the variant, on one scale; the allele's bases shaded."""
    first = one.variant - FLANK
    width = 2 * FLANK + max(1, *(min(n, LONGEST) for n in one.lengths))
    shown = slice(first, first + width)
    values = one.attribution[:, shown]
    low, high = min(values.min(), 0), max(values.max(), 0)
    room = 0.06 * (high - low) or 1.0
    for row, (ax, kind) in enumerate(zip(axes, ("reference", "alternate"), strict=True)):
        letters = one.bases[row, shown].tobytes().decode()
        for base in BASES:
            heights = [(x - FLANK, values[row, x]) for x in range(width) if letters[x] == base]
            _draw_letters(ax, base, [(x, 0, height) for x, height in heights])
        n = min(one.lengths[row], LONGEST)
        ax.axvspan(-0.5, max(n, 0.08) - 0.5, color="#f0e442", alpha=0.35, lw=0, zorder=0)
        ax.axhline(0, color="#999999", lw=0.6)
        ax.set(xlim=(-FLANK - 0.5, width - FLANK - 0.5), ylim=(low - room, high + room))
        ax.set_ylabel(f"{kind}\nattribution")
    axes[-1].set_xlabel("bp from the variant, as in each allele")


def _motif(ax: plt.Axes, mark: Mark, above: plt.Axes) -> None:
    """The motif's own logo, in bits, where it stands in the logo of that allele."""
    chance = mark.matrix
    bits = 2 + (chance * np.log2(np.maximum(chance, 1e-9))).sum(0)
    for i, column in enumerate((chance * bits).T):
        bottom = 0.0
        for k in np.argsort(column, kind="stable"):
            _draw_letters(ax, "ACGT"[k], [(mark.offset + i, bottom, column[k])])
            bottom += column[k]
    ax.set(xlim=above.get_xlim(), ylim=(0, 2.05), ylabel=f"{mark.verdict}\nbits")
    where = "alternate" if mark.row else "reference"
    ax.set_xlabel(f"motif {cut(mark.name)}, as it stands in the {where}")


def _draw_letters(ax: plt.Axes, base: str, places: list[tuple[float, float, float]]) -> None:
    """Letters at x, from a bottom on, of a height."""
    patches = [
        PathPatch(_letter(base, x, bottom, height)) for x, bottom, height in places if height
    ]
    ax.add_collection(PatchCollection(patches, facecolor=BASES[base], edgecolor="none"))


def _letter(base: str, x: float, bottom: float, height: float) -> Outline:
    """A letter one unit wide about `x`, from `bottom` up by `height`; upside down where that is
    negative."""
    outline = _OUTLINES[base]
    box = outline.get_extents()
    fitted = Affine2D().translate(-box.x0, -box.y0).scale(0.94 / box.width, height / box.height)
    return outline.transformed(fitted.translate(x - 0.47, bottom))


_OUTLINES = {base: TextPath((0, 0), base, size=1) for base in BASES}
