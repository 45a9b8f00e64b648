"""Small files in the forms that tools and people write, each seen to end as it should.

They are not part of the project: these tests run where the folder stands beside it.
"""

from pathlib import Path

import pyarrow.parquet as pq
import pytest

from veff.errors import InputError
from veff.inputs import reference
from veff.inputs.preparing import prepare
from veff.inputs.reference import Reference

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "../shared/cases"

# How many alleles are scored, and how many end otherwise; or what the one line must say.
EXPECTED = {
    "alt_space_comma.tsv": {"ok": 2},
    "ancestry_raw.tsv": "genotypes",
    "annovar12.avinput": {"ok": 12},
    "annovar_dash.avinput": {"ok": 3},
    "bed5.bed": {"ok": 12},
    "bed6_score.bed": {"ok": 12},
    "bed_headered.tsv": {"ok": 12},
    "bed_start_eq_end.bed": {"ok": 15},
    "bim_codes.bim": {"ok": 6, "unknown_contig": 5},
    "bim_space.bim": {"ok": 12},
    "bolt_lmm.tsv": {"ok": 12},
    "cadd_out.tsv": {"ok": 1},
    "chrom_pos_ref_alt.txt": {"ok": 1},
    "clinvar_summary.txt": {"ok": 12},
    "cpra.txt": {"ok": 12},
    "cpra_header.tsv": {"ok": 12},
    "csv_quoted.csv": {"ok": 12},
    "csv_unquoted_multialt.csv": "line 2: 6 cells where there are 5 headings",
    "finngen.tsv": {"ok": 12},
    "gwas_harmonised.h.tsv": {"ok": 12, "malformed": 1},
    "gwas_ssf_NA.tsv": {"ok": 12, "malformed": 2},
    "hgvs.txt": {"ok": 12},
    "id_only_vcf.vcf": "no record has a REF",
    "maf.maf": {"ok": 12},
    "maf_like.tsv": {"ok": 2},
    "metal.tsv": {"ok": 12},
    "mito_MT.vcf": "none of its contigs is in the reference",  # of the demo
    "mito_alias.tsv": "names no columns that are known",  # for contig_aliases
    "phased_pair.vcf": {"ok": 3},
    "plink2.glm.linear": {"ok": 12},
    "plink2.glm.tsv": {"ok": 12},
    "quote.vcf": {"ok": 4},
    "r_quoted.tsv": {"ok": 12},
    "r_rownames.tsv": {"ok": 12},
    "regenie.tsv": {"ok": 12},
    "rsid_list.txt": "rsIDs.*bcftools",
    "saige.tsv": {"ok": 12},
    "slash_alt.tsv": {"ok": 1},
    "vep_default.tsv": {"ok": 12},
    "zero_based_few.tsv": "positions look one off, too small by one",
}
# What the rows of the form are: the same twelve SNVs, whoever wrote them.
TWELVE = [name for name, end in EXPECTED.items() if isinstance(end, dict) and end["ok"] == 12]
# Of these tools an effect allele is known.
EFFECTS = {
    "bolt_lmm.tsv", "finngen.tsv", "gwas_harmonised.h.tsv", "gwas_ssf_NA.tsv", "metal.tsv",
    "plink2.glm.linear", "plink2.glm.tsv", "regenie.tsv", "saige.tsv",
}  # fmt: skip


@pytest.fixture(scope="module")
def cases():
    if not FOLDER.is_dir():
        pytest.skip(f"needs {FOLDER}")
    return FOLDER


@pytest.fixture(scope="module")
def demo(cases, tmp_path_factory):
    folder = tmp_path_factory.mktemp("demo")
    reference.build(ROOT / "resources/demo/genome.fa.gz", folder)
    return Reference.open(folder)


def seen(path, genome, folder):
    out = folder / "alleles"
    summary = prepare(path, genome, out, folder / "scoreable", chunk_size=100)
    statuses = {status: n for status, n in summary["statuses"].items() if n}
    return statuses, pq.read_table(out).to_pylist()


def test_every_case_has_an_expectation(cases):
    assert {path.name for path in cases.iterdir()} - {"README.md"} == EXPECTED.keys()


@pytest.mark.parametrize("name", EXPECTED)
def test_each_case_ends_as_it_should(cases, demo, tmp_path, name):
    expected = EXPECTED[name]
    if isinstance(expected, str):
        with pytest.raises(InputError, match=expected) as error:
            seen(cases / name, demo, tmp_path)
        assert "\n" not in str(error.value)
        assert name in str(error.value)
        return
    statuses, rows = seen(cases / name, demo, tmp_path)
    assert statuses == expected
    known = {row["effect_is"] for row in rows if row["status"] == "ok"} - {"unknown"}
    assert bool(known) == (name in EFFECTS)


def test_the_same_twelve_alleles_come_out_of_every_form(cases, demo, tmp_path):
    keys = ("scored_pos", "scored_ref", "scored_alt")
    found = {
        name: sorted(
            tuple(map(row.get, keys))
            for row in seen(cases / name, demo, tmp_path)[1]
            if row["status"] == "ok"
        )
        for name in TWELVE
    }
    assert {name for name in TWELVE if found[name] != found["cpra.txt"]} == set()


@pytest.mark.parametrize("aliases", [None, "mito_alias.tsv"])
def test_mt_is_the_mitochondrion_whose_bases_fit(cases, tmp_path, aliases):
    """The reference has two; the file's alleles are of chrMT's sequence."""
    rows = [
        line.split("\t")
        for line in (cases / "mito_MT.vcf").read_text().splitlines()
        if not line.startswith("#")
    ]
    right = bytearray(b"A" * 16569)
    for _, pos, _, ref, *_ in rows:
        right[int(pos) - 1 : int(pos)] = ref.encode()
    wrong = right.translate(bytes.maketrans(b"ACGT", b"CGTA")) + b"A" * 2
    fasta = tmp_path / "genome.fa"
    fasta.write_text(f">chrM\n{wrong.decode()}\n>chrMT\n{right.decode()}\n")
    reference.build(fasta, tmp_path)
    genome = Reference.open(tmp_path, cases / aliases if aliases else None)
    statuses, _ = seen(cases / "mito_MT.vcf", genome, tmp_path)
    assert statuses == {"ok": len(rows)}
    assert {
        genome.names[i] for i in pq.read_table(tmp_path / "scoreable")["contig"].to_pylist()
    } == {"chrMT"}
