"""What chromosomes carry, and what it does: by bcftools, by hand, and against single scores."""

import csv
import random

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pysam
import pysam.bcftools
import pytest

from phased import alleles, consensus, plan, planned, with_genotypes
from project import DEMO
from tiny import GEOMETRY, Tiny, a_fold
from veff.atomic import read_json
from veff.errors import InputError
from veff.haplotypes import genotypes, judging
from veff.haplotypes.largest import IN_EACH
from veff.inputs import classes, reference
from veff.inputs.identity import sha256
from veff.models.architecture import Geometry
from veff.models.experiment import Experiment
from veff.scoring import columns, edits, null
from veff.scoring.how import How


@pytest.fixture(scope="module")
def tiny(tmp_path_factory):
    return Tiny(tmp_path_factory.mktemp("tiny"))


@pytest.fixture(scope="module")
def experiment(tiny):
    return tiny.experiment("two", (0, 1))


def snv(tiny, pos, cells, contig="one"):
    """An SNV at a place, 1-based, with genotypes."""
    ref = tiny.contigs[contig][pos - 1]
    return (contig, pos, ref, "ACGT"["ACGT".index(ref) - 1], cells)


def nulls_of(tiny, folder, *experiments, of=(), n=40):
    """The nulls of SNVs, of these classes, and of pairs."""
    settings = {"n": n, "seed": 0, "scheme": "uniform", "regions": None}
    settings["classes"] = ["snv", *of, classes.PAIR]
    wanted = null.identities(experiments, tiny.reference.sha256, settings, How())

    def score(alleles, genome, models):
        return tiny.score(alleles, *models, genome=genome, batch_size=64)[0]

    null.make(experiments, tiny.reference, settings, wanted, folder, score)
    return null.Nulls(folder.iterdir(), wanted)


def windows_of(planned):
    """Both windows of each virtual allele, by its number."""
    table = planned.table("virtual")
    pairs = edits.pairs(table, planned.reference, GEOMETRY)
    return dict(zip(table["allele_id"].to_pylist(), pairs, strict=True))


@pytest.mark.parametrize("seed", range(6))
def test_sequences_are_those_of_bcftools_consensus(tiny, tmp_path, seed):
    planned = plan(tiny, tmp_path, with_genotypes(alleles(tiny, seed), seed, samples=3))
    windows = windows_of(planned)
    joint = {row["haplotype"]: row["joint"] for row in planned.rows("planned")}
    compared = 0
    for sample in ("s0", "s1", "s2"):
        for number in (1, 2):
            theirs = consensus(tiny.folder / "genome.fa", planned.vcf, sample, number)
            for row in planned.rows("sampled"):
                if row["sample"] == sample:
                    for one in (joint.get(row[f"haplotype_{number}"]), row[f"whole_{number}"]):
                        if one is not None:
                            assert windows[one].alt.decode() in theirs
                            compared += 1
    assert compared > 10


def by_variants(table):
    """Rows without the numbers of alleles, which depend on the order of the input."""
    return table.drop_columns(["alleles", "background"]).to_pylist()


def test_neither_the_order_of_records_nor_of_samples_changes_anything(tiny, experiment, tmp_path):
    rows = with_genotypes(alleles(tiny, 3), 3, samples=4, unphased=0.1)
    rows = [row for row, before in zip(rows[1:], rows, strict=False) if row[1] != before[1]]
    one, both, _ = plan(tiny, tmp_path / "a", rows, list("abcd")).scored(experiment)
    rng = random.Random(0)
    turned = [(*row[:4], row[4][::-1]) for row in rng.sample(rows, len(rows))]
    other, both_too, _ = plan(tiny, tmp_path / "b", turned, list("dcba")).scored(experiment)
    assert by_variants(one) == by_variants(other)
    order = [("locus", "ascending"), ("sample", "ascending")]
    rows, rows_too = (
        table.set_column(1, "sample", table["sample"].cast(pa.string())).sort_by(order).to_pylist()
        for table in (both, both_too)
    )
    assert rows == rows_too
    assert len(rows) > 3


def test_without_phase_each_allele_is_alone_with_its_own_scores(tiny, experiment, tmp_path):
    rows = [(*row, ["0/1", "1/0", "./."]) for row in alleles(tiny, 5)]
    planned = plan(tiny, tmp_path, rows)
    kinds = classes.numbers(planned.table("alleles"))
    kinds = kinds[kinds >= 0]
    names = [classes.NAMES[kind] for kind in sorted({*kinds.tolist()} - {0})]
    assert len(names) > 2
    nulls = nulls_of(tiny, tmp_path / "nulls", experiment, of=names)
    haplotypes, imbalance, scores = planned.scored(experiment, nulls=nulls)
    assert len(haplotypes) == len(scores) > 15
    assert haplotypes["unphased"].to_pylist() == [2] * len(scores)
    assert haplotypes["interaction"].to_pylist() == [0] * len(scores)
    assert len(imbalance) == 0
    alone = haplotypes.append_column("allele_id", pc.list_element(haplotypes["alleles"], 0))
    own = {name: nulls["two", name] for name in ("snv", *names)}
    scores = null.judge(scores.sort_by("allele_id"), own, kinds)
    names = [*columns.SCORES, *columns.SPREAD, "n_padded"]
    judged = [f"{name}.pval" for name in ("logfc", "logfc_501", "jsd", "abs_logfc")]
    assert haplotypes["interaction_pval"].null_count == len(haplotypes)
    for name in ("allele_id", *names, *judged):
        ours, theirs = (table.sort_by("allele_id")[name] for table in (alone, scores))
        assert ours.to_pylist() == theirs.to_pylist(), name
    assert set(planned.table("phasing")["status"].to_pylist()) == {"unphased"}


def test_a_haplotype_of_one_allele_has_the_bits_of_its_score(tiny, experiment, tmp_path):
    """Written as the aligner left it, too: a deletion at the right end of a repeat."""
    bases = tiny.contigs["one"]
    right = next(i for i in range(1500, 2900) if bases[i] == bases[i - 1] == bases[i - 2])
    deleted = ("one", right, bases[right - 1 : right + 1], bases[right - 1], ["0|1"])
    rows = [snv(tiny, 500, ["1|0"]), deleted]
    haplotypes, imbalance, scores = plan(tiny, tmp_path, rows).scored(experiment)
    for name in (*columns.SCORES, *columns.SPREAD):
        assert haplotypes[name].to_pylist() == scores[name].to_pylist(), name
    # The first chromosome has the SNV alone, the second one the reference.
    first = imbalance.to_pylist()[0]
    assert (first["counts_1"], first["counts_2"]) == (
        scores["alt_counts"][0].as_py(),
        scores["ref_counts"][0].as_py(),
    )
    assert first["log_ratio"] == -scores["logfc"][0].as_py()


def test_the_interaction_is_what_alleles_do_beyond_their_sum(tiny, experiment, tmp_path):
    """Held against the model's own answers to sequences that are edited here."""
    import torch
    from tangermeme.utils import one_hot_encode

    from veff.cherimoya import checkpoint

    rows = [snv(tiny, 500, ["1|0"]), snv(tiny, 506, ["1|0"]), snv(tiny, 511, ["1|1"])]
    one = tiny.experiment("one", (0,))
    haplotypes, imbalance, _ = plan(tiny, tmp_path, rows).scored(one)
    model = checkpoint.load(one.folds[0].path, one.folds[0].sha256).eval()

    def counts(*changed, centre):
        bases = list(tiny.contigs["one"])
        for _, pos, _, alt, _ in changed:
            bases[pos - 1] = alt
        half = GEOMETRY.input_length // 2
        window = "".join(bases[centre - half : centre - half + GEOMETRY.input_length])
        with torch.no_grad():
            return model(one_hot_encode(window).unsqueeze(0).float())[1].double().item()

    together = next(row for row in haplotypes.to_pylist() if len(row["alleles"]) == 3)
    at = (499 + 510) // 2
    none = counts(centre=at)
    alone = [(counts(row, centre=at) - none) / np.log(2) for row in rows]
    joint = (counts(*rows, centre=at) - none) / np.log(2)
    assert together["single_logfc"] == pytest.approx(alone, abs=1e-5)
    assert together["logfc"] == pytest.approx(joint, abs=1e-5)
    assert together["interaction"] == pytest.approx(joint - sum(alone), abs=2e-5)
    assert abs(together["interaction"]) > 1e-3
    (sample,) = imbalance.to_pylist()
    ratio = counts(rows[2], centre=at) - counts(*rows, centre=at)
    assert sample["log_ratio"] == pytest.approx(ratio / np.log(2), abs=1e-5)
    assert sample["log_ratio"] == pytest.approx(
        np.log2((1 + sample["counts_2"]) / (1 + sample["counts_1"])), abs=1e-9
    )


def test_a_neighbour_beyond_the_locus_is_background_and_named(tiny, tmp_path):
    """Both sequences have it, so that the effect is the alleles' alone."""
    rows = [snv(tiny, pos, ["0|1", "0|0"]) for pos in range(1000, 1900, 60)]
    rows[2] = (*rows[2][:4], ["0|1", "1|0"])
    planned = plan(tiny, tmp_path, rows)
    windows = windows_of(planned)
    found = planned.rows("planned")
    assert [len(row["alleles"]) for row in found] == [1] * 16
    for row in found:
        (allele,) = row["alleles"]
        seen = range(max(allele - 2, 0), min(allele + 3, 15))  # within 125 bp
        background = [] if row["samples"] == ["s1"] else [n for n in seen if n != allele]
        assert row["background"] == background
        pair = windows[row["joint"]]
        assert [i for i in range(251) if pair.ref[i] != pair.alt[i]] == [125]
        for n in background:
            assert chr(pair.ref[125 + 60 * (n - allele)]) == rows[n][3]


def statuses(planned):
    rows = planned.rows("phasing")
    return [(row["status"], row["chromosomes"], row["unphased"]) for row in rows]


def variants_of(planned):
    return [row["variants"] for row in planned.rows("planned")]


def test_a_males_x_counts_one_chromosome_and_has_no_imbalance(tiny, tmp_path):
    rows = [snv(tiny, 500, ["1", "0|1"]), snv(tiny, 510, ["1", "0|0"])]
    planned = plan(tiny, tmp_path, rows)
    assert statuses(planned) == [("phased", 2, 0), ("phased", 1, 0)]
    assert [row["sample"] for row in planned.rows("sampled")] == ["s1"]
    assert [row["frequency"] for row in planned.rows("planned")] == [1 / 3, 1 / 3]


def test_a_missing_allele_is_no_allele_and_is_not_counted(tiny, tmp_path):
    planned = plan(tiny, tmp_path, [snv(tiny, 500, ["./.", ".|1", "0|1", "."])])
    assert statuses(planned) == [("phased", 2, 0)]
    assert planned.rows("planned")[0]["frequency"] == 2 / 3


def test_a_lone_dot_does_not_say_that_there_is_one_chromosome(tiny, tmp_path):
    rows = [snv(tiny, 500, ["0|1", "1"]), snv(tiny, 510, [".", "."])]
    planned = plan(tiny, tmp_path, rows)
    assert [row["sample"] for row in planned.rows("sampled")] == ["s0"]


def test_an_allele_that_spans_another_ones_site_is_not_scored_there(tiny, tmp_path):
    bases = tiny.contigs["one"]
    rows = [
        ("one", 500, bases[499:505], bases[499], ["1|0", "0|1"]),
        ("one", 502, bases[501], f"{'ACGT'['ACGT'.index(bases[501]) - 1]},*", ["2|1", "1|2"]),
    ]
    planned = plan(tiny, tmp_path, rows)
    assert statuses(planned) == [("phased", 2, 0), ("phased", 2, 0), ("not_scored", 0, 0)]
    assert [len(row["alleles"]) for row in planned.rows("planned")] == [1, 1]


def test_of_overlapping_deletions_the_first_one_stays(tiny, tmp_path):
    """bcftools consensus says that it applies one of them alone."""
    bases = tiny.contigs["one"]
    rows = [
        ("one", 500, bases[499:505], bases[499], ["1|0"]),
        ("one", 502, bases[501:508], bases[501], ["1|0"]),
    ]
    planned = plan(tiny, tmp_path, rows)
    assert statuses(planned) == [("phased", 1, 0), ("overlapped", 0, 0)]


def test_after_two_copies_a_heterozygote_splits_the_chromosomes(tiny, tmp_path):
    rows = [snv(tiny, 500, ["1/1"]), snv(tiny, 510, ["0|1"])]
    planned = plan(tiny, tmp_path, rows)
    assert sorted(len(row["alleles"]) for row in planned.rows("planned")) == [1, 2]
    assert statuses(planned) == [("phased", 2, 0), ("phased", 1, 0)]


def test_alleles_of_two_phase_sets_are_not_joined(tiny, tmp_path):
    """The set with most alleles of the locus counts, the rest of the sample as unphased."""
    cells = ["0|1:100", "0|1:100", "0|1:520"]
    rows = [snv(tiny, 500 + 10 * i, [cell]) for i, cell in enumerate(cells)]
    rows.append(snv(tiny, 540, ["1|1:520"]))  # on both: of every set
    planned = plan(tiny, tmp_path, rows)
    assert {len(row["alleles"]) for row in planned.rows("planned")} == {3, 1}
    assert [row["n_unphased"] for row in planned.rows("sampled")] == [1]


def test_records_with_more_than_two_copies_are_refused_and_the_others_are_not(tiny, tmp_path):
    rows = [snv(tiny, 500, ["0|1|1", "0|1"]), snv(tiny, 510, ["0|1", "0|0"])]
    planned = plan(tiny, tmp_path, rows)
    assert statuses(planned) == [("polyploid", 0, 0), ("phased", 1, 0)]
    assert planned.summary["statuses"] == {"polyploid": 1, "phased": 1}


def test_the_most_frequent_haplotypes_are_kept_and_what_they_cover_is_said(tiny, tmp_path):
    cells = [["1|1", "1|0", "0|0"], ["0|0", "0|1", "1|0"], ["0|0", "0|0", "0|1"]]
    rows = [snv(tiny, 500 + 10 * i, one) for i, one in enumerate(cells)]
    planned = plan(tiny, tmp_path, rows, max_haplotypes=1)
    assert [row["chromosomes"] for row in planned.rows("planned")] == [3]
    assert (planned.summary["covered"], planned.summary["carriers"]) == (3, 6)
    assert [row["haplotype_2"] for row in planned.rows("sampled")] == [-1]


def test_an_imbalance_without_both_scores_is_missing(tiny, experiment, tmp_path):
    cells = [["1|1", "1|0"], ["0|0", "0|1"]]
    rows = [snv(tiny, 500 + 10 * i, one) for i, one in enumerate(cells)]
    _, imbalance, _ = plan(tiny, tmp_path, rows, max_haplotypes=1).scored(experiment)
    (row,) = imbalance.to_pylist()
    assert row["counts_1"] > 0
    assert (row["counts_2"], row["log_ratio"]) == (None, None)


def test_samples_are_chosen_by_name_list_or_file(tiny, tmp_path):
    rows = [snv(tiny, 500, ["1|0", "0|0", "1|1"])]
    file = tmp_path / "names.txt"
    file.write_text("c\n\n")
    for samples, n in ((["a"], 1), (["c", "a"], 3), (file, 2), ("all", 3)):
        planned = plan(tiny, tmp_path / f"{n}", rows, list("abc"), samples)
        assert statuses(planned) == [("phased", n, 0)]
    with pytest.raises(InputError, match=r"samples: 'd' is no sample of .*a, b, c"):
        plan(tiny, tmp_path, rows, list("abc"), ["d"])


def test_a_file_without_samples_is_refused(tmp_path):
    path = tmp_path / "sites.vcf"
    path.write_text("##fileformat=VCFv4.2\n#CHROM\tPOS\tID\tREF\tALT\tQUAL\tFILTER\tINFO\n")
    with pytest.raises(InputError, match=r"sites\.vcf: haplotypes: there are no samples"):
        genotypes.chosen(path, "all")


def test_a_bcf_is_planned_as_the_vcf_that_it_was_made_of(tiny, tmp_path):
    rows = with_genotypes(alleles(tiny, 7), 7, samples=3, unphased=0.1)
    planned = plan(tiny, tmp_path, rows)
    bcf = tmp_path / "phased.bcf"
    pysam.bcftools.view("-Ob", "-o", str(bcf), str(planned.vcf), catch_stdout=False)

    def read(path):
        return [
            (
                one.record,
                one.known,
                one.haploid.tolist(),
                [c.chromosome.tolist() for c in one.carriers],
            )
            for one in genotypes.read(path, [0, 1, 2])
        ]

    assert read(bcf) == read(planned.vcf)


def test_a_p_value_counts_the_pairs_of_like_distance_that_do_as_much():
    random, far = np.array([0.1, 0.2, 0.3, 5.0, 5.0]), np.array([4, 5, 7, 8, 3])
    observed = np.array([0.2, 0.25, 9.0, 0.0, 5.0, 1.0])
    distance = np.array([6, 4, 5, 7, 15, 40])
    p = judging.among_like(observed, distance, random, far, one_sided=True)
    np.testing.assert_array_equal(p, [3 / 4, 2 / 4, 1 / 4, 1, 1, np.nan])


def test_what_alleles_do_is_judged_by_the_likes_of_them_and_the_largest_are_kept(
    tiny, experiment, tmp_path
):
    """One allele by its class; two SNVs, and every interaction, by pairs at a like distance."""
    rows = with_genotypes(alleles(tiny, 9), 9, samples=3)
    planned = plan(tiny, tmp_path, rows)
    other = tiny.experiment("other", (3,), signal_groups=[1, 1])
    kinds = classes.numbers(planned.table("alleles"))
    names = [classes.NAMES[kind] for kind in sorted({*kinds[kinds > 0].tolist()})]
    nulls = nulls_of(tiny, tmp_path / "nulls", experiment, other, of=names, n=60)
    haplotypes, _, _ = planned.scored(experiment, other, nulls=nulls)
    by_kind = {"pairs": 0, "none": 0}
    for row in haplotypes.to_pylist():
        of = [kinds[allele] for allele in row["alleles"]]
        pairs = nulls[row["experiment"], classes.PAIR].to_pylist()
        pairs = [one for one in pairs if one["group"] == row["group"]]
        doubling = max(row["distance"], 1).bit_length()
        alike = [one for one in pairs if one["distance"].bit_length() == doubling]
        if len(of) == 1:
            assert row["interaction_pval"] is None
            alike = nulls[row["experiment"], classes.NAMES[of[0]]].to_pylist()
            alike = [one for one in alike if one["group"] == row["group"]]
        else:
            larger = sum(abs(one["interaction"]) >= abs(row["interaction"]) for one in alike)
            assert row["interaction_pval"] == (1 + larger) / (1 + len(alike))
        if len(of) > 2 or (len(of) == 2 and any(of)):
            assert row["jsd.pval"] is row["logfc.pval"] is None
            by_kind["none"] += 1
            continue
        by_kind["pairs"] += len(of) == 2
        larger = sum(one["jsd"] >= row["jsd"] for one in alike)
        assert row["jsd.pval"] == (1 + larger) / (1 + len(alike))
        tails = (
            sum(one["logfc"] >= row["logfc"] for one in alike),
            sum(one["logfc"] <= row["logfc"] for one in alike),
        )
        assert row["logfc.pval"] == min(1, 2 * (1 + min(tails)) / (1 + len(alike)))
    assert min(by_kind.values()) > 2
    several = [row for row in haplotypes.to_pylist() if len(row["alleles"]) > 1]
    assert planned.summary["several"] == len({row["haplotype"] for row in several}) > 3
    largest = {}
    for row in sorted(several, key=lambda row: abs(row["interaction"])):
        largest |= dict.fromkeys(row["alleles"], row)
    for row in planned.rows("of_alleles.parquet"):
        best = largest.get(row.pop("allele_id"))
        assert row == {name: best and best[name] for name in row}
    shown = read_json(tmp_path / "shown.json")
    sizes = {}
    for row in several:
        sizes[row["haplotype"]] = max(sizes.get(row["haplotype"], 0), abs(row["interaction"]))
    assert [abs(row["interaction"]) for row in shown] == sorted(sizes.values())[::-1][:20]
    for one in shown:
        mine = [row for row in several if row["haplotype"] == one["haplotype"]]
        mine.sort(key=lambda row: -abs(row["interaction"]))
        assert one["n_experiments"] == len(mine) == 3  # of the other experiment two signal groups
        assert one["experiments"] == [{name: row[name] for name in IN_EACH} for row in mine]


def test_planted_pairs_interact_as_they_were_planted(tmp_path):
    """Motifs that one SNV breaks and another mends, or that need both: the demo's models, a fold
    of each, say which way. Where the motif is not active there is nothing to say."""
    with open(DEMO / "pairs.tsv", newline="") as handle:
        truth = list(csv.DictReader(handle, delimiter="\t"))
    reference.build(DEMO / "genome.fa.gz", tmp_path / "reference")
    genome = reference.Reference.open(tmp_path / "reference")
    shape = {"n_filters": 32, "n_layers": 9, "input_length": 2114, "output_length": 1000}
    models = {name: DEMO / f"models/{name}.fold0.torch" for name in ("cellA", "cellB")}
    experiments = [
        Experiment(name, (a_fold(name, checkpoint=str(path), sha256=sha256(path), **shape),))
        for name, path in models.items()
    ]
    own = {"samples": ["cis"], "geometry": Geometry(2114, 1000)}
    haplotypes, *_ = planned(genome, DEMO / "pairs.vcf.gz", tmp_path, **own).scored(*experiments)
    found = {(r["experiment"], r["contig"], str(r["start"])): r for r in haplotypes.to_pylist()}
    right = []
    for row in truth:
        for name in models:
            one = found[name, row["chrom"], row["pos_1"]]
            assert (len(one["alleles"]), str(one["end"])) == (2, row["pos_2"])
            planted = float(row[f"interaction_{name}"])
            if planted:
                right.append(np.sign(one["interaction"]) == np.sign(planted))
    assert len(right) == 27
    assert np.mean(right) >= 0.95
