"""The scoring loop with real, small models on the CPU."""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
import torch
from cherimoya import Cherimoya
from tangermeme.utils import one_hot_encode

from tiny import GEOMETRY, Tiny
from veff.inputs import preparing
from veff.models.architecture import Geometry
from veff.scoring import columns, windows

OTHER_STRAND = str.maketrans("ACGT", "TGCA")


@pytest.fixture(scope="module")
def tiny(tmp_path_factory):
    return Tiny(tmp_path_factory.mktemp("tiny"))


@pytest.fixture(scope="module")
def experiments(tiny):
    """Two folds; one fold with a stranded group beside an unstranded one; another geometry."""
    return (
        tiny.experiment("folds", (0, 1)),
        tiny.experiment("stranded", (2,), signal_groups=[2, 1], n_control_tracks=2),
        tiny.experiment("short", (3,), Geometry(205, 55)),
    )


def rows_by_allele(table):
    key = [(name, "ascending") for name in ("allele_id", "group")]
    return table.sort_by(key).combine_chunks()


def stacked(parts):
    """Per experiment, the parts of all chunks."""
    return [rows_by_allele(pa.concat_tables(tables)) for tables in zip(*parts, strict=True)]


@pytest.mark.parametrize(
    ("ensemble", "reverse_complement"), [("mean_prediction", False), ("mean_score", True)]
)
def test_scores_have_the_same_bits_however_alleles_are_cut_and_ordered(
    tiny, experiments, ensemble, reverse_complement
):
    how = {"ensemble": ensemble, "reverse_complement": reverse_complement}
    alleles = tiny.alleles(16)

    def scored(chunks):
        parts = [tiny.score(chunk, *experiments, **how) for chunk in chunks]
        return [stacked(kind) for kind in zip(*parts, strict=True)]

    whole = scored([alleles])
    by_seven = scored([alleles.slice(i, 7) for i in range(0, 16, 7)])
    assert by_seven == whole
    ones = scored([alleles.slice(i, 1) for i in (0, 15)])
    shuffled = scored([alleles.take(np.random.default_rng(0).permutation(16))])
    assert shuffled == whole
    for alone, all_ in zip(ones[0] + ones[1], whole[0] + whole[1], strict=True):
        few = pc.is_in(all_["allele_id"], pa.array([0, 15]))
        assert alone == all_.filter(few)


def test_experiments_answer_the_same_alone_or_beside_others_in_the_sheets_order(tiny, experiments):
    alleles = tiny.alleles(9)
    together = tiny.score(alleles, *experiments)
    names = [table["experiment"][0].as_py() for table in together[0]]
    assert names == ["folds", "stranded", "short"]
    for i, experiment in enumerate(experiments):
        alone = tiny.score(alleles, experiment)
        assert (alone[0][0], alone[1][0]) == (together[0][i], together[1][i])


def test_one_row_an_allele_and_signal_group_and_one_a_fold(tiny, experiments):
    answers, folds = tiny.score(tiny.alleles(5), *experiments)
    assert [len(table) for table in answers] == [5, 10, 5]
    assert [len(table) for table in folds] == [10, 10, 5]
    for table in answers:
        assert set(columns.SCORES) | set(columns.SPREAD) < set(table.column_names)


@pytest.mark.parametrize("ensemble", ["mean_prediction", "mean_score"])
def test_the_spread_of_folds_is_numpys_and_their_agreement_is_by_sign(tiny, ensemble):
    experiment = tiny.experiment("three", (0, 1, 4))
    (answer,), (folds,) = tiny.score(tiny.alleles(12), experiment, ensemble=ensemble)
    assert answer["n_folds"].to_pylist() == [3] * 12
    for name in columns.SCORES:
        per_fold = folds[name].to_numpy().reshape(3, 12)
        np.testing.assert_allclose(answer[f"{name}_sd"], per_fold.std(0, ddof=1), rtol=1e-9)
        if ensemble == "mean_score":
            np.testing.assert_allclose(answer[name], per_fold.mean(0), rtol=1e-12)
    signs = np.sign(folds["logfc"].to_numpy().reshape(3, 12))
    agree = (signs == np.sign(answer["logfc"].to_numpy())).sum(0)
    assert answer["folds_agree"].to_pylist() == agree.tolist()


def test_one_fold_has_no_spread(tiny):
    (answer,), (folds,) = tiny.score(tiny.alleles(4), tiny.experiment("one", (0,)))
    assert answer["logfc_sd"].null_count == 4
    assert answer["folds_agree"].to_pylist() == answer["n_folds"].to_pylist() == [1] * 4
    for name in columns.SCORES:
        assert answer[name] == folds[name]


def test_the_mean_prediction_is_not_the_mean_score(tiny):
    experiment = tiny.experiment("two", (0, 1))
    (prediction,), folds = tiny.score(tiny.alleles(6), experiment)
    (score,), same_folds = tiny.score(tiny.alleles(6), experiment, ensemble="mean_score")
    assert folds == same_folds
    assert prediction["logfc"] != score["logfc"]
    counts = folds[0]["alt_counts"].to_numpy().reshape(2, 6)
    np.testing.assert_allclose(prediction["alt_counts"], counts.mean(0), rtol=1e-9)


def test_averaged_over_strands_an_allele_scores_the_same_on_the_reverse_complement(tiny):
    """Windows of odd length lie alike on both strands; the groups have two, one and three
    channels."""
    assert GEOMETRY.input_length % 2
    turned = {name: bases.translate(OTHER_STRAND)[::-1] for name, bases in tiny.contigs.items()}
    genome = tiny.genome("turned", turned)
    starts = np.array([300, 1111, 1500, 2400])
    alt = ["ACGT"[("ACGT".index(tiny.contigs["one"][i]) + 1) % 4] for i in starts]

    def snvs(starts, alt):
        ones = np.ones(len(starts), np.int32)
        contig = np.zeros(len(starts), np.int32)
        table = {"allele_id": starts, "contig": contig, "start": starts, "ref_len": ones}
        return pa.table(table | {"alt": alt})

    here = snvs(starts, alt)
    there = snvs(2999 - starts[::-1], [one.translate(OTHER_STRAND) for one in alt[::-1]])
    experiment = tiny.experiment("strands", (5, 6), signal_groups=[2, 1, 3])

    def both(**how):
        (one,), _ = tiny.score(here, experiment, **how)
        (other,), _ = tiny.score(there, experiment, genome=genome, **how)
        backwards = np.concatenate([np.arange(3, -1, -1) + 4 * group for group in range(3)])
        return one, other.take(backwards)

    one, other = both()
    assert not np.allclose(one["logfc"], other["logfc"], rtol=1e-3)
    one, other = both(reverse_complement=True)
    for name in (*columns.SCORES, "logfc_sd", "folds_agree"):
        np.testing.assert_allclose(one[name], other[name], rtol=1e-9, atol=1e-12)


def test_both_strands_average_counts_as_counts(tiny):
    experiment = tiny.experiment("one", (0,))
    alleles = tiny.alleles(3)
    (forward,), _ = tiny.score(alleles, experiment)
    (both,), _ = tiny.score(alleles, experiment, reverse_complement=True)
    rows = [alleles[name].to_numpy() for name in ("contig", "start", "ref_len")]
    length = GEOMETRY.input_length
    ref, _, _ = windows.windows(tiny.reference, *rows, alleles["alt"].to_pylist(), length)
    model = Cherimoya.load(experiment.folds[0].path, compile=False).eval()
    turned = [row.tobytes().decode().translate(OTHER_STRAND)[::-1] for row in ref]
    x = torch.stack([one_hot_encode(one, allow_N=True) for one in turned]).float()
    with torch.no_grad():
        reverse = model(x)[1].expm1().clamp(min=0)[:, 0].numpy()
    expected = (forward["ref_counts"].to_numpy() + reverse) / 2
    np.testing.assert_allclose(both["ref_counts"], expected, rtol=1e-4)


REPEATS = {"A": 12, "CA": 10, "CAG": 7}


@pytest.mark.parametrize(("unit", "n"), REPEATS.items())
@pytest.mark.parametrize("change", ["deletion", "insertion"])
def test_a_change_of_a_repeat_has_one_score_wherever_it_is_written(
    tiny, experiments, tmp_path, unit, n, change
):
    flank = tiny.contigs["one"][:1000].rstrip(unit) + "T"
    bases = flank + unit * n + "T" + tiny.contigs["two"][:1000]
    genome = tiny.genome(f"repeat of {unit}", {"one": bases})
    written = []  # at the repeat's left end, in its middle (also between two units), at its right
    for place in (0, len(unit), (n // 2) * len(unit) + len(unit) // 2, (n - 1) * len(unit)):
        before = len(flank) + place - 1
        longer = bases[before : before + 1 + len(unit)]
        pair = (longer, longer[0]) if change == "deletion" else (longer[0], longer)
        written.append((before + 1, *pair))
    assert len({pos for pos, *_ in written}) == 4

    def prepared(name, rows):
        vcf, outputs = tmp_path / f"{name}.vcf", (tmp_path / name, tmp_path / f"{name}.scoreable")
        lines = [f"one\t{pos}\t.\t{ref}\t{alt}\t.\t.\t.\n" for pos, ref, alt in rows]
        header = "##fileformat=VCFv4.2\n#CHROM\tPOS\tID\tREF\tALT\tQUAL\tFILTER\tINFO\n"
        vcf.write_text(header + "".join(lines))
        preparing.prepare(vcf, genome, *outputs, chunk_size=10)
        return [pq.read_table(path) for path in outputs]

    alleles, scoreable = prepared("together", written)
    assert alleles["status"].to_pylist() == ["ok", "duplicate", "duplicate", "duplicate"]
    assert alleles["scored_as"].to_pylist() == [0] * 4
    keys = zip(*(alleles[key].to_pylist() for key in ("pos", "ref", "alt")), strict=True)
    assert list(keys) == written
    answers = tiny.score(scoreable, *experiments, genome=genome)
    for i, row in enumerate(written):
        assert tiny.score(prepared(str(i), [row])[1], *experiments, genome=genome) == answers
