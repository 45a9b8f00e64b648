"""The records of a BCF, as htslib reads them."""

from collections.abc import Iterator
from pathlib import Path

import pysam

from veff.errors import InputError
from veff.inputs.identity import pinned
from veff.inputs.record import Malformed, Record, parse


def rows(
    path: Path, samples: bool = False
) -> Iterator[tuple[Record | Malformed, pysam.VariantRecord]]:
    """The rows of a BCF, each as parsed here and as pysam has it, with its samples if wanted.

    Raises ``InputError`` where htslib cannot go on.
    """
    number = 0
    loudness = pysam.set_verbosity(0)  # what htslib has to say is in the exception
    try:
        with pinned(path) as raw, pysam.VariantFile(raw, drop_samples=not samples) as file:
            for number, row in enumerate(file):
                id, alt = row.id or ".", ",".join(row.alts or ".")
                record = parse(number, number + 1, row.chrom, str(row.pos), id, row.ref or "", alt)
                yield record, row
    except (OSError, ValueError, NotImplementedError, TypeError) as error:
        # A TypeError is pysam's failure to name an open file in its error, the one before.
        said = error.__context__ if isinstance(error, TypeError) else error
        raise InputError(
            f"{path}, after record {number}: truncated or damaged ({said}); copy or make it again"
        ) from error
    finally:
        pysam.set_verbosity(loudness)
