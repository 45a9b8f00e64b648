rule reference:
    input:
        fasta=ancient(config["reference"]),
        content=content_of("reference", config["reference"]),
    output:
        bases=f"{OUT}/reference/bases.u8",
        contigs=f"{OUT}/reference/contigs.json",
    log:
        f"{OUT}/logs/reference.log",
    conda:
        "../../envs/cpu.yaml"
    resources:
        **asks(to_read("reference")),
    params:
        sha256=sha256(config["reference"]),
    script:
        "../scripts/reference.py"


if LISTED:

    rule variants:
        input:
            content=content_of("variants", config["variants"]),
        output:
            VARIANTS,
        log:
            f"{OUT}/logs/variants.log",
        conda:
            "../../envs/cpu.yaml"
        resources:
            **asks(resources.LIGHT),
        params:
            alleles=notations.inline(config["variants"] or ""),
        script:
            "../scripts/variants.py"


checkpoint prepare:
    input:
        variants=VARIANTS,
        reference=rules.reference.output,
        aliases=ALIASES,
        content=content_of("prepare", config["variants"], config["contig_aliases"]),
    output:
        alleles=f"{OUT}/alleles.parquet",
        scoreable=f"{OUT}/prepared/scoreable.parquet",
        summary=f"{OUT}/prepared/summary.json",
    log:
        f"{OUT}/logs/prepare.log",
    conda:
        "../../envs/cpu.yaml"
    resources:
        **asks(to_read("variants")),
    params:
        chunk_size=config["chunk_size"],
        cut=lambda wildcards: asdict(cut()),
        max_allele_length=config["max_allele_length"],
        max_ref_mismatch=config["max_ref_mismatch"],
        malformed_rows=config["malformed_rows"],
        positions=config["positions"],
        sha256=sha256(None if LISTED else config["variants"], config["contig_aliases"]),
    script:
        "../scripts/prepare.py"
