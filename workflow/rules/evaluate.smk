TRUTH = config["truth"]
TRUTH_TABLES = [one["table"] for one in TRUTH.values()]


rule evaluate:
    input:
        tables=ancient(TRUTH_TABLES),
        alleles=rules.prepare.output.alleles,
        scores=rules.collect.output.scores,
        folds=rules.collect.output.folds,
        reference=rules.reference.output,
        aliases=ALIASES,
        content=content_of("evaluate", *TRUTH_TABLES, config["contig_aliases"]),
    output:
        table=f"{OUT}/evaluation.tsv",
        aligned=f"{OUT}/evaluation.parquet",
        shown=f"{OUT}/parts/evaluation.json",
    log:
        f"{OUT}/logs/evaluate.log",
    conda:
        "../../envs/cpu.yaml"
    resources:
        **asks(to_go_through(tables=len(EXPERIMENTS))),
    params:
        truth=TRUTH,
        max_allele_length=config["max_allele_length"],
        sha256=sha256(*TRUTH_TABLES, config["contig_aliases"]),
    script:
        "../scripts/evaluate.py"
