"""Which motifs are looked for, and which of them are one family?"""

import gzip
import io
import re
import zlib
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from scipy.cluster import hierarchy
from scipy.spatial.distance import squareform

from veff.errors import InputError

JASPAR = "jaspar"  # in place of a file
RELEASE, TAXON = "JASPAR2026", "vertebrates"
SHORTEST, LONGEST = 3, 64  # bp of a motif
ALIKE = 0.75  # mean similarity of motifs that are one family


@dataclass(frozen=True)
class MotifSet:
    """Motifs, in the order of their file.

    names: each one's own; matrices: float64 [4, width], the probabilities of A, C, G and T;
    families: the name of each one's family, which is that of its first motif.
    """

    names: list[str]
    matrices: list[np.ndarray]
    families: list[str]

    @property
    def widest(self) -> int:
        return max(matrix.shape[1] for matrix in self.matrices)


def read(where: str | Path) -> MotifSet:
    """The motifs of a file in MEME's format, plain or gzip, or `JASPAR`: its core vertebrates.

    A motif is named by all that its MOTIF line says, as in 'MA0004.1 Arnt'. Raises `InputError`
    that names the line where the file is no such file.
    """
    motifs = _jaspar() if str(where) == JASPAR else _meme(Path(where))
    names, matrices = list(motifs), list(motifs.values())
    return MotifSet(names, matrices, [names[i] for i in families(matrices)])


def _jaspar() -> dict[str, np.ndarray]:
    from pyjaspar import jaspardb  # its import opens nothing, but takes a second

    found = jaspardb(release=RELEASE).fetch_motifs(collection="CORE", tax_group=TAXON)
    counts = {
        f"{one.matrix_id} {one.name}": np.array([one.counts[base] for base in "ACGT"], float)
        for one in found
    }
    return {name: matrix / matrix.sum(0) for name, matrix in counts.items()}


def _meme(path: Path) -> dict[str, np.ndarray]:
    """memelite's `read_meme` stops at the first odd line with what Python says of it."""
    motifs: dict[str, np.ndarray] = {}
    name, width, rows = None, 0, []
    for number, line in enumerate(_text(path).splitlines(), 1):

        def refuse(what: str, number: int = number) -> None:
            raise InputError(f"{path}, line {number}: {what}")

        fields = line.split()
        if rows is not None and len(rows) < width:
            rows.append(_probabilities(fields, refuse))
            if len(rows) == width:
                motifs[name] = np.array(rows).T
                name, width, rows = None, 0, []
        elif line.startswith("ALPHABET") and re.sub(r"[^A-Z]", "", line[8:].upper()) != "ACGT":
            refuse(f"{line.strip()}: expected the alphabet ACGT")
        elif line.startswith("MOTIF"):
            name = " ".join(fields[1:])
            if not name or name in motifs:
                refuse(f"expected a name that no motif has yet, not {name!r}")
        elif line.startswith("letter-probability matrix"):
            found = re.search(r"\bw=\s*(\d+)", line)
            width = int(found[1]) if found else 0
            if name is None or not SHORTEST <= width <= LONGEST:
                refuse(f"expected a MOTIF line before, and w= of {SHORTEST} to {LONGEST}")
    if width or not motifs:
        what = f"ends within {name}" if width else "has no motif"
        raise InputError(f"{path}: {what}; give a file in MEME's format (version 4)")
    return motifs


def _probabilities(fields: list[str], refuse) -> np.ndarray:
    try:
        row = np.array(fields, float)
    except ValueError:
        row = np.empty(0)
    if len(row) != 4 or not (np.isfinite(row).all() and (row >= 0).all()):
        refuse("expected the probabilities of A, C, G and T")
    if abs(row.sum() - 1) > 0.05:
        refuse(f"the probabilities of A, C, G and T add up to {row.sum():.3g}, expected 1")
    return row


def _text(path: Path) -> str:
    try:
        with path.open("rb") as raw:
            compressed = raw.read(2) == b"\x1f\x8b"
            raw.seek(0)
            stream = gzip.GzipFile(fileobj=raw) if compressed else raw
            return io.TextIOWrapper(stream, encoding="utf-8").read()
    except (OSError, EOFError, zlib.error, UnicodeDecodeError) as error:
        raise InputError(f"{path}: cannot be read as text, plain or gzip ({error})") from error


def families(matrices: list[np.ndarray]) -> list[int]:
    """For each motif, the number of the first one of its family.

    Families are the clusters of the motifs by `similarity` under average linkage, cut where the
    mean similarity falls below `ALIKE`.
    """
    if len(matrices) < 2:
        return [0] * len(matrices)
    distance = 1 - similarity(matrices)
    np.fill_diagonal(distance, 0)
    tree = hierarchy.average(squareform(distance.clip(min=0), checks=False))
    clusters = hierarchy.fcluster(tree, 1 - ALIKE, "distance")
    firsts: dict[int, int] = {}
    return [firsts.setdefault(cluster, i) for i, cluster in enumerate(clusters.tolist())]


def similarity(matrices: list[np.ndarray]) -> np.ndarray:
    """How alike motifs are, -1 to 1, [n, n].

    The cosine of the two matrices, less 0.25 everywhere, at the offset and strand where it is
    largest. Columns beyond the other motif count as unlike, and those that say little, little.
    """
    widest = max(matrix.shape[1] for matrix in matrices)
    centred = [matrix - 0.25 for matrix in matrices]
    centred = [one / max(np.linalg.norm(one), 1e-9) for one in centred]
    padded = np.zeros((2, len(matrices), 4, widest))
    for i, one in enumerate(centred):
        padded[0, i, :, : one.shape[1]] = one
        padded[1, i, :, : one.shape[1]] = one[::-1, ::-1]
    best = np.full((len(matrices),) * 2, -1.0)
    for offset in range(widest):
        for strand in padded:
            np.maximum(best, _overlap(padded[0], strand, offset), out=best)
            np.maximum(best, _overlap(strand, padded[0], offset).T, out=best)
    return best


def _overlap(ahead: np.ndarray, behind: np.ndarray, offset: int) -> np.ndarray:
    """Sums of products of matrices [n, 4, width], those of the first from column `offset` on."""
    width = ahead.shape[2] - offset
    parts = ahead[:, :, offset:], behind[:, :, :width]
    one, other = (part.reshape(len(part), -1) for part in parts)
    return one @ other.T
