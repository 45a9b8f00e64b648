"""Which alleles and answers does the page hold for people to search, and how do they travel?"""

import base64
import gzip
import json
import re
from collections.abc import Iterable

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from scipy.cluster import hierarchy

from veff.inputs.reference import Reference
from veff.names import cut, distinct, label
from veff.scoring import columns

N_ALLELES = 100_000  # of the largest effects, that can be searched
N_ANSWERS = 1_000_000  # alleles x experiments, of the first of those alleles
N_FOLDED = 1_000_000  # the same x folds
LONGEST = 60  # characters of a name of an experiment, and of bases
PVAL = "abs_logfc.pval"
ANSWER = ("logfc", "jsd", "p", "agree")
# Of the annotations: what the page calls them, and the columns of the summary.
ANNOTATIONS = {
    "gene": ("closest_gene_1", "closest_gene_2", "closest_gene_3"),
    "peaks": ("peak_experiments",),
    "motifs": ("hits_motifs",),
    "linked": ("linked_genes",),
}


class Kept:
    """The alleles of the largest effects, and what each experiment says of the first of them.

    alleles: the rows of the summary with own scores, from the largest effect on, `N_ALLELES` at
    most; n_whole: for how many of these, from the first on, all `n_answers` answers of an allele
    are kept. Of the others only the answer with the largest effect is. `add` takes in the scores,
    then `add_folds` those of the folds.
    """

    def __init__(self, alleles: pa.Table, n_answers: int):
        own = alleles.filter(pc.equal(alleles["status"], "ok"))
        order = np.argsort(-np.abs(own["max_logfc"].to_numpy()), kind="stable")[:N_ALLELES]
        self.alleles = own.take(order)
        self.n_own = len(own)
        self.n_whole = min(len(order), N_ANSWERS // max(n_answers, 1) or 1)
        self._place = np.full(int(pc.max(alleles["allele_id"]).as_py() or 0) + 1, -1, np.int32)
        self._place[self.alleles["allele_id"].to_numpy()] = np.arange(len(order))
        self.best = {name: np.full(len(order), np.nan, np.float32) for name in ANSWER}
        self.best_column = np.full(len(order), -1, np.int16)
        self.whole: list[dict[str, np.ndarray]] = []
        self.n_folds: list[int] = []
        self.folds = np.zeros((0, 0, 0), np.float32)

    def add(self, column: int, rows: pa.Table) -> None:
        """Take in rows of the scores, all of the answers' same column (from 0, in order)."""
        if column == len(self.whole):
            self.whole.append({name: np.full(self.n_whole, np.nan, np.float32) for name in ANSWER})
            self.n_folds.append(0)
        place = self._place[rows["allele_id"].to_numpy()]
        here = place >= 0
        place = place[here]
        values = {
            "logfc": rows["logfc"].to_numpy()[here],
            "jsd": rows["jsd"].to_numpy()[here],
            "agree": rows["folds_agree"].to_numpy()[here],
        }
        if PVAL in rows.column_names:
            values["p"] = rows[PVAL].to_numpy()[here]
        larger = ~(np.abs(values["logfc"]) <= np.abs(self.best["logfc"][place]))
        self.best_column[place[larger]] = column
        whole = place < self.n_whole
        for name, value in values.items():
            self.best[name][place[larger]] = value[larger]
            self.whole[column][name][place[whole]] = value[whole]
        n_folds = rows["n_folds"].to_numpy()
        self.n_folds[column] = max(self.n_folds[column], int(n_folds.max(initial=0)))

    @property
    def n_folded(self) -> int:
        """For how many alleles, from the first on, the page has what each fold says."""
        return min(self.n_whole, N_FOLDED // max(len(self.whole) * self.n_each, 1))

    @property
    def n_each(self) -> int:
        """The most folds that an experiment has."""
        return max(self.n_folds, default=0)

    def add_folds(self, rows: Iterable[tuple[int, int, pa.Table]]) -> None:
        """Take in rows of the folds' table, after all of the scores.

        They come in parts of one column and one fold: these two numbers, and `allele_id` and
        `logfc`. `folds` is then float32 [columns, folds, alleles], NaN where there is none.
        """
        shape = (len(self.whole), self.n_each, self.n_folded)
        self.folds = np.full(shape, np.nan, np.float32)
        slots: list[dict[int, int]] = [{} for _ in self.whole]
        for column, fold, part in rows:
            slot = slots[column].setdefault(fold, len(slots[column]))
            place = self._place[part["allele_id"].to_numpy()]
            here = (place >= 0) & (place < self.n_folded)
            self.folds[column, slot, place[here]] = part["logfc"].to_numpy()[here]

    def clustered(self) -> list[int]:
        """The columns, those with alike effects side by side (Ward's clusters)."""
        if len(self.whole) < 3:
            return list(range(len(self.whole)))
        effects = np.nan_to_num([one["logfc"] for one in self.whole])
        return hierarchy.leaves_list(hierarchy.ward(effects)).tolist()

    def top(self, n: int) -> list[dict]:
        """The first alleles, each with `best`, its answer of the largest effect."""
        rows = self.alleles.slice(0, n).to_pylist()
        for i, row in enumerate(rows):
            column = int(self.best_column[i])
            best = {name: float(self.best[name][i]) for name in ANSWER}
            n_folds = self.n_folds[column] if column >= 0 else 0
            row["best"] = best | {"column": column, "n_folds": n_folds}
        return rows

    def block(self, header: dict, reference: Reference) -> str:
        """All of it in base64 of gzip: the header's length (uint32), the header, then the arrays.

        The header is JSON. Its `arrays` say of each array its type in JavaScript, where it begins
        and how many values it has; each begins at a multiple of four bytes.
        """
        arrays = {
            "contig": self.contigs(reference).astype(np.uint32),
            "allele_id": self.alleles["allele_id"].to_numpy().astype(np.uint32),
            "pos": self.alleles["pos"].to_numpy().astype(np.uint32),
            "max_p": self._judged(),
            "best.column": self.best_column,
            "folds.logfc": _rounded(self.folds),
        }
        for name in ANSWER:
            empty = np.zeros((0, self.n_whole), np.float32)
            whole = np.stack([one[name] for one in self.whole]) if self.whole else empty
            for key, values in ((f"best.{name}", self.best[name]), (f"whole.{name}", whole)):
                counted = np.nan_to_num(values).astype(np.uint8)
                arrays[key] = counted if name == "agree" else _rounded(values)
        types = {"uint32": "Uint32Array", "int16": "Int16Array", "uint8": "Uint8Array"}
        body, placed = bytearray(), {}
        for name, values in arrays.items():
            placed[name] = (types.get(values.dtype.name, "Float32Array"), len(body), values.size)
            body += values.tobytes() + bytes(-values.nbytes % 4)
        about = {"n": len(self.alleles), "arrays": placed}
        for name in ("n_whole", "n_folds", "n_folded", "n_each"):
            about[name] = getattr(self, name)
        text = json.dumps(header | about | {"alleles": self._texts()}, separators=(",", ":"))
        encoded = text.encode()
        encoded += b" " * (-len(encoded) % 4)
        packed = len(encoded).to_bytes(4, "little") + encoded + bytes(body)
        return base64.b64encode(gzip.compress(packed, 6, mtime=0)).decode()

    def contigs(self, reference: Reference) -> np.ndarray:
        """The number of each allele's contig in the reference, int64."""
        names = self.alleles["chrom"].combine_chunks().dictionary_encode()
        numbers = [reference.contig(name) for name in names.dictionary.to_pylist()]
        return np.array(numbers, np.int64)[names.indices.to_numpy()]

    @property
    def annotations(self) -> list[str]:
        """Those of `ANNOTATIONS` that the run has."""
        return [
            name for name, (first, *_) in ANNOTATIONS.items() if first in self.alleles.column_names
        ]

    def _judged(self) -> np.ndarray:
        """The p-values of the largest effects over all experiments."""
        if "max_pval" in self.alleles.column_names:
            return _rounded(self.alleles["max_pval"].to_numpy())
        return np.full(len(self.alleles), np.nan, np.float32)

    def _texts(self) -> dict[str, list[str]]:
        """What the page prints and searches of each allele, as lists."""
        names = ("chrom", "pos", "ref", "alt")
        rows = zip(*(self.alleles[name].to_pylist() for name in names), strict=True)
        found: dict[str, list[str]] = {"label": [], "chrom": [], "ref": [], "alt": []}
        for values in rows:
            row = dict(zip(names, values, strict=True))
            found["label"].append(label(row))
            found["chrom"].append(cut(row["chrom"]))
            found["ref"].append(cut(row["ref"], LONGEST))
            found["alt"].append(cut(row["alt"], LONGEST))
        found["id"] = [cut(text) for text in self.alleles["id"].to_pylist()]
        for name in self.annotations:
            columns_ = [c for c in ANNOTATIONS[name] if c in self.alleles.column_names]
            found[name] = [
                annotation(row, name) for row in self.alleles.select(columns_).to_pylist()
            ]
        if "gene_distance_1" in self.alleles.column_names:
            found["away"] = self.alleles["gene_distance_1"].to_pylist()
        if "peak_overlap" in self.alleles.column_names:
            found["peak"] = ["yes" if x else "" for x in self.alleles["peak_overlap"].to_pylist()]
        return found


def annotation(row: dict, name: str) -> str:
    """One of `ANNOTATIONS` of an allele, without what says that there is none."""
    names = (row.get(column) for column in ANNOTATIONS[name])
    return ", ".join(cut(text, 200) for text in names if text not in (None, columns.NONE))


def _rounded(values: np.ndarray) -> np.ndarray:
    """As float32 with 16 bits of mantissa, more than the page prints, so that it packs well."""
    bits = values.astype(np.float32).view(np.uint32)
    finite = np.isfinite(values)
    return np.where(finite, (bits + np.uint32(0x40)) & np.uint32(0xFFFFFF80), bits).view(
        np.float32
    )


def shown_names(names: list[str]) -> tuple[list[str], list[str]]:
    """The names of experiments as the page prints them in full and, where they begin alike, short.

    Short names leave out what all have in common before a separator, so that what tells them
    apart is seen.
    """
    full = distinct([cut(name, LONGEST) for name in names])
    first, last = min(names, default=""), max(names, default="")
    alike = [a == b for a, b in zip(first, last, strict=False)]
    common = first[: (*alike, False).index(False)] if len(names) > 1 else ""
    common = re.match(r"(.*[\W_])?", common, re.DOTALL)[0]
    if len(common) < 8:
        return full, full
    return full, distinct([cut(f"…{name[len(common) :]}", LONGEST) for name in names])
