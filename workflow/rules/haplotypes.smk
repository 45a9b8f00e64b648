# What the alleles of one chromosome do together. Which combinations there are is planned on a CPU;
# they are scored as alleles are, in chunks of their own; then each is held against its alleles, and
# against pairs of random SNVs, which are a null like others.


checkpoint plan_haplotypes:
    input:
        variants=VARIANTS,
        samples=ancient(SAMPLES_FILE or []),
        alleles=rules.prepare.output.alleles,
        scoreable=rules.prepare.output.scoreable,
        reference=rules.reference.output,
        models=rules.models.output.models,
        content=content_of("plan_haplotypes", config["variants"], SAMPLES_FILE),
    output:
        virtual=f"{OF_HAPLOTYPES}/virtual.parquet",
        planned=f"{OF_HAPLOTYPES}/planned.parquet",
        sampled=f"{OF_HAPLOTYPES}/sampled.parquet",
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
        sha256=sha256(config["variants"], SAMPLES_FILE),
    script:
        "../scripts/plan_haplotypes.py"


use rule score as score_haplotypes with:
    input:
        scoreable=ancient(rules.plan_haplotypes.output.virtual),
        content=as_planned("haplotypes"),
        bases=rules.reference.output.bases,
        contigs=rules.contig_hashes.output[0] if STORE else [],
        models=rules.resolve.output[0],
        setup=rules.setup.output[0],
    output:
        answers=f"{OF_HAPLOTYPES}/answers/{{chunk}}.{{bundle}}.parquet",
        folds=f"{OF_HAPLOTYPES}/folds/{{chunk}}.{{bundle}}.parquet",
        job=f"{OF_HAPLOTYPES}/jobs/{{chunk}}.{{bundle}}.json",
    log:
        f"{OUT}/logs/score_haplotypes/{{chunk}}.{{bundle}}.log",


use rule null as null_of_pairs with:
    input:
        bases=rules.reference.output.bases,
        regions=ancient(NULLS.get("regions") or []),
        content=content_of("null_of_pairs.{bundle}", NULLS.get("regions")),
        models=rules.resolve.output[0],
        setup=rules.setup.output[0],
    output:
        nulls=f"{OF_HAPLOTYPES}/pairs/{{bundle}}.parquet",
        job=f"{OF_HAPLOTYPES}/pairs/{{bundle}}.json",
    log:
        f"{OUT}/logs/null_of_pairs/{{bundle}}.log",
    resources:
        **asks(to_predict(lambda: plan.A_PAIR * random_snvs()), **GPU, cpus_per_task=2),
    params:
        nulls=lambda wildcards: of_nulls({}, ["snv_pair"]),
        sha256=sha256(NULLS.get("regions")),


rule haplotypes:
    input:
        planned=rules.plan_haplotypes.output.planned,
        sampled=rules.plan_haplotypes.output.sampled,
        alleles=rules.prepare.output.alleles,
        answers=parts_besides("haplotypes", "answers"),
        jobs=parts_besides("haplotypes", "jobs"),
        nulls=nulls("parquet"),
        null_jobs=nulls("json"),
        pairs=nulls_of_pairs("parquet"),
        pair_jobs=nulls_of_pairs("json"),
        models=rules.models.output.models,
        contigs=rules.reference.output.contigs,
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
        nulls=lambda wildcards: of_nulls(
            peaks_of(EXPERIMENTS), [*random_classes(), "snv_pair"]
        ),
        how=HOW,
        sha256=sha256(NULLS.get("regions"), *peaks_of(EXPERIMENTS).values()),
    script:
        "../scripts/haplotypes.py"
