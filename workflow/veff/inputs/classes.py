"""Of which class is an allele, by kind and length?

The longer an allele is, the more of what a model reads it changes, and an insertion or deletion
moves the rest too: each is judged by random alleles of its own class, not by random SNVs.
"""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

SNV = "snv"
PAIR = "snv_pair"  # two SNVs of one chromosome: no class of alleles, but one of nulls
# Substitutions of several bases, insertions, deletions, by length in bp. The last class of each
# kind holds longer ones too.
NAMES = (
    SNV,
    *("mnv_2_5", "mnv_6_20", "mnv_21_100", "mnv_101_500"),
    *("ins_1_5", "ins_6_20", "ins_21_100", "ins_101_500"),
    *("del_1_5", "del_6_20", "del_21_100", "del_101_500"),
)
_UP_TO = (5, 20, 100)


def bounds(name: str) -> tuple[int, int]:
    """The shortest and the longest allele of a class, in bp."""
    if name == SNV:
        return 1, 1
    _, low, high = name.split("_")
    return int(low), int(high)


def number(ref_len: np.ndarray, alt_len: np.ndarray) -> np.ndarray:
    """The place in `NAMES` of alleles of these lengths in bp, int64 [n].

    The length of an allele is that of the change, or that of the bases replaced, whichever is
    more. The base that both alleles of an indel begin with in a VCF makes no difference.
    """
    change = alt_len - ref_len
    length = np.maximum(np.abs(change), np.minimum(ref_len, alt_len))
    kind = np.select([change > 0, change < 0], [1, 2], 0)
    longer = 1 + (len(_UP_TO) + 1) * kind + np.searchsorted(_UP_TO, length)
    return np.where((change == 0) & (length == 1), 0, longer)


def numbers(alleles: pa.Table) -> np.ndarray:
    """The same of all rows of `preparing.ALLELES`; -1 for those that are not scored."""
    lengths = (
        pc.fill_null(pc.utf8_length(alleles[name]), 0).to_numpy().astype(np.int64)
        for name in ("scored_ref", "scored_alt")
    )
    return np.where(pc.is_valid(alleles["scored_as"]).to_numpy(), number(*lengths), -1)
