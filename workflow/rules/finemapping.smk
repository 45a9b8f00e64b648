# Which credible set each allele is of, where the list of variants says it.
FINE_MAPPING = config["fine_mapping"]


rule fine_mapping:
    input:
        variants=VARIANTS,
        alleles=rules.prepare.output.alleles,
        content=content_of("fine_mapping", config["variants"]),
    output:
        f"{OUT}/parts/fine_mapping.parquet",
    log:
        f"{OUT}/logs/fine_mapping.log",
    conda:
        "../../envs/cpu.yaml"
    resources:
        **asks(to_go_through(tables=1)),
    params:
        # By a function, since a list's braces would be wildcards.
        headings=lambda wildcards: FINE_MAPPING,
        sha256=sha256(None if LISTED else config["variants"]),
    script:
        "../scripts/fine_mapping.py"
