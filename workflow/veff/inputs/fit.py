"""Do the REF alleles say that the variants belong to this reference?"""

from dataclasses import dataclass

# How often, at most, an input with that share of wrong REF is refused all the same.
CHANCE = 1e-3


def too_many(wrong: int, checked: int, share: float) -> bool:
    """Whether more REF are wrong than chance explains, where each is with probability `share`.

    The tail of the binomial distribution, so that 3 of 5 are too many for a share of 1 %, one of
    5 or two of 100 are not, and of a million about as many as `share` says.
    """
    if not wrong:
        return False
    from scipy.special import bdtrc  # a second that most inputs do without

    return float(bdtrc(wrong - 1, checked, share)) < CHANCE


@dataclass
class Fit:
    """How many REF were compared, and what those that differ look like."""

    checked: int = 0
    wrong: int = 0
    swapped: int = 0  # the reference has ALT there
    too_small: int = 0  # REF stands one base further on
    too_large: int = 0  # REF stands one base before

    def misfit(self, share: float, assembly: str | None) -> str | None:
        """What the input looks like, with the figures that say so; None where it fits."""
        if not too_many(self.wrong, self.checked, share):
            return None
        causes = {  # of two that explain as much, the one that does so by chance more rarely
            "positions look one off, too small by one, as 0-based ones are (a list of these is "
            "read with positions: 0-based)": self.too_small,
            "positions look one off, too large by one": self.too_large,
            "REF and ALT look swapped": self.swapped,
        }
        cause, explained = max(causes.items(), key=lambda item: item[1])
        if explained <= 0.75 * self.wrong:
            known = f", which is {assembly}" if assembly else ""
            cause = f"the variants look like those of another assembly than the reference{known}"
        return (
            f"{self.wrong} of {self.checked} alleles ({self.wrong / self.checked:.1%}) have "
            f"another REF than the reference, more than max_ref_mismatch ({share:.1%}) and chance "
            f"explain: {cause}; of the {self.wrong}, {self.swapped} fit with REF and ALT swapped "
            f"(by chance about a third), {self.too_small} one base further on and "
            f"{self.too_large} one base before (by chance a quarter each)"
        )
