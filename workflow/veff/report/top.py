"""What is kept of the largest effects: figures, tracks, profiles and attributions?"""

import logging
from collections.abc import Iterable
from contextlib import ExitStack
from pathlib import Path

import pyarrow as pa

from veff import forks, tables
from veff.atomic import aside
from veff.inputs.reference import Reference
from veff.motifs.marks import Marks
from veff.report import figures, tracks
from veff.scoring import explain
from veff.scoring.explain import Explanation


def write(
    explained: Iterable[Explanation],
    reference: Reference,
    fasta: Path,
    *,
    figures_out: Path,
    tracks_out: Path,
    profiles_out: Path,
    attributions_out: Path,
    marks: Marks | None = None,
    processes: int = 1,
) -> None:
    """Write all that is kept of each explanation, one after the other; so many `processes` draw.

    Figures are named by the number of the allele in the input (`allele_id`), as are the folders
    of its tracks; `marks` are the motifs that they show. `fasta` is the file of the reference.
    """
    profiles, attributions = [explain.profiles([])], [explain.table([])]
    written, figures_ = [], []
    with ExitStack() as stack:
        drawn, tracked = (stack.enter_context(aside(path)) for path in (figures_out, tracks_out))
        drawing = stack.enter_context(forks.pool(processes))
        drawn.mkdir(parents=True)
        tracked.mkdir(parents=True)
        for one in explained:
            number = one.allele["allele_id"]
            mark = marks.of(one) if marks else None
            paths = drawn / f"{number}.png", drawn / f"{number}.svg"
            figures_.append(drawing.submit(figures.draw, one, *paths, mark))
            written.append(tracks.write(tracked, one, reference))
            profiles.append(explain.profiles([one]))
            attributions.append(explain.table([one]))
            logging.info("%d: explained", number)
        for figure in figures_:
            figure.result()
        tracks.browse(tracked, written, reference, fasta)
        tables.write_parquet(profiles_out, [pa.concat_tables(profiles)])
        tables.write_parquet(attributions_out, [pa.concat_tables(attributions)])
