rule score:
    input:
        scoreable=rules.prepare.output.scoreable,
        bases=rules.reference.output.bases,
        checkpoints=checkpoint_files,
        # Made anew when the sheet changes, but what they say of this batch stays the same.
        models=ancient(rules.resolve.output[0]),
        setup=ancient(rules.setup.output.work),
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
        gpu=GPU,
    params:
        experiments=lambda wildcards: [
            one.name for one in BATCHES[int(wildcards.batch)]
        ],
        autotune={**config["autotune"], "device": config["device"]},
        how={**HOW, "engine": config["engine"]},
        version=SCORE_VERSION,
    script:
        "../scripts/score.py"


rule null:
    input:
        bases=rules.reference.output.bases,
        regions=NULLS.get("regions") or [],
        checkpoints=checkpoint_files,
        models=ancient(rules.resolve.output[0]),
        setup=ancient(rules.setup.output.work),
    output:
        nulls=f"{OUT}/parts/nulls/{{batch}}.parquet",
        job=f"{OUT}/parts/nulls/{{batch}}.json",
    log:
        f"{OUT}/logs/null/{{batch}}.log",
    conda:
        "../../envs/gpu.yaml"
    threads: 1
    resources:
        gpu=GPU,
    params:
        experiments=lambda wildcards: [
            one.name for one in BATCHES[int(wildcards.batch)]
        ],
        autotune={**config["autotune"], "device": config["device"]},
        nulls=NULLS,
        folder=NULLS.get("dir") or f"{OUT}/nulls",
        how=HOW,
        engine=config["engine"],
        version=SCORE_VERSION,
    script:
        "../scripts/null.py"
