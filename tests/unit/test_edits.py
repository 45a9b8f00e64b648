"""Several edits and a background in one window: against single alleles, and by brute force."""

import random

import pyarrow as pa
import pytest

from phased import one_by_one
from tiny import GEOMETRY, Tiny
from veff.scoring import edits
from veff.scoring.edits import Edit


@pytest.fixture(scope="module")
def tiny(tmp_path_factory):
    return Tiny(tmp_path_factory.mktemp("tiny"))


def drawn(seed, first, last):
    """Edits with a base or more between them."""
    rng = random.Random(seed)
    at, found = first, []
    while (at := at + rng.choice([1, 2, 5, 30])) < last:
        ref_len = rng.choice([0, 1, 1, 4, 11])
        alt = "".join(rng.choices("ACGT", k=rng.choice([0, 1, 1, 3, 12])))
        found.append(Edit(at, ref_len, alt))
        at += ref_len + 1
    return found


def letters(bases, mine, others=()):
    """The chromosome with these edits, base by base: its letter, and what it is. What others
    would replace is called as what they put there."""
    under = {one.start + k: (one.start, k) for one in others for k in range(one.ref_len)}

    def genome(first, last):
        return [(bases[i], under.get(i, ("genome", i))) for i in range(first, last)]

    out, at = [], 0
    for one in mine:
        out += genome(at, one.start)
        out += [(letter, (one.start, k)) for k, letter in enumerate(one.alt)]
        at = one.end
    return out + genome(at, len(bases))


def window(chromosome, centre):
    """With the base of the genome at the centre, or what stands for it, in the middle column."""
    (middle,) = (i for i, (_, what) in enumerate(chromosome) if what in centre)
    return chromosome[middle - 125 : middle + 126]


@pytest.mark.parametrize("seed", range(30))
def test_windows_and_shared_positions_are_those_of_chromosomes_edited_base_by_base(tiny, seed):
    bases = tiny.contigs["one"]
    every = drawn(seed, 1200, 1700)
    rng = random.Random(seed)
    mine = [one for one in every if rng.random() < 0.5] or every[:1]
    background = [one for one in every if one not in mine]
    at = edits.centre(mine)
    while any(one.start <= at < one.end or one.start == at for one in every):
        at -= 1
    ref = window(letters(bases, background, mine), [("genome", at)])
    alt = window(letters(bases, every), [("genome", at)])
    of_edits = {"background": background, "edits": mine}
    row = {"allele_id": 0, "contig": 0, "centre": at}
    row |= {key: [one._asdict() for one in those] for key, those in of_edits.items()}
    (pair,) = edits.pairs(pa.Table.from_pylist([row], edits.VIRTUAL), tiny.reference, GEOMETRY)
    assert pair.ref.decode() == "".join(letter for letter, _ in ref)
    assert pair.alt.decode() == "".join(letter for letter, _ in alt)
    seen = slice(GEOMETRY.trimming, -GEOMETRY.trimming)
    places = {what: i for i, (_, what) in enumerate(alt[seen])}
    both = [(i, places[what]) for i, (_, what) in enumerate(ref[seen]) if what in places]
    assert (pair.index >= 0).all(0).sum() == len(both)
    assert list(map(tuple, pair.index.T[: len(both)])) == both


@pytest.mark.parametrize("ensemble", ["mean_prediction", "mean_score"])
def test_an_edit_alone_has_the_bits_of_an_allele(tiny, ensemble):
    """Also where several alleles share a reference window, and at the ends of contigs."""
    alleles = tiny.alleles(40)
    experiment = tiny.experiment("two", (0, 1))
    assert tiny.score(one_by_one(alleles), experiment, ensemble=ensemble) == tiny.score(
        alleles, experiment, ensemble=ensemble
    )
