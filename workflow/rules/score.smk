rule score:
    input:
        scoreable=(
            rules.stored.output.to_score if STORE else rules.prepare.output.scoreable
        ),
        bases=rules.reference.output.bases,
        contigs=rules.contig_hashes.output[0] if STORE else [],
        models=rules.resolve.output[0],
        setup=rules.setup.output[0],
    output:
        answers=f"{OUT}/parts/answers/{{chunk}}.{{bundle}}.parquet",
        folds=f"{OUT}/parts/folds/{{chunk}}.{{bundle}}.parquet",
        job=f"{OUT}/parts/jobs/{{chunk}}.{{bundle}}.json",
    log:
        f"{OUT}/logs/score/{{chunk}}.{{bundle}}.log",
    conda:
        "../../envs/gpu.yaml"
    threads: 1
    resources:
        **asks(to_predict(in_a_chunk), **GPU, cpus_per_task=2),
    params:
        how=HOW,
    script:
        "../scripts/score.py"


rule null:
    input:
        bases=rules.reference.output.bases,
        regions=ancient(NULLS.get("regions") or []),
        peaks=lambda wildcards: ancient(peaks_of_bundle(wildcards)),
        content=content_of(
            "null.{bundle}", NULLS.get("regions"), peaks_of_bundle, random_classes
        ),
        models=rules.resolve.output[0],
        setup=rules.setup.output[0],
    output:
        nulls=f"{OUT}/parts/nulls/{{bundle}}.parquet",
        job=f"{OUT}/parts/nulls/{{bundle}}.json",
    log:
        f"{OUT}/logs/null/{{bundle}}.log",
    conda:
        "../../envs/gpu.yaml"
    threads: 1
    resources:
        **asks(to_predict(random_alleles), **GPU, cpus_per_task=2),
    params:
        how=HOW,
        nulls=lambda wildcards: of_nulls(
            peaks_of(BUNDLES[wildcards.bundle]), random_classes()
        ),
        folder=NULLS.get("dir") or f"{OUT}/nulls",
        sha256=lambda wildcards: sha256(
            NULLS.get("regions"), *peaks_of_bundle(wildcards)
        )(wildcards),
    script:
        "../scripts/null.py"
