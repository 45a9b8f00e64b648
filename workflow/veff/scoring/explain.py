"""Which bases does the predicted effect of an allele rest on?"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import torch

from veff.cherimoya import attribution, checkpoint
from veff.cherimoya.engine import Predictor
from veff.inputs.reference import Reference
from veff.models.architecture import Geometry
from veff.scoring import effects, ensemble, windows

SCHEMA = pa.schema(
    [
        ("allele_id", pa.int64()),
        ("experiment", pa.string()),
        ("group", pa.int32()),
        ("allele", pa.string()),
        ("chrom", pa.string()),
        ("start", pa.int64()),
        ("bases", pa.string()),
        ("attribution", pa.list_(pa.float32())),
    ]
)


@dataclass(frozen=True)
class Explanation:
    """What an experiment predicts for the two alleles of a variant, and why.

    In arrays of two rows the first is the reference, the second the alternate. `allele` is a row
    of the summary; `start` the 0-based position of the windows' first base; `variant` the number
    of bases before the alleles in the window, `lengths` those of the alleles after trimming.
    """

    allele: dict
    group: int
    geometry: Geometry
    start: int
    lengths: tuple[int, int]
    bases: np.ndarray  # uint8 [2, L], ASCII
    reads: np.ndarray  # [2, T], expected reads a bp, over all channels
    attribution: np.ndarray | None  # float32 [2, L]; None where a base is not A, C, G or T

    @property
    def variant(self) -> int:
        return self.geometry.input_length // 2


def largest(summary: Path, n: int) -> list[dict]:
    """The `n` alleles with the largest effects; of the same allele given twice, the first."""
    scored = ds.field("status") == "ok"
    table = ds.dataset(summary).to_table(filter=scored)
    order = np.argsort(-np.abs(table["max_logfc"].to_numpy()), kind="stable")[:n]
    return table.take(order).to_pylist()


def explain(
    rows: list[dict],
    scoreable: Path,
    reference: Reference,
    descriptions: list[dict],
    *,
    device: torch.device,
    batch_size: int,
    precision: str,
    engine: str,
    shuffles: int,
) -> Iterator[Explanation]:
    """An explanation for each row of the summary, by the experiment of its largest effect.

    They come experiment by experiment. `scoreable` is the prepared table and `descriptions` those
    of all models. A prediction has the shape of a scoring job's; it is of the windows' forward
    strand.
    """
    ids = pa.array([row["allele_id"] for row in rows], pa.int64())
    prepared = ds.dataset(scoreable).to_table(filter=pc.field("allele_id").isin(ids))
    places = {place["allele_id"]: place for place in prepared.to_pylist()}
    rows = sorted(rows, key=lambda row: row["max_experiment"])
    for name, alleles in groupby(rows, lambda row: row["max_experiment"]):
        folds = [one for one in descriptions if one["experiment"] == name]
        geometry = Geometry(folds[0]["input_length"], folds[0]["output_length"])
        predictors = [
            Predictor(
                checkpoint.load(fold["checkpoint"]),
                geometry,
                device=device,
                precision=precision,
                engine=engine,
                batch_size=batch_size,
            )
            for fold in folds
        ]
        chosen = folds[0].get("group")
        for row in alleles:
            place = places[row["allele_id"]]
            yield _explain(row, place, reference, predictors, chosen, shuffles)


def _explain(
    row: dict,
    place: dict,
    reference: Reference,
    predictors: list,
    chosen: int | None,
    shuffles: int,
) -> Explanation:
    geometry = predictors[0].geometry
    length = geometry.input_length
    columns = [np.array([place[name]]) for name in ("contig", "start", "ref_len")]
    ref, alt, _ = windows.windows(reference, *columns, [place["alt"]], length)
    bases = np.concatenate([ref, alt])
    group, h, p = _predict(predictors, bases, chosen)
    known = np.isin(bases, np.frombuffer(b"ACGT", np.uint8)).all()
    return Explanation(
        allele=row,
        group=group,
        geometry=geometry,
        start=place["start"] - length // 2,
        lengths=(place["ref_len"], len(place["alt"])),
        bases=bases,
        reads=(p.sum(1) * effects.counts(h)[:, None]).cpu().numpy(),
        attribution=_over_folds(predictors, bases, group, shuffles) if known else None,
    )


def _predict(
    predictors: list, bases: np.ndarray, chosen: int | None
) -> tuple[int, torch.Tensor, torch.Tensor]:
    """A signal group, its log-counts [2], its profiles [2, ch, T].

    The group is `chosen`, or that with the largest effect.
    """
    first = predictors[0]
    padded = np.full((first.batch_size, bases.shape[1]), windows.N, np.uint8)
    padded[:2] = bases
    outputs = [predictor.predict(padded, 2) for predictor in predictors]
    answers = []
    start = 0
    for group, channels in enumerate(first.model.signal_groups):
        h = torch.stack([counts[:2, group] for _, counts in outputs])
        stop = start + channels
        p = torch.stack([effects.profile(logits[:2, start:stop]) for logits, _ in outputs])
        answers.append(ensemble.mean_prediction(h, p))
        start = stop
    group = chosen
    if group is None:
        group = max(range(len(answers)), key=lambda g: abs(answers[g][0].diff().item()))
    return group, *answers[group]


def _over_folds(predictors: list, bases: np.ndarray, group: int, shuffles: int) -> np.ndarray:
    folds = [
        attribution.attributions(one.model, bases, group, one.device, shuffles)
        for one in predictors
    ]
    return np.mean(folds, 0)


def table(explanations: list[Explanation]) -> pa.Table:
    """The attributions, a row an allele of a variant; those that could not be made left out."""
    rows = [
        {
            "allele_id": one.allele["allele_id"],
            "experiment": one.allele["max_experiment"],
            "group": one.group,
            "allele": name,
            "chrom": one.allele["chrom"],
            "start": one.start,
            "bases": one.bases[i].tobytes().decode(),
            "attribution": one.attribution[i],
        }
        for one in explanations
        if one.attribution is not None
        for i, name in enumerate(("reference", "alternate"))
    ]
    return pa.Table.from_pylist(rows, schema=SCHEMA)
