# What the alleles of one chromosome do together. Which combinations there are is planned on a CPU;
# they are scored as alleles are, in chunks of their own; then each is held against its alleles.
HAPLOTYPES = config["haplotypes"]
of_haplotypes = f"{OUT}/parts/haplotypes"


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
        virtual=f"{of_haplotypes}/virtual.parquet",
        planned=f"{of_haplotypes}/planned.parquet",
        sampled=f"{of_haplotypes}/sampled.parquet",
        pairs=f"{of_haplotypes}/pairs.parquet",
        phasing=f"{OUT}/phasing.parquet",
        summary=f"{of_haplotypes}/summary.json",
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
        scoreable=rules.plan_haplotypes.output.virtual,
        bases=rules.reference.output.bases,
        models=rules.resolve.output[0],
        setup=rules.setup.output[0],
    output:
        answers=f"{of_haplotypes}/answers/{{chunk}}.{{bundle}}.parquet",
        folds=f"{of_haplotypes}/folds/{{chunk}}.{{bundle}}.parquet",
        job=f"{of_haplotypes}/jobs/{{chunk}}.{{bundle}}.json",
    log:
        f"{OUT}/logs/score_haplotypes/{{chunk}}.{{bundle}}.log",


def haplotype_parts(kind):
    """As `parts`, of the jobs that score haplotypes."""

    def of(wildcards):
        if not HAPLOTYPES:
            return []
        planned = atomic.read_json(checkpoints.plan_haplotypes.get().output.summary)
        say_once(planned["words"])
        return parts_of(of_haplotypes, kind, planned["chunks"])

    return of


rule haplotypes:
    input:
        planned=rules.plan_haplotypes.output.planned,
        sampled=rules.plan_haplotypes.output.sampled,
        pairs=rules.plan_haplotypes.output.pairs,
        alleles=rules.prepare.output.alleles,
        answers=haplotype_parts("answers"),
        jobs=haplotype_parts("jobs"),
        models=rules.models.output.models,
    output:
        haplotypes=table(f"{OUT}/haplotypes.parquet"),
        imbalance=table(f"{OUT}/imbalance.parquet"),
        of_alleles=f"{of_haplotypes}/alleles.parquet",
        shown=f"{of_haplotypes}/shown.json",
    log:
        f"{OUT}/logs/haplotypes.log",
    conda:
        "../../envs/cpu.yaml"
    resources:
        **asks(to_go_through(tables=len(EXPERIMENTS))),
    params:
        bundles=len(BUNDLES),
        experiments=lambda wildcards: [one.name for one in EXPERIMENTS],
        partitioned=PARTITIONED,
        how=HOW,
    script:
        "../scripts/haplotypes.py"
