"""Under `ensemble: heldout` the folds that did not train on an allele's contig answer."""

import numpy as np
import pyarrow as pa
import pytest

from tiny import Tiny, a_fold, held_out
from veff.errors import InputError
from veff.models.experiment import Checkpoint, Experiment
from veff.scoring import columns, heldout, null
from veff.scoring.how import How


@pytest.fixture(scope="module")
def tiny(tmp_path_factory):
    return Tiny(tmp_path_factory.mktemp("tiny"))


def test_the_answer_is_the_mean_of_the_folds_that_held_the_contig_out(tiny):
    """Names of contigs are read with or without chr, as everywhere."""
    experiment = held_out(tiny.experiment("three", (0, 1, 4)), "chrone", "two,elsewhere", "one")
    alleles = tiny.alleles(30)
    (answer,), (folds,) = tiny.score(alleles, experiment, ensemble="heldout")
    first = alleles["contig"].to_numpy() == 0
    assert 0 < first.sum() < 30
    for name in columns.SCORES:
        one, two, three = folds[name].to_numpy().reshape(3, 30)
        expected = np.where(first, (one + three) / 2, two)
        np.testing.assert_array_equal(answer[name], expected)
    (_,), (same,) = tiny.score(alleles, experiment)
    assert folds == same


def test_alleles_on_a_contig_that_no_fold_held_out_are_refused(tiny):
    alleles = tiny.alleles(30)
    good = held_out(tiny.experiment("a", (0, 1)), "one", "two")
    heldout.check(alleles, tiny.reference, [good])
    bad = held_out(tiny.experiment("b", (0, 1)), "one", "one")
    with pytest.raises(InputError, match=r"^b: no fold held out 'two', where alleles"):
        heldout.check(alleles, tiny.reference, [good, bad])
    heldout.check(
        alleles.filter(pa.array(alleles["contig"].to_numpy() == 0)), tiny.reference, [bad]
    )


def test_a_null_where_no_fold_held_out_takes_each_fold_in_its_turn(tiny):
    alleles = tiny.alleles(30)
    experiment = held_out(tiny.experiment("b", (0, 1)), "one", "one")
    answering = heldout.answering(experiment, tiny.reference, alleles)
    first = alleles["contig"].to_numpy() == 0
    assert answering[:, first].all()
    turns = alleles["allele_id"].to_numpy()[~first] % 2
    np.testing.assert_array_equal(answering[:, ~first], [turns == 0, turns == 1])


def test_a_null_belongs_to_what_was_held_out_only_where_that_decides():
    folds = [a_fold("a", test_chroms=chroms) for chroms in (["one"], ["two"])]
    settings = {"n": 9, "seed": 0, "scheme": "uniform", "regions": None, "classes": ["snv"]}

    def of(fold, ensemble):
        one = [Experiment("a", (fold,))]
        (found,) = null.identities(one, "x", settings, How(ensemble=ensemble)).values()
        return null.digest(found)

    assert of(folds[0], "heldout") != of(folds[1], "heldout")
    assert of(folds[0], "mean_score") == of(folds[1], "mean_score")


def test_what_a_checkpoint_held_out_is_kept():
    fold = a_fold("a", test_chroms=["chr8", "chr20"])
    assert fold.test_chroms == ("chr8", "chr20")
    assert Checkpoint.of(fold.plain()) == fold
    assert "test_chroms" not in a_fold("a").plain()
