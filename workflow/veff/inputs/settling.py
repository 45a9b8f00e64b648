"""Which contig do the variants mean, where the name alone leaves that open?"""

import logging
from collections.abc import Iterable

from veff.errors import InputError
from veff.inputs.fit import too_many
from veff.inputs.records import NO_REF, Malformed, Record
from veff.inputs.reference import Reference


class Settled(dict):
    """The index of the contig that each name means, -1 for none: computed when first asked for.

    A name that may mean a mitochondrion of another name, or a code, means it only if the REF of
    its records fit, for which all `rows` are read once more; of two contigs it means the one that
    they fit better. `share` of REF may be wrong; `source` names the input.

    Raises `InputError` where that leaves two.
    """

    def __init__(
        self,
        reference: Reference,
        rows: Iterable[Record | Malformed],
        source: str,
        share: float,
    ):
        super().__init__()
        self._reference, self._rows, self._source, self._share = reference, rows, source, share
        self._without: dict[str, str] = {}

    def __missing__(self, name: str) -> int:
        contigs, certain = self._reference.meaning(name)
        if certain:
            self[name] = contigs[0] if contigs else -1
        else:
            self[name] = self._settle(name, contigs)
        return self[name]

    def without(self, name: str) -> str:
        """Why a name means no contig."""
        return self._without.get(name) or self._reference.without(name)

    def _settle(self, name: str, contigs: tuple[int, ...]) -> int:
        called = [self._reference.names[i] for i in contigs]
        checked, wrong = self._compare(name, contigs)
        least = min(wrong)
        best = [i for i, n in zip(contigs, wrong, strict=True) if n == least]
        fits = not too_many(least, checked, self._share)
        if len(contigs) > 1 and (len(best) > 1 or not fits):
            counts = ", ".join(
                f"{n} of {checked} REF differ from {one!r}"
                for one, n in zip(called, wrong, strict=True)
            )
            raise InputError(
                f"{self._source}: contig {name!r} may be {' or '.join(map(repr, called))} of the "
                f"reference, and its alleles do not tell: {counts}; say which in contig_aliases, "
                "a row with both names"
            )
        if not fits:
            self._without[name] = (
                f"the reference has no contig {name!r}; its {called[0]!r} is another sequence "
                f"({least} of {checked} REF differ)"
            )
            logging.warning("%s: %s", self._source, self._without[name])
            return -1
        contig = self._reference.names[best[0]]
        logging.info("%s: contig %r is taken for %r", self._source, name, contig)
        return best[0]

    def _compare(self, name: str, contigs: tuple[int, ...]) -> tuple[int, list[int]]:
        """How many REF of this name can be compared, and how many differ from each contig."""
        checked, wrong = 0, [0] * len(contigs)
        for row in self._rows:
            if type(row) is Malformed or row.chrom != name or row.note == NO_REF:
                continue
            # Of a list without an order of alleles, any may be the reference's.
            listed = (row.ref, *row.alts) if row.note else (row.ref,)
            bases = [one.upper() for one in listed if one.isalpha()]
            if bases:
                checked += 1
                for k, contig in enumerate(contigs):
                    there = (self._reference.has(contig, row.pos - 1, one) for one in bases)
                    wrong[k] += not any(there)
        return checked, wrong
