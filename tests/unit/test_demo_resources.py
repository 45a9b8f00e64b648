"""The demo's data: made by its scripts, complete, small, and with a truth that holds."""

import csv
import gzip
import importlib.util
import re
import sys
from collections import Counter
from pathlib import Path

import pysam
import pytest

from veff.models import sheet

DEMO = Path(__file__).resolve().parents[2] / "resources" / "demo"
FILES = [
    "genome.fa.gz",
    "variants.vcf.gz",
    "truth.tsv",
    "effects.tsv",
    "pairs.vcf.gz",
    "pairs.tsv",
]


@pytest.fixture(scope="module")
def script():
    """A script of the demo as a module."""

    def of(name):
        spec = importlib.util.spec_from_file_location(name, DEMO / f"{name}.py")
        sys.modules[name] = module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return module

    yield of
    for name in ("simulate", "pairs"):
        sys.modules.pop(name, None)


@pytest.fixture(scope="module")
def simulate(script):
    return script("simulate")


@pytest.fixture(scope="module")
def genome():
    with pysam.FastxFile(str(DEMO / "genome.fa.gz")) as fasta:
        return {contig.name: contig.sequence for contig in fasta}


@pytest.fixture(scope="module")
def records():
    with pysam.VariantFile(str(DEMO / "variants.vcf.gz")) as vcf:
        return [(r.chrom, r.pos, r.id, r.ref, r.alts) for r in vcf]


@pytest.fixture(scope="module")
def truth():
    with open(DEMO / "truth.tsv", newline="") as file:
        return list(csv.DictReader(file, delimiter="\t"))


def regex_of(pattern):
    codes = {"R": "[AG]", "Y": "[CT]", "W": "[AT]", "N": "[ACGT]"}
    return "".join(codes.get(letter, letter) for letter in pattern)


def count_sites(text, pattern):
    """Matches on both strands by regular expression: independent of simulate.py's scan."""
    reverse = text.translate(str.maketrans("ACGT", "TGCA"))[::-1]
    return sum(len(re.findall(f"(?={regex_of(pattern)})", strand)) for strand in (text, reverse))


def test_scripts_reproduce_the_files_from_their_seeds(simulate, script, tmp_path):
    simulate.main(tmp_path)
    script("pairs").main(tmp_path)
    for name in FILES:
        opener = gzip.open if name.endswith(".gz") else open
        with opener(tmp_path / name, "rb") as made, opener(DEMO / name, "rb") as committed:
            assert made.read() == committed.read(), name


def test_vcf_has_every_case_that_the_demo_promises(records, genome):
    alleles = [(chrom, pos, ref, alt) for chrom, pos, _, ref, alts in records for alt in alts]
    assert 200 <= len(alleles) <= 400
    assert sum(len(alts) > 1 for *_, alts in records) == 1
    symbols = Counter(alt for *_, alt in alleles if not set(alt) <= set("ACGT"))
    assert symbols == {"*": 1, "<DEL>": 1}
    wrong = [a for a in alleles if genome[a[0]][a[1] - 1 :][: len(a[2])] != a[2]]
    assert len(wrong) == 1
    chrom, pos, ref, alt = wrong[0]
    assert genome[chrom][pos - 1] not in (ref, alt)  # wrong, rather than swapped with ALT
    assert sorted(Counter(alleles).values())[-2:] == [1, 2]
    padded = [a for a in alleles if min(a[1], len(genome[a[0]]) - a[1]) < 1057]
    assert len(padded) == 1
    assert sum(len(ref) > 1 for _, _, ref, _ in alleles) >= 30
    assert sum(len(alt) > 1 and alt.isalpha() for *_, alt in alleles) >= 30


def test_truth_has_one_row_for_each_allele_in_order(records, truth):
    expected = [(c, str(p), i, r, a) for c, p, i, r, alts in records for a in alts]
    assert [tuple(row[k] for k in ("chrom", "pos", "id", "ref", "alt")) for row in truth] == (
        expected
    )


def test_truth_is_what_a_scan_of_both_sequences_finds(truth, genome, simulate):
    direction = {"breaks": -1, "spares": 0, "creates": 1}
    for row in truth:
        if row["class"] == "not_scored":
            continue
        contig, start = genome[row["chrom"]], int(row["pos"]) - 1
        left, right = contig[max(start - 300, 0) : start], contig[start + len(row["ref"]) :][:300]
        for motif, pattern in simulate.MOTIFS.items():
            before = count_sites(left + row["ref"] + right, pattern)
            after = count_sites(left + row["alt"] + right, pattern)
            expected = direction[row["class"]] if motif == row["motif"] else 0
            assert (after > before) - (after < before) == expected, row["id"]
        for experiment, active in simulate.EXPERIMENTS.items():
            sign = direction[row["class"]] * (row["motif"] in active)
            logfc = float(row[f"logfc_{experiment}"])
            assert int(row[f"sign_{experiment}"]) == sign
            assert abs(logfc) <= 0.01 if sign == 0 else logfc * sign > 0.1, row["id"]


def test_every_class_and_motif_is_well_represented(truth):
    counts = Counter((row["class"], row["motif"]) for row in truth)
    for kind in ("breaks", "creates"):
        for motif in ("motif1", "motif2", "motif3"):
            assert counts[kind, motif] >= 15
    assert counts["spares", "NA"] >= 100
    assert counts["not_scored", "NA"] == 3


def test_models_load_with_the_promised_geometry_and_all_is_small():
    torch = pytest.importorskip("torch")
    cherimoya = pytest.importorskip("cherimoya")
    models = sorted((DEMO / "models").glob("*.torch"))
    assert [m.stem for m in models] == [f"{e}.fold{f}" for e in ("cellA", "cellB") for f in (0, 1)]
    for path in models:
        model = cherimoya.Cherimoya.load(path, compile=False).eval()
        assert (model.n_filters, model.n_layers, model.name) == (32, 9, path.stem)
        with torch.no_grad():
            profile, counts = model(torch.zeros(1, 4, 2114))
        assert profile.shape == (1, 1, 1000)
        assert counts.shape == (1, 1)
    assert sum(f.stat().st_size for f in DEMO.rglob("*") if f.is_file()) < 3_000_000


def test_each_contig_is_held_out_by_one_of_the_two_folds_and_seen_by_the_other(
    genome, monkeypatch
):
    monkeypatch.chdir(DEMO.parents[1])
    (one,) = sheet.read(DEMO / "heldout.tsv")
    assert sorted(sum(one.test_chroms, ())) == sorted(genome)
