"""Which allele does one text name: chr1:123:A:G, SPDI, genomic HGVS?

SPDI: https://doi.org/10.1093/bioinformatics/btz856 (0-based, so that position is unlike the
others'). HGVS: https://hgvs-nomenclature.org, descriptions with `g.` or `m.`.
"""

import re
from collections.abc import Callable
from typing import NamedTuple

_BASES = "[ACGTUNRYKMSWBDHVacgtunrykmswbdhv]+"
_NUMBER = r"\d{1,3}(?:,\d{3})+|\d+"
_ALTS = rf"(?:{_BASES}|\*|<[^<>\s]+>)(?:,\s*(?:{_BASES}|\*|<[^<>\s]+>))*"
_BUILD = r"(?:[_:](?:b3[78]|hg19|hg38|GRCh3[78]))?"  # which GTEx writes behind

ACCESSION = re.compile(r"N[CGTW]_\d+\.\d+")
RS_ID = re.compile(r"rs\d+", re.IGNORECASE)
# Positions in a transcript or a protein, whatever it is called: NM_…:c., ENST…:n., BRCA1:c.
TRANSCRIPT = re.compile(r"[^\s:]+:\(?[cnrp]\.\S+")
_SPDI = re.compile(rf"({ACCESSION.pattern}):(\d+):(\d+|{_BASES}|):({_BASES}|)")
_HGVS = re.compile(
    rf"([^\s:]+):[gm]\.(\d+)(?:_(\d+))?(?:({_BASES})>({_BASES})|"
    rf"(delins|del|ins|dup|inv)({_BASES}|))"
)
_LISTED = re.compile(
    rf"(\S+?)[:_|-]({_NUMBER})[:_/| -]({_BASES})[:_/|>-]({_ALTS}){_BUILD}", re.IGNORECASE
)
_ARROW = re.compile(rf"(\S+?)[:_-]({_NUMBER})({_BASES})>({_ALTS})")
_VEP = re.compile(rf"(\S+?)_(\d+)_(-|{_BASES})/(-|{_BASES})")  # Ensembl VEP, Uploaded_variation
_DELETED = re.compile(rf"(\S+?)[:_|]({_NUMBER})[:_|]({_BASES})[:_|](-)")
_COMPLEMENT = str.maketrans("ACGTacgt", "TGCAtgca")


class Notation(NamedTuple):
    """An allele as its text says; `pos` is 1-based, `-` is no base.

    `span`: bases from `pos` on that the text does not write out, which the reference supplies:
    `change` says whether they are REF (``del``), inserted once more (``dup``) or turned around
    (``inv``). `convention`: of the position, ``'listed'`` where no definition says it.
    """

    chrom: str
    pos: int
    ref: str
    alt: str
    convention: str
    span: int = 0
    change: str = ""

    def complete(self, bases: Callable[[str, int, int], str]) -> tuple[int, str, str]:
        """POS, REF and ALT; `bases(chrom, pos, n)` gives the reference's."""
        if not self.span:
            return self.pos, self.ref, self.alt
        there = bases(self.chrom, self.pos, self.span)
        match self.change:
            case "del":
                return self.pos, there, self.alt
            case "dup":
                return self.pos, "-", there
        return self.pos, there, there.translate(_COMPLEMENT)[::-1]


def parse(text: str) -> Notation | None:
    """The allele that a text names; None where it is no such text, or names no sequence."""
    if found := _SPDI.fullmatch(text):
        chrom, before, deleted, inserted = found.groups()
        pos = int(before) + 1
        if deleted.isdigit():
            n = int(deleted)
            return Notation(chrom, pos, "-", inserted or "-", "SPDI", n, "del" if n else "")
        return Notation(chrom, pos, deleted or "-", inserted or "-", "SPDI")
    if ":g." in text or ":m." in text:
        return _hgvs(text)
    for pattern in (_LISTED, _ARROW, _VEP, _DELETED):
        if found := pattern.fullmatch(text):
            chrom, pos, ref, alt = found.groups()
            return Notation(chrom, int(pos.replace(",", "")), ref, alt.replace(" ", ""), "listed")
    return None


def _hgvs(text: str) -> Notation | None:
    found = _HGVS.fullmatch(text)
    if not found:
        return None
    chrom, first, last, ref, alt, what, bases = found.groups()
    start, end = int(first), int(last or first)
    span = end - start + 1
    if what is None:
        fits = span == len(ref)
        return Notation(chrom, start, ref, alt, "HGVS") if fits or not last else None
    if what == "ins":
        inside = last and span == 2 and bases  # between two neighbours
        return Notation(chrom, end, "-", bases, "HGVS") if inside else None
    if span < 1 or (what == "delins" and not bases):
        return None
    if what == "delins":
        return Notation(chrom, start, "-", bases, "HGVS", span, "del")
    if bases and len(bases) != span:
        return None
    if what == "del" and bases:
        return Notation(chrom, start, bases, "-", "HGVS")
    return Notation(chrom, start, "-", "-", "HGVS", span, what)


def inline(text: str) -> list[str]:
    """The notations of a text that separates them by commas; none where one of it is none."""
    found: list[str] = []
    for piece in text.split(","):
        if found and re.fullmatch(rf"{_BASES}|\*", piece.strip()):
            found[-1] += f",{piece.strip()}"  # a further ALT
        else:
            found.append(piece.strip())
    return found if all(map(parse, found)) else []
