import gzip
import itertools
from collections import Counter

import numpy as np
import pytest
from scipy.stats import chisquare

from veff.errors import InputError
from veff.inputs import classes, reference
from veff.inputs.reference import Reference
from veff.scoring import sampling

LENGTH = 41  # bp of a window


@pytest.fixture(scope="module")
def genome(tmp_path_factory):
    """Three contigs: bases with runs of N between, bases alone, and one shorter than a window."""
    folder = tmp_path_factory.mktemp("genome")
    rng = np.random.default_rng(0)
    bases = ["".join(rng.choice(list("ACGT"), n)) for n in (300, 200, 40)]
    bases[0] = bases[0][:100] + "N" * 30 + "RYK" + bases[0][133:]
    fasta = folder / "genome.fa"
    text = zip(("chr1", "chr2", "short"), bases, strict=True)
    fasta.write_text("".join(f">{name}\n{one}\n" for name, one in text))
    reference.build(fasta, folder)
    return Reference.open(folder)


def snvs(genome, table):
    """(contig, start, reference base, alternate) of each row."""
    rows = table.to_pylist()
    return [
        (r["contig"], r["start"], genome.fetch(r["contig"], r["start"], r["start"] + 1), r["alt"])
        for r in rows
    ]


def test_snvs_have_a_known_base_another_one_and_a_whole_window(genome):
    same, table = sampling.sample(genome, LENGTH, n=2000, seed=1)
    assert same is genome
    assert table["allele_id"].to_pylist() == list(range(2000))
    assert set(table["ref_len"].to_pylist()) == {1}
    for contig, start, ref, alt in snvs(genome, table):
        assert ref in (b"A", b"C", b"G", b"T")
        assert alt in set("ACGT") - {ref.decode()}
        first = start - LENGTH // 2
        assert first >= 0
        assert first + LENGTH <= genome.lengths[contig]
    order = [(r["contig"], r["start"]) for r in table.to_pylist()]
    assert order == sorted(order)


def test_every_position_and_every_alternate_base_is_as_likely(genome):
    _, table = sampling.sample(genome, LENGTH, n=20000, seed=2)
    seen = Counter((c, s, a) for c, s, _, a in snvs(genome, table))
    # All of the first contig but its N and IUPAC codes, all of the second, each with its edges.
    positions = 300 - 40 - 33 + 200 - 40
    assert len(seen) == 3 * positions
    assert chisquare(list(seen.values())).pvalue > 0.001


def test_the_same_arguments_give_the_same_snvs_and_another_seed_others(genome):
    first = sampling.sample(genome, LENGTH, n=50, seed=3)[1]
    assert sampling.sample(genome, LENGTH, n=50, seed=3)[1] == first
    assert sampling.sample(genome, LENGTH, n=50, seed=4)[1] != first


def test_regions_are_sampled_evenly_over_their_union(genome, tmp_path):
    bed = tmp_path / "regions.bed.gz"
    lines = ["track name=x", "# one", "1\t50\t60\tpeak\t0", "chr1\t55\t70", "chr2\t0\t25"]
    bed.write_bytes(gzip.compress("\n".join(lines).encode()))
    _, table = sampling.sample(genome, LENGTH, n=6000, seed=0, regions=bed)
    seen = Counter((r["contig"], r["start"]) for r in table.to_pylist())
    # chr2 leaves only what has a whole window.
    assert set(seen) == {(0, i) for i in range(50, 70)} | {(1, i) for i in range(20, 25)}
    assert chisquare(list(seen.values())).pvalue > 0.001


def test_overlapping_touching_and_nested_regions_become_one(genome, tmp_path):
    bed = tmp_path / "regions.bed"
    bed.write_text("chr2 0 9\nchr1 290 300\nchr1 5 20\nchr1 7 9\nchr1 20 22\nchr1 30 31\n")
    contig, start, end = sampling.read_bed(bed, genome)
    assert list(zip(contig, start, end, strict=True)) == [
        (0, 5, 22),
        (0, 30, 31),
        (0, 290, 300),
        (1, 0, 9),
    ]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("chr1\t5\n", "line 1: expected a BED row"),
        ("#\nchr1\t5\tx\n", "line 2: expected a BED row"),
        ("chr1\t5\t5\n", "line 1: 5 to 5 is no region of chr1"),
        ("chr2\t5\t201\n", "line 1: 5 to 201 is no region of chr2, which has 200 bp"),
        ("chr9\t5\t9\n", "no region on a contig of the reference"),
        ("", "no region on a contig of the reference"),
    ],
)
def test_a_bed_file_that_does_not_fit_is_refused(genome, tmp_path, text, message):
    bed = tmp_path / "regions.bed"
    bed.write_text(text)
    with pytest.raises(InputError, match=message):
        sampling.read_bed(bed, genome)


@pytest.mark.parametrize(
    "data",
    [gzip.compress(b"chr1\t5\t9\n" * 99, mtime=0)[:-12], b"\xff\x00\x01"],
    ids=["cut gzip", "no text"],
)
def test_a_bed_file_that_is_damaged_or_no_text_is_refused(genome, tmp_path, data):
    bed = tmp_path / "regions.bed"
    bed.write_bytes(data)
    with pytest.raises(InputError, match=r"regions\.bed: cannot be read as text, plain or gzip"):
        sampling.read_bed(bed, genome)


def test_regions_on_unknown_contigs_are_left_out_with_a_warning(genome, tmp_path, caplog):
    bed = tmp_path / "regions.bed"
    bed.write_text("chr9\t5\t9\nchr1\t5\t9\n")
    assert len(sampling.read_bed(bed, genome)[0]) == 1
    assert "1 regions are on contigs that the reference lacks" in caplog.text


@pytest.mark.parametrize("row", ["chr1\t110\t120", "short\t0\t40", "chr1\t0\t20"])
def test_regions_without_a_base_to_change_are_refused(genome, tmp_path, row):
    bed = tmp_path / "regions.bed"
    bed.write_text(row + "\n")
    with pytest.raises(InputError, match=r"regions\.bed has too few bases A, C, G or T"):
        sampling.sample(genome, LENGTH, n=10, seed=0, regions=bed)


def test_a_genome_shorter_than_a_window_is_refused(genome):
    with pytest.raises(InputError, match="the reference has too few bases"):
        sampling.sample(genome, 301, n=10, seed=0)


def test_peaks_that_have_no_whole_window_are_refused(genome, tmp_path):
    bed = tmp_path / "peaks.bed"
    bed.write_text("chr1\t0\t20\nshort\t0\t40\n")
    with pytest.raises(InputError, match=r"peaks\.bed: no peak has a window of 41 bp"):
        sampling.centres(bed, genome, LENGTH, n=10, seed=0)


def dinucleotides(bases):
    return Counter(itertools.pairwise(bases))


@pytest.mark.parametrize("length", [LENGTH, LENGTH + 1])
def test_shuffled_flanks_keep_their_dinucleotides_around_the_same_alleles(genome, length):
    _, plain = sampling.sample(genome, length, n=1100, seed=5)
    shuffled, table = sampling.sample(genome, length, n=1100, seed=5, scheme="shuffled")
    half, differing = length // 2, 0
    assert table["alt"] == plain["alt"]
    for own, other in zip(plain.to_pylist(), table.to_pylist(), strict=True):
        first = own["start"] - half
        before = genome.fetch(own["contig"], first, first + length)
        before = bytes(b if b in b"ACGT" else ord("N") for b in before)
        after = shuffled.fetch(other["contig"], 0, length)
        assert other["start"] == half
        assert len(after) == shuffled.lengths[other["contig"]] == length
        assert after[half] == before[half]
        assert dinucleotides(after[:half]) == dinucleotides(before[:half])
        assert dinucleotides(after[half + 1 :]) == dinucleotides(before[half + 1 :])
        differing += after != before
    assert differing > 1000
    again, _ = sampling.sample(genome, length, n=1100, seed=5, scheme="shuffled")
    assert np.array_equal(again.bases, shuffled.bases)


LONG = [name for name in classes.NAMES if name != "snv" and classes.bounds(name)[1] <= 20]


@pytest.mark.parametrize("kind", LONG)
def test_alleles_of_a_class_are_of_it_and_change_known_bases_within_a_contig(genome, kind):
    same, table = sampling.sample(genome, LENGTH, n=500, seed=1, kind=kind)
    assert same is genome
    rows = table.to_pylist()
    low, high = classes.bounds(kind)
    lengths = Counter()
    for row in rows:
        ref = genome.fetch(row["contig"], row["start"], row["start"] + row["ref_len"]).decode()
        assert len(ref) == row["ref_len"]
        assert set(ref + row["alt"]) <= set("ACGT")
        both = np.array([len(ref)]), np.array([len(row["alt"])])
        assert classes.NAMES[classes.number(*both)[0]] == kind
        if kind.startswith("mnv"):
            assert ref[0] != row["alt"][0]
            assert ref[-1] != row["alt"][-1]
        first = row["start"] - LENGTH // 2
        assert first >= 0
        assert first + LENGTH + row["ref_len"] - len(row["alt"]) <= genome.lengths[row["contig"]]
        lengths[max(row["ref_len"], len(row["alt"]))] += 1
    assert set(lengths) == set(range(low, high + 1))
    order = [(r["contig"], r["start"], r["ref_len"], r["alt"]) for r in rows]
    assert order == sorted(order)


def test_inserted_bases_are_stretches_of_the_genome(genome):
    _, table = sampling.sample(genome, LENGTH, n=200, seed=1, kind="ins_6_20")
    whole = [genome.fetch(i, 0, int(n)).decode() for i, n in enumerate(genome.lengths)]
    assert all(any(alt in one for one in whole) for alt in table["alt"].to_pylist())
    assert len(set(table["alt"].to_pylist())) > 150


def test_each_doubling_of_the_length_is_as_likely(genome):
    _, table = sampling.sample(genome, LENGTH, n=4000, seed=1, kind="del_6_20")
    lengths = np.bincount(table["ref_len"].to_numpy(), minlength=21)[6:]
    expected = np.log(np.arange(7, 22) / np.arange(6, 21)) / np.log(21 / 6) * 4000
    assert chisquare(lengths, expected).pvalue > 0.001


@pytest.mark.parametrize("kind", LONG)
def test_shuffled_flanks_are_those_of_the_alleles_ends(genome, kind):
    how = {"n": 300, "seed": 5, "kind": kind}
    _, plain = sampling.sample(genome, LENGTH, **how)
    shuffled, table = sampling.sample(genome, LENGTH, **how, scheme="shuffled")
    half = LENGTH // 2
    assert table["alt"] == plain["alt"]
    assert table["ref_len"] == plain["ref_len"]
    for own, other in zip(plain.to_pylist(), table.to_pylist(), strict=True):
        contig, start, end = own["contig"], own["start"], own["start"] + own["ref_len"]
        length = int(shuffled.lengths[other["contig"]])
        after = shuffled.fetch(other["contig"], 0, length)
        assert other["start"] == half
        # A whole window, that of the alternate too.
        assert length >= LENGTH + max(own["ref_len"] - len(own["alt"]), 0)
        right = length - half - own["ref_len"]
        before = genome.fetch(contig, start - half, end + right)
        before = bytes(b if b in b"ACGT" else ord("N") for b in before)
        assert after[half:-right] == before[half:-right]
        assert dinucleotides(after[:half]) == dinucleotides(before[:half])
        assert dinucleotides(after[-right:]) == dinucleotides(before[-right:])
