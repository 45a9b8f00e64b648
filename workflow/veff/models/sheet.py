"""Which experiments and which checkpoints does the model sheet ask for?"""

import csv
import difflib
import hashlib
import json
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from urllib.parse import quote

from veff.errors import InputError
from veff.models import catv1
from veff.names import cut

SOURCES = ("checkpoint", "catv1", "biosample")
KNOWN = ("experiment", *SOURCES, "assay", "folds", "group", "peaks", "assembly", "output_length",
         "test_chroms")  # fmt: skip
OUTPUT_LENGTH = 1000  # what Cherimoya is trained with; a checkpoint does not state it
ALL = "all"  # as catv1: all experiments that the row's facets describe
HUB = "catv1:"  # before the name of a checkpoint that stands in CATv1's repository
LONGEST_NAME = 240  # as tables.parquet names a folder by it
CONTROL = re.compile(r"[\x00-\x1f\x7f]")
ACCESSION = re.compile(r"ENCSR\d{3}[A-Z]{3}")
ASSEMBLIES = {"grch38": "hg38", "grch37": "hg19", "grcm38": "mm10", "grcm39": "mm39"}


@dataclass(frozen=True)
class Request:
    """One answer that the sheet asks for: the checkpoints (folds) that are averaged into it.

    A checkpoint is a path, or `catv1:` and a name in CATv1's repository. `group` is the signal
    group of the models that is reported, None for all. `about` are the sheet's further columns,
    as (name, value) pairs; they and `peaks` and `assembly` do not change what is predicted.
    `test_chroms` are the contigs that each checkpoint did not train on, () where no row has any.
    """

    name: str
    checkpoints: tuple[str, ...]
    output_length: int = OUTPUT_LENGTH
    group: int | None = None
    peaks: str | None = None
    assembly: str | None = None
    about: tuple[tuple[str, str], ...] = ()
    test_chroms: tuple[tuple[str, ...], ...] = ()

    @property
    def files(self) -> list[str]:
        """Its checkpoints that are the user's own files."""
        return [one for one in self.checkpoints if not one.startswith(HUB)]

    @property
    def from_hub(self) -> list[str]:
        """The names of its checkpoints in CATv1's repository."""
        return [one.removeprefix(HUB) for one in self.checkpoints if one.startswith(HUB)]

    @property
    def predicting(self) -> dict:
        """What decides its predictions, as plain values."""
        keys = ["name", "checkpoints", "output_length", "group"]
        # Bundles of sheets without any keep the names that they had before there were some.
        keys += ["test_chroms"] if self.test_chroms else []
        return {key: getattr(self, key) for key in keys}


def read(path: str | Path, revision: str = "main") -> list[Request]:
    """The experiments of a sheet, in the order of their first rows.

    The sheet is tab-separated with a header. Each row has an `experiment` and one source of
    checkpoints: `checkpoint`, a path; `catv1`, an ENCODE accession, with `folds`; or `biosample`
    and `assay`, with `folds`, which are looked up in CATv1's metadata at that revision. `catv1`
    may be `all`: an experiment for each of CATv1's that has the row's `catv1.FACETS`, called by
    the row's name and its accession. Rows of one experiment add up to its folds, in that order.
    Other columns: `group`, `peaks`, `assembly`, `output_length`, `test_chroms` (contigs that the
    row's one checkpoint held out, with commas between), and any that the user likes.

    Raises `InputError` that names the sheet, the line and what is wrong with it.
    """
    folds: dict[str, list[str]] = {}
    held_out: dict[str, list[tuple[str, ...]]] = {}
    settings: dict[str, dict] = {}
    about: dict[str, dict[str, list[str]]] = {}
    with _opened(path) as rows:
        names = rows.fieldnames or []
        _check_header(path, names)
        for row in rows:
            here = f"{path}, line {rows.line_num}"
            if None in row or None in row.values():
                raise InputError(f"{here}: expected {len(names)} tab-separated values")
            values = {key: value.strip() for key, value in row.items()}
            _check_texts(here, values)
            if not values["experiment"]:
                raise InputError(f"{here}: experiment is empty; give a name")
            try:
                asked = _sources(values, revision)
                setting = _settings(values, asked[0].facts)
                test_chroms = _test_chroms(values, asked)
            except InputError as error:
                raise InputError(f"{here}: {error}") from None
            free = {key: value for key, value in values.items() if key not in KNOWN}
            for one in asked:
                name = one.name
                _check_length(here, name)
                for checkpoint in one.checkpoints:
                    if checkpoint in folds.setdefault(name, []):
                        raise InputError(
                            f"{here}: {name} has {cut(repr(checkpoint), 200)} twice; remove one"
                        )
                    folds[name].append(checkpoint)
                    held_out.setdefault(name, []).append(test_chroms)
                for key, value in setting.items():
                    if settings.setdefault(name, setting)[key] != value:
                        raise InputError(f"{here}: {key} differs between the rows of {name}")
                known = {key: value for key, value in one.facts.items() if value}
                for key, value in (known | free | known).items():  # in this order
                    said = about.setdefault(name, {}).setdefault(key, [])
                    if value and value not in said:
                        said.append(value)
    if not folds:
        raise InputError(f"{path}: no models; add a row with an experiment and a checkpoint")
    return [
        Request(
            name,
            tuple(folds[name]),
            **settings[name],
            about=tuple((key, ",".join(said)) for key, said in about.get(name, {}).items()),
            test_chroms=tuple(held_out[name]) if any(held_out[name]) else (),
        )
        for name in folds
    ]


def check_held_out(path: str | Path, experiments: list[Request]) -> None:
    """Raise `InputError` that names the first checkpoint of which the sheet does not say which
    contigs it held out."""
    for one in experiments:
        said = one.test_chroms or ((),) * len(one.checkpoints)
        for checkpoint, chroms in zip(one.checkpoints, said, strict=True):
            if not chroms:
                of_hub = checkpoint.startswith(HUB)
                raise InputError(
                    f"{path}: {one.name}: nothing says which contigs "
                    f"{cut(repr(checkpoint.removeprefix(HUB)), 200)} held out, which ensemble: "
                    "heldout goes by; give each fold a row with test_chroms"
                    + (" (CATv1's metadata has no splits of all folds)" if of_hub else "")
                )


def bundles(
    experiments: list[Request],
    models_per_job: int,
    earlier: Mapping[str, list[str]] = MappingProxyType({}),
) -> dict[str, list[Request]]:
    """Experiments with at most `models_per_job` checkpoints in all, none parted, by bundle name.

    The name is a hash of what decides the bundle's predictions, and all of a bundle have one
    output length. `earlier` are bundles that the run already has: the names of their
    experiments, by bundle name. Those whose content still stands in the sheet stay as they are,
    and no new bundle reaches across one: so further experiments come in further bundles, and a
    plan does not change while it is carried out.
    """
    by_name = {one.name: one for one in experiments}
    kept: dict[str, tuple[str, list[Request]]] = {}
    for name, members in sorted(earlier.items(), key=lambda item: (-len(item[1]), item[0])):
        if all(one in by_name and one not in kept for one in members):
            bundle = [by_name[one] for one in members]
            if _name(bundle) == name:
                kept |= dict.fromkeys(members, (name, bundle))

    plan: dict[str, list[Request]] = {}
    filling: list[Request] = []

    def close() -> None:
        if filling:
            plan[_name(filling)] = filling.copy()
            filling.clear()

    for one in experiments:
        if one.name in kept:
            close()
            name, bundle = kept[one.name]
            plan[name] = bundle
            continue
        size = sum(len(other.checkpoints) for other in (*filling, one))
        if filling and (size > models_per_job or one.output_length != filling[0].output_length):
            close()
        filling.append(one)
    close()
    return plan


def _name(bundle: list[Request]) -> str:
    text = json.dumps([one.predicting for one in bundle])
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def _check_texts(here: str, values: dict[str, str]) -> None:
    """Texts of the sheet go into tables, headers and names of folders."""
    for key, value in values.items():
        if CONTROL.search(key + value):
            raise InputError(
                f"{here}: {cut(repr(key))} is {cut(repr(value))}, with a control character; take "
                "it out"
            )


def _check_length(here: str, name: str) -> None:
    if len(quote(name, safe="")) > LONGEST_NAME:
        raise InputError(
            f"{here}: the experiment's name {cut(repr(name))} is too long for a folder: at most "
            f"{LONGEST_NAME} characters, where each that is no letter or digit counts as three "
            "or more"
        )


@contextmanager
def _opened(path: str | Path) -> Iterator[csv.DictReader]:
    path = path if isinstance(path, Path) else Path(path)
    with path.open(newline="", encoding="utf-8-sig") as handle:
        rows = csv.DictReader(handle, delimiter="\t")
        try:
            yield rows
        except UnicodeDecodeError as error:
            raise InputError(
                f"{path}: not text in UTF-8 ({error.reason}); save it as such"
            ) from None
        except csv.Error as error:
            raise InputError(
                f"{path}, line {rows.line_num + 1}: {error}; expected a TSV"
            ) from None


def _check_header(path: str | Path, names: list[str]) -> None:
    fault = ""
    if "experiment" not in names:
        fault = "no column 'experiment'"
    elif not set(SOURCES) & set(names):
        fault = "no column 'checkpoint'"
    for name in names:
        if name not in KNOWN and (close := difflib.get_close_matches(name, KNOWN, 1, 0.8)):
            fault = f"unknown column {name!r}; did you mean {close[0]!r}?"
    if len(set(names)) < len(names) or "" in names:
        fault = "a column without a name, or two of one name"
    if fault:
        raise InputError(
            f"{path}, line 1: {fault}; expected tab-separated columns experiment, one of "
            "checkpoint, catv1 (and folds) or biosample and assay (and folds), and, if needed, "
            "group, peaks, assembly, output_length, test_chroms and columns of your own"
        )


@dataclass(frozen=True)
class Source:
    """The checkpoints that a row asks for, of which experiment, and what else is known of them."""

    name: str
    checkpoints: list[str]
    facts: dict[str, str]


def _sources(values: dict[str, str], revision: str) -> list[Source]:
    """What a row asks for: one experiment, or, with `all` as catv1, those that it describes."""
    name = values["experiment"]
    checkpoint, accession, biosample, assay, folds = (
        values.get(key, "") for key in (*SOURCES, "assay", "folds")
    )
    facts = {"biosample": biosample, "assay": assay}
    if checkpoint and accession:
        raise InputError("checkpoint and catv1 are both given; leave one empty")
    if checkpoint:
        if folds:
            raise InputError("folds are of CATv1's models; give a row for each checkpoint")
        _check_path(checkpoint)
        if not Path(checkpoint).is_file():
            raise InputError(f"there is no checkpoint {cut(repr(checkpoint), 200)}; give its path")
        return [Source(name, [checkpoint], facts)]
    if accession == ALL:
        found = catv1.matching(values, revision)
        if not found:
            raise InputError(f"CATv1 has no experiment of all that this row asks; {catv1.SEARCH}")
        return [_published(f"{name}.{one.accession}", one, folds) for one in found]
    if accession:
        if not ACCESSION.fullmatch(accession):
            raise InputError(
                f"catv1 is {cut(repr(accession), 200)}; expected an accession such as "
                "ENCSR000EOT, or all"
            )
        return [Source(name, _of_hub(accession, folds), {"accession": accession, **facts})]
    if not biosample or not assay:
        raise InputError("give a checkpoint, a catv1 accession, or biosample and assay")
    return [_published(name, catv1.find(biosample, assay, revision), folds)]


def _published(name: str, one: catv1.Entry, folds: str) -> Source:
    facts = {"accession": one.accession, "biosample": one.biosample, "assay": one.assay}
    facts["life_stage"] = one.life_stage
    return Source(name, _of_hub(one.accession, folds), facts)


def _of_hub(accession: str, folds: str) -> list[str]:
    return [HUB + catv1.file(accession, fold) for fold in _folds(folds)]


def _folds(text: str) -> list[int]:
    if text in ("", "all"):
        return list(catv1.FOLDS)
    parts = [part.strip() for part in text.split(",")]
    if not all(part in map(str, catv1.FOLDS) for part in parts):
        raise InputError(
            f"folds is {cut(repr(text), 200)}; expected all, or some of 0, 1, 2, 3, 4: 0,1"
        )
    return [int(part) for part in parts]


def _settings(values: dict[str, str], facts: dict[str, str]) -> dict:
    peaks, assembly = values.get("peaks", ""), values.get("assembly", "")
    _check_path(peaks)
    if peaks and not Path(peaks).is_file():
        raise InputError(
            f"there is no file of peaks {cut(repr(peaks), 200)}; give the path of a BED file"
        )
    assembly = ASSEMBLIES.get(assembly.lower(), assembly) or None
    if "accession" in facts:
        if assembly not in (None, catv1.ASSEMBLY):
            raise InputError(f"assembly is {assembly}, but CATv1 is of {catv1.ASSEMBLY}")
        assembly = catv1.ASSEMBLY
    return {
        "output_length": _number(values, "output_length", 1) or OUTPUT_LENGTH,
        "group": _number(values, "group", 0),
        "peaks": peaks or None,
        "assembly": assembly,
    }


def _test_chroms(values: dict[str, str], asked: list[Source]) -> tuple[str, ...]:
    text = values.get("test_chroms", "")
    if text and sum(len(one.checkpoints) for one in asked) > 1:
        raise InputError(
            "test_chroms are those of one fold, and this row asks for several; give each a row"
        )
    return tuple(filter(None, (name.strip() for name in text.split(","))))


def _check_path(path: str) -> None:
    if "{" in path or "}" in path or not path.isprintable():
        raise InputError(
            f"{cut(repr(path), 200)} has a brace, which Snakemake takes for a wildcard, or a "
            "character that cannot be printed; give a name without one, for instance of a link"
        )


def _number(values: dict[str, str], key: str, least: int) -> int | None:
    text = values.get(key, "")
    if not text:
        return None
    if not (text.isascii() and text.isdecimal() and len(text) <= 9) or int(text) < least:
        raise InputError(
            f"{key} is {cut(repr(text), 200)}; expected a whole number, {least} or more"
        )
    return int(text)
