"""The INFO fields, as pysam and Ensembl VEP's reader of custom files read them."""

import re
import subprocess

import pyarrow as pa
import pyarrow.parquet as pq
import pysam
import pytest

from genomes import named
from tiny import a_fold
from veff.models.experiment import Experiment
from veff.outputs import info, vcf

VCF = """##fileformat=VCFv4.2
##contig=<ID=1,length=1000>
#CHROM\tPOS\tID\tREF\tALT\tQUAL\tFILTER\tINFO
1\t5\t.\tA\tC,G\t.\t.\tDP=3
1\t7\t.\tA\t.\t.\t.\t.
1\t9\t.\tA\t<DEL>\t.\t.\t.
"""
NAMES = ['K562 "new"; a=b', "K562 'new'; a=b", "third"]
EXPERIMENTS = [
    Experiment(name, tuple(a_fold(name, sha256=f"{i}{k}" * 32) for k in (0, 1)))
    for i, name in enumerate(NAMES)
]
KEYS = ("K562__new___a_b", "K562__new___a_b_2")


@pytest.fixture(params=[1, 2, 3, 100])
def annotated(tmp_path, request, monkeypatch):
    """An annotated VCF, two of three experiments shown, the first with two groups; its alleles
    read so many at once."""
    monkeypatch.setattr(info, "BATCH", request.param)
    (tmp_path / "in.vcf").write_text(VCF)
    summary = {
        "allele_id": range(4),
        "record": [0, 0, 1, 2],
        "chrom": ["1"] * 4,
        "pos": [5, 5, 7, 9],
        "id": ["."] * 4,
        "ref": ["A"] * 4,
        "alt": ["C", "G", ".", "<DEL>"],
        "status": ["ok", "duplicate", "no_alt", "symbolic"],
        "max_logfc": [0.123456789, -2.0, None, None],
        "max_jsd": [0.5, 0.25, None, None],
        "max_experiment_pval": [0.01, 1e-4, None, None],
        "max_pval": [0.05, 2e-3, None, None],
        "max_experiment": [NAMES[0], "third", None, None],
    }
    pq.write_table(pa.table({k: list(v) for k, v in summary.items()}), tmp_path / "summary")
    rows = [
        (0, NAMES[0], 0.123456789, 0.5, 0.01),
        (1, NAMES[0], -0.5, 0.2, 0.02),
        (0, NAMES[0], 0.1, 0.9, 0.9),  # another group, of a smaller effect
        (1, NAMES[0], 0.75, 0.3, 0.03),  # another group, of a larger effect
        (0, NAMES[1], 0.0, 0.0, 1.0),
        (1, NAMES[1], -1.0, 0.1, 0.5),
        (0, "third", 9.0, 0.1, 0.5),
    ]
    columns = ("allele_id", "experiment", "logfc", "jsd", "abs_logfc.pval")
    scores = pa.table(dict(zip(columns, map(list, zip(*rows, strict=True)), strict=True)))
    pq.write_table(scores, tmp_path / "scores")
    experiments = info.PerExperiment(tmp_path / "scores", EXPERIMENTS, 2, 4)
    out = tmp_path / "out.vcf.gz"
    texts = info.texts(tmp_path / "summary", experiments)
    vcf.annotate(tmp_path / "in.vcf", out, info.header(experiments), texts, named(**{"1": 1000}))
    return out


def test_an_allele_has_the_haplotype_with_the_largest_interaction_and_others_have_none(
    annotated, tmp_path
):
    """Beside the scores, each value at its ALT."""
    of_alleles = {
        "allele_id": range(4),
        "haplotype": [None, 17, None, None],
        "logfc": [None, -1.5, None, None],
        "interaction": [None, 0.123456789, None, None],
        "interaction_pval": [None, 0.01, None, None],
        "experiment": [None, "third", None, None],
    }
    pq.write_table(pa.table({k: list(v) for k, v in of_alleles.items()}), tmp_path / "haplotypes")
    more = info.PerHaplotype(tmp_path / "haplotypes")
    out, texts = tmp_path / "more.vcf.gz", info.texts(tmp_path / "summary", more)
    vcf.annotate(tmp_path / "in.vcf", out, info.header(more), texts, named(**{"1": 1000}))
    with pysam.VariantFile(str(out)) as file:
        first, without, symbolic = [dict(record.info) for record in file]
    assert first["CHERI_HAP"] == (".", "17")
    assert first["CHERI_HAP_INTERACTION"] == (None, pytest.approx(0.12346))
    assert first["CHERI_HAP_LOGFC"] == (None, -1.5)
    assert first["CHERI_HAP_PVAL"] == (None, pytest.approx(0.01))
    assert first["CHERI_HAP_EXP"] == (".", "third")
    assert symbolic["CHERI_HAP"] == (".",)
    assert "CHERI_HAP" not in without


@pytest.fixture
def records(annotated):
    """Its header and its records."""
    with pysam.VariantFile(str(annotated)) as file:
        return file.header, list(file)


def test_each_experiment_shown_has_a_value_an_allele(records):
    _, (first, *_) = records
    assert first.info[f"CHERI_LOGFC_{KEYS[0]}"] == pytest.approx((0.12346, 0.75))
    assert first.info[f"CHERI_JSD_{KEYS[0]}"] == pytest.approx((0.5, 0.3))
    assert first.info[f"CHERI_PVAL_{KEYS[0]}"] == pytest.approx((0.01, 0.03))
    assert first.info[f"CHERI_LOGFC_{KEYS[1]}"] == (0.0, -1.0)
    assert not [key for key in first.info if "third" in key]
    assert first.info["CHERI_MAX_LOGFC"] == pytest.approx((0.12346, -2))
    assert first.info["CHERI_STATUS"] == ("ok", "duplicate")
    assert first.info["DP"] is not None


def test_alleles_without_scores_have_a_status_and_missing_values(records):
    _, (_, none, symbolic) = records
    assert not [key for key in none.info if key.startswith("CHERI")]
    assert symbolic.info["CHERI_STATUS"] == ("symbolic",)
    assert symbolic.info[f"CHERI_LOGFC_{KEYS[0]}"] == (None,)


def test_the_header_says_formula_models_precision_and_version(records):
    header, _ = records
    own = [key for key in header.info if key.startswith("CHERI")]
    assert len(own) == 6 + 2 * 3
    for key in own:
        assert header.info[key].number == "A"
        assert re.fullmatch(r"[A-Za-z_][0-9A-Za-z_.]*", key)
        assert header.info[key].record["Source"].strip('"') == "cherimoya-veff"
        assert header.info[key].record["Version"].strip('"')
    said = header.info[f"CHERI_LOGFC_{KEYS[0]}"].description
    assert "(h_alt - h_ref) / ln(2)" in said
    assert "5 significant digits" in said
    assert "000000000000 010101010101" in said


# `vep --custom` finds a region's lines with this module of Perl, and cuts them as below.
VEP_READS = """
use Bio::DB::HTS::Tabix;
my $file = Bio::DB::HTS::Tabix->new(filename => $ARGV[0]);
my $rows = $file->query($ARGV[1]);
while (defined(my $row = $rows->next)) { print "$row\\n" }
"""


def tabix(path, region):
    with pysam.TabixFile(str(path), index=f"{path}.csi") as file:
        return list(file.fetch(region=region))


def perl(path, region):
    if subprocess.run(["perl", "-MBio::DB::HTS::Tabix", "-e1"], capture_output=True).returncode:
        pytest.skip("needs Perl's Bio::DB::HTS::Tabix")
    command = ["perl", "-e", VEP_READS, str(path), region]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()


@pytest.mark.parametrize("read", [tabix, perl])
def test_vep_finds_a_value_for_each_allele(annotated, read):
    (line,) = read(annotated, "1:4-6")
    *_, alts, _, _, fields = line.split("\t")
    found = dict(field.partition("=")[::2] for field in fields.split(";"))
    by_allele = {key: value.split(",") for key, value in found.items() if key != "DP"}
    assert alts == "C,G"
    assert by_allele["CHERI_MAX_LOGFC"] == ["0.12346", "-2"]
    assert by_allele["CHERI_MAX_EXP"] == ['K562_"new"__a_b', "third"]
    assert {len(values) for values in by_allele.values()} == {2}
    # What stands between fields in --custom, in VEP's output, or in a VCF.
    assert not [v for key, vs in by_allele.items() for v in (key, *vs) if set(v) & set(" %&|\t")]
    (line,) = read(annotated, "1:8-10")
    assert "CHERI_STATUS=symbolic;CHERI_MAX_LOGFC=.;" in line
