rule score:
    input:
        scoreable=rules.prepare.output.scoreable,
        reference=rules.reference.output,
        checkpoints=checkpoint_files,
        # Made again for each run, but what they say of this batch stays the same.
        models=ancient(rules.resolve.output[0]),
        setup=ancient(rules.setup.output.work),
    output:
        answers=f"{OUT}/parts/answers/{{chunk}}.{{batch}}.parquet",
        folds=f"{OUT}/parts/folds/{{chunk}}.{{batch}}.parquet",
        job=f"{OUT}/parts/jobs/{{chunk}}.{{batch}}.json",
    params:
        experiments=lambda wildcards: [one.name for one in BATCHES[int(wildcards.batch)]],
        device=config["device"],
        autotune=config["autotune"],
    log:
        f"{OUT}/logs/score/{{chunk}}.{{batch}}.log",
    conda:
        "../../envs/gpu.yaml"
    threads: 1
    resources:
        gpu=GPU,
    script:
        "../scripts/score.py"
