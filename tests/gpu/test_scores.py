"""The scoring loop on a GPU: the same bits however alleles are cut, ordered and accompanied."""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from phased import one_by_one
from tiny import Tiny
from veff.models.architecture import Geometry
from veff.scoring import null, sampling

pytestmark = pytest.mark.usefixtures("one_choice_a_kernel")

N = 100
LONG = Geometry(2114, 1000)


@pytest.fixture(scope="module")
def tiny(tmp_path_factory):
    return Tiny(tmp_path_factory.mktemp("tiny"), scale=10)


@pytest.fixture(scope="module")
def experiments(tiny):
    """Two folds of one group, and one model with a stranded group beside an unstranded one."""
    return (
        tiny.experiment("folds", (0, 1), LONG, n_filters=32),
        tiny.experiment("stranded", (2,), LONG, n_filters=32, signal_groups=[2, 1]),
    )


def on_gpu(tiny, alleles, experiments, **how):
    how = {"device": "cuda", "batch_size": 64} | how
    answers, folds = tiny.score(alleles, *experiments, **how)
    key = [(name, "ascending") for name in ("allele_id", "group")]
    return [table.sort_by(key).combine_chunks() for table in (*answers, *folds)]


def joined(parts):
    key = [(name, "ascending") for name in ("allele_id", "group")]
    tables = [pa.concat_tables(tables).sort_by(key) for tables in zip(*parts, strict=True)]
    return [table.combine_chunks() for table in tables]


@pytest.mark.parametrize("precision", ["fp32", "fast"])
@pytest.mark.parametrize(
    ("ensemble", "reverse_complement"), [("mean_prediction", False), ("mean_score", True)]
)
def test_scores_have_the_same_bits_at_any_chunking_and_order(
    tiny, experiments, precision, ensemble, reverse_complement
):
    how = {
        "precision": precision,
        "ensemble": ensemble,
        "reverse_complement": reverse_complement,
    }
    alleles = tiny.alleles(N)

    def scored(chunks):
        return joined([on_gpu(tiny, chunk, experiments, **how) for chunk in chunks])

    whole = scored([alleles])
    assert scored([alleles.slice(i, 7) for i in range(0, N, 7)]) == whole
    assert scored([alleles.take(np.random.default_rng(0).permutation(N))]) == whole
    ones = [0, 41, N - 1]
    for alone, all_ in zip(scored([alleles.slice(i, 1) for i in ones]), whole, strict=True):
        assert alone == all_.filter(pc.is_in(all_["allele_id"], pa.array(ones)))


def test_what_nulls_add_has_the_same_bits_at_any_chunking(tiny, experiments):
    genome, snvs = sampling.sample(tiny.reference, LONG.input_length, n=200, seed=0)
    random = on_gpu(tiny, snvs, experiments[:1], genome=genome)[0]
    random = random.append_column("reference_counts", random["ref_counts"])
    alleles = tiny.alleles(N)

    def judged(alleles):
        snvs = np.zeros(len(alleles), int)
        return null.judge(on_gpu(tiny, alleles, experiments[:1])[0], {"snv": random}, snvs)

    whole = judged(alleles)
    parts = [judged(alleles.slice(i, 30)) for i in range(0, N, 30)]
    assert pa.concat_tables(parts).combine_chunks() == whole.combine_chunks()


@pytest.mark.parametrize("precision", ["fp32", "fast"])
def test_an_edit_alone_has_the_bits_of_an_allele(tiny, experiments, precision):
    alleles = tiny.alleles(N)
    how = {"precision": precision}
    assert on_gpu(tiny, one_by_one(alleles), experiments, **how) == on_gpu(
        tiny, alleles, experiments, **how
    )
