"""How far could a measure be off, where rows that lie close to each other are not independent?

Blocks of the genome are drawn with replacement. What a draw gives is taken to first order: the
value, plus what its influence function says of the blocks that were drawn more or less often,
on the scale on which the measure has no bounds (Fisher's z of a correlation, the logit of an
area). So the interval costs one multiplication of matrices, however many rows there are.
"""

from dataclasses import dataclass

import numpy as np
from scipy.special import expit, logit

from veff.evaluation.metrics import Measure

DRAWS = 2000
SEED = 0
FEWEST = 10  # blocks; of fewer no interval is given
MOST = 4000  # blocks; of more, neighbours are joined
LEVEL = 0.95


@dataclass(frozen=True)
class Blocks:
    """Which block each row is in, int64[n], and how often each draw has each block,
    float32[DRAWS, blocks], less its mean of 1."""

    block: np.ndarray
    drawn: np.ndarray

    @classmethod
    def of(cls, contig: np.ndarray, pos: np.ndarray, size: int | str) -> "Blocks":
        """Of `size` bp, or more where these would be more than `MOST`; or 'chromosome'."""
        size = int(pos.max(initial=0)) + 1 if size == "chromosome" else size
        while True:
            places = contig.astype(np.int64) << 32 | pos // size
            found, block = np.unique(places, return_inverse=True)
            n = len(found)
            if n <= MOST:
                break
            size *= 2
        drawn = np.random.default_rng(SEED).multinomial(n, np.full(n, 1 / max(n, 1)), DRAWS)
        # Sums over few blocks vary too little: by the share that their mean takes.
        return cls(block, (drawn - 1).astype(np.float32) * np.sqrt(n / max(n - 1, 1)))

    def interval(self, measure: Measure, rows: np.ndarray, link: str) -> tuple[float, float]:
        """The 95 % interval of a measure of some of the rows, bool[n]; NaN where there are too
        few blocks, or the value is at a bound. `link`: 'fisher' or 'logit'."""
        to, back, slope = LINKS[link]
        # A sum that is 1 may end a bit below it.
        value, n = round(measure.value, 12), len(measure.influence)
        own = self.block[rows]
        with np.errstate(divide="ignore"):
            centre, slope = to(value), slope(value)
        if len(np.unique(own)) < FEWEST or not np.isfinite(centre):
            return np.nan, np.nan
        sums = np.bincount(own, measure.influence / n, self.drawn.shape[1])
        draws = self.drawn @ sums.astype(np.float32)
        tails = (1 - LEVEL) / 2, (1 + LEVEL) / 2
        low, high = back(centre + slope * np.quantile(draws, tails))
        return float(low), float(high)


# To a scale without bounds and back, and the derivative of the first.
LINKS = {
    "fisher": (np.arctanh, np.tanh, lambda r: 1 / (1 - np.square(r))),
    "logit": (logit, expit, lambda a: 1 / np.multiply(a, 1 - a)),
}
