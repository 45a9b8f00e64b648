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
from tangermeme.ersatz import dinucleotide_shuffle

from veff.cherimoya import attribution, checkpoint, engine
from veff.inputs.reference import Reference
from veff.models.architecture import Geometry
from veff.models.experiment import Experiment
from veff.scoring import effects, heldout, windows
from veff.scoring.how import How
from veff.scoring.predict import Folds, Prediction, mean, reverse_complement

MEANING = (
    "DeepLIFT/SHAP of the log-count, natural log of 1 + count: the mean over the experiment's "
    "folds, and over both strands with reverse_complement, of each one's own"
)
KEPT = 30  # bp on each side of the alleles that a transplant keeps
TRANSPLANTED = (
    f"logfc of the same change where the window further than {KEPT} bp from it is "
    "dinucleotide-shuffled: the mean over the shuffles"
)
PROFILES = pa.schema(
    [
        ("allele_id", pa.int64()),
        ("experiment", pa.string()),
        ("group", pa.int32()),
        ("contig", pa.string()),
        pa.field("start", pa.int64(), metadata={"description": "0-based, of the first value"}),
        *(
            pa.field(
                name,
                pa.list_(pa.float32()),
                metadata={
                    "description": f"reads a bp under the {name} allele, over all channels, in "
                    "reference coordinates; missing where this allele has no such base"
                },
            )
            for name in ("reference", "alternate")
        ),
    ]
)
SCHEMA = pa.schema(
    [
        ("allele_id", pa.int64()),
        ("experiment", pa.string()),
        ("group", pa.int32()),
        ("allele", pa.string()),
        ("chrom", pa.string()),
        ("start", pa.int64()),
        ("bases", pa.string()),
        pa.field("attribution", pa.list_(pa.float32()), metadata={"description": MEANING}),
        pa.field("logfc", pa.float64(), metadata={"description": "of the variant, log2"}),
        pa.field("transplanted_logfc", pa.float64(), metadata={"description": TRANSPLANTED}),
    ]
)


@dataclass(frozen=True)
class Explanation:
    """What an experiment predicts for the two alleles of a variant, and why.

    In arrays of two rows the first is the reference, the second the alternate. `allele` is a row
    of the summary; `logfc` the answer of the run's own kind (`How`), `transplanted` the same in
    shuffled flanks (`TRANSPLANTED`), and `shown` says in words what else the arrays hold than
    what this answer was computed from; `start` the 0-based position of the windows' first base;
    `variant` the number of bases before the alleles in the window, `lengths` those of the alleles
    after trimming.
    """

    allele: dict
    contig: str  # as the reference has it
    group: int
    logfc: float
    transplanted: float
    shown: str
    geometry: Geometry
    start: int
    lengths: tuple[int, int]
    bases: np.ndarray  # uint8 [2, L], ASCII
    reads: np.ndarray  # [2, T], expected reads a bp, over all channels
    attribution: np.ndarray | None  # float32 [2, L]; None where a base is not A, C, G or T

    @property
    def variant(self) -> int:
        return self.geometry.input_length // 2

    def in_reference(self, values: np.ndarray, trimming: int) -> np.ndarray:
        """Values [2, n] of both windows' bases, from `trimming` bp into them on, in reference
        coordinates: NaN where the alternate has no such base, or not in its window."""
        breakpoint_, shift = windows.alignment(*self.lengths, self.geometry)
        t = np.arange(values.shape[1] - abs(shift))
        behind = t >= breakpoint_ + self.geometry.trimming - trimming
        placed = np.full(values.shape, np.nan)
        placed[0] = values[0]
        placed[1, t + max(shift, 0) * behind] = values[1, t + max(-shift, 0) * behind]
        return placed


def explain(
    rows: list[dict],
    scoreable: Path,
    reference: Reference,
    experiments: list[Experiment],
    how: How,
    *,
    batch_size: int,
    shuffles: int,
    proofs: Path | None = None,
) -> Iterator[Explanation]:
    """An explanation for each row of the summary, by the experiment of its largest effect.

    They come experiment by experiment. `scoreable` is the prepared table and `experiments` are
    all of the run. A prediction has the shape of a scoring job's, and is made by the same
    functions. `proofs` is a folder, see `engine.Predictor`.
    """
    device = engine.device(how.device)
    ids = pa.array([row["allele_id"] for row in rows], pa.int64())
    prepared = ds.dataset(scoreable).to_table(filter=pc.field("allele_id").isin(ids))
    places = {place["allele_id"]: place for place in prepared.to_pylist()}
    by_name = {one.name: one for one in experiments}
    rows = sorted(rows, key=lambda row: row["max_experiment"])
    for name, alleles in groupby(rows, lambda row: row["max_experiment"]):
        models = [checkpoint.load(fold.path, fold.sha256) for fold in by_name[name].folds]
        folds = Folds(by_name[name], models, how, device, batch_size, proofs)
        for row in alleles:
            place = places[row["allele_id"]]
            answering = folds
            if how.ensemble == "heldout":
                one = pa.Table.from_pylist([place])
                answering = folds.only(heldout.answering(by_name[name], reference, one)[:, 0])
            yield _explain(row, place, reference, answering, shuffles)


def _explain(
    row: dict, place: dict, reference: Reference, folds: Folds, shuffles: int
) -> Explanation:
    geometry = folds.experiment.geometry
    length = geometry.input_length
    columns = [np.array([place[name]]) for name in ("contig", "start", "ref_len")]
    ref, alt, _ = windows.windows(reference, *columns, [place["alt"]], length)
    bases = np.concatenate([ref, alt])
    lengths = place["ref_len"], len(place["alt"])
    group, logfc, (h, p) = _answer(folds, bases)
    known = np.isin(bases, np.frombuffer(b"ACGT", np.uint8)).all()
    return Explanation(
        allele=row,
        contig=reference.names[place["contig"]],
        group=group,
        logfc=logfc,
        transplanted=_transplanted(folds, bases, lengths, group, shuffles),
        shown=shown(folds.how, len(folds.predictors), attributed=bool(known)),
        geometry=geometry,
        start=place["start"] - length // 2,
        lengths=lengths,
        bases=bases,
        reads=(p.sum(1) * effects.counts(h)[:, None]).cpu().numpy(),
        attribution=_attributions(folds, bases, group, shuffles) if known else None,
    )


def _answer(folds: Folds, bases: np.ndarray) -> tuple[int, float, Prediction]:
    """The signal group with the largest effect, that effect, and what is predicted for the two
    windows."""
    first = folds.predictors[0]
    padded = np.full((first.batch_size, bases.shape[1]), windows.N, np.uint8)
    padded[:2] = bases
    answers = []
    for group, predicted in folds.predict(torch.as_tensor(padded, device=first.device), 2).items():
        logfc = torch.stack([effects.logfc(h[:1], h[1:2]) for h, _ in predicted])
        _, answer = folds.answer(logfc)
        # Only under mean_prediction has the experiment one of its own: else the average is shown.
        h, p = predicted[-1] if len(predicted) != len(folds.predictors) else mean(predicted)
        answers.append((group, answer.item(), (h[:2], p[:2])))
    return max(answers, key=lambda one: abs(one[1]))


def _transplanted(
    folds: Folds, bases: np.ndarray, lengths: tuple[int, int], group: int, shuffles: int
) -> float:
    """See `TRANSPLANTED`. As many shuffles as are asked for, or as fit one batch."""
    first = folds.predictors[0]
    n = min(shuffles, first.batch_size // 2)
    windows_ = transplants(bases, lengths, n)
    padded = np.full((first.batch_size, bases.shape[1]), windows.N, np.uint8)
    padded[: 2 * n] = windows_.reshape(2 * n, -1)
    predicted = folds.predict(torch.as_tensor(padded, device=first.device), 2 * n)[group]
    logfc = torch.stack([effects.logfc(h[:n], h[n : 2 * n]) for h, _ in predicted])
    return folds.answer(logfc)[1].mean().item()


def transplants(bases: np.ndarray, lengths: tuple[int, int], n: int) -> np.ndarray:
    """Both windows [2, L] with `KEPT` bp around their alleles in `n` shuffled surroundings.

    uint8 [2, n, L]. The two rows of a shuffle have the same flanks, as far as their windows go.
    """
    half = bases.shape[1] // 2
    left = half - KEPT
    ends = [half + length + KEPT for length in lengths]
    shorter = int(np.argmin(lengths))  # its window reaches furthest
    flanks = [_shuffled(part, n) for part in (bases[0, :left], bases[shorter, ends[shorter] :])]
    return np.stack(
        [
            np.concatenate([flanks[0], np.tile(own[left:end], (n, 1)), flanks[1]], axis=1)[
                :, : bases.shape[1]
            ]
            for own, end in zip(bases, ends, strict=True)
        ]
    )


def _shuffled(bases: np.ndarray, n: int) -> np.ndarray:
    """Dinucleotide shuffles of a sequence, uint8 [n, L]; the first and last bases stay."""
    letters = np.frombuffer(b"ACGT", np.uint8)
    one_hot = torch.from_numpy((bases == letters[:, None]).astype(np.int8))
    found = dinucleotide_shuffle(one_hot[None], n=n, random_state=0, allow_N=True)[0]
    known, base = (values.numpy() for values in found.max(1))
    return np.where(known == 1, letters[base], np.uint8(windows.N))


def _attributions(folds: Folds, bases: np.ndarray, group: int, shuffles: int) -> np.ndarray:
    """The mean over the folds, and over the strands where the run predicts for both."""

    def over_folds(bases: np.ndarray) -> np.ndarray:
        references = attribution.shuffled(bases[0], shuffles)
        found = [
            attribution.attributions(one.model, bases, group, one.device, references)
            for one in folds.predictors
        ]
        return np.mean(found, 0)

    forward = over_folds(bases)
    if not folds.how.reverse_complement:
        return forward
    reverse = over_folds(reverse_complement(torch.from_numpy(bases)).numpy())
    return (forward + reverse[:, ::-1]) / 2


def shown(how: How, n_folds: int, attributed: bool) -> str:
    """What a figure shows beside the answer of the run, in words; '' where all of it is that."""
    folds = f"{n_folds} folds" if n_folds > 1 else ""
    over = " and ".join(filter(None, (folds, "both strands" if how.reverse_complement else "")))
    said = []
    if folds and how.ensemble != "mean_prediction":
        said.append(f"profiles: average of {folds}; log2 fold change: the mean of theirs")
    if over and attributed:
        said.append(f"attributions: mean over {over}, each of its own log-count")
    return "; ".join(said)


def profiles(explanations: list[Explanation]) -> pa.Table:
    """What is predicted for both alleles, a row a variant."""
    rows = []
    for one in explanations:
        trimming = one.geometry.trimming
        ref, alt = one.in_reference(one.reads, trimming)
        rows.append(
            {
                "allele_id": one.allele["allele_id"],
                "experiment": one.allele["max_experiment"],
                "group": one.group,
                "contig": one.contig,
                "start": one.start + trimming,
                "reference": ref.tolist(),
                "alternate": [None if np.isnan(x) else x for x in alt.tolist()],
            }
        )
    return pa.Table.from_pylist(rows, schema=PROFILES)


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
            "logfc": one.logfc,
            "transplanted_logfc": one.transplanted,
        }
        for one in explanations
        if one.attribution is not None
        for i, name in enumerate(("reference", "alternate"))
    ]
    return pa.Table.from_pylist(rows, schema=SCHEMA)
