rule score:
    input:
        scoreable=rules.prepare.output.scoreable,
        bases=rules.reference.output.bases,
        models=rules.resolve.output[0],
        setup=rules.setup.output[0],
    output:
        answers=f"{OUT}/parts/answers/{{chunk}}.{{batch}}.parquet",
        folds=f"{OUT}/parts/folds/{{chunk}}.{{batch}}.parquet",
        job=f"{OUT}/parts/jobs/{{chunk}}.{{batch}}.json",
    log:
        f"{OUT}/logs/score/{{chunk}}.{{batch}}.log",
    conda:
        "../../envs/gpu.yaml"
    threads: 1
    resources:
        **GPU,
    params:
        on=ON,
        how={**HOW, "engine": config["engine"]},
        version=SCORE_VERSION,
    script:
        "../scripts/score.py"


rule null:
    input:
        bases=rules.reference.output.bases,
        regions=NULLS.get("regions") or [],
        peaks=lambda wildcards: list(peaks_of(BATCHES[wildcards.batch]).values()),
        models=rules.resolve.output[0],
        setup=rules.setup.output[0],
    output:
        nulls=f"{OUT}/parts/nulls/{{batch}}.parquet",
        job=f"{OUT}/parts/nulls/{{batch}}.json",
    log:
        f"{OUT}/logs/null/{{batch}}.log",
    conda:
        "../../envs/gpu.yaml"
    threads: 1
    resources:
        **GPU,
    params:
        on=ON,
        nulls=lambda wildcards: NULLS | {"peaks": peaks_of(BATCHES[wildcards.batch])},
        folder=NULLS.get("dir") or f"{OUT}/nulls",
        how=HOW,
        engine=config["engine"],
        version=SCORE_VERSION,
    script:
        "../scripts/null.py"
