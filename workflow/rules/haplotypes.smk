# What the alleles of one chromosome do together. Which combinations there are is planned on a CPU;
# they are scored as alleles are, in chunks of their own; then each is held against its alleles.


checkpoint plan_haplotypes:
    input:
        variants=VARIANTS,
        samples=ancient(SAMPLES_FILE or []),
        alleles=rules.prepare.output.alleles,
        scoreable=rules.prepare.output.scoreable,
        reference=rules.reference.output,
        models=rules.models.output.models,
        regions=ancient(NULLS.get("regions") or []),
        content=content_of(
            "plan_haplotypes", config["variants"], SAMPLES_FILE, NULLS.get("regions")
        ),
    output:
        virtual=f"{OF_HAPLOTYPES}/virtual.parquet",
        planned=f"{OF_HAPLOTYPES}/planned.parquet",
        sampled=f"{OF_HAPLOTYPES}/sampled.parquet",
        pairs=f"{OF_HAPLOTYPES}/pairs.parquet",
        phasing=f"{OUT}/phasing.parquet",
        summary=f"{OF_HAPLOTYPES}/summary.json",
    log:
        f"{OUT}/logs/plan_haplotypes.log",
    conda:
        "../../envs/cpu.yaml"
    resources:
        **asks(to_go_through(tables=1)),
    params:
        samples=lambda wildcards: SAMPLES,
        max_haplotypes=config["max_haplotypes"],
        chunk_size=config["chunk_size"],
        cut=lambda wildcards: asdict(cut()),
        nulls=lambda wildcards: of_nulls({}),
        sha256=sha256(config["variants"], SAMPLES_FILE, NULLS.get("regions")),
    script:
        "../scripts/plan_haplotypes.py"


use rule score as score_haplotypes with:
    input:
        scoreable=ancient(rules.plan_haplotypes.output.virtual),
        content=as_planned("haplotypes"),
        bases=rules.reference.output.bases,
        models=rules.resolve.output[0],
        setup=rules.setup.output[0],
    output:
        answers=f"{OF_HAPLOTYPES}/answers/{{chunk}}.{{bundle}}.parquet",
        folds=f"{OF_HAPLOTYPES}/folds/{{chunk}}.{{bundle}}.parquet",
        job=f"{OF_HAPLOTYPES}/jobs/{{chunk}}.{{bundle}}.json",
    log:
        f"{OUT}/logs/score_haplotypes/{{chunk}}.{{bundle}}.log",


rule haplotypes:
    input:
        planned=rules.plan_haplotypes.output.planned,
        sampled=rules.plan_haplotypes.output.sampled,
        pairs=rules.plan_haplotypes.output.pairs,
        alleles=rules.prepare.output.alleles,
        answers=parts_besides("haplotypes", "answers"),
        jobs=parts_besides("haplotypes", "jobs"),
        models=rules.models.output.models,
    output:
        haplotypes=table(f"{OUT}/haplotypes.parquet"),
        imbalance=table(f"{OUT}/imbalance.parquet"),
        of_alleles=f"{OF_HAPLOTYPES}/alleles.parquet",
        shown=f"{OF_HAPLOTYPES}/shown.json",
    log:
        f"{OUT}/logs/haplotypes.log",
    conda:
        "../../envs/cpu.yaml"
    resources:
        **asks(to_go_through(tables=len(EXPERIMENTS))),
    params:
        experiments=lambda wildcards: [one.name for one in EXPERIMENTS],
        partitioned=PARTITIONED,
        how=HOW,
    script:
        "../scripts/haplotypes.py"
