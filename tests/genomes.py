"""References for tests that ask for no base."""

import numpy as np

from veff.inputs.reference import Reference


def named(**lengths: int) -> Reference:
    """Contigs of these names and lengths, without bases."""
    n = len(lengths)
    return Reference(
        np.zeros(0, np.uint8), list(lengths), list(lengths.values()), [0] * n, "", None
    )
