"""Lists: one random set of alleles is read alike in every form; each fault is told."""

import random

import pyarrow.parquet as pq
import pytest

from veff.errors import InputError
from veff.inputs import headings, notations, records, reference
from veff.inputs.preparing import prepare
from veff.inputs.reference import Reference

ACCESSION = "NC_009999.1"  # of no assembly, so a contig's name like any other
COMPLEMENT = str.maketrans("ACGT", "TGCA")


@pytest.fixture(scope="module")
def genome(tmp_path_factory):
    folder = tmp_path_factory.mktemp("genome")
    rng = random.Random(16)
    fasta = "".join(
        f">{name}\n{''.join(rng.choices('ACGT', k=5000))}\n" for name in ("chr1", ACCESSION)
    )
    (folder / "genome.fa").write_text(fasta)
    reference.build(folder / "genome.fa", folder)
    return Reference.open(folder)


def random_alleles(genome, seed, n=40):
    """chrom, pos, REF, ALT as a VCF has them: SNVs, and insertions and deletions after a base."""
    rng = random.Random(seed)
    alleles = {}
    for pos in rng.sample(range(100, 4900, 20), n):
        contig = rng.randrange(2)
        there = genome.fetch(contig, pos - 1, pos + 9).decode()
        kind, length = rng.randrange(4), rng.randint(1, 5)
        if kind < 2:
            ref, alt = there[0], rng.choice([base for base in "ACGT" if base != there[0]])
        elif kind == 2:
            ref, alt = there[0], there[0] + "".join(rng.choices("ACGT", k=length))
        else:
            ref, alt = there[: 1 + length], there[0]
        alleles[genome.names[contig], pos] = ref, alt
    return [(*place, *pair) for place, pair in alleles.items()]


def bare(pos, ref, alt):
    """Without the base that both have: `-` for none."""
    if len(ref) == len(alt):
        return pos, ref, alt
    return pos + 1, ref[1:] or "-", alt[1:] or "-"


def annovar(pos, ref, alt):
    """Start and end as ANNOVAR and MAF count: of an insertion, from the base before."""
    pos, ref, alt = bare(pos, ref, alt)
    return (pos - 1, pos - 1, ref, alt) if ref == "-" else (pos, pos + len(ref) - 1, ref, alt)


def maf(pos, ref, alt):
    start, end, ref, alt = annovar(pos, ref, alt)
    return start, end + (ref == "-"), ref, alt


def vep(pos, ref, alt):
    pos, ref, alt = bare(pos, ref, alt)
    return pos, pos + len(ref.strip("-")) - 1, ref, alt


def bed(pos, ref, alt):
    return pos - 1, pos - 1 + len(ref), ref, alt


def hgvs(chrom, pos, ref, alt):
    pos, ref, alt = bare(pos, ref, alt)
    if ref == "-":
        return f"{chrom}:g.{pos - 1}_{pos}ins{alt}"
    span = f"{pos}_{pos + len(ref) - 1}" if len(ref) > 1 else f"{pos}"
    return f"{chrom}:g.{span}del" if alt == "-" else f"{chrom}:g.{pos}{ref}>{alt}"


def either(i, ref, alt):
    """Both alleles, the other way round for SNVs with an odd number; indels are as they should."""
    return (alt, ref) if i % 2 and len(ref) == len(alt) else (ref, alt)


def table(heading, row, sep="\t"):
    """A form: a line of headings, and how allele i (chrom, pos, ref, alt) is written."""
    return heading, lambda i, c, p, r, a: sep.join(map(str, row(i, c, p, r, a)))


def line(text):
    return "", lambda i, c, p, r, a: text(i, c, p, r, a)


FORMS = {
    "VCF": table("#CHROM\tPOS\tID\tREF\tALT", lambda i, c, p, r, a: (c, p, ".", r, a)),
    "VCF, all columns": table(
        "##fileformat=VCFv4.2\n#CHROM\tPOS\tID\tREF\tALT\tQUAL\tFILTER\tINFO",
        lambda i, c, p, r, a: (c, p, ".", r, a, ".", "PASS", "."),
    ),
    "table": table("chrom\tpos\tref\talt", lambda i, *allele: allele),
    "CADD": table("## CADD v1.7\n#Chrom\tPos\tRef\tAlt", lambda i, *allele: allele),
    "without REF": table(
        "chrom\tpos\tref\talt", lambda i, c, p, r, a: (c, p, "." if len(r) == 1 else r, a)
    ),
    "spaces": table("chrom pos ref alt", lambda i, *allele: allele, " "),
    "semicolons": table("chrom;pos;ref;alt", lambda i, *allele: allele, ";"),
    "spreadsheet": table(
        '"chrom","pos","ref","alt"',
        lambda i, c, p, r, a: (f'"{c}"', f'"{p:,}"', f'"{r}"', f'"{a}"'),
        ", ",
    ),
    "pandas with missing values": table(
        "chrom\tpos\tref\talt", lambda i, c, p, r, a: (c, f"{p}.0", r, a)
    ),
    "R, names of rows": table("chrom\tpos\tref\talt", lambda i, *allele: (i + 1, *allele)),
    "R, quoted": table(
        '"chrom" "pos" "ref" "alt"', lambda i, c, p, r, a: (f'"{c}"', p, f'"{r}"', f'"{a}"'), " "
    ),
    "gnomAD": table(
        "chromosome\tposition\treference_allele\talternate_allele", lambda i, *allele: allele
    ),
    "GWAS Catalog, harmonised": table(
        "hm_chrom\thm_pos\thm_other_allele\thm_effect_allele\tchromosome\tbase_pair_location\t"
        "effect_allele\tother_allele",
        lambda i, c, p, r, a: (c, p, *either(i, r, a), c, p + 1000, "A", "C"),
    ),
    "GWAS-SSF": table(
        "chromosome\tbase_pair_location\tother_allele\teffect_allele\tbeta",
        lambda i, c, p, r, a: (c, p, *either(i, r, a), 0.1),
    ),
    "PLINK 2 association (.glm)": table(
        "#CHROM\tPOS\tID\tREF\tALT\tPROVISIONAL_REF?\tA1",
        lambda i, c, p, r, a: (c, p, "x", *either(i, r, a), "Y", r),
    ),
    "PLINK 1 association": table(
        " CHR SNP BP A1 A2 P",
        lambda i, c, p, r, a: ("", c, "x", p, *either(i, r, a)[::-1], 0.1),
        "  ",
    ),
    "REGENIE": table(
        "CHROM GENPOS ID ALLELE0 ALLELE1",
        lambda i, c, p, r, a: (c, p, "x", *either(i, r, a)),
        " ",
    ),
    "BOLT-LMM": table(
        "SNP\tCHR\tBP\tGENPOS\tALLELE1\tALLELE0",
        lambda i, c, p, r, a: ("x", c, p, 0.0, *either(i, r, a)[::-1]),
    ),
    "SAIGE": table(
        "CHR\tPOS\tMarkerID\tAllele1\tAllele2\tAC_Allele2",
        lambda i, c, p, r, a: (c, p, "x", *either(i, r, a), 5),
    ),
    "METAL": table(
        "MarkerName\tAllele1\tAllele2\tEffect\tCHR\tBP",
        lambda i, c, p, r, a: ("x", *(x.lower() for x in either(i, r, a)[::-1]), 0.1, c, p),
    ),
    "METAL, places as names": table(
        "MarkerName\tAllele1\tAllele2\tEffect",
        lambda i, c, p, r, a: (f"{c}:{p}", *(x.lower() for x in either(i, r, a)[::-1]), 0.1),
    ),
    "allele1 and allele2": table(
        "chr\tpos\tallele1\tallele2", lambda i, c, p, r, a: (c, p, *either(i, r, a))
    ),
    "FinnGen": table(
        "#chrom\tpos\tref\talt\trsids\tpval", lambda i, *allele: (*allele, "rs1,rs2", 0.5)
    ),
    "allele-specific counts": table(
        "contig\tposition\tvariantID\trefAllele\taltAllele\trefCount\taltCount",
        lambda i, c, p, r, a: (c, p, "rs1", r, a, 5, 7),
    ),
    "FinnGen, SuSiE": table(
        "v\trsid\tchromosome\tposition\tallele1\tallele2\tprob\tcs",
        lambda i, *allele: ("x", "x", *allele, 0.5, 1),
    ),
    "eQTL Catalogue": table(
        "molecular_trait_id\tchromosome\tposition\tref\talt\tvariant",
        lambda i, c, p, r, a: ("gene", c, p, r, a, f"{c}_{p}_{r}_{a}"),
    ),
    "GTEx": table(
        "gene_id\tvariant_id\tslope", lambda i, c, p, r, a: ("gene", f"{c}_{p}_{r}_{a}_b38", 0.1)
    ),
    "MAF": table(
        "#version 2.4\nHugo_Symbol\tChromosome\tStart_Position\tEnd_Position\tReference_Allele\t"
        "Tumor_Seq_Allele1\tTumor_Seq_Allele2",
        lambda i, c, p, r, a: ("G", c, *(m := maf(p, r, a))[:3], m[2], m[3]),
    ),
    "ClinVar, variant_summary": table(
        "#AlleleID\tAssembly\tChromosome\tStart\tStop\tPositionVCF\tReferenceAlleleVCF\t"
        "AlternateAlleleVCF",
        lambda i, c, p, r, a: (i, "GRCh38", c, p + 1, p + 1, p, r, a),
    ),
    "LDlink, LDproxy": table(
        "RS_Number\tCoord\tAlleles",
        lambda i, c, p, r, a: ("rs1", f"{c}:{p}", f"({'/'.join(either(i, r, a))})"),
    ),
    "Ensembl VEP, default output": table(
        "## ENSEMBL VARIANT EFFECT PREDICTOR\n#Uploaded_variation\tLocation\tAllele",
        lambda i, c, p, r, a: (
            f"{c}_{(b := bare(p, r, a))[0]}_{b[1]}/{b[2]}",
            f"{c}:{p}",
            b[2],
        ),
    ),
    "BED with headings": table(
        "chrom\tstart\tend\tref\talt", lambda i, c, p, r, a: (c, *bed(p, r, a))
    ),
    "ANNOVAR with headings": table(
        "Chr\tStart\tEnd\tRef\tAlt", lambda i, c, p, r, a: (c, *annovar(p, r, a))
    ),
    "start without end": table("chrom\tstart\tref\talt", lambda i, c, p, r, a: (c, p - 1, r, a)),
    "notations in a column": table(
        "variant\tpip", lambda i, c, p, r, a: (f"{c}-{p}-{r}-{a}", 0.5)
    ),
    # Without headings.
    "original": table("", lambda i, c, p, r, a: (c, p, f"rs{i}", r, a)),
    "chrombpnet": table("", lambda i, c, p, r, a: (c, p, r, a, f"rs{i}")),
    "bed": table("", lambda i, c, p, r, a: (c, *bed(p, r, a), f"rs{i}")),
    "bed without names": table("", lambda i, c, p, r, a: (c, *bed(p, r, a))),
    "plink": table("", lambda i, c, p, r, a: (c, f"rs{i}", 0, p, *either(i, r, a)[::-1])),
    "plink, spaces": table(
        "", lambda i, c, p, r, a: (c, f"rs{i}", 0, p, *either(i, r, a)[::-1]), " "
    ),
    "plink2": table("", lambda i, c, p, r, a: (c, f"rs{i}", p, r, a)),
    "four columns": table("", lambda i, *allele: allele),
    "ANNOVAR": table("", lambda i, c, p, r, a: (c, *annovar(p, r, a), "note")),
    "VEP": table(
        "",
        lambda i, c, p, r, a: (
            c,
            *(v := vep(p, r, a))[:2],
            "/".join(x.translate(COMPLEMENT)[::-1] if i % 2 else x for x in v[2:]),
            "+-"[i % 2],
            f"id{i}",
        ),
    ),
    "BED, alleles as names": table(
        "", lambda i, c, p, r, a: (c, *bed(p, r, a)[:2], f"{r}/{a}", 0, "+")
    ),
    "chrom:pos:ref:alt": line(
        lambda i, c, p, r, a: (
            (
                f"{c}:{p}:{r}:{a}",
                f"{c}-{p}-{r}-{a}",
                f"{c}_{p}_{r}_{a}",
                f"{c}:{p}{r}>{a}",
                f"{c}:{p:,}_{r}/{a}",
            )[i % 5]
            if c != ACCESSION
            else f"{c}_{p}_{r}_{a}"
        )
    ),
    "SPDI": line(
        lambda i, c, p, r, a: (
            f"{c}:{p - 1}:{len(r) if i % 2 else r}:{a}" if c == ACCESSION else f"{c}:{p}:{r}:{a}"
        )
    ),
    "HGVS": line(lambda i, c, p, r, a: hgvs(c, p, r, a)),
    "HGVS, delins": line(
        lambda i, c, p, r, a: (
            f"{c}:g.{p}_{p + len(r) - 1}delins{a}" if len(r) > 1 else f"{c}:g.{p}delins{a}"
        )
    ),
}


def scored(genome, folder, content, **settings):
    """What the alleles of a list are scored as, and their rows in alleles.parquet."""
    path = folder / "list.txt"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    out = folder / "alleles.parquet"
    summary = prepare(path, genome, out, folder / "scoreable", chunk_size=1000, **settings)
    rows = pq.read_table(out).to_pylist()
    assert all(row["status"] == "ok" for row in rows), [row for row in rows if row["reason"]][:3]
    return (
        [(row["chrom"], row["scored_pos"], row["scored_ref"], row["scored_alt"]) for row in rows],
        rows,
        summary,
    )


def written(form, alleles):
    heading, row = FORMS[form]
    rows = [row(i, *allele) for i, allele in enumerate(alleles)]
    return "\n".join(([heading] if heading else []) + rows) + "\n"


@pytest.fixture(scope="module")
def sets(genome, tmp_path_factory):
    """Random sets, each with what its alleles are scored as when a VCF has them."""
    folder = tmp_path_factory.mktemp("sets")
    return [
        (alleles, scored(genome, folder, written("VCF", alleles))[0])
        for alleles in (random_alleles(genome, seed) for seed in (1, 2, 3))
    ]


@pytest.mark.parametrize("form", FORMS)
def test_one_set_of_alleles_reads_the_same_in_every_form(genome, sets, tmp_path, form):
    for alleles, expected in sets:
        found, _, summary = scored(genome, tmp_path, written(form, alleles))
        assert found == expected
        if form in {known.name for known in headings.FORMS}:
            assert form in summary["read_as"]["form"]
    if form == "table":
        for encoding in ("utf-16", "utf-8-sig"):
            text = written(form, alleles).replace("\n", "\r\n").encode(encoding)
            assert scored(genome, tmp_path, text)[0] == expected


@pytest.mark.parametrize("form", headings.FORMS, ids=lambda form: form.name)
def test_every_tool_has_a_form_here_or_is_refused(form):
    assert form.source.startswith("https://")
    assert form.refused or form.name in FORMS


# Effect alleles: METAL's is Allele1, whichever of the two the reference has, and so on.
EFFECTS = {
    "GWAS Catalog, harmonised": "second",
    "GWAS-SSF": "second",
    "PLINK 2 association (.glm)": "ref",
    "PLINK 1 association": "second",
    "REGENIE": "second",
    "BOLT-LMM": "second",
    "SAIGE": "second",
    "METAL": "second",
    "FinnGen": "alt",
    "FinnGen, SuSiE": "alt",
    "eQTL Catalogue": "alt",
    "GTEx": "alt",
    "allele-specific counts": "alt",
    "table": "unknown",
    "allele1 and allele2": "unknown",
}


@pytest.mark.parametrize("form", EFFECTS)
def test_the_effect_allele_is_kept_where_the_tool_defines_one(genome, tmp_path, form):
    alleles = random_alleles(genome, 4)
    _, rows, _ = scored(genome, tmp_path, written(form, alleles))
    for i, (row, (_, _, ref, alt)) in enumerate(zip(rows, alleles, strict=True)):
        assert (row["ref"].upper(), row["alt"].upper()) == (ref, alt)
        listed_second = "alt" if either(i, ref, alt)[1] == alt else "ref"
        expected = listed_second if EFFECTS[form] == "second" else EFFECTS[form]
        assert row["effect_is"] == expected


def test_gwas_ssf_says_itself_which_allele_is_the_reference_where_both_fit(genome, tmp_path):
    # An insertion before its own first base: either allele may be what the reference has.
    base = genome.fetch(0, 999, 1001).decode()
    heading = "chromosome\tbase_pair_location\teffect_allele\tother_allele\tref_allele\n"
    row = f"chr1\t1000\t{base[0]}\t{base}\tEA\n"
    _, (found,), _ = scored(genome, tmp_path, heading + row)
    assert (found["ref"], found["alt"], found["effect_is"]) == (base[0], base, "ref")


def refused(genome, folder, text, match, **settings):
    path = folder / "list.txt"
    path.write_text(text)
    with pytest.raises(InputError, match=match) as error:
        prepare(path, genome, folder / "a", folder / "s", chunk_size=9, **settings)
    assert "\n" not in str(error.value)
    assert str(path) in str(error.value)
    return str(error.value)


def as_rows(genome, shift, n=12, contig=0):
    """SNVs with positions that are `shift` off."""
    rng = random.Random(n)
    places = sorted(rng.sample(range(100, 4900), n))
    bases = [genome.fetch(contig, pos - 1, pos).decode() for pos in places]
    return [
        (genome.names[contig], pos + shift, base, "ACGT"[("ACGT".index(base) + 1) % 4])
        for pos, base in zip(places, bases, strict=True)
    ]


def text_of(rows, heading=""):
    return heading + "".join("\t".join(map(str, row)) + "\n" for row in rows)


def test_positions_from_0_in_a_column_pos_are_refused_and_read_when_said(genome, tmp_path):
    text = text_of(as_rows(genome, -1), "chrom\tpos\tref\talt\n")
    refused(genome, tmp_path, text, "too small by one.*positions: 0-based")
    found, _, summary = scored(genome, tmp_path, text, positions="0-based")
    assert [row[1] for row in found] == [row[1] for row in as_rows(genome, 0)]
    assert summary["read_as"]["positions"] == "0-based"


def test_positions_that_are_one_too_large_are_refused_with_the_cause(genome, tmp_path):
    text = text_of(as_rows(genome, 1), "chrom\tpos\tref\talt\n")
    refused(genome, tmp_path, text, "too large by one")


def test_start_equal_to_end_is_never_bed(genome, tmp_path):
    rows = [(chrom, pos, pos, ref, alt) for chrom, pos, ref, alt in as_rows(genome, 0)]
    found, _, summary = scored(genome, tmp_path, text_of(rows))
    assert [row[1] for row in found] == [row[1] for row in rows]
    assert summary["read_as"]["positions"] == "1-based"
    assert "REF fits 12 of 12 rows as 1-based" in summary["read_as"]["why"]


def test_ends_and_ref_that_say_different_things_are_refused_and_read_when_said(genome, tmp_path):
    rows = [(chrom, pos, pos, ref, alt) for chrom, pos, ref, alt in as_rows(genome, -1)]
    refused(genome, tmp_path, text_of(rows), "not certain how positions are counted")
    found, _, _ = scored(genome, tmp_path, text_of(rows), positions="0-based")
    assert [row[1] for row in found] == [row[1] + 1 for row in rows]


def test_two_conventions_that_fit_about_as_well_are_refused(genome, tmp_path):
    rows = as_rows(genome, 0, 6) + as_rows(genome, -1, 7)
    refused(genome, tmp_path, text_of(rows, "chrom\tstart\tref\talt\n"), "not certain")


def test_one_odd_row_of_many_does_not_hide_the_convention(genome, tmp_path):
    rows = [(c, p - 1, p, r, a) for c, p, r, a in as_rows(genome, 0, 200)]
    rows[7] = (*rows[7][:3], rows[7][4], rows[7][3])
    path = tmp_path / "list.bed"
    path.write_text(text_of(rows))
    assert records.Variants(path, reference=genome).read_as["positions"] == "0-based"


def test_a_vcf_counts_from_1_whatever_is_said(genome, tmp_path):
    text = written("VCF", random_alleles(genome, 1))
    refused(genome, tmp_path, text, "by definition", positions="0-based")


def test_a_comma_that_is_not_quoted_costs_no_allele(genome, tmp_path):
    chrom, pos, ref, alt = as_rows(genome, 0, 1)[0]
    text = f"chrom,pos,ref,alt,pip\n{chrom},{pos},{ref},{alt},T,0.5\n"
    refused(genome, tmp_path, text, "line 2: 6 cells where there are 5 headings")
    quoted = text.replace(f"{alt},T", f'"{alt}, {ref}G"')
    assert [row["alt"] for row in scored(genome, tmp_path, quoted)[1]] == [alt, f"{ref}G"]


def test_empty_cells_behind_the_last_heading_are_none(genome, tmp_path):
    chrom, pos, ref, alt = as_rows(genome, 0, 1)[0]
    text = f"chrom,pos,ref,alt\n{chrom},{pos},{ref},{alt},,\n"
    assert len(scored(genome, tmp_path, text)[1]) == 1


@pytest.mark.parametrize(
    "text",
    [
        "rsid\tchromosome\tposition\tallele1\tallele2\nrs1\tchr1\t100\tA\tC\n",
        "#AncestryDNA\nrsid\tchromosome\tposition\tallele1\tallele2\nrs1\tchr1\t1\tA\tA\n",
        "# This file\n# rsid\tchromosome\tposition\tgenotype\nrs1\tchr1\t100\tAC\n",
        "RSID,CHROMOSOME,POSITION,RESULT\nrs1,chr1,100,AC\n",
        "snp\tchr\tpos\tallele1\tallele2\nrs1\tchr1\t100\tA\tA\nrs2\tchr1\t101\tA\tC\n",
    ],
    ids=["AncestryDNA", "AncestryDNA, comments", "23andMe", "MyHeritage", "any"],
)
def test_genotypes_are_refused_with_what_converts_them(genome, tmp_path, text):
    refused(genome, tmp_path, text, "genotypes.*(bcftools|plink)")


@pytest.mark.parametrize(
    ("text", "match"),
    [
        ("rs123\nrs456\n", "rsIDs.*bcftools view"),
        ("SNP\tP\nrs123\t0.1\n", "rsIDs.*bcftools view"),
        ("NM_000546.6:c.215C>G\n", "transcripts.*VariantValidator"),
        ("variant\nENST00000269305:c.215C>G\n", "transcripts"),
        ("BRCA1:p.Val5Leu\n", "transcripts or proteins"),
        (
            "gene\tscore\nA\t1\n",
            r"'gene\\tscore' names no columns .* it has 'gene', 'score'; wanted are chrom, pos",
        ),
        (
            "chrom\tpos\trisk\nchr1\t5\tA\n",
            "no column of alternate alleles .*'chrom', 'pos', 'risk'",
        ),
        ("CHR_ID\tCHR_POS\tSNPS\nchr1\t5\trs1\n", "no column has both alleles"),
        (
            "##fileformat=VCFv4.2\n#CHROM\tPOS\tID\tREF\tALT\nchr1\t5\trs1\t.\tC\n",
            "no record has a",
        ),
        (
            "Assembly\tChromosome\tPositionVCF\tReferenceAlleleVCF\tAlternateAlleleVCF\n"
            "GRCh37\tchr1\t5\tA\tC\nGRCh38\tchr1\t5\tA\tC\n",
            "line 3: 'GRCh38', but rows before are of 'GRCh37'",
        ),
    ],
)
def test_what_names_no_alleles_is_refused_with_what_to_do(genome, tmp_path, text, match):
    refused(genome, tmp_path, text, match)


def test_rows_without_a_place_are_counted_and_stop_nothing(genome, tmp_path):
    base = genome.fetch(0, 99, 100).decode()
    alt = "ACGT"[("ACGT".index(base) + 1) % 4]
    path = tmp_path / "gwas.tsv"
    path.write_text(
        "chromosome\tbase_pair_location\teffect_allele\tother_allele\n"
        f"#NA\t#NA\tA\tC\nchr1\t100\t{alt}\t{base}\nNA\tNA\tA\tC\n"
    )
    summary = prepare(path, genome, tmp_path / "a", tmp_path / "s", chunk_size=9)
    assert {k: n for k, n in summary["statuses"].items() if n} == {"ok": 1, "malformed": 2}


def test_a_missing_alt_costs_only_itself(genome, tmp_path):
    chrom, pos, ref, alt = as_rows(genome, 0, 1)[0]
    text = f"#CHROM\tPOS\tID\tREF\tALT\n{chrom}\t{pos}\t.\t{ref}\t{alt},,{ref}T\n"
    refused(genome, tmp_path, text, f"line 2: an allele is missing: ALT '{alt},,{ref}T'")
    out = tmp_path / "a"
    prepare(
        tmp_path / "list.txt", genome, out, tmp_path / "s", chunk_size=9, malformed_rows="skip"
    )
    assert pq.read_table(out)["status"].to_pylist() == ["ok", "malformed", "ok"]


def test_an_alt_that_repeats_ref_as_in_dbsnp_is_the_other_alone(genome, tmp_path):
    chrom, pos, ref, alt = as_rows(genome, 0, 1)[0]
    text = f"chrom\tpos\tref\talt\n{chrom}\t{pos}\t{ref}\t{ref}/{alt}\n"
    assert [row["alt"] for row in scored(genome, tmp_path, text)[1]] == [alt]


# Notations: what they make of the genome, by definition.
def test_hgvs_makes_the_sequence_that_its_definition_says(genome, tmp_path):
    bases = genome.fetch(0, 0, 5000).decode()
    at = {i: bases[i - 1] for i in range(1, 5001)}
    other = "ACGT"[("ACGT".index(at[100]) + 1) % 4]
    expected = {
        f"chr1:g.100{at[100]}>{other}": bases[:99] + other + bases[100:],
        "chr1:g.200del": bases[:199] + bases[200:],
        "chr1:g.300_304del": bases[:299] + bases[304:],
        f"chr1:g.400_402del{bases[399:402]}": bases[:399] + bases[402:],
        "chr1:g.500_501insACGT": bases[:500] + "ACGT" + bases[500:],
        "chr1:g.600dup": bases[:600] + at[600] + bases[600:],
        "chr1:g.700_703dup": bases[:703] + bases[699:703] + bases[703:],
        "chr1:g.800_802delinsTTTTT": bases[:799] + "TTTTT" + bases[802:],
        "chr1:g.900_903inv": bases[:899]
        + bases[899:903][::-1].translate(COMPLEMENT)
        + bases[903:],
    }
    _, rows, _ = scored(genome, tmp_path, "\n".join(expected) + "\n")
    for row, sequence in zip(rows, expected.values(), strict=True):
        start = row["scored_pos"] - 1
        end = start + len(row["scored_ref"])
        assert bases[:start] + row["scored_alt"] + bases[end:] == sequence, row["id"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("HLA-A*01:01:01:01:100:A:G", ("HLA-A*01:01:01:01", 100, "A", "G")),
        ("chr1_KI270706v1_random_100_A_G", ("chr1_KI270706v1_random", 100, "A", "G")),
        ("1-55,516,888-G-GA", ("1", 55516888, "G", "GA")),
        ("chr1:100:AC:-", ("chr1", 100, "AC", "-")),
        ("chr1:100:A:G,T", ("chr1", 100, "A", "G,T")),
        ("NC_000001.11:99:A:G", ("NC_000001.11", 100, "A", "G")),
        ("NC_000001.11:99::GA", ("NC_000001.11", 100, "-", "GA")),
        ("NC_000001.11:g.100_99del", None),
        ("NC_000001.11:g.100_105insA", None),
        ("chr1:100:-:A", None),
        ("chr1:A:G", None),
        ("chr1:100", None),
        ("rs1", None),
        ("C:\\data\\variants_1_A_T.vcf", None),
    ],
)
def test_a_notation_names_one_place(text, expected):
    found = notations.parse(text)
    assert (found and found[:4]) == expected


def test_notations_with_commas_between_them_are_told_from_a_path():
    assert notations.inline("chr1:1:A:G,chr1:2:C:T") == ["chr1:1:A:G", "chr1:2:C:T"]
    assert notations.inline("chr1:1:A:G,T, chr1:2:C:T") == ["chr1:1:A:G,T", "chr1:2:C:T"]
    for path in ("variants.vcf.gz", "my-1-A-G.vcf", "data/1_2.tsv", "", "chr1:1:A:G,x"):
        assert notations.inline(path) == []


# Insertions written with `-`.
def test_a_missing_ref_is_inserted_where_each_convention_says(genome, tmp_path):
    bases = genome.fetch(0, 0, 5000).decode()
    behind = bases[:1000] + "ACGTT" + bases[1000:]  # behind base 1000
    before = bases[:999] + "ACGTT" + bases[999:]
    snv = as_rows(genome, 0, 1)[0]
    lists = {
        "chrom\tpos\tref\talt\nchr1\t1000\t-\tACGTT\n": behind,
        text_of([("chr1", 1000, 1000, "-", "ACGTT"), (snv[0], snv[1], *snv[1:])]): behind,
        text_of([("chr1", 1000, 1000, "-", "ACGTT"), (snv[0], snv[1] - 1, *snv[1:])]): behind,
        "chrom\tstart\tend\tref\talt\nchr1\t1000\t1001\t-\tACGTT\n": behind,
        "chr1\t1000\t999\t-/ACGTT\t+\n": before,
        "chr1\t1000\t-\tACGTT\trs1\n": before,
        "chr1_1000_-/ACGTT\n": before,
    }
    for text, sequence in lists.items():
        row = scored(genome, tmp_path, text)[1][0]
        start = row["scored_pos"] - 1
        end = start + len(row["scored_ref"])
        assert bases[:start] + row["scored_alt"] + bases[end:] == sequence, text
