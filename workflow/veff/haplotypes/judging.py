"""How unusual is what the alleles of a haplotype do at once, and beyond their sum?

The scores of one allele are held against the null of its class, those of two SNVs, and every
interaction, against pairs of random SNVs at a like distance (`scoring.null`). Of other haplotypes
nothing random has the likes of all their alleles, and their scores have no p-value.
"""

import numpy as np
import pyarrow as pa

from veff.inputs import classes
from veff.inputs.classes import PAIR
from veff.scoring import columns
from veff.scoring.null import p_value

JUDGED = [name for name in columns.JUDGED if name in columns.SCORES]


def kinds(planned: pa.Table, alleles: pa.Table) -> np.ndarray:
    """By which null the scores of each haplotype are judged: of a class, or `PAIR`; '' for none.

    `planned` is as `planning.HAPLOTYPES` has it, `alleles` as `preparing.ALLELES` has it.
    """
    of = planned["alleles"].combine_chunks()
    number = classes.numbers(alleles)[of.values.to_numpy()]
    first = of.offsets.to_numpy()[:-1]
    n = of.value_lengths().to_numpy()
    two_snvs = (n == 2) & (np.maximum.reduceat(number, first) == 0)
    return np.select([n == 1, two_snvs], [np.array(classes.NAMES)[number[first]], PAIR], "")


def judged(
    scores: dict[str, np.ndarray],
    interaction: np.ndarray,
    distance: np.ndarray,
    kinds: np.ndarray,
    nulls: dict[str, pa.Table],
) -> dict[str, np.ndarray]:
    """P-values of the scores (those of `JUDGED`), and of the interactions, of haplotypes of which
    the alleles start so many bp apart; NaN where there is none.

    `kinds` are those of the haplotypes (`kinds`), `nulls` the nulls of their experiment and group
    by these names.
    """
    found = {f"{name}.pval": np.full(len(kinds), np.nan) for name in JUDGED}
    found["interaction_pval"] = np.full(len(kinds), np.nan)
    if PAIR in nulls:
        several = (kinds == PAIR) | (kinds == "")
        found["interaction_pval"][several] = among_like(
            np.abs(interaction[several]),
            distance[several],
            np.abs(nulls[PAIR]["interaction"].to_numpy()),
            nulls[PAIR]["distance"].to_numpy(),
            one_sided=True,
        )
    for kind, null in nulls.items():
        rows = kinds == kind
        # One allele is at no distance from another, nor is one of its null.
        pairs = null["distance"].to_numpy() if kind == PAIR else np.zeros(len(null), int)
        for name in JUDGED:
            found[f"{name}.pval"][rows] = among_like(
                scores[name][rows],
                distance[rows],
                null[name].to_numpy(),
                pairs,
                one_sided=name in columns.ONE_SIDED,
            )
    return found


def among_like(
    observed: np.ndarray,
    distance: np.ndarray,
    null: np.ndarray,
    null_distance: np.ndarray,
    one_sided: bool,
) -> np.ndarray:
    """P-values (`null.p_value`) among the random pairs whose distance has the same power of two
    below it; NaN where there are none."""
    found = np.full(len(observed), np.nan)
    doubling, null_doubling = (
        np.log2(np.maximum(d, 1)).astype(int) for d in (distance, null_distance)
    )
    for one in np.unique(null_doubling):
        mine = doubling == one
        found[mine] = p_value(observed[mine], null[null_doubling == one], one_sided)
    return found
