"""What does a table of measured effects say, and how is it told to?"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from scipy.special import logit
from scipy.stats import norm

from veff.errors import InputError
from veff.inputs import formats, records
from veff.inputs.lists import MISSING, List, which
from veff.inputs.record import Malformed, Record
from veff.inputs.reference import Reference

YES, NO = ("1", "true", "yes"), ("0", "false", "no")


@dataclass(frozen=True)
class Truth:
    """A table of alleles in any form of list (`veff.inputs.lists`), and what its columns hold.

    Columns, by their headings, None where there are none: `effect`, a beta or log fold change of
    any base, or `allelic_ratio`, the share of reads with the effect allele; `effect_allele`, the
    allele that these are of, where the form of the table does not say it; `standard_error` or
    `pvalue`, by which a row is positive, at `significant` or below; or `label`, which says so
    itself (1, 0, or empty for neither); `matched`, what a positive row and its matched negatives
    have in common; `experiment`, the one that a row is about, None where each row is about all;
    `frequency` of the effect allele in the study, and `alt_frequency` of ALT, on the reference's
    strand, in a like population. `block`: bp of the blocks of the intervals, or 'chromosome'.
    """

    table: Path
    effect: str | None = None
    allelic_ratio: str | None = None
    effect_allele: str | None = None
    standard_error: str | None = None
    pvalue: str | None = None
    significant: float = 0.05
    label: str | None = None
    matched: str | None = None
    experiment: str | None = None
    frequency: str | None = None
    alt_frequency: str | None = None
    block: int | str = 1_000_000


@dataclass(frozen=True)
class Values:
    """What some rows say, an array each, NaN for what is missing or not asked for."""

    effect: np.ndarray  # log scale, of the effect allele
    positive: np.ndarray  # 1, 0, or NaN
    frequency: np.ndarray
    alt_frequency: np.ndarray
    experiment: list[str] | None
    matched: list[str | None] | None


class Table:
    """A table of measured effects: its records, their effect alleles filled in, and its values.

    Raises `InputError` that names the table where it is no list, lacks a column, or leaves open
    which allele an effect is of.
    """

    def __init__(self, truth: Truth, reference: Reference):
        if formats.kind(truth.table) != "list":
            raise InputError(
                f"{truth.table}: a VCF or BCF, whose columns hold no measured effects; give a "
                "table (bcftools query -f makes one)"
            )
        self.truth = truth
        self.list = List(truth.table, reference)
        given = (
            "effect allelic_ratio effect_allele standard_error pvalue label matched experiment "
            "frequency alt_frequency"
        )
        self._at = {
            name: self.list.column(heading)
            for name in given.split()
            if (heading := getattr(truth, name)) is not None
        }
        signed = truth.effect or truth.allelic_ratio
        if signed and not truth.effect_allele and not self.list.layout.effect:
            raise InputError(
                f"{truth.table}: nothing says of which allele its effects are; name the column "
                "that holds it as effect_allele (of ref and alt it is mostly alt)"
            )

    def __iter__(self) -> Iterator[Record | Malformed]:
        return (record for record, _ in self.rows())

    def rows(self) -> Iterator[tuple[Record | Malformed, list[str]]]:
        """The records, each with the cells of its row."""
        at = self._at.get("effect_allele")
        for record, cells in self.list.rows():
            if at is not None and type(record) is Record and len(record.alts) == 1:
                record = record._replace(effect=which(cells[at], record.ref, record.alts[0]))
            yield record, cells

    def values(self, rows: list[Record | Malformed], cells: list[list[str]]) -> Values:
        """What these rows say."""

        def numbers(name: str) -> np.ndarray:
            at = self._at.get(name)
            if at is None:
                return np.full(len(cells), np.nan)
            texts = self._texts(at, rows, cells)
            try:
                return np.array(texts, float)
            except ValueError:
                return np.array(
                    [self._number(name, *one) for one in zip(rows, texts, strict=True)], float
                )

        effect = numbers("effect")
        if self.truth.allelic_ratio:
            ratio = numbers("allelic_ratio")
            self._check(rows, "allelic_ratio", (ratio < 0) | (ratio > 1), "from 0 to 1")
            effect = logit(ratio) / np.log(2)
        pvalue, error = numbers("pvalue"), numbers("standard_error")
        self._check(rows, "pvalue", (pvalue < 0) | (pvalue > 1), "from 0 to 1")
        self._check(rows, "standard_error", error <= 0, "above 0")
        if self.truth.standard_error and not self.truth.pvalue:
            pvalue = 2 * norm.sf(np.abs(effect / error))
        positive = np.where(np.isnan(pvalue), np.nan, pvalue <= self.truth.significant)
        if self.truth.label:
            texts = self._texts(self._at["label"], rows, cells)
            positive = np.array([self._label(*one) for one in zip(rows, texts, strict=True)])
        experiment, matched = (
            at if at is None else self._texts(at, rows, cells)
            for at in map(self._at.get, ("experiment", "matched"))
        )
        return Values(
            np.where(np.isfinite(effect), effect, np.nan),
            positive,
            numbers("frequency"),
            numbers("alt_frequency"),
            experiment,
            matched and [None if one.lower() in MISSING else one for one in matched],
        )

    @staticmethod
    def _texts(at: int, rows: list[Record | Malformed], cells: list[list[str]]) -> list[str]:
        """A column; a row that is no record, and may lack cells, has nothing in it."""
        return [
            one[at] if type(row) is Record and at < len(one) else ""
            for row, one in zip(rows, cells, strict=True)
        ]

    def _number(self, name: str, row: Record | Malformed, text: str) -> float:
        try:
            return float("nan" if text.lower() in MISSING else text)
        except ValueError:
            raise self._fault(row, name, text, "a number, or NA") from None

    def _label(self, row: Record | Malformed, text: str) -> float:
        if (lower := text.lower().removesuffix(".0")) in MISSING:
            return np.nan
        if lower not in YES + NO:
            raise self._fault(row, "label", text, "1 or 0, true or false, yes or no, or NA")
        return float(lower in YES)

    def _check(self, rows: list, name: str, wrong: np.ndarray, expected: str) -> None:
        for i in np.flatnonzero(wrong)[:1]:
            raise self._fault(rows[i], name, None, expected)

    def _fault(self, row, name: str, text: str | None, expected: str) -> InputError:
        found = "a number that is not" if text is None else f"{records.quote(text)}; expected"
        return InputError(
            f"{self.truth.table}, line {row.line}: {name} ({getattr(self.truth, name)!r}) is "
            f"{found} {expected}"
        )
