localrules:
    provenance,


rule collect:
    input:
        alleles=rules.prepare.output.alleles,
        answers=parts("answers"),
        folds=parts("folds"),
        nulls=nulls("parquet"),
        regions=NULLS.get("regions") or [],
        models=rules.resolve.output[0],
        contigs=rules.reference.output.contigs,
    output:
        scores=f"{OUT}/scores.parquet",
        tsv=f"{OUT}/scores.tsv.gz",
        folds=f"{OUT}/folds.parquet",
        summary=f"{OUT}/summary.parquet",
        summary_tsv=f"{OUT}/summary.tsv.gz",
    log:
        f"{OUT}/logs/collect.log",
    conda:
        "../../envs/cpu.yaml"
    params:
        batches=len(BATCHES),
        nulls=NULLS,
        fdr=config["fdr"],
        how=HOW,
        version=SCORE_VERSION,
    script:
        "../scripts/collect.py"


rule annotate:
    input:
        variants=config["variants"],
        reference=rules.reference.output,
        summary=rules.collect.output.summary,
        scores=rules.collect.output.scores,
        models=rules.resolve.output[0],
    output:
        f"{OUT}/annotated.vcf.gz",
    log:
        f"{OUT}/logs/annotate.log",
    conda:
        "../../envs/cpu.yaml"
    params:
        experiments=config["info_experiments"],
    script:
        "../scripts/annotate.py"


rule provenance:
    input:
        contigs=rules.reference.output.contigs,
        prepared=rules.prepare.output.summary,
        models=rules.resolve.output[0],
        setup=rules.setup.output.work,
        jobs=parts("jobs"),
        nulls=nulls("json"),
        top=f"{OUT}/parts/top.json" if TOP else [],
        scores=rules.collect.output.scores,
    output:
        f"{OUT}/provenance.json",
    log:
        f"{OUT}/logs/provenance.log",
    conda:
        "../../envs/cpu.yaml"
    params:
        config=config,
    script:
        "../scripts/provenance.py"
