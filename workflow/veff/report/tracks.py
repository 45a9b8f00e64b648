"""What do models predict at an allele, as tracks that genome browsers show?"""

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pyBigWig

from veff.inputs.reference import Reference
from veff.names import cut, label
from veff.report.colours import ALTERNATE, DOWN, REFERENCE, UP
from veff.scoring.explain import Explanation

# What UCSC and IGV call the assemblies that `Reference` tells.
BROWSERS = {name: name for name in ("hg38", "hg19", "mm39", "mm10")} | {"T2T-CHM13": "hs1"}
GREY = "#595959"
# The tracks of an allele by their files' names: what they show, and their colours above and below
# zero, which mean in a browser what they mean in the figures and in the report.
KINDS = {
    "reference": ("reads a bp, reference", REFERENCE, REFERENCE),
    "alternate": ("reads a bp, alternate", ALTERNATE, ALTERNATE),
    "difference": ("reads a bp, alternate - reference", UP, DOWN),
    "attribution_reference": ("attribution, reference", GREY, GREY),
    "attribution_alternate": ("attribution, alternate", GREY, GREY),
}
OVERLAID = ("reference", "alternate")


@dataclass(frozen=True)
class Tracks:
    """The bigWigs of one allele: in `folder`, those of `KINDS` that it has."""

    folder: str
    name: str
    title: str
    locus: str
    logfc: float
    kinds: tuple[str, ...]


def write(folder: Path, one: Explanation, reference: Reference) -> Tracks:
    """Write the bigWigs of an allele, in reference coordinates, to a folder of its own there.

    What the alternate has of bases that the reference lacks is left out, and what the reference
    alone has is missing in the alternate's tracks.
    """
    own = folder / str(one.allele["allele_id"])
    own.mkdir()
    trimming = one.geometry.trimming
    reads = one.in_reference(one.reads, trimming)
    values = {"reference": reads[0], "alternate": reads[1], "difference": reads[1] - reads[0]}
    starts = dict.fromkeys(values, one.start + trimming)
    if one.attribution is not None:
        for kind, row in zip(OVERLAID, one.in_reference(one.attribution, 0), strict=True):
            values[f"attribution_{kind}"] = row
            starts[f"attribution_{kind}"] = one.start
    for kind, row in values.items():
        _bigwig(own / f"{kind}.bw", reference, one.contig, starts[kind], row)
    effect = f"log2 fold change {one.logfc:+#.3g}"
    first = max(one.start + trimming, 0)
    last = one.start + trimming + one.geometry.output_length
    last = min(last, int(reference.lengths[reference.names.index(one.contig)]))
    return Tracks(
        folder=own.name,
        name=label(one.allele),
        title=f"{label(one.allele)} in {cut(one.allele['max_experiment'])}: {effect}",
        locus=f"{one.contig}:{first + 1}-{last}",
        logfc=one.logfc,
        kinds=tuple(values),
    )


def _bigwig(path: Path, reference: Reference, contig: str, start: int, values: np.ndarray) -> None:
    """Values of consecutive bases, from `start` (0-based) on; none where they are NaN or past an
    end of the contig."""
    lengths = dict(zip(reference.names, reference.lengths.tolist(), strict=True))
    with pyBigWig.open(str(path), "w") as file:
        file.addHeader(list(lengths.items()))
        places = start + np.arange(len(values))
        known = np.isfinite(values) & (places >= 0) & (places < lengths[contig])
        for run in np.split(np.arange(len(values)), np.flatnonzero(np.diff(known)) + 1):
            if known[run[0]]:
                row = values[run].astype(float).tolist()
                file.addEntries(contig, int(places[run[0]]), values=row, span=1, step=1)


def browse(folder: Path, written: list[Tracks], reference: Reference, fasta: Path) -> None:
    """Write what browsers open there: an IGV session, igv.xml, and a UCSC hub, hub.txt.

    Both begin with the largest effect. A hub is only of an assembly that UCSC has; `fasta` is what
    IGV shows of another one.
    """
    written = sorted(written, key=lambda one: -abs(one.logfc))
    assembly = BROWSERS.get(reference.assembly)
    if assembly:
        (folder / "hub.txt").write_text("\n\n".join(_hub(assembly, written)) + "\n")
    genome = assembly or os.path.relpath(fasta, folder)
    session = ElementTree.Element("Session", genome=genome, version="8")
    if written:
        session.set("locus", written[0].locus)
    resources = ElementTree.SubElement(session, "Resources")
    panel = ElementTree.SubElement(session, "Panel", name="DataPanel")
    for one in written:
        for kind in one.kinds:
            path = f"{one.folder}/{kind}.bw"
            shows, above, below = KINDS[kind]
            ElementTree.SubElement(resources, "Resource", path=path, type="bw")
            ElementTree.SubElement(
                panel,
                "Track",
                id=path,
                name=f"{one.title}, {shows}",
                color=_rgb(above),
                altColor=_rgb(below),
                autoScale="true",
                clazz="org.broad.igv.track.DataSourceTrack",
                height="60",
            )
    ElementTree.indent(session)
    ElementTree.ElementTree(session).write(
        folder / "igv.xml", encoding="utf-8", xml_declaration=True
    )


def _hub(assembly: str, written: list[Tracks]) -> Iterator[str]:
    """The stanzas of a hub in one file: UCSC's Track Database Definition Document."""
    yield _stanza(
        hub="veff",
        shortLabel="Variant effects",
        longLabel="Predicted reads and attributions of the alleles with the largest effects",
        useOneFile="on",
        email="you@example.org",
    )
    yield f"genome {assembly}"
    for one in written:
        top = f"allele_{one.folder}"
        labels = {"shortLabel": cut(one.name, 17), "longLabel": cut(one.title, 76)}
        yield _stanza(track=top, superTrack="on show", **labels)
        yield _stanza(
            track=f"{top}_reads",
            parent=top,
            container="multiWig",
            aggregate="transparentOverlay",
            showSubtrackColorOnUi="on",
            type="bigWig",
            shortLabel="reads a bp",
            longLabel=cut(f"{one.name}: reads a bp, reference (black) and alternate", 76),
            visibility="full",
            autoScale="on",
            maxHeightPixels="100:60:16",
        )
        for kind in one.kinds:
            shows, above, below = KINDS[kind]
            yield _stanza(
                track=f"{top}_{kind}",
                parent=f"{top}_reads" if kind in OVERLAID else top,
                type="bigWig",
                bigDataUrl=f"{one.folder}/{kind}.bw",
                shortLabel=cut(kind, 17),
                longLabel=cut(f"{one.name}: {shows}", 76),
                color=_rgb(above),
                altColor=_rgb(below),
                visibility="full",
                autoScale="on",
                maxHeightPixels="100:60:16",
            )


def _stanza(**settings: str) -> str:
    return "\n".join(f"{key} {value}" for key, value in settings.items())


def _rgb(colour: str) -> str:
    return ",".join(str(int(colour[i : i + 2], 16)) for i in (1, 3, 5))
