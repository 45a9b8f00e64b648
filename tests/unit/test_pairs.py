"""Random pairs of SNVs, the null of haplotypes: where they stand, and what is kept of them."""

import numpy as np
import pytest

from phased import plan
from tiny import GEOMETRY, Tiny, held_out
from veff.inputs.classes import PAIR
from veff.models.architecture import Geometry
from veff.scoring import columns, null, pairs
from veff.scoring.how import How

SETTINGS = {"n": 24, "seed": 0, "scheme": "uniform", "regions": None, "classes": [PAIR]}


@pytest.fixture(scope="module")
def tiny(tmp_path_factory):
    return Tiny(tmp_path_factory.mktemp("tiny"))


def make(tiny, folder, *experiments, calls=None, **changes):
    """The nulls of pairs, and in `calls` what was scored for them."""
    settings = SETTINGS | changes
    wanted = null.identities(experiments, tiny.reference.sha256, settings, How())

    def score(alleles, genome, models):
        if calls is not None:
            calls.append([one.name for one in models])
        return tiny.score(alleles, *models, genome=genome, batch_size=64)[0]

    return null.make(experiments, tiny.reference, settings, wanted, folder, score)


def both(drawn):
    """Contig and the two edits of each pair."""
    rows = drawn.to_pylist()[::3]
    return [(row["contig"], row["edits"]) for row in rows]


@pytest.mark.parametrize("scheme", ["uniform", "shuffled"])
def test_random_pairs_are_snvs_of_their_genome_at_all_distances(tiny, scheme):
    how = {"n": 2000, "seed": 1, "scheme": scheme}
    genome, drawn = pairs.draw(tiny.reference, GEOMETRY, **how)
    assert drawn == pairs.draw(tiny.reference, GEOMETRY, **how)[1]
    assert len(genome.names) == (2000 if scheme == "shuffled" else 2)
    found = both(drawn)
    distances = np.array([other["start"] - one["start"] for _, (one, other) in found])
    assert len(found) == 2000
    assert (distances.min(), distances.max()) == (1, 50)
    # Uniform on a logarithmic scale.
    assert np.mean(distances < np.sqrt(51)) == pytest.approx(0.5, abs=0.04)
    for contig, edits in found[:200]:
        for one in edits:
            ref = genome.fetch(contig, one["start"], one["start"] + 1).decode()
            assert one["ref_len"] == len(one["alt"]) == 1
            assert one["alt"] in "ACGT".replace(ref, "")
    alts = [other["alt"] for _, (_, other) in found]
    assert all(alts.count(base) > 400 for base in "ACGT")
    half, centres = GEOMETRY.input_length // 2, drawn["centre"].to_numpy()
    assert (centres >= half).all()
    ends = centres - half + GEOMETRY.input_length
    assert (ends <= genome.lengths[drawn["contig"].to_numpy()]).all()


def test_the_first_of_a_pair_is_drawn_from_the_regions(tiny, tmp_path):
    (tmp_path / "regions.bed").write_text("two\t700\t705\n")
    how = {"n": 50, "seed": 0, "regions": tmp_path / "regions.bed"}
    _, drawn = pairs.draw(tiny.reference, GEOMETRY, **how)
    assert {contig for contig, _ in both(drawn)} == {1}
    assert {one["start"] for _, (one, _) in both(drawn)} <= set(range(700, 705))


def test_a_pair_is_scored_as_a_haplotype_of_the_same_snvs(tiny, tmp_path):
    """To the bit, in each signal group: else the one would be no null of the other."""
    experiment = tiny.experiment("two", (0, 1), signal_groups=[1, 1])
    _, drawn = pairs.draw(tiny.reference, GEOMETRY, n=24, seed=0)
    (kept,) = make(tiny, tmp_path / "nulls", experiment)
    names = list(tiny.contigs)
    rows = kept.to_pylist()
    for i in (0, 13, 23):
        contig, edits = both(drawn)[i]
        snvs = [
            (
                names[contig],
                one["start"] + 1,
                tiny.contigs[names[contig]][one["start"]],
                one["alt"],
            )
            for one in edits
        ]
        planned = plan(tiny, tmp_path / f"{i}", [(*snv, ["0|1"]) for snv in snvs])
        haplotypes, _, _ = planned.scored(experiment)
        for group, row in enumerate(haplotypes.to_pylist()):
            same = rows[group * 24 + i]
            for name in ("group", "distance", "interaction", *columns.SCORES):
                assert row[name] == same[name], name
    assert kept["interaction"].to_numpy().all()


def test_pairs_are_kept_and_an_experiment_that_comes_along_is_scored_alone(tiny, tmp_path):
    a, b = tiny.experiment("a", (0,)), tiny.experiment("b", (1,), Geometry(205, 55))
    calls = []
    (first,) = make(tiny, tmp_path, a, calls=calls)
    of_both = make(tiny, tmp_path, a, b, calls=calls)
    assert make(tiny, tmp_path, b, a, calls=calls) == of_both[::-1]
    assert calls == [["a"], ["b"]]
    assert of_both[0] == first
    # As far apart as its own output lets them be, whatever else is in the run.
    furthest = [max(one["distance"].to_pylist()) for one in of_both]
    assert furthest[1] <= 55 // 2 < furthest[0] <= 101 // 2


def test_what_was_scored_among_other_settings_is_not_taken(tiny, tmp_path):
    a, calls = tiny.experiment("a", (0,)), []
    for changes in ({}, {"scheme": "shuffled"}, {"seed": 1}, {}):
        make(tiny, tmp_path, a, calls=calls, **changes)
    assert len(calls) == 3


def test_one_fold_answers_for_all_of_a_pair_where_none_held_the_contig_out(tiny):
    """Of shuffled contigs none is held out: each fold answers in its turn."""
    experiment = held_out(tiny.experiment("b", (0, 1)), "one", "two")
    how = {"n": 8, "seed": 0, "scheme": "shuffled"}
    genome, drawn = pairs.draw(tiny.reference, GEOMETRY, **how)
    (answer,), (folds,) = tiny.score(drawn, experiment, genome=genome, ensemble="heldout")
    found = pairs.together(drawn, answer)["interaction"].to_numpy()
    of_folds = folds["logfc"].to_numpy().reshape(2, 8, 3)
    own = of_folds[np.arange(8) % 2, np.arange(8)]
    np.testing.assert_array_equal(found, own[:, 0] - (own[:, 1] + own[:, 2]))
