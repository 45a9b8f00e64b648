"""How unusual is a score under this model?

A null is what an experiment says of random alleles of one class (`sampling.sample`): of SNVs, of
that of the alleles that are no SNVs (`inputs.classes`), or of pairs of SNVs (`pairs.draw`), which
haplotypes are judged by. It belongs to that experiment's models, to one window geometry and to one
way of sampling and scoring, which are its identity; it does not depend on which variants share a
run, and is kept under the hash of its identity.
"""

import hashlib
import json
import logging
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import groupby
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from veff import tables
from veff.errors import InputError
from veff.inputs.classes import NAMES, PAIR, SNV
from veff.inputs.identity import Input
from veff.inputs.identity import sha256 as sha256_of
from veff.inputs.reference import Reference
from veff.models.architecture import Geometry
from veff.models.experiment import Experiment
from veff.scoring import adjusted, columns, pairs, sampling
from veff.scoring.how import How

METADATA = b"nulls"
Key = tuple[str, str]  # an experiment and a class
Score = Callable[[pa.Table, Reference, list[Experiment]], list[pa.Table]]
KEPT = ["group", *columns.SCORES]


def identities(
    experiments: list[Experiment], reference_sha256: str, settings: dict, how: How
) -> dict[Key, dict]:
    """What each null depends on, by experiment and class, in the order of the `classes`.

    `settings` has `n`, `seed`, `scheme`, `regions` (a file or None), `classes` (`NAMES`, or
    `PAIR`) and, where experiments have peaks, `peaks` (their files, by experiment), as `checked`
    makes it. Peaks are a part of the null of SNVs alone.
    """
    regions, peaks = settings["regions"], settings.get("peaks", {})
    drawn = {
        **{key: settings[key] for key in ("n", "seed", "scheme")},
        "regions_sha256": regions and _content(regions),
        "reference_sha256": reference_sha256,
        **how.decisive,
    }
    found = {}
    for one in experiments:
        own = {
            "models_sha256": one.sha256,
            "group": one.group,
            "input_length": one.geometry.input_length,
            "output_length": one.geometry.output_length,
        }
        if how.ensemble == "heldout":
            own["test_chroms"] = [sorted(fold.test_chroms) for fold in one.folds]
        for kind in settings["classes"]:
            more: dict = {"class": kind}
            if kind == SNV:
                more = {"peaks_sha256": _content(peaks[one.name]) if one.name in peaks else None}
            elif kind == PAIR:
                more["span"] = pairs.span(one.geometry)
            found[one.name, kind] = own | drawn | more
    return found


def checked(settings: dict, sha256: dict[str, str]) -> dict:
    """Settings whose files are read as those with these hashes, by their paths, or not at all."""
    given = Input.all(sha256)
    return settings | {
        "regions": settings["regions"] and given[settings["regions"]],
        "peaks": {name: given[path] for name, path in settings["peaks"].items()},
    }


def digest(identity: dict) -> str:
    """The hash that a null is kept under."""
    return _sha256(json.dumps(identity, sort_keys=True).encode())[:32]


def make(
    experiments: list[Experiment],
    reference: Reference,
    settings: dict,
    wanted: dict[Key, dict],
    folder: Path,
    score: Score,
) -> list[pa.Table]:
    """The nulls of the experiments, a table each, in order; scored where `folder` lacks them.

    `wanted` are the experiments' `identities`. `score` gives the answers to alleles, one table
    an experiment. New nulls are kept in `folder`, which runs may share. The `reference_counts` of
    those of SNVs are the reference set of quantiles; other classes have none of their own. Those
    of pairs have what `pairs.together` adds.
    """
    folder.mkdir(parents=True, exist_ok=True)
    files = {key: folder / f"{digest(identity)}.parquet" for key, identity in wanted.items()}
    for key, path in files.items():
        if path.exists() and not _is_whole(path):
            logging.warning("%s: damaged; the null of %s is made again", path, key[0])
            path.unlink(missing_ok=True)
    how = {key: settings[key] for key in ("n", "seed", "scheme", "regions")}
    for kind in settings["classes"]:
        missing = [one for one in experiments if not files[one.name, kind].exists()]
        of_peaks = settings.get("peaks", {}) if kind == SNV else {}
        for geometry, peaks, group in _alike(missing, of_peaks):
            if kind == PAIR:
                made = _of_pairs(reference, geometry, how, group, score)
            else:
                length = geometry.input_length
                made = _of_alleles(kind, reference, length, how, peaks, group, score)
            for one, null in zip(group, made, strict=True):
                path = files[one.name, kind]
                write(path, [null], [wanted[one.name, kind]])
                logging.info("%s: a null of %d %s, kept as %s", one.name, how["n"], kind, path)
    return [Nulls([path], wanted)[key] for key, path in files.items()]


def _alike(experiments: list[Experiment], peaks: dict[str, Path]) -> Iterator[tuple]:
    """Experiments that share windows: these, the peaks or None, the experiments."""

    def key(one: Experiment) -> tuple[int, int, str]:
        lengths = one.geometry.input_length, one.geometry.output_length
        return *lengths, str(peaks.get(one.name, ""))

    for _, alike in groupby(sorted(experiments, key=key), key):
        group = list(alike)
        yield group[0].geometry, peaks.get(group[0].name), group


def _of_alleles(
    kind: str,
    reference: Reference,
    input_length: int,
    how: dict,
    peaks: Path | None,
    group: list[Experiment],
    score: Score,
) -> list[pa.Table]:
    """The nulls of a class of alleles."""
    genome, alleles = sampling.sample(reference, input_length, **how, kind=kind)
    answers = score(alleles, genome, group)
    active = [answer["ref_counts"] for answer in answers]
    if peaks:
        drawn = {key: how[key] for key in ("n", "seed")}
        centres = sampling.centres(peaks, reference, input_length, **drawn)
        active = [answer["ref_counts"] for answer in score(centres, reference, group)]
    if kind != SNV:
        active = [pa.nulls(len(counts), counts.type) for counts in active]
    return [
        answer.select(KEPT).append_column("reference_counts", counts)
        for answer, counts in zip(answers, active, strict=True)
    ]


def _of_pairs(
    reference: Reference, geometry: Geometry, how: dict, group: list[Experiment], score: Score
) -> list[pa.Table]:
    """The nulls of pairs of SNVs."""
    genome, drawn = pairs.draw(reference, geometry, **how)
    answers = (pairs.together(drawn, answer) for answer in score(drawn, genome, group))
    return [answer.select([*KEPT, "distance", "interaction"]) for answer in answers]


def write(path: Path, nulls: list[pa.Table], identities: list[dict]) -> None:
    """Write nulls, each a row group, with their identities in the file's metadata."""
    metadata = {METADATA: json.dumps(identities)}
    tables.write_parquet(path, [null.replace_schema_metadata(metadata) for null in nulls])


class Nulls:
    """The nulls of experiments by name and class, read from files as they are asked for.

    `wanted` are the experiments' `identities`. Asking for one that no file holds raises
    `InputError`: what is there belongs to other models, another geometry or other sampling.
    """

    def __init__(self, paths: Iterable[Path], wanted: dict[Key, dict]):
        paths = list(paths)
        self._wanted = wanted
        self.classes = list(dict.fromkeys(kind for _, kind in wanted))
        self._files = ", ".join(map(str, paths[:3])) + ", …" * (len(paths) > 3)
        self._held = [
            (identity, path, row_group)
            for path in paths
            for row_group, identity in enumerate(_held_by(path))
        ]
        self._places = {digest(identity): place for identity, *place in self._held}

    def identity(self, key: Key) -> dict:
        """What this null depends on (`identities`)."""
        return self._wanted[key]

    def __getitem__(self, key: Key) -> pa.Table:
        wanted = self._wanted[key]
        try:
            path, row_group = self._places[digest(wanted)]
        except KeyError:
            raise InputError(self._refusal(key[0], wanted)) from None
        return pq.ParquetFile(path).read_row_group(row_group)

    def _refusal(self, name: str, wanted: dict) -> str:
        differing = [
            ([key for key in wanted if held.get(key) != wanted[key]], held, path)
            for held, path, _ in self._held
        ]
        if not differing:
            return f"{self._files}: no null there; remove the file, and it is made again"
        keys, held, path = min(differing, key=lambda one: len(one[0]))
        return (
            f"{path}: not the null of {name}: {keys[0]} is {held.get(keys[0])}, expected "
            f"{wanted[keys[0]]}; remove the file, and it is made again"
        )


def _held_by(path: Path) -> list[dict]:
    try:
        metadata = pq.read_schema(path).metadata or {}
    except pa.ArrowInvalid as error:
        raise InputError(
            f"{path}: not a Parquet file, or cut short; remove it, and it is made again"
        ) from error
    return json.loads(metadata.get(METADATA, b"[]"))


def judge(
    scores: pa.Table, nulls: dict[str, pa.Table], kinds: np.ndarray, fdr: float | None = None
) -> pa.Table:
    """The scores of one experiment with the columns of `columns.NULL` and, given `fdr`, `.FDR`.

    `scores` are the answers to all alleles of the run, each once; `nulls` the answers of the same
    experiment to its nulls, by class; `kinds` [n] the places of the alleles' classes in
    `classes.NAMES`. Each signal group and class is judged by its own null.
    """
    groups = scores["group"].to_numpy()
    judged = {name: np.empty(len(scores)) for name in columns.NULL}
    significant = np.zeros(len(scores), bool)
    for group in np.unique(groups):
        of_group = groups == group
        own = {kind: null.filter(pc.equal(null["group"], group)) for kind, null in nulls.items()}
        active = np.sort(own[SNV]["reference_counts"].to_numpy())
        for kind in np.unique(kinds[of_group]):
            rows, null = of_group & (kinds == kind), own[NAMES[kind]]
            mine = {name: scores[name].to_numpy()[rows] for name in columns.SCORES}
            theirs = {name: null[name].to_numpy() for name in columns.SCORES}
            for name, values in against(mine, theirs, active).items():
                judged[name][rows] = values
        if fdr is not None:
            pvalues = judged["abs_logfc.pval"][of_group]
            significant[of_group] = adjusted.q_value(pvalues, np.ones(len(pvalues), bool)) <= fdr
    for name, values in judged.items():
        scores = scores.append_column(name, pa.array(values))
    if fdr is not None:
        scores = scores.append_column("significant_in_run", pa.array(significant))
    return scores


def against(
    observed: dict[str, np.ndarray], null: dict[str, np.ndarray], reference_set: np.ndarray
) -> dict[str, np.ndarray]:
    """The columns of `columns.NULL` for observed scores, by the null's scores.

    Both have the arrays that `columns.SCORES` names. `reference_set` are the counts that quantiles
    are of, sorted: of the experiment's peaks, or else of the reference windows of random SNVs.
    """
    result = _activity(observed, reference_set)
    observed, null = observed | result, null | _activity(null, reference_set)

    def of(name: str) -> np.ndarray:
        return p_value(observed[name], null[name], name in columns.ONE_SIDED)

    with ThreadPoolExecutor() as pool:  # NumPy's searches do not hold Python's lock
        pvalues = zip(columns.JUDGED, pool.map(of, columns.JUDGED), strict=True)
        result |= {f"{name}.pval": values for name, values in pvalues}
    sizes = np.sort(np.abs(null["logfc_501"]))
    as_small = np.searchsorted(sizes, np.abs(observed["logfc_501"]), side="right")
    result["effect_percentile"] = np.maximum(as_small, 1) / len(sizes)
    return result


def p_value(observed: np.ndarray, null: np.ndarray, one_sided: bool) -> np.ndarray:
    """Empirical p-values of observed scores under n scores of a null.

    One-sided: (1 + #{null >= observed}) / (1 + n), the estimate that is never 0 and does not
    exceed its level (Phipson and Smyth 2010; variant-scorer). Two-sided: twice the smaller of that
    and of (1 + #{null <= observed}) / (1 + n), at most 1.
    """
    null = np.sort(null)
    n = len(null)
    upper = (1 + n - np.searchsorted(null, observed, side="left")) / (1 + n)
    if one_sided:
        return upper
    lower = (1 + np.searchsorted(null, observed, side="right")) / (1 + n)
    return np.minimum(1, 2 * np.minimum(upper, lower))


def quantile(counts: np.ndarray, reference_set: np.ndarray) -> np.ndarray:
    """The share of a sorted reference set below the counts, at least 1 / n (variant-scorer)."""
    below = np.searchsorted(reference_set, counts, side="left")
    return np.maximum(below, 1) / len(reference_set)


def _activity(scores: dict[str, np.ndarray], reference_set: np.ndarray) -> dict[str, np.ndarray]:
    """The quantiles, and the products with that of the more active allele."""
    ref = quantile(scores["ref_counts"], reference_set)
    alt = quantile(scores["alt_counts"], reference_set)
    active = np.maximum(ref, alt)
    products = {
        name: scores[name.removesuffix("_x_active_allele_quantile")] * active
        for name in columns.PRODUCTS
    }
    return {"ref_quantile": ref, "alt_quantile": alt, "active_allele_quantile": active, **products}


def _content(path: Path) -> str:
    """The hash of a file: what it must be when it is read, or else what it is now."""
    return getattr(path, "sha256", None) or sha256_of(path)


def _is_whole(path: Path) -> bool:
    """Whether a null that was kept can be read, its pages as they were written."""
    try:
        pq.read_table(path, page_checksum_verification=True)
    except (OSError, pa.ArrowException):
        return False
    return True


def _sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()
