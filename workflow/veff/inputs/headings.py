"""What do the headings of each tool's tables mean?

A new tool is one row of `FORMS` and one test. Headings are compared without case, spaces,
``_``, ``.`` and ``-``. The meanings:

chrom, id, ref, alt: as in a VCF; pos: 1-based; start, end: of REF, decided with the reference
(`positions`); a1, a2: two alleles of which either may be the reference's, a2 the one that is
listed first as such; alleles: both in one cell, ``A/G``; variant: the whole allele in one cell
(`notations`); place: ``chr1:123``; tumour1, tumour2: the two alleles of a tumour, either of which
may be REF; effect: which of ref and alt an effect is of; a1_is_ref: whether a1 is the
reference's; provisional: whether REF is only said to be it; assembly: what the row refers to.
"""

from dataclasses import dataclass, field


@dataclass(frozen=True)
class Form:
    """A kind of table: its name, where its columns are described, and what its headings mean.

    `columns` must all be there, `also` may be: a meaning, and one or more spellings. `needs` are
    headings without a meaning here by which the tool is known. `effect`: the meaning of the
    column that holds the effect allele, where the tool defines one. `only`: the headings are
    these and no others. `refused`: why such a table is not read.
    """

    name: str
    source: str
    columns: dict[str, tuple[str, ...] | str]
    also: dict[str, tuple[str, ...] | str] = field(default_factory=dict)
    needs: tuple[str, ...] = ()
    effect: str = ""
    only: bool = False
    refused: str = ""


GENOTYPES = (
    "these are a person's genotypes, not the alleles of sites; make a VCF of them, with "
    "`plink --23file FILE --recode vcf` or `bcftools convert --tsv2vcf FILE -f reference.fa`"
)
_NO_ALLELES = (
    "no column has both alleles of a variant; look its identifiers up in a VCF: "
    "`bcftools view -i 'ID=@ids.txt' dbsnp.vcf.gz`"
)
_CHROM = ("chrom", "chr", "chromosome", "contig", "chromosomename", "seqname", "chrid")
_POS = ("pos", "position", "bp", "basepairlocation", "poshg38", "posgrch38")
_ID = ("id", "variantid", "rsid", "snp", "snpid", "name", "rs", "markerid", "marker", "rsids")
_REF = ("ref", "reference", "refallele", "referenceallele", "refbase")
_ALT = ("alt", "alternate", "altallele", "alternateallele", "alternativeallele", "alternative")
_VARIANT = ("variant", "variantid", "markername", "snp", "snpid", "id", "v", "spdi", "hgvs",
            "hgvsg", "cpra", "chrposrefalt", "locusalleles", "uploadedvariation", "marker",
            "markerid", "name", "variantname", "varid", "vid")  # fmt: skip

FORMS = (
    Form(
        "GWAS Catalog, harmonised",
        "https://www.ebi.ac.uk/gwas/docs/methods/summary-statistics",
        {"chrom": "hmchrom", "pos": "hmpos", "a1": "hmeffectallele", "a2": "hmotherallele"},
        {"id": ("hmrsid", "hmvariantid")},
        effect="a1",
    ),
    Form(
        "GWAS-SSF",
        "https://github.com/EBISPOT/gwas-summary-statistics-standard",
        {
            "chrom": "chromosome",
            "pos": "basepairlocation",
            "a1": "effectallele",
            "a2": "otherallele",
        },
        {"id": ("rsid", "variantid"), "a1_is_ref": "refallele"},
        effect="a1",
    ),
    Form(
        "PLINK 2 association (.glm)",
        "https://www.cog-genomics.org/plink/2.0/formats#glm_linear",
        {"chrom": "chrom", "pos": "pos", "ref": "ref", "alt": "alt", "effect": "a1"},
        {"id": "id", "provisional": "provisionalref?"},
        effect="effect",
    ),
    Form(
        "PLINK 1 association",
        "https://www.cog-genomics.org/plink/1.9/formats#assoc_linear",
        {"chrom": "chr", "pos": "bp", "a1": "a1", "a2": "a2"},
        {"id": "snp"},
        effect="a1",
    ),
    Form(
        "REGENIE",
        "https://rgcgithub.github.io/regenie/options/#output",
        {"chrom": "chrom", "pos": "genpos", "a1": "allele1", "a2": "allele0"},
        {"id": "id"},
        effect="a1",
    ),
    Form(
        "BOLT-LMM",
        "https://alkesgroup.broadinstitute.org/BOLT-LMM/BOLT-LMM_manual.html",
        {"chrom": "chr", "pos": "bp", "a1": "allele1", "a2": "allele0"},
        {"id": "snp"},
        effect="a1",
    ),
    *(
        Form(
            "SAIGE",
            "https://saigegit.github.io/SAIGE-doc/docs/single_step2.html",
            {"chrom": "chr", "pos": "pos", "a1": "allele2", "a2": "allele1"},
            {"id": ("markerid", "snpid", "rsid")},
            needs=(count,),
            effect="a1",
        )
        for count in ("acallele2", "afallele2")
    ),
    Form(
        "FinnGen, SuSiE",
        "https://finngen.gitbook.io/documentation/data-download",
        {"chrom": "chromosome", "pos": "position", "a1": "allele2", "a2": "allele1"},
        {"id": "rsid"},
        needs=("v", "prob", "cs"),
        effect="a1",
    ),
    Form(
        "METAL",
        "https://genome.sph.umich.edu/wiki/METAL_Documentation",
        {"chrom": _CHROM, "pos": _POS, "a1": "allele1", "a2": "allele2"},
        {"id": "markername"},
        needs=("markername", "effect"),
        effect="a1",
    ),
    Form(
        "METAL",
        "https://genome.sph.umich.edu/wiki/METAL_Documentation",
        {"variant": "markername", "a1": "allele1", "a2": "allele2"},
        needs=("effect",),
        effect="a1",
    ),
    Form(
        "FinnGen",
        "https://finngen.gitbook.io/documentation/data-download",
        {"chrom": "chrom", "pos": "pos", "ref": "ref", "alt": "alt", "id": "rsids"},
        effect="alt",
    ),
    Form(
        "eQTL Catalogue",
        "https://github.com/eQTL-Catalogue/eQTL-Catalogue-resources/blob/master/tabix/Columns.md",
        {"chrom": "chromosome", "pos": "position", "ref": "ref", "alt": "alt", "id": "variant"},
        needs=("moleculartraitid",),
        effect="alt",
    ),
    Form(
        "eQTL Catalogue",
        "https://github.com/eQTL-Catalogue/eQTL-Catalogue-resources/blob/master/tabix/Columns.md",
        {"variant": "variant"},
        {"id": "rsid"},
        needs=("moleculartraitid",),
        effect="alt",
    ),
    Form(
        "GTEx",
        "https://gtexportal.org/home/downloads/adult-gtex/qtl",
        {"variant": "variantid"},
        {"id": ("rsid", "rsiddbsnp151", "rsiddbsnp155")},
        needs=("slope",),
        effect="alt",
    ),
    Form(
        "allele-specific counts",
        "https://gatk.broadinstitute.org/hc/en-us/articles/360037428291-ASEReadCounter",
        {"chrom": _CHROM, "pos": _POS, "ref": _REF, "alt": _ALT},
        {"id": _ID},
        needs=("refcount", "altcount"),
        effect="alt",
    ),
    Form(
        "MAF",
        "https://docs.gdc.cancer.gov/Data/File_Formats/MAF_Format/",
        {
            "chrom": "chromosome",
            "start": "startposition",
            "end": "endposition",
            "ref": "referenceallele",
            "tumour2": "tumorseqallele2",
        },
        {"tumour1": "tumorseqallele1", "id": "dbsnprs", "assembly": "ncbibuild"},
    ),
    Form(
        "ClinVar, variant_summary",
        "https://ftp.ncbi.nlm.nih.gov/pub/clinvar/README.txt",
        {
            "chrom": "chromosome",
            "pos": "positionvcf",
            "ref": "referenceallelevcf",
            "alt": "alternateallelevcf",
        },
        {"assembly": "assembly", "id": ("variationid", "alleleid")},
    ),
    Form(
        "LDlink, LDproxy",
        "https://ldlink.nih.gov/?tab=help",
        {"place": "coord", "alleles": "alleles"},
        {"id": ("rsnumber", "rsid")},
    ),
    Form(
        "23andMe",
        "https://www.23andme.com/download/",
        {"id": "rsid", "chrom": _CHROM, "pos": _POS, "genotype": ("genotype", "result")},
        only=True,
        refused=GENOTYPES,
    ),
    Form(
        "AncestryDNA",
        "https://www.ancestry.com/dna/",
        {"id": "rsid", "chrom": "chromosome", "pos": "position", "a1": "allele1", "a2": "allele2"},
        only=True,
        refused=GENOTYPES,
    ),
    Form(
        "GWAS Catalog, associations",
        "https://www.ebi.ac.uk/gwas/docs/fileheaders",
        {"chrom": "chrid", "pos": "chrpos", "id": "snps"},
        refused=_NO_ALLELES,
    ),
    Form(
        "Ensembl VEP, default output",
        "https://www.ensembl.org/info/docs/tools/vep/vep_formats.html#defaultout",
        {"variant": "uploadedvariation"},
        needs=("location", "allele"),
    ),
)

# Headings that say of themselves that the allele is the one of an effect.
EFFECT = ("effectallele", "ea", "testedallele")
# Any other table, by the usual names of its columns. ANNOVAR, gReLU, Chorus, CADD, gnomAD, Open
# Targets and variant-scorer are among those that need no more.
COMMON = {
    "chrom": _CHROM,
    "pos": _POS,
    "start": ("start", "chromstart", "startposition", "begin"),
    "end": ("end", "chromend", "stop", "endposition"),
    "id": _ID,
    "ref": _REF,
    "alt": _ALT,
    "a1": (*EFFECT, "a1", "riskallele"),
    "a2": ("otherallele", "noneffectallele", "nea", "a2", "oa", "a0", "allele0"),
    "allele1": ("allele1",),
    "allele2": ("allele2",),
    "alleles": ("alleles",),
    "variant": _VARIANT,
}


def normal(heading: str) -> str:
    """A heading without what spellings differ in."""
    heading = heading.strip().strip('"').lower().removeprefix("#").strip()
    return "".join(c for c in heading if c not in " _.-")


def known(headings: list[str]) -> tuple[Form, dict[str, int]] | None:
    """The first form that headings, made `normal`, fit, and the column of each meaning."""
    for form in FORMS:
        columns = {
            meaning: next((headings.index(one) for one in _names(names) if one in headings), None)
            for meaning, names in (form.columns | form.also).items()
        }
        there = {meaning: i for meaning, i in columns.items() if i is not None}
        fits = form.columns.keys() <= there.keys() and set(form.needs) <= set(headings)
        if fits and not (form.only and len(headings) > len(there)):
            return form, there
    return None


def _names(names: tuple[str, ...] | str) -> tuple[str, ...]:
    return (names,) if isinstance(names, str) else names
