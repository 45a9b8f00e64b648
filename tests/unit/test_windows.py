"""Windows and their alignment, against an edit of the whole contig as a string."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from veff.inputs.reference import Reference
from veff.models.architecture import Geometry
from veff.scoring.windows import alignment, windows

BASES = st.text("ACGT", max_size=40)


def genome_of(*contigs):
    lengths = [len(contig) for contig in contigs]
    return Reference(
        bases=np.frombuffer("".join(contigs).encode(), np.uint8),
        names=[f"c{i}" for i in range(len(contigs))],
        lengths=lengths,
        offsets=np.cumsum([0, *lengths[:-1]]),
        sha256="",
        assembly=None,
    )


def cut(genome, contig, start, ref_len, alt, length):
    """Windows of one allele, as strings, and the number of padded bases."""
    ref, alternate, n_padded = windows(
        genome, np.array([contig]), np.array([start]), np.array([ref_len]), [alt], length
    )
    assert ref.dtype == alternate.dtype == np.uint8
    assert n_padded.dtype == np.int32
    return ref.tobytes().decode(), alternate.tobytes().decode(), int(n_padded[0])


def brute_force(contig, start, ref_len, alt, length):
    """Edit the contig, pad it, cut it: windows as strings, and labels of the genome's bases.

    A label is the 0-based position in the contig; ('alt', k) the k-th base of ALT; None a pad.
    """
    padding = "N" * (2 * length)
    edited = contig[:start] + alt + contig[start + ref_len :]
    labels = [None] * len(padding) + list(range(len(contig))) + [None] * len(padding)
    at = len(padding) + start
    edited_labels = labels[:at] + [("alt", k) for k in range(len(alt))] + labels[at + ref_len :]
    here = slice(at - length // 2, at - length // 2 + length)
    return (
        (padding + contig + padding)[here],
        (padding + edited + padding)[here],
        labels[here],
        edited_labels[here],
    )


@st.composite
def alleles(draw, output_half=20):
    """A contig, an allele on it that is at most as long as half the output, and a geometry."""
    contig = draw(st.text("ACGTN", min_size=1, max_size=150))
    start = draw(st.integers(0, len(contig)))
    ref_len = draw(st.integers(0, min(output_half, len(contig) - start)))
    alt = draw(st.text("ACGT", max_size=output_half))
    output = 2 * output_half + draw(st.integers(0, 9))
    return contig, start, ref_len, alt, Geometry(output + 2 * draw(st.integers(0, 15)), output)


@given(alleles(), BASES, BASES)
@settings(max_examples=400, deadline=None)
def test_windows_are_those_of_the_edited_contig(allele, before, after):
    contig, start, ref_len, alt, geometry = allele
    length = geometry.input_length
    genome = genome_of(before, contig, after)
    ref, alternate, n_padded = cut(genome, 1, start, ref_len, alt, length)
    expected_ref, expected_alternate, labels, edited_labels = brute_force(
        contig, start, ref_len, alt, length
    )
    assert (ref, alternate) == (expected_ref, expected_alternate)
    assert len(ref) == len(alternate) == length
    assert ref[: length // 2] == alternate[: length // 2]
    assert n_padded == max(labels.count(None), edited_labels.count(None))


@given(st.lists(alleles(), min_size=1, max_size=12))
@settings(max_examples=100, deadline=None)
def test_a_batch_gives_each_allele_what_it_gets_alone(batch):
    genome = genome_of(*(contig for contig, *_ in batch))
    length = batch[0][4].input_length
    contig = np.arange(len(batch), dtype=np.int32)
    start, ref_len = (np.array([allele[i] for allele in batch]) for i in (1, 2))
    alt = np.array([allele[3] for allele in batch], object)
    together = windows(genome, contig, start, ref_len, alt, length)
    for i in range(len(batch)):
        alone = cut(genome, i, start[i], ref_len[i], alt[i], length)
        assert together[0][i].tobytes().decode() == alone[0]
        assert together[1][i].tobytes().decode() == alone[1]
        assert together[2][i] == alone[2]


@given(alleles())
@settings(max_examples=400, deadline=None)
def test_alignment_pairs_the_same_bases_of_the_genome(allele):
    _, start, ref_len, alt, geometry = allele
    trimming, n_out = geometry.trimming, geometry.output_length
    # Labels as in brute_force, but on a contig without ends.
    labels = [start - geometry.input_length // 2 + k for k in range(geometry.input_length)]
    at = geometry.input_length // 2
    edited_labels = labels[:at] + [("alt", k) for k in range(len(alt))]
    edited_labels += [start + ref_len + k for k in range(geometry.input_length)]
    labels, edited_labels = (x[trimming : trimming + n_out] for x in (labels, edited_labels))

    breakpoint_, shift = alignment(np.array([ref_len]), np.array([len(alt)]), geometry)
    assert breakpoint_.dtype == shift.dtype == np.int64
    breakpoint_, shift = int(breakpoint_[0]), int(shift[0])
    t = np.arange(n_out - abs(shift))
    step = (t >= breakpoint_).astype(int)
    in_ref, in_alt = t + max(shift, 0) * step, t + max(-shift, 0) * step
    paired = min(ref_len, len(alt))
    for i, j in zip(in_ref.tolist(), in_alt.tolist(), strict=True):
        if isinstance(edited_labels[j], tuple):
            k = edited_labels[j][1]
            assert k < paired
            assert labels[i] == start + k
        else:
            assert labels[i] == edited_labels[j]
    # What is left out is only in one of the two, or has no room in the other.
    left_out = set(labels) - {labels[i] for i in in_ref.tolist()}
    assert left_out.isdisjoint(edited_labels)
    left_out = set(edited_labels) - {edited_labels[j] for j in in_alt.tolist()}
    assert left_out.isdisjoint(labels)


def test_the_first_base_of_the_allele_is_in_column_half_the_length():
    genome = genome_of("ACGT" * 10)
    ref, alternate, n_padded = cut(genome, 0, 17, 1, "A", 8)  # base 17 is a C
    assert (ref, alternate, n_padded) == ("CGTACGTA", "CGTAAGTA", 0)
    ref, alternate, _ = cut(genome, 0, 17, 1, "A", 9)
    assert (ref, alternate) == ("CGTACGTAC", "CGTAAGTAC")


def test_deletion_and_insertion_keep_the_left_flank_and_fill_from_the_right():
    genome = genome_of("AAAACCCCGGGGTTTT")
    assert cut(genome, 0, 8, 2, "", 8) == ("CCCCGGGG", "CCCCGGTT", 0)
    assert cut(genome, 0, 8, 0, "TA", 8) == ("CCCCGGGG", "CCCCTAGG", 0)
    assert cut(genome, 0, 8, 2, "TAT", 8) == ("CCCCGGGG", "CCCCTATG", 0)


def test_past_the_ends_of_a_contig_stands_n_and_is_counted():
    genome = genome_of("GGGG", "ACGT", "GGGG")
    assert cut(genome, 1, 0, 1, "T", 8) == ("NNNNACGT", "NNNNTCGT", 4)
    assert cut(genome, 1, 3, 1, "A", 8) == ("NACGTNNN", "NACGANNN", 4)
    assert cut(genome, 1, 1, 2, "", 6) == ("NNACGT", "NNATNN", 4)
    assert cut(genome, 1, 4, 0, "CC", 8) == ("ACGTNNNN", "ACGTCCNN", 4)


def test_a_contig_shorter_than_half_a_window():
    genome = genome_of("A")
    assert cut(genome, 0, 0, 1, "C", 10) == ("NNNNNANNNN", "NNNNNCNNNN", 9)


def test_an_insertion_that_fills_the_right_half():
    genome = genome_of("ACGT" * 5)
    ref, alternate, n_padded = cut(genome, 0, 8, 0, "G" * 7, 8)
    assert (ref, alternate, n_padded) == ("ACGTACGT", "ACGTGGGG", 0)


def test_iupac_codes_under_the_allele_are_read_as_the_vcf_specification_says():
    # Of the bases that a code stands for, the first in the alphabet; elsewhere codes stay.
    for code, meant in zip("RYSWKMBDHV", "ACCAGACAAA", strict=True):
        genome = genome_of(f"GG{code}{code}GG")
        assert cut(genome, 0, 2, 1, "T", 4)[0] == f"GG{meant}{code}"
    genome = genome_of("GGNGGG")
    assert cut(genome, 0, 2, 1, "T", 4)[0] == "GGNG"


def test_no_alleles_give_no_windows():
    genome = genome_of("ACGT")
    empty = np.zeros(0, np.int64)
    ref, alternate, n_padded = windows(genome, empty, empty, empty, [], 8)
    assert ref.shape == alternate.shape == (0, 8)
    assert n_padded.shape == (0,)


def test_snvs_are_what_tangermeme_substitutes():
    torch = pytest.importorskip("torch")
    tangermeme = pytest.importorskip("tangermeme.variant_effect")
    from tangermeme.utils import one_hot_encode

    rng = np.random.default_rng(0)
    contig = "".join(rng.choice(list("ACGT"), 400))
    start = rng.integers(50, 350, 20)
    alt = ["ACGT"[("ACGT".index(contig[i]) + 1) % 4] for i in start]
    ref, alternate, _ = windows(
        genome_of(contig), np.zeros(20, int), start, np.ones(20, int), alt, 64
    )
    before = torch.stack([one_hot_encode(row.tobytes().decode()) for row in ref])
    substitutions = torch.tensor([[i, 32, "ACGT".index(base)] for i, base in enumerate(alt)])
    result = tangermeme.substitution_effect(
        torch.nn.Identity(), before.float(), substitutions, device="cpu"
    )
    y_before, y_after = tuple(result)[:2]
    assert torch.equal(y_before, before.float())
    after = torch.stack([one_hot_encode(row.tobytes().decode()) for row in alternate])
    assert torch.equal(y_after, after.float())
