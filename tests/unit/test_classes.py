"""Of which class an allele is, told by its kind and its length."""

import numpy as np
import pyarrow as pa
import pytest

from veff.inputs import classes

# REF and ALT as they are scored, with the base before an insertion or deletion, and the class.
ALLELES = {
    ("A", "C"): "snv",
    ("AC", "GT"): "mnv_2_5",
    ("ACGTA", "CCGTC"): "mnv_2_5",
    ("A" * 6, "C" * 6): "mnv_6_20",
    ("A" * 101, "C" * 101): "mnv_101_500",
    ("A", "AC"): "ins_1_5",
    ("A", "ACCCCC"): "ins_1_5",
    ("A", "ACCCCCC"): "ins_6_20",
    ("A", "A" + "C" * 100): "ins_21_100",
    ("A", "A" + "C" * 900): "ins_101_500",
    ("AC", "A"): "del_1_5",
    ("A" + "C" * 20, "A"): "del_6_20",
    ("A" + "C" * 21, "A"): "del_21_100",
    # Many bases replaced, and a few more or less of them.
    ("A" * 30, "C" * 31): "ins_21_100",
    ("A" * 30, "C" * 27): "del_21_100",
    ("A" * 2, "C" * 9): "ins_6_20",
}


def test_each_kind_and_length_has_its_class():
    ref, alt = zip(*ALLELES, strict=True)
    table = {"scored_ref": [*ref, None], "scored_alt": [*alt, None]}
    scored_as = pa.array([*range(len(ref)), None], pa.int64())
    found = classes.numbers(pa.table(table | {"scored_as": scored_as}))
    assert [classes.NAMES[kind] for kind in found[:-1]] == list(ALLELES.values())
    assert found[-1] == -1


@pytest.mark.parametrize(("shorter", "longer"), [(0, 1), (0, 5), (0, 6), (0, 100), (0, 101)])
def test_the_base_that_a_vcf_puts_before_makes_no_difference(shorter, longer):
    for lengths in ((shorter, longer), (longer, shorter)):
        trimmed, padded = np.array([lengths]), np.array([lengths]) + 1
        assert classes.number(*trimmed.T) == classes.number(*padded.T)


def test_a_class_holds_what_its_bounds_say():
    for i, name in enumerate(classes.NAMES):
        for length in classes.bounds(name):
            ref, alt = (0 if name[:3] == kind else length for kind in ("ins", "del"))
            assert classes.number(np.array([ref]), np.array([alt])) == i
