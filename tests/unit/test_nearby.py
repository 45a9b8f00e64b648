"""What lies at an allele, against a plain search through every gene, peak and hit."""

import gzip

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from veff.errors import InputError
from veff.inputs import intervals, reference
from veff.inputs.reference import Reference
from veff.outputs import nearby

LENGTHS = {"chr1": 400, "chr2": 300, "chrM": 60}


@pytest.fixture(scope="module")
def genome(tmp_path_factory):
    folder = tmp_path_factory.mktemp("genome")
    fasta = folder / "genome.fa"
    fasta.write_text("".join(f">{name}\n{'A' * n}\n" for name, n in LENGTHS.items()))
    reference.build(fasta, folder)
    aliases = folder / "aliases.tsv"
    aliases.write_text("chr2\tNC_2\n")
    return Reference.open(folder, aliases)


def random_intervals(seed, n, longest, contigs=("chr1", "chr2")):
    rng = np.random.default_rng(seed)
    found = []
    for i in range(n):
        contig = str(rng.choice(contigs))
        start = int(rng.integers(0, LENGTHS[contig] - longest))
        found.append((contig, start, start + int(rng.integers(1, longest + 1)), f"n{i % 7}.{i}"))
    return found


def strand(start):
    return "+-."[start % 3]


def as_bed(path, rows, rename=str):
    path.write_text(
        "".join(f"{rename(c)}\t{s}\t{e}\t{name}\t0\t{strand(s)}\n" for c, s, e, name in rows)
    )
    return path


def as_gtf(path, rows):
    lines = ["#!genome-build x"]
    for contig, start, end, name in rows:
        at = f"{contig}\thavana\t%s\t{start + 1}\t{end}\t.\t{strand(start)}\t.\t"
        lines.append(at % "gene" + f'gene_id "E{name}"; gene_name "{name}"; level 2;')
        lines.append(at % "exon" + f'gene_id "E{name}"; gene_name "no, not {name}";')
    path.write_bytes(gzip.compress("\n".join(lines).encode()))
    return path


def alleles(path, n=300):
    """Alleles all over the genome, and some nowhere."""
    rng = np.random.default_rng(9)
    contig = [name or None for name in rng.choice(["chr1", "chr2", "chrM", ""], n).tolist()]
    ref = rng.choice(["A", "AA", "A" * 30, "-", ""], n).tolist()
    pos = rng.integers(1, 310, n).tolist()
    pos[5:8] = None, 0, 10**17
    pq.write_table(pa.table({"contig": contig, "pos": pos, "ref": ref}), path)
    places = []
    for name, p, r in zip(contig, pos, ref, strict=True):
        known = name and p and 1 <= p <= LENGTHS.get(name, 0)
        places.append((name, p - 1, p - 1 + max(len(r), 1)) if known else None)
    return places


def written(folder, genome, **files):
    nearby.write(folder / "out.parquet", folder / "alleles.parquet", genome, **files)
    return pq.read_table(folder / "out.parquet").to_pylist()


def overlapping(place, rows):
    return [row for row in rows if row[0] == place[0] and row[1] < place[2] and place[1] < row[2]]


def distance(place, row):
    """bp from the last base of the one to the first of the other; 0 with a base in common."""
    return max(row[1] - (place[2] - 1), place[1] - (row[2] - 1), 0)


@pytest.mark.parametrize("block", [60, 1000])
@pytest.mark.parametrize("write", [as_bed, as_gtf])
def test_the_three_closest_genes_are_those_of_a_search_through_all(
    genome, tmp_path, monkeypatch, write, block
):
    monkeypatch.setattr(nearby, "BLOCK", block)
    rows = [*random_intervals(1, 40, 60), ("chrM", 5, 9, "mito")]
    places = alleles(tmp_path / "alleles.parquet")
    found = written(tmp_path, genome, genes=write(tmp_path / "genes", rows))
    seen = set()
    for number, (place, row) in enumerate(zip(places, found, strict=True)):
        here = [one for one in sorted(rows) if place and one[0] == place[0]]
        here = sorted((distance(place, one), *one[1:]) for one in here)[:3]
        expected = [(one[3], one[0]) for one in here] + [(None, None)] * (3 - len(here))
        assert row["allele_id"] == number
        for k, (name, far) in enumerate(expected, 1):
            assert (row[f"closest_gene_{k}"], row[f"gene_distance_{k}"]) == (name, far)
            seen.add(far)
    assert {None, 0, 1, 2} <= seen


@pytest.mark.parametrize("block", [60, 1000])
def test_peaks_and_hits_are_those_of_a_search_through_all(genome, tmp_path, monkeypatch, block):
    monkeypatch.setattr(nearby, "BLOCK", block)
    places = alleles(tmp_path / "alleles.parquet")
    peaks, hits = random_intervals(2, 12, 20), random_intervals(3, 60, 12)
    hits = [(*row[:3], row[3].split(".")[0]) for row in hits]
    of = {f"e{i}": random_intervals(10 + i, 4, 25, ["chr1"]) for i in range(11)}
    found = written(
        tmp_path,
        genome,
        peaks=as_bed(tmp_path / "peaks", peaks, lambda name: name.removeprefix("chr")),
        hits=as_bed(tmp_path / "hits", hits),
        peaks_of={name: as_bed(tmp_path / name, rows) for name, rows in of.items()},
    )
    for place, row in zip(places, found, strict=True):
        row.pop("allele_id")
        if place is None:
            assert set(row.values()) == {None}
            continue
        motifs = sorted({hit[3] for hit in overlapping(place, hits)})
        assert row["peak_overlap"] == bool(overlapping(place, peaks))
        assert row["hits_overlap"] == bool(motifs)
        assert row["hits_motifs"] == (",".join(motifs) or "-")
        names = [name for name, rows in of.items() if overlapping(place, rows)]
        assert row["peak_experiments"] == (",".join(names) or "-")


def as_bedpe(path, rows, name="{gene}"):
    """For browsers: `name` holds the gene, and in most cases the element too."""
    lines = [
        f"{c}\t{s}\t{e}\t{c}\t9\t9\t{name.format(gene=gene, at=f'{c}:{s}-{e}')}\t{score}\t.\t.\n"
        for c, s, e, gene, score in rows
    ]
    path.write_text("#chr1\tx1\tx2\n" + "".join(lines))
    return path


def as_predictions(path, rows, header="#chr", column="ABC.Score", behind=""):
    """All that was predicted, `behind` each row what stands between genes."""
    names = [header, "start", "end", "name", "class", "TargetGene", "powerlaw.Score", column]
    lines = [f"{c}\t{s}\t{e}\tx\tgenic\t{gene}\t0.9\t{v}\n{behind}" for c, s, e, gene, v in rows]
    path.write_text("\t".join(names) + "\n" + "".join(lines))
    return path


@pytest.mark.parametrize(
    "write",
    [
        as_bedpe,
        lambda path, rows: as_bedpe(path, rows, "{gene}|{at}"),
        lambda path, rows: as_bedpe(path, rows, "{gene}_intergenic|{at}"),
        as_predictions,
        lambda path, rows: as_predictions(path, rows, "chr", "E2G.Score.qnorm"),
        lambda path, rows: as_predictions(path, rows, "#chr", "Score", "#\n"),
        lambda path, rows: as_predictions(path, rows, "#chr", "Score", "###\n"),
    ],
    ids=["BEDPE", "ABC's", "scE2G's", "ABC", "scE2G", "EPIraction 1.2", "EPIraction 1.3"],
)
def test_links_are_those_of_a_search_through_all_best_first(genome, tmp_path, write):
    rng = np.random.default_rng(4)
    rows = [
        (*row[:3], f"G_{rng.integers(6)}", int(rng.integers(99)) / 100)
        for row in random_intervals(5, 80, 40)
    ]
    places = alleles(tmp_path / "alleles.parquet")
    found = written(tmp_path, genome, links=write(tmp_path / "links", rows))
    several = 0
    for place, row in zip(places, found, strict=True):
        if place is None:
            assert row["linked_genes"] is row["link_scores"] is None
            continue
        best = {}
        for *_, gene, score in overlapping(place, rows):
            best[gene] = max(score, best.get(gene, score))
        expected = sorted(best.items(), key=lambda one: (-one[1], one[0]))
        several += len(expected) > 1
        assert row["linked_genes"] == (",".join(gene for gene, _ in expected) or "-")
        assert row["link_scores"] == (",".join(f"{score:.4g}" for _, score in expected) or "-")
    assert several


@pytest.mark.parametrize("block", [60, 1000])
@pytest.mark.parametrize("write", [as_bed, as_gtf])
def test_the_nearest_start_site_is_that_of_a_search_through_all(
    genome, tmp_path, monkeypatch, write, block
):
    monkeypatch.setattr(nearby, "BLOCK", block)
    rows = [*random_intervals(1, 40, 60), ("chrM", 8, 9, "without a strand")]
    sites = [
        (contig, *((start, 1) if strand(start) == "+" else (end - 1, -1)), name)
        for contig, start, end, name in rows
        if strand(start) != "."
    ]
    places = alleles(tmp_path / "alleles.parquet")
    found = written(tmp_path, genome, genes=write(tmp_path / "genes", rows))
    seen = set()
    for place, row in zip(places, found, strict=True):
        here = [one for one in sites if place and one[0] == place[0]]
        near = [
            (distance(place, (None, at, at + 1)), at, name, along) for _, at, along, name in here
        ]
        if not near:
            assert row["nearest_tss"] is row["tss_distance"] is None
            continue
        far, at, name, along = min(near)
        downstream = (1 if place[1] > at else -1) * along
        assert (row["nearest_tss"], row["tss_distance"]) == (name, far * downstream)
        seen.add(np.sign(row["tss_distance"]))
    assert seen == {-1, 0, 1}
    assert None in {row["nearest_tss"] for row in found if row["closest_gene_1"]}


def test_a_file_without_strands_has_no_start_sites(genome, tmp_path):
    places = alleles(tmp_path / "alleles.parquet")
    (tmp_path / "genes.bed").write_text("chr1\t5\t9\tA\nchr2\t5\t9\tB\n")
    for place, row in zip(
        places, written(tmp_path, genome, genes=tmp_path / "genes.bed"), strict=True
    ):
        assert row["nearest_tss"] is row["tss_distance"] is None
        assert (row["closest_gene_1"] is None) == (place is None or place[0] == "chrM")


def test_without_alleles_there_are_columns_and_no_rows(genome, tmp_path):
    empty = {"contig": pa.array([], pa.string()), "pos": pa.array([], pa.int64())}
    pq.write_table(pa.table(empty | {"ref": empty["contig"]}), tmp_path / "alleles.parquet")
    bed = as_bed(tmp_path / "bed", random_intervals(1, 5, 9))
    assert written(tmp_path, genome, genes=bed, peaks=bed, hits=bed, peaks_of={"a": bed}) == []
    schema = pq.read_schema(tmp_path / "out.parquet")
    assert schema.names[:3] == ["allele_id", "closest_gene_1", "gene_distance_1"]
    assert schema.names[7:9] == ["nearest_tss", "tss_distance"]
    assert schema.names[9:] == ["peak_overlap", "peak_experiments", "hits_overlap", "hits_motifs"]
    assert all(field.metadata[b"description"] for field in schema)


GTF = "chr1\tx\tgene\t5\t{end}\t.\t+\t.\t{what}\n"


@pytest.mark.parametrize(
    ("read", "text", "message"),
    [
        (
            "genes",
            GTF.format(end=9, what='gene_id "a";') + "chr1\tx\tgene\t5\n",
            "line 2: expected a GTF row",
        ),
        ("genes", GTF.format(end=9, what="ID=gene:a;Name=b"), "line 1: expected gene_name"),
        (
            "genes",
            GTF.format(end=401, what='gene_id "a"'),
            "line 1: 4 to 401 is no region of chr1",
        ),
        ("genes", GTF.format(end=9, what="x").replace("gene", "exon"), "no row of feature gene"),
        ("genes", "#\nchr1\t5\t9\tone\nchr1\t5\t9\n", "line 3: expected a name in the fourth"),
        ("genes", "", "no region on a contig of the reference"),
        ("named", "chr1 5 9 one\nchr1 5 9\n", "line 2: expected a name in the fourth"),
        ("named", "chr1\t5\t9\t \n", "line 1: expected a name in the fourth"),
        ("named", "chrom\tstart\tend\tname\n", "line 1: expected a BED row"),
        ("links", "chr1\t5\t9\tgene\n", "line 1: expected a BEDPE row"),
        ("links", "#x\nchr1\t5\t9\tchr1\t1\t1\tA\t.\n", "line 2: '.' is no score"),
        ("links", "chr1\t5\t9\tchr1\t1\t1\t.\t1\n", "line 1: expected the name of a gene"),
        ("links", "chr1\t5\t9\tchr1\t1\t1\te:vs:ENSG01\t1\n", "line 1: EPIraction's BEDPE"),
        ("links", "chr1\t5\t9\tchr1\t1\t1\te:ENSG01\t1\n", "line 1: EPIraction's BEDPE"),
        ("links", "chr\tstart\tend\tTargetGene\n", "line 1: expected the columns chr"),
        ("links", "chr\tstart\tend\tTargetGene\tScore\nchr1\t5\t9\tA\n", "line 2: 4 columns"),
        ("bed", "chr9\t5\t9\n", "no region on a contig of the reference"),
    ],
)
def test_a_file_that_does_not_fit_is_refused_naming_its_line(
    genome, tmp_path, read, text, message
):
    path = tmp_path / "file"
    path.write_text(text)
    with pytest.raises(InputError, match=f"file(,|:) {message}"):
        list(getattr(intervals, read)(path, genome))


def test_a_gene_without_a_name_goes_by_its_identifier(genome, tmp_path):
    path = tmp_path / "genes.gtf"
    path.write_text(GTF.format(end=9, what='gene_id "ENSG1"; level 2'))
    assert list(intervals.genes(path, genome)) == [(0, 4, 9, ["ENSG1", ".", "+"])]
