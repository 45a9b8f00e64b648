"""Alleles on a person's own chromosomes: by bcftools, by hand, and against single scores."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from phased import alleles, consensus, with_genotypes, write_vcf
from reported import Run
from tiny import GEOMETRY, Tiny
from veff import tables
from veff.atomic import read_json
from veff.errors import InputError
from veff.haplotypes import genotypes
from veff.inputs import preparing
from veff.outputs import collect
from veff.personal import collecting, planning
from veff.scoring import columns, edits


@pytest.fixture(scope="module")
def tiny(tmp_path_factory):
    return Tiny(tmp_path_factory.mktemp("tiny"))


def snv(tiny, pos, *cells, contig="one", step=1):
    """An SNV at a place, 1-based, with genotypes; `step` chooses the base."""
    ref = tiny.contigs[contig][pos - 1]
    return (contig, pos, ref, "ACGT"["ACGT".index(ref) - step], list(cells))


@dataclass(frozen=True)
class Planned:
    tiny: Tiny
    folder: Path
    summary: dict

    @property
    def rows(self) -> list[dict]:
        return pq.read_table(self.folder / "planned").to_pylist()

    def scored(self, *experiments) -> tuple[list[dict], dict]:
        """The rows of the table, and the scores on the reference, as a run puts them together."""
        names = [one.name for one in experiments]
        parts = {}
        for name in ("scoreable", "virtual"):
            answers, _ = self.tiny.score(pq.read_table(self.folder / name), *experiments)
            parts[name] = self.folder / f"{name}.part"
            tables.write_parquet(parts[name], answers)
        stack = collect.Stack(pq.read_table(self.folder / "alleles"))
        schema = columns.answers(nulls=False, fdr=False)
        alone = pa.concat_tables(
            stack.rows(one, schema) for one in collect.by_experiment([[parts["scoreable"]]], names)
        )
        pq.write_table(alone, self.folder / "scores")
        collecting.write(
            self.folder / "planned",
            self.folder / "scores",
            [[parts["virtual"]]] if self.summary["chunks"] else [],
            names,
            self.folder / "personal",
            self.folder / "shown",
        )
        table = pq.read_table(self.folder / "personal")
        return table.to_pylist(), {
            (row["experiment"], row["group"], row["allele_id"]): row for row in alone.to_pylist()
        }


def without_samples(path, rows):
    write_vcf(path, [(*row[:4], []) for row in rows], ["x"])
    path.write_text(path.read_text().replace("\tFORMAT\tx", "").replace("\tGT\n", "\n"))
    return path


@pytest.fixture
def plan(tiny, tmp_path):
    """A function that plans these variants on the chromosomes of a person with those."""

    def of(variants, person, names=None, sample=None):
        given = without_samples(tmp_path / "input.vcf", variants)
        how = {"max_allele_length": 50}
        every, scoreable = tmp_path / "alleles", tmp_path / "scoreable"
        preparing.prepare(given, tiny.reference, every, scoreable, chunk_size=1000, **how)
        summary = planning.plan(
            every,
            scoreable,
            write_vcf(tmp_path / "person.vcf", person, names),
            tiny.reference,
            sample=sample,
            input_length=GEOMETRY.input_length,
            chunk_size=1000,
            virtual=tmp_path / "virtual",
            planned=tmp_path / "planned",
            **how,
        )
        return Planned(tiny, tmp_path, summary)

    return of


def of_haplotypes(planned, *names):
    """These values of each row, in order."""
    return [tuple(row[name] for name in names) for row in planned.rows]


def apart(rows):
    """Those that do not touch the one before."""
    kept = rows[:1]
    for row in rows[1:]:
        if row[1] > kept[-1][1] + len(kept[-1][2]):
            kept.append(row)
    return kept


def touching(one, other):
    return one[1] < other[1] + len(other[2]) and other[1] < one[1] + len(one[2])


@pytest.mark.parametrize("seed", range(3))
def test_sequences_are_those_of_bcftools_consensus_without_and_with_the_allele(
    tiny, plan, tmp_path, seed
):
    person = with_genotypes(alleles(tiny, seed, n=25), seed, samples=1)
    if seed:
        person = apart(person)  # so that what is taken out lets no other one in
    mine = [row[:4] for row in person]
    others = [row for row in alleles(tiny, seed + 10, n=15) if row not in mine]
    planned = plan([*(mine[::2] if seed else []), *others], person)
    every = pq.read_table(tmp_path / "alleles").to_pylist()
    virtual = pq.read_table(tmp_path / "virtual")
    windows = list(edits.pairs(virtual, tiny.reference, GEOMETRY))
    compared = {False: 0, True: 0}

    def chromosome(rows, number):
        rows = sorted(rows, key=lambda row: (row[1], len(row[2]) != len(row[3])))
        vcf = write_vcf(tmp_path / "changed.vcf", rows)
        return consensus(tiny.folder / "genome.fa", vcf, "s0", number)

    for row in planned.rows[:: 1 if seed else 2]:
        if row["status"] != "ok" or row["window"] is None:
            continue
        one = next(each for each in every if each["allele_id"] == row["allele_id"])
        same = [each for each in person if each[:4] == ("one", one["pos"], one["ref"], one["alt"])]
        written = ("one", *(one[f"scored_{key}"] for key in ("pos", "ref", "alt")), ["1|1"])
        if not row["carried"] and any(touching(each, written) for each in person):
            continue  # of records that share a base, changed or not, it skips one
        if row["carried"]:
            without, having = [each for each in person if each not in same], person
        else:
            without, having = person, [*(each for each in person if each not in same), written]
        pair = windows[row["window"]]
        assert pair.ref.decode() in chromosome(without, row["haplotype"])
        assert pair.alt.decode() in chromosome(having, row["haplotype"])
        compared[row["carried"]] += 1
    assert compared[False] > 3
    assert compared[True] > 3 or not seed


def test_without_background_scores_are_those_on_the_reference_to_the_bit(tiny, plan):
    experiments = tiny.experiment("x", (0, 1)), tiny.experiment("y", (2,), signal_groups=[1, 1])
    variants = [snv(tiny, 500), snv(tiny, 700), snv(tiny, 900), snv(tiny, 700)]
    # Nobody has the first; the second is carried; the third stands beside another, on one.
    planned = plan(variants, [snv(tiny, 700, "0|1"), snv(tiny, 950, "1|0")])
    assert planned.summary["windows"] == 1
    rows, alone = planned.scored(*experiments)
    assert len(rows) == 4 * 2 * 3
    for row in rows:
        theirs = alone[row["experiment"], row["group"], row["allele_id"]]
        assert row["reference_logfc"] == theirs["logfc"]
        assert row["difference"] == row["logfc"] - theirs["logfc"]
        same = all(row[name] == theirs[name] for name in collecting.SCORED)
        assert same == (row["background"] == "")
        assert bool(row["background"]) == (row["pos"] == 900 and row["haplotype"] == 1)
    carried = {(row["pos"], row["haplotype"]) for row in rows if row["carried"]}
    assert carried == {(700, 2)}


def test_a_background_changes_what_an_allele_does_as_the_model_says(tiny, plan):
    """Held against the model's own answers to sequences that are edited here."""
    import torch
    from tangermeme.utils import one_hot_encode

    from veff.cherimoya import checkpoint

    one = tiny.experiment("one", (0,))
    planned = plan([snv(tiny, 500)], [snv(tiny, 506, "1|0"), snv(tiny, 511, "1|1")])
    rows, _ = planned.scored(one)
    model = checkpoint.load(one.folds[0].path)
    bases = tiny.contigs["one"]

    def counts(*changed):
        text = list(bases)
        for pos in changed:
            text[pos - 1] = snv(tiny, pos)[3]
        half = GEOMETRY.input_length // 2
        window = "".join(text[499 - half : 499 - half + GEOMETRY.input_length])
        with torch.no_grad():
            return float(model(one_hot_encode(window)[None].float())[1])

    for row, background in zip(rows, [(506, 511), (511,)], strict=True):
        effect = (counts(500, *background) - counts(*background)) / np.log(2)
        assert row["logfc"] == pytest.approx(effect, abs=1e-4)
        difference = effect - (counts(500) - counts()) / np.log(2)
        assert row["difference"] == pytest.approx(difference, abs=1e-4)
        words = [f"{pos}:{bases[pos - 1]}>{snv(tiny, pos)[3]}" for pos in background]
        assert row["background"] == ",".join(words)


def test_equal_haplotypes_are_scored_once_and_duplicates_have_rows_of_their_own(tiny, plan):
    variants = [snv(tiny, 800), snv(tiny, 500), snv(tiny, 500)]
    person = [snv(tiny, 500, "1|0"), snv(tiny, 510, "1|1"), snv(tiny, 810, "0|1")]
    planned = plan(variants, person)  # which chromosome has the allele itself does not matter
    assert of_haplotypes(planned, "allele_id", "haplotype", "window") == [
        (0, 1, None),
        (0, 2, 1),
        (1, 1, 0),
        (1, 2, 0),
        (2, 1, 0),
        (2, 2, 0),
    ]
    assert (planned.summary["windows"], planned.summary["alone"]) == (2, 1)


def test_an_allele_that_overlaps_the_background_is_named_and_not_scored(tiny, plan):
    bases = tiny.contigs["one"]
    deletion = ("one", 499, bases[498:505], bases[498], ["1|0"])
    here, one, other = bases[699], *("ACGT"["ACGT".index(bases[699]) - i] for i in (1, 2))
    insertion = ("one", 700, here, here + 10 * one, ["0|1"])
    variants = [
        snv(tiny, 502),  # deleted on the first
        snv(tiny, 600),  # another allele there, on the second
        ("one", 700, here, here + 5 * other),  # another insertion there
        snv(tiny, 701),  # behind an insertion
    ]
    planned = plan(variants, [deletion, snv(tiny, 600, "0|1", step=2), insertion])
    assert of_haplotypes(planned, "pos", "haplotype", "status") == [
        (502, 1, "overlapped"),
        (502, 2, "ok"),
        (600, 1, "ok"),
        (600, 2, "overlapped"),
        (700, 1, "ok"),
        (700, 2, "overlapped"),
        (701, 1, "ok"),
        (701, 2, "ok"),
    ]
    assert planned.summary["statuses"]["overlapped"] == 3
    rows, alone = planned.scored(tiny.experiment("x", (0,)))
    assert [row["logfc"] is None for row in rows] == [
        row["status"] == "overlapped" for row in planned.rows
    ]
    assert {row["reference_logfc"] for row in rows} == {row["logfc"] for row in alone.values()}


def test_carried_is_whether_that_chromosome_has_the_same_change(tiny, plan):
    bases = tiny.contigs["one"]
    right = next(i for i in range(1500, 2900) if bases[i] == bases[i - 1] == bases[i - 2])
    written_right = ("one", right, bases[right - 1 : right + 1], bases[right - 1])
    written_left = ("one", right - 1, bases[right - 2 : right], bases[right - 2])
    person = [
        snv(tiny, 500, "1|0"),
        snv(tiny, 700, "0/1"),
        snv(tiny, 900, ".|."),
        snv(tiny, 1100, "1/1"),
        (*written_right, ["0|1"]),
    ]
    planned = plan([snv(tiny, pos) for pos in (500, 700, 900, 1100)] + [written_left], person)
    carried = [(True, False), (None, None), (False, False), (True, True), (False, True)]
    assert [row["carried"] for row in planned.rows] == [one for both in carried for one in both]
    assert planned.summary["left_out"]["unphased"] == 1


def test_what_is_unphased_or_of_another_phase_set_is_left_out_and_counted(tiny, plan):
    person = [
        snv(tiny, 480, "0/1:."),
        snv(tiny, 490, "1|0:7"),
        snv(tiny, 495, "1/1:."),
        snv(tiny, 500, "0|1:9"),
        snv(tiny, 505, "0|1:7"),
        snv(tiny, 510, "0|1:9"),
        snv(tiny, 515, "0|1:7"),
    ]
    places = "background", "n_unphased"
    planned = plan([snv(tiny, 500), snv(tiny, 498)], person)
    own, other = of_haplotypes(planned, *places)[:2], of_haplotypes(planned, *places)[2:]

    def at(text):
        return [int(one.split(":")[0]) for one in text.split(",")]

    assert [(at(text), n) for text, n in own] == [([495], 4), ([495, 510], 4)]
    assert [(at(text), n) for text, n in other] == [([490, 495], 3), ([495, 505, 515], 3)]


def test_where_there_is_one_copy_the_second_haplotype_has_a_status_and_no_scores(tiny, plan):
    person = [snv(tiny, 500, "1"), snv(tiny, 510, "0|1", contig="two")]
    variants = [snv(tiny, 505), snv(tiny, 505, contig="two")]
    planned = plan(variants, person)
    assert of_haplotypes(planned, "status", "carried", "window") == [
        ("ok", False, 0),
        ("one_copy", None, None),
        ("ok", False, None),
        ("ok", False, 1),
    ]
    rows, _ = planned.scored(tiny.experiment("x", (0,)))
    assert [row["logfc"] is None for row in rows] == [False, True, False, False]


def test_several_deletions_let_the_window_reach_further(tiny, plan):
    bases = tiny.contigs["one"]
    half = GEOMETRY.input_length // 2
    deletions = [
        ("one", pos, bases[pos - 1 : pos + 39], bases[pos - 1], ["1|0"]) for pos in (510, 560, 610)
    ]
    beyond = 500 + half + 100
    planned = plan([snv(tiny, 500)], [*deletions, snv(tiny, beyond, "1|1")])
    first, second = (row["background"] for row in planned.rows)
    assert f"{beyond}:" in first
    assert second == ""


@pytest.mark.parametrize(
    ("names", "sample", "cells", "message"),
    [
        (["a", "b"], None, ["0|1", "0|1"], "which of its samples .* Name it as sample; .* a, b"),
        (["a", "b"], "c", ["0|1", "0|1"], "background: sample: 'c' is no sample of it; .* a, b"),
        (["a"], None, ["."], r"person\.vcf: background: it has no genotypes of the sample"),
    ],
)
def test_a_person_who_is_not_clear_is_refused_in_a_line(tiny, plan, names, sample, cells, message):
    with pytest.raises(InputError, match=message):
        plan([snv(tiny, 500)], [snv(tiny, 510, *cells)], names, sample)


def test_a_file_without_samples_is_no_person(tiny, tmp_path):
    path = without_samples(tmp_path / "person.vcf", [snv(tiny, 500)])
    with pytest.raises(InputError, match=r"person\.vcf: background: there are no samples in it"):
        genotypes.samples_of(path, "background")


@pytest.mark.parametrize("person", [[], ["1|0"]])
def test_where_nothing_is_scored_the_table_has_its_columns_and_no_rows(tiny, plan, person):
    planned = plan([], [snv(tiny, 500, *person)] if person else [], ["a"])
    assert planned.summary["windows"] == planned.summary["alleles"] == 0
    pq.write_table(columns.answers(nulls=False, fdr=False).empty_table(), planned.folder / "none")
    out = planned.folder / "personal"
    of = planned.folder / "planned", planned.folder / "none", [], ["x"], out
    collecting.write(*of, planned.folder / "shown")
    table = pq.read_table(out)
    assert table.schema.names == list(collecting.COLUMNS)
    assert len(table) == 0


def test_of_several_samples_the_named_one_counts(tiny, plan):
    planned = plan([snv(tiny, 500)], [snv(tiny, 510, "0|1", "1|0")], ["a", "b"], "b")
    assert [bool(text) for (text,) in of_haplotypes(planned, "background")] == [True, False]
    assert planning.words(planned.summary).startswith(
        "plan: 1 alleles on both haplotypes of b: 1 windows to score; 1 times nothing else is"
    )


def test_the_report_has_the_largest_difference_of_each_allele(tiny, plan, monkeypatch):
    places = 500, 510, 520, 900
    planned = plan([snv(tiny, pos) for pos in places], [snv(tiny, 505, "1|0")])
    monkeypatch.setattr(collecting, "SHOWN", 2)
    rows, _ = planned.scored(tiny.experiment("x", (0,)), tiny.experiment("y", (1,)))
    largest = {}
    for row in rows:
        size = abs(row["difference"])
        largest[row["pos"]] = max(largest.get(row["pos"], (0, "")), (size, row["experiment"]))
    shown = read_json(planned.folder / "shown")
    told = [(abs(row["difference"]), row["experiment"]) for row in shown]
    assert told == sorted(largest.values(), reverse=True)[:2]
    html = Run(planned.folder, 20).report(personal=planned.folder / "shown").read_text()
    section = html.split('<section id="personal">')[1].split("</section>")[0]
    assert section.count("1, does not carry it") == 2
    assert shown[0]["background"].replace(">", "&gt;") in section


def test_only_what_stands_near_the_input_is_looked_at(tiny, plan, monkeypatch):
    monkeypatch.setattr(planning, "BASES", 0)
    planned = plan([snv(tiny, 1500)], [snv(tiny, pos, "0/1") for pos in (200, 1490, 2900)])
    assert planned.summary["left_out"]["unphased"] == 1
    assert planned.rows[0]["n_unphased"] == 1
