"""Do a list's positions count from 0 or from 1?

A column called `pos` counts from 1 in every tool. One called `start`, and the second column of a
list without headings that has an end in its third, may be BED's (0-based, the end behind the last
base) or that of ANNOVAR, MAF and VEP (1-based, the end on the last base): what the rows' REF and
ends say decides, and where these do not agree, the user.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

from veff.errors import InputError
from veff.inputs.reference import Reference

CONVENTIONS = ("1-based", "0-based")
# A convention is certain where ten times as many rows fit it alone as fit only the other.
CLEAR = 10


@dataclass(frozen=True)
class Positions:
    """`convention`: one of `CONVENTIONS`, or where it is defined; `why`: what says so."""

    convention: str
    why: str

    @property
    def shift(self) -> int:
        """What is added to a position of the list to make it 1-based."""
        return int(self.convention == "0-based")


class Span(NamedTuple):
    """A row's start and end as listed (None without one), and the alleles that may be REF."""

    chrom: str
    start: int
    end: int | None
    refs: tuple[str, ...]


def decide(source: str, spans: Iterable[Span], reference: Reference | None) -> Positions:
    """What the rows of a list say of its positions.

    Raises `InputError` where REF and ends say different things, or nothing.
    """
    fits, only, ends, n, telling = [0, 0], [0, 0], [0, 0], 0, False
    for span in spans:
        bases = [ref for ref in span.refs if ref.isalpha()]
        if not bases or len(bases) < len(span.refs):
            continue  # where nothing is replaced, a place between bases has no REF to compare
        telling = True
        if span.end is not None:
            ends[0] += any(span.end - span.start == len(ref) - 1 for ref in bases)
            ends[1] += any(span.end - span.start == len(ref) for ref in bases)
        contigs = () if reference is None else reference.meaning(span.chrom).contigs
        if len(contigs) != 1:
            continue
        n += 1
        there = [
            any(reference.has(contigs[0], at, ref.upper()) for ref in bases)
            for at in (span.start - 1, span.start)
        ]
        fits = [count + here for count, here in zip(fits, there, strict=True)]
        if there[0] != there[1]:
            only[there[1]] += 1
    by_ref, by_end = _clear(only), _clear(ends)
    counted = (
        f"REF fits {fits[0]} of {n} rows as 1-based and {fits[1]} as 0-based; the ends are those "
        f"of {ends[0]} 1-based and of {ends[1]} 0-based rows"
    )
    if not telling:
        return Positions("0-based", "no row has a REF that could tell")
    if len({by_ref, by_end} - {None}) != 1:
        raise InputError(
            f"{source}: it is not certain how positions are counted: {counted}; say "
            "positions: 1-based or positions: 0-based"
        )
    return Positions(CONVENTIONS[by_end if by_ref is None else by_ref], counted)


def _clear(votes: list[int]) -> int | None:
    """Which of two has nearly all the votes; None if neither."""
    return next((i for i in (0, 1) if votes[i] > CLEAR * votes[1 - i]), None)
