"""Which genes, peaks, motif hits and enhancers of genes lie at an allele?"""

from array import array
from collections.abc import Iterable, Mapping
from pathlib import Path
from types import MappingProxyType

import bioframe
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from veff import tables
from veff.inputs import intervals
from veff.inputs.intervals import Interval
from veff.inputs.reference import Reference
from veff.scoring import columns
from veff.scoring.columns import GENES, HITS, LINKS, NONE, PEAKS, PEAKS_OF

BLOCK = 1 << 16  # alleles that are annotated at once


def write(
    out: Path,
    alleles: Path,
    reference: Reference,
    *,
    genes: Path | None = None,
    peaks: Path | None = None,
    peaks_of: Mapping[str, Path] = MappingProxyType({}),
    hits: Path | None = None,
    links: Path | None = None,
) -> None:
    """Write a Parquet table with a row for each of `alleles`, in order.

    An allele lies where its REF does, as the input has it. `genes` are a GTF or a BED file,
    `peaks` and `hits` BED files, `peaks_of` the peaks of experiments by name, `links`
    enhancer-gene links (`intervals.links`); what is not given has no columns. An allele that
    stands nowhere on the reference has no values.
    Names, and distances, are those of variant-scorer's annotations (bedtools).

    Raises `InputError` for a file that `intervals` cannot read.
    """
    places = _places(alleles, reference)
    rows = list(intervals.genes(genes, reference)) if genes else []
    starts = _starts(rows)
    genes = genes and _frame(rows, reference)
    hits = hits and _frame(intervals.named(hits, reference), reference)
    links = links and _links(intervals.links(links, reference), reference)
    in_peaks = peaks and _in_peaks(places, [peaks], reference)
    in_peaks_of = peaks_of and _in_peaks(places, peaks_of.values(), reference)

    def block(rows: slice) -> pa.Table:
        here = places.iloc[rows]
        nowhere = here["chrom"].isna().to_numpy()
        found = {"allele_id": np.arange(*rows.indices(len(places)))}
        names = {"allele_id": columns.ALLELE["allele_id"]}
        if genes:
            names |= GENES
            found |= _closest(here, *genes) | _nearest_start(here, *starts)
        if peaks:
            names |= PEAKS
            found["peak_overlap"] = pa.array(in_peaks[0, rows] > 0, mask=nowhere)
        if peaks_of:
            names |= PEAKS_OF
            bits = np.unpackbits(in_peaks_of[:, rows], axis=0, bitorder="little").T
            found["peak_experiments"] = _joined(*np.nonzero(bits), list(peaks_of), nowhere)
        if hits:
            names |= HITS
            frame, motifs = hits
            row, hit = _overlaps(here, frame)
            found["hits_overlap"] = pa.array(np.isin(np.arange(len(here)), row), mask=nowhere)
            found["hits_motifs"] = _joined(row, frame["name"].to_numpy()[hit], motifs, nowhere)
        if links:
            names |= LINKS
            found |= _linked(here, *links, nowhere)
        return pa.table(found, schema=columns.schema(names))

    firsts = range(0, max(len(places), 1), BLOCK)
    tables.write_parquet(out, (block(slice(first, first + BLOCK)) for first in firsts))


def _places(alleles: Path, reference: Reference) -> pd.DataFrame:
    """Where each allele's REF lies: as `_as_frame` has it, without contig if nowhere."""
    names = pa.array(reference.names, pa.string())
    parts = [np.zeros((3, 0), np.int64)]
    for batch in pq.ParquetFile(alleles).iter_batches(columns=["contig", "pos", "ref"]):
        contig = pc.index_in(batch["contig"], names).fill_null(-1).to_numpy().astype(np.int64)
        start = batch["pos"].fill_null(0).to_numpy() - 1
        contig[(start < 0) | (start >= reference.lengths[contig])] = -1
        length = pc.max_element_wise(pc.utf8_length(batch["ref"]), 1).to_numpy()
        parts.append(np.stack([contig, start, start + length]))
    contig, start, end = np.concatenate(parts, axis=1)
    return _as_frame(contig, start, end, reference)


def _as_frame(contig, start, end, reference: Reference) -> pd.DataFrame:
    """Intervals as bioframe takes them."""
    chrom = pd.Categorical.from_codes(contig, reference.names)
    return pd.DataFrame({"chrom": chrom, "start": start, "end": end})


def _frame(rows: Iterable[Interval], reference: Reference) -> tuple[pd.DataFrame, list[str]]:
    """Intervals in genome order, `name` as a number, and the names by number, in their order."""
    codes: dict[str, int] = {}
    values = array("q")
    for contig, start, end, more in rows:
        name = more[0] if more else ""
        values.extend((contig, start, end, codes.setdefault(name, len(codes))))
    contig, start, end, name = np.frombuffer(values, np.int64).reshape(-1, 4).T
    order = np.lexsort((end, start, contig))
    frame = _as_frame(contig[order], start[order], end[order], reference)
    names = sorted(codes)
    rank = np.empty(len(names), np.int64)
    rank[[codes[one] for one in names]] = np.arange(len(names))
    frame["name"] = rank[name[order]]
    return frame, names


def _closest(here: pd.DataFrame, genes: pd.DataFrame, names: list[str]) -> dict[str, pa.Array]:
    """The columns of `GENES` on genes' bodies."""
    here = here.reset_index(drop=True)
    # bioframe leaves open which of equally far genes it takes (its tie_breaking_col fails). So
    # each is cut at both ends by less than half a bp, the more the later it starts.
    number = np.arange(len(genes))
    scale = 2 * len(genes) + 1
    cut = genes.assign(start=genes["start"] * scale + number, end=genes["end"] * scale - number)
    scaled = here.assign(start=here["start"] * scale, end=here["end"] * scale)
    pairs = bioframe.closest(
        scaled.dropna(subset="chrom"),
        cut,
        k=columns.N_GENES,
        return_input=False,
        return_index=True,
        return_distance=False,
    ).dropna()
    row, gene = (pairs[name].to_numpy(np.int64) for name in ("index", "index_"))
    allele, other = here.iloc[row], genes.iloc[gene]
    apart = np.maximum(
        other["start"].to_numpy() - allele["end"].to_numpy(),
        allele["start"].to_numpy() - other["end"].to_numpy(),
    )
    distance = np.maximum(apart + 1, 0)
    order = np.lexsort((gene, distance, row))
    row, gene, distance = row[order], gene[order], distance[order]
    rank = np.arange(len(row)) - np.searchsorted(row, row)
    name = pa.array(names, pa.string()).take(pa.array(genes["name"].to_numpy()[gene]))
    found = {}
    for k in range(columns.N_GENES):
        pair = np.full(len(here), -1)
        pair[row[rank == k]] = np.flatnonzero(rank == k)
        pair = pa.array(pair, mask=pair < 0)
        found[f"closest_gene_{k + 1}"] = name.take(pair)
        found[f"gene_distance_{k + 1}"] = pa.array(distance).take(pair)
    return found


def _starts(genes: list[Interval]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The start sites of the genes that have a strand, in genome order: their places
    (`_in_genome`), directions (1 or -1), and the genes' names."""
    rows = sorted(
        (int(_in_genome(contig, start if strand == "+" else end - 1)), name, strand)
        for contig, start, end, (name, _, strand, *_) in (
            row for row in genes if len(row.more) > 2 and row.more[2] in ("+", "-")
        )
    )
    place, name, strand = zip(*rows, strict=True) if rows else ((), (), ())
    direction = np.where(np.array(strand, str) == "+", 1, -1)
    return np.array(place, np.int64), direction, np.array(name, str)


def _in_genome(contig: np.ndarray | int, position: np.ndarray | int) -> np.ndarray:
    """One number for a contig, by its index, and a position in it."""
    return (np.int64(contig) << 40) + position


def _nearest_start(
    here: pd.DataFrame, places: np.ndarray, direction: np.ndarray, names: np.ndarray
) -> dict[str, pa.Array]:
    """The columns of `GENES` on start sites."""
    if not len(places):
        return {
            name: pa.nulls(len(here), GENES[name].kind) for name in ("nearest_tss", "tss_distance")
        }
    contig = here["chrom"].cat.codes.to_numpy(np.int64)
    first = _in_genome(contig, here["start"].to_numpy())
    last = first + (here["end"] - here["start"]).to_numpy() - 1
    behind = np.searchsorted(places, first)  # the first site that is not left of REF
    before = np.searchsorted(places, places[np.maximum(behind - 1, 0)])  # of those at that place
    behind = np.minimum(behind, len(places) - 1)
    far = np.iinfo(np.int64).max
    left = np.where(places[before] < first, first - places[before], far)
    right = np.where(places[behind] >= first, np.maximum(places[behind] - last, 0), far)
    left[places[before] >> 40 != contig] = far
    right[places[behind] >> 40 != contig] = far
    nearest = np.where(left <= right, before, behind)
    away = np.where(left <= right, left, -right) * direction[nearest]
    none = np.minimum(left, right) == far
    return {
        "nearest_tss": pa.array(names[nearest], mask=none),
        "tss_distance": pa.array(away, mask=none),
    }


def _overlaps(here: pd.DataFrame, others: pd.DataFrame) -> tuple[np.ndarray, np.ndarray]:
    """Numbers of overlapping rows of the two, as pairs."""
    here = here.reset_index(drop=True).dropna(subset="chrom")
    pairs = bioframe.overlap(here, others, how="inner", return_input=False, return_index=True)
    return tuple(pairs[name].to_numpy(np.int64) for name in ("index", "index_"))


def _links(rows: Iterable[Interval], reference: Reference) -> tuple[pd.DataFrame, list[str]]:
    """As `_frame`, with each link's `score`; of links with one place and gene, the best."""
    rows = sorted(rows, key=lambda row: (*row[:3], row.more[0], -float(row.more[1])))
    frame, names = _frame(rows, reference)
    frame["score"] = [float(row.more[1]) for row in rows]
    return frame, names


def _linked(
    here: pd.DataFrame, links: pd.DataFrame, names: list[str], nowhere: np.ndarray
) -> dict[str, pa.Array]:
    """The columns of `LINKS`."""
    row, link = _overlaps(here, links)
    pairs = pd.DataFrame({"row": row, "gene": links["name"].to_numpy()[link]})
    pairs["score"] = links["score"].to_numpy()[link]
    pairs = pairs.groupby(["row", "gene"], as_index=False)["score"].max()
    pairs = pairs.sort_values(["row", "score", "gene"], ascending=[True, False, True])
    names = np.array([name.replace(",", "_") for name in names])
    texts = {
        "linked_genes": names[pairs["gene"].to_numpy(np.int64)],
        "link_scores": pairs["score"].map("{:.4g}".format).to_numpy(str),
    }
    starts = np.searchsorted(pairs["row"], np.arange(len(here) + 1))
    return {name: _listed(starts, values, nowhere) for name, values in texts.items()}


def _in_peaks(places: pd.DataFrame, files: Iterable[Path], reference: Reference) -> np.ndarray:
    """Which alleles overlap intervals of each file: bits, uint8 [files / 8, alleles]."""
    files = list(files)
    bits = np.zeros((-(-len(files) // 8), len(places)), np.uint8)
    for i, path in enumerate(files):
        peaks, _ = _frame(intervals.bed(path, reference), reference)
        for first in range(0, len(places), BLOCK):
            row, _ = _overlaps(places.iloc[first : first + BLOCK], peaks)
            bits[i // 8, first + row] |= 1 << i % 8
    return bits


def _joined(row: np.ndarray, name: np.ndarray, names: list[str], nowhere: np.ndarray) -> pa.Array:
    """For each row, the names of its pairs (row, number of a name), each once and in order."""
    names = [name.replace(",", "_") for name in names]
    row, name = np.divmod(np.unique(row * len(names) + name), len(names))
    starts = np.searchsorted(row, np.arange(len(nowhere) + 1))
    return _listed(starts, pa.array(names, pa.string()).take(pa.array(name)), nowhere)


def _listed(starts: np.ndarray, values: np.ndarray | pa.Array, nowhere: np.ndarray) -> pa.Array:
    """For each row, its values, those from `starts` on up to the next row's, as text."""
    values = pa.array(values, pa.string())
    lists = pa.ListArray.from_arrays(starts.astype(np.int32), values)
    texts = pc.if_else(pc.equal(pc.list_value_length(lists), 0), NONE, pc.binary_join(lists, ","))
    return pc.if_else(nowhere, None, texts)
