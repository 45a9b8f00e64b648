"""Attributions of the demo's models, and the pictures of them."""

import csv
from types import SimpleNamespace
from xml.etree import ElementTree

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch
from cherimoya import Cherimoya
from tangermeme.utils import one_hot_encode

from project import DEMO
from tiny import Tiny, held_out
from veff.cherimoya import attribution, checkpoint, engine
from veff.errors import InputError
from veff.inputs import preparing
from veff.inputs.reference import Reference, build
from veff.models.architecture import Geometry
from veff.models.experiment import experiments
from veff.models.sheet import Request
from veff.motifs.marks import Mark
from veff.outputs import summary
from veff.report import figures
from veff.scoring import explain
from veff.scoring.how import How

GEOMETRY = Geometry(2114, 1000)
SHUFFLES = 2
OTHER_STRAND = str.maketrans("ACGT", "TGCA")


def breaking():
    """A SNV that breaks a site of a motif that raises cellA's reads most, inside its contig."""
    with open(DEMO / "truth.tsv", newline="") as handle:
        rows = list(csv.DictReader(handle, delimiter="\t"))
    single = [r for r in rows if r["class"] == "breaks" and len(r["ref"]) == len(r["alt"]) == 1]
    inside = [r for r in single if 2_000 < int(r["pos"]) < 30_000]
    return min(inside, key=lambda r: float(r["logfc_cellA"]))


@pytest.fixture(scope="module")
def explained(tmp_path_factory):
    """The explanation of that SNV by the first fold of cellA."""
    folder = tmp_path_factory.mktemp("attribute")
    build(DEMO / "genome.fa.gz", folder / "reference")
    reference = Reference.open(folder / "reference")
    row = breaking()
    columns = ("chrom", "pos", "id", "ref", "alt")
    vcf = "##fileformat=VCFv4.2\n#CHROM\tPOS\tID\tREF\tALT\tQUAL\tFILTER\tINFO\n"
    vcf += "\t".join([row.get(c) or "." for c in columns] + [".", ".", "."]) + "\n"
    (folder / "one.vcf").write_text(vcf)
    tables = (folder / "alleles.parquet", folder / "scoreable.parquet")
    preparing.prepare(folder / "one.vcf", reference, *tables, chunk_size=1)
    row_of = pq.read_table(tables[0]).to_pylist()[0]
    row_of |= {"max_experiment": "cellA", "max_logfc": float(row["logfc_cellA"])}
    request = Request("cellA", (str(DEMO / "models/cellA.fold0.torch"),))
    cell = experiments(checkpoint.inspect([request], {}))
    how = How(device="cpu")
    (one,) = explain.explain(
        [row_of], tables[1], reference, cell, how, batch_size=2, shuffles=SHUFFLES
    )
    return one


def test_attributions_differ_in_sum_by_what_the_log_counts_differ(explained):
    """The log-counts by Cherimoya's own forward."""
    model = checkpoint.load(DEMO / "models/cellA.fold0.torch")
    x = torch.stack([one_hot_encode(row.tobytes().decode()).float() for row in explained.bases])
    with torch.no_grad():
        h = model(x)[1][:, 0]
    expected = (h[1] - h[0]).item()
    assert abs(expected) > 0.1
    ref, alt = explained.attribution.sum(1, dtype=np.float64)
    assert alt - ref == pytest.approx(expected, abs=1e-3)


def test_a_broken_motif_loses_its_attribution(explained):
    site = slice(explained.variant - 13, explained.variant + 14)
    ref, alt = explained.attribution[:, site].sum(1)
    assert ref > 0.1
    assert abs(alt) < 0.2 * ref


def test_reads_add_up_to_the_counts(explained):
    model = checkpoint.load(DEMO / "models/cellA.fold0.torch")
    predictor = engine.Predictor(model, GEOMETRY, device="cpu", batch_size=2)
    h = predictor.predict(explained.bases)[1][:, 0].double()
    assert explained.reads.sum(1) == pytest.approx(h.expm1().tolist(), rel=1e-6)


def test_the_table_has_a_row_an_allele_with_its_bases(explained):
    rows = explain.table([explained]).to_pylist()
    assert [row["allele"] for row in rows] == ["reference", "alternate"]
    truth = breaking()
    for row, base in zip(rows, (truth["ref"], truth["alt"]), strict=True):
        assert row["bases"][int(truth["pos"]) - 1 - row["start"]] == base
        assert len(row["attribution"]) == len(row["bases"]) == 2114


@pytest.mark.parametrize("reverse_complement", [False, True])
@pytest.mark.parametrize("ensemble", ["mean_prediction", "mean_score", "heldout"])
def test_a_figure_says_the_scores_own_logfc_to_the_bit(tmp_path, ensemble, reverse_complement):
    """For several folds, and several groups, of which the largest speaks."""
    tiny = Tiny(tmp_path)
    how = {"ensemble": ensemble, "reverse_complement": reverse_complement}
    alleles = tiny.alleles(30).slice(12, 6)
    pq.write_table(alleles, tmp_path / "scoreable.parquet")
    two = tiny.experiment("two", (0, 1, 2), signal_groups=[2, 1])
    two = held_out(two, "one,two", "two", "one")
    (scores,), _ = tiny.score(alleles, two, **how)
    rows = [
        {"allele_id": i, "max_experiment": "two", "chrom": "one", "pos": 1, "ref": "A", "alt": "C"}
        for i in range(12, 18)
    ]
    explained = list(
        explain.explain(
            rows,
            tmp_path / "scoreable.parquet",
            tiny.reference,
            [two],
            How(device="cpu", **how),
            batch_size=8,
            shuffles=1,
        )
    )
    by_group = scores["logfc"].to_numpy().reshape(2, 6)
    largest = np.abs(by_group).argmax(0)
    assert [one.group for one in explained] == largest.tolist()
    assert [one.logfc for one in explained] == by_group[largest, range(6)].tolist()
    if ensemble == "mean_prediction":
        counts = scores["alt_counts"].to_numpy().reshape(2, 6)[largest, range(6)]
        assert [one.reads[1].sum() for one in explained] == pytest.approx(counts.tolist())
    one = next(one for one in explained if one.attribution is not None)
    figures.draw(one, tmp_path / "0.png", tmp_path / "0.svg")
    said = (tmp_path / "0.svg").read_text()
    assert ("the mean of theirs" in said) == (ensemble != "mean_prediction")
    assert ("and both strands" in said) == reverse_complement


def test_an_attribution_over_both_strands_differs_in_sum_by_the_mean_of_their_log_counts(tmp_path):
    """That is the run's own answer where the folds' scores are averaged, but for the average of
    two strands, which is one of counts."""
    tiny = Tiny(tmp_path)
    (one,) = (tiny.experiment("one", (5,)),)
    genome, alleles = tiny.reference, tiny.alleles(12)
    inside = np.flatnonzero(np.abs(alleles["start"].to_numpy() - 1500) < 800)[:1]
    alleles = alleles.take(inside)
    pq.write_table(alleles, tmp_path / "scoreable.parquet")
    row = {"allele_id": int(inside[0]), "max_experiment": "one"}
    (both,) = explain.explain(
        [row],
        tmp_path / "scoreable.parquet",
        genome,
        [one],
        How(device="cpu", reverse_complement=True),
        batch_size=2,
        shuffles=1,
    )
    model = Cherimoya.load(one.folds[0].path, compile=False).eval()
    texts = [bases.tobytes().decode() for bases in both.bases]
    texts += [text.translate(OTHER_STRAND)[::-1] for text in texts]
    with torch.no_grad():
        h = model(torch.stack([one_hot_encode(text).float() for text in texts]))[1][:, 0]
    change = ((h[1] - h[0]) + (h[3] - h[2])).item() / 2
    ref, alt = both.attribution.sum(1, dtype=np.float64)
    assert abs(change) > 1e-3
    assert alt - ref == pytest.approx(change, abs=0.02 * abs(change) + 1e-4)


def explanation(lengths, reads, **allele):
    row = {"allele_id": 7, "chrom": "1", "pos": 5, "ref": "A", "alt": "C"} | allele
    return explain.Explanation(
        allele=row | {"max_experiment": "liver", "max_logfc": 0.5},
        contig="1",
        group=0,
        logfc=0.5,
        transplanted=0.4,
        shown="",
        geometry=GEOMETRY,
        start=0,
        lengths=lengths,
        bases=np.full((2, 2114), ord("A"), np.uint8),
        reads=reads,
        attribution=np.ones((2, 2114), np.float32),
    )


@pytest.mark.parametrize(("ref_len", "alt_len"), [(1, 1), (6, 1), (1, 6)])
def test_an_indel_that_only_moves_the_profile_shows_no_difference(ref_len, alt_len):
    reads = np.random.default_rng(0).random((2, 1000))
    middle, both = 500, min(ref_len, alt_len)
    reads[1, : middle + both] = reads[0, : middle + both]
    reads[1, middle + alt_len :] = np.resize(reads[0, middle + ref_len :], 500 - alt_len)
    _, (above, below) = figures.plt.subplots(2)
    figures._profiles(above, below, explanation((ref_len, alt_len), reads))
    change = below.collections[0].get_paths()[0].vertices[:, 1]
    assert np.abs(change[: len(change) // 2 - 10]).max() == 0
    figures.plt.close("all")


@pytest.mark.parametrize("text", ["$x_", "<script>&", "A" * 10_000])
def test_figures_hold_names_as_text_and_come_out_the_same_again(tmp_path, text):
    one = explanation((1, 1), np.ones((2, 1000)), chrom=text, ref=text)
    for name in ("a", "b"):
        figures.draw(one, tmp_path / f"{name}.png", tmp_path / f"{name}.svg")
    for kind in ("svg", "png"):
        drawn = (tmp_path / f"a.{kind}").read_bytes()
        assert drawn == (tmp_path / f"b.{kind}").read_bytes()
        assert len(drawn) < 500_000
    ElementTree.parse(tmp_path / "a.svg")


def test_a_motif_stands_under_the_bases_that_it_fits(tmp_path):
    """A motif of four bases, three of them sure, 2 bp left of the allele on the other strand."""
    matrix = np.array([[1, 0, 0, 0.5], [0, 1, 0, 0.5], [0, 0, 1, 0], [0, 0, 0, 0]], float)
    mark = Mark("a_b$", "lost", matrix[::-1, ::-1], offset=-2, row=0)
    _, (above, below) = figures.plt.subplots(2)
    above.set_xlim(-30, 30)
    figures._motif(below, mark, above)
    drawn = []
    for letters in below.collections:
        box = letters.get_paths()[0].get_extents() if letters.get_paths() else None
        drawn += [(round(box.x0 + 0.47), round(box.height, 6))] if box else []
    figures.plt.close("all")
    assert sorted(drawn) == [(-2, 0.5), (-2, 0.5), (-1, 2), (0, 2), (1, 2)]
    assert below.get_xlim() == (-30, 30)
    one = explanation((1, 1), np.ones((2, 1000)))
    figures.draw(one, tmp_path / "a.png", tmp_path / "a.svg", mark)
    assert "a_b$" in (tmp_path / "a.svg").read_text()


def test_the_largest_effects_are_chosen_without_duplicates(tmp_path):
    table = pa.table(
        {
            "allele_id": [0, 1, 2, 3],
            "status": ["ok", "ok", "duplicate", "symbolic"],
            "max_logfc": [0.1, -0.5, -0.5, None],
        }
    )
    pq.write_table(table, tmp_path / "summary.parquet")
    rows = summary.largest(tmp_path / "summary.parquet", 3)
    assert [row["allele_id"] for row in rows] == [1, 0]


def test_kernels_that_spoil_gradients_while_they_are_tuned_attribute_nothing(monkeypatch):
    attribution.refuse_spoiled_gradients()  # those that are installed do not
    kernel = SimpleNamespace(configs=["one", "other"], restore_value=[])
    monkeypatch.setattr(attribution.cheri, "_bwd_apply_kernel", kernel)
    with pytest.raises(InputError, match=r"first gradients are wrong, .*0\.3\.1 or later"):
        attribution.attributions(None, None, None, None, None)
    kernel.restore_value = ["Conv_ptr"]
    attribution.refuse_spoiled_gradients()
