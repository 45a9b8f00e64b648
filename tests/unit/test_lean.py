"""What a scoring job imports is a second of its start, or more."""

from project import printed

HEAVY = ("bpnetlite", "figwig", "matplotlib", "numba", "pandas", "pyfaidx", "scipy", "tangermeme")

LOOK = f"""
import sys
from veff.scoring import null, score
print(*[name for name in {HEAVY} if name in sys.modules])
import cherimoya, cherimoya.io, cherimoya.wrappers
model = cherimoya.ProfileWrapper(cherimoya.Cherimoya(n_filters=16, n_layers=2, compile=False))
import tangermeme.deep_lift_shap, tangermeme.io
print(type(model.scaling.product) is tangermeme.deep_lift_shap.BilinearOp)
print(callable(tangermeme.io.extract_loci))
try:
    cherimoya.io.extract_loci()
except TypeError as error:
    print(error)
"""


def test_scoring_imports_nothing_that_only_training_needs_and_the_rest_is_there_when_asked_for():
    imported, *there = printed(LOOK).split("\n")
    assert imported.split() == []
    assert there[:2] == ["True", "True"]
    assert there[2].startswith("extract_loci() missing")  # its own complaint
