# What the alleles do on the chromosomes of one person. What is to be scored there is planned on a CPU;
# it is scored as alleles are, in chunks of its own; then it stands beside the scores on the reference.


checkpoint plan_background:
    input:
        alleles=rules.prepare.output.alleles,
        scoreable=rules.prepare.output.scoreable,
        person=ancient(BACKGROUND or []),
        reference=rules.reference.output,
        aliases=ALIASES,
        models=rules.models.output.models,
        content=content_of("plan_background", BACKGROUND, config["contig_aliases"]),
    output:
        virtual=f"{OF_BACKGROUND}/virtual.parquet",
        planned=f"{OF_BACKGROUND}/planned.parquet",
        summary=f"{OF_BACKGROUND}/summary.json",
    log:
        f"{OUT}/logs/plan_background.log",
    conda:
        "../../envs/cpu.yaml"
    resources:
        # Measured are 3 GB a million alleles, where the person carries as many.
        **asks(lambda wildcards, input: resources.rows(3 * known("alleles"), 3)),
    params:
        sample=config["background"].get("sample"),
        chunk_size=config["chunk_size"],
        cut=lambda wildcards: asdict(cut()),
        judged={
            key: config[key]
            for key in ("max_allele_length", "max_ref_mismatch", "malformed_rows")
        },
        sha256=sha256(BACKGROUND, config["contig_aliases"]),
    script:
        "../scripts/plan_background.py"


use rule score as score_background with:
    input:
        scoreable=ancient(rules.plan_background.output.virtual),
        content=as_planned("background"),
        bases=rules.reference.output.bases,
        contigs=rules.contig_hashes.output[0] if STORE else [],
        models=rules.resolve.output[0],
        setup=rules.setup.output[0],
    output:
        answers=f"{OF_BACKGROUND}/answers/{{chunk}}.{{bundle}}.parquet",
        folds=f"{OF_BACKGROUND}/folds/{{chunk}}.{{bundle}}.parquet",
        job=f"{OF_BACKGROUND}/jobs/{{chunk}}.{{bundle}}.json",
    log:
        f"{OUT}/logs/score_background/{{chunk}}.{{bundle}}.log",


rule background:
    input:
        planned=rules.plan_background.output.planned,
        scores=rules.collect.output.scores,
        answers=parts_besides("background", "answers"),
        jobs=parts_besides("background", "jobs"),
        models=rules.models.output.models,
    output:
        personal=table(f"{OUT}/personal.parquet"),
        shown=f"{OF_BACKGROUND}/shown.json",
    log:
        f"{OUT}/logs/background.log",
    conda:
        "../../envs/cpu.yaml"
    resources:
        **asks(to_go_through(tables=len(EXPERIMENTS))),
    params:
        experiments=lambda wildcards: [one.name for one in EXPERIMENTS],
        partitioned=PARTITIONED,
        how=HOW,
    script:
        "../scripts/background.py"
