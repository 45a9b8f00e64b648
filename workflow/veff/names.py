"""How are names that the input gives shown to a person?"""

import re

LONGEST = 40  # characters
# Control characters, and those that turn the direction of writing.
_UNSEEN = re.compile(r"[\x00-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")


def cut(text: object, longest: int = LONGEST) -> str:
    """A text on one line, not longer than `longest` characters."""
    text = _UNSEEN.sub(" ", str(text))
    return text if len(text) <= longest else f"{text[: longest - 1]}…"


def label(row: dict) -> str:
    """An allele as people write it."""
    return f"{cut(row['chrom'], 20)}:{row['pos']} {cut(row['ref'], 12)}>{cut(row['alt'], 12)}"


def distinct(names: list[str], form: str = "{} ({})") -> list[str]:
    """The names, with a number after one that stands there again."""
    found: dict[str, None] = {}
    for name in names:
        new, n = name, 1
        while new in found:
            n += 1
            new = form.format(name, n)
        found[new] = None
    return list(found)
