localrules:
    autotune_seed,


rule setup:
    input:
        models=expand(rules.inspect.output, batch=BATCHES),
    output:
        # Beside it stand the seed archives: of this job's GPU, and later of others that jobs meet.
        work=f"{OUT}/autotune/setup.json",
    log:
        f"{OUT}/logs/setup.log",
    conda:
        "../../envs/gpu.yaml"
    threads: 4
    resources:
        gpu=GPU,
    params:
        autotune={**config["autotune"], "device": config["device"]},
        batch_size=config["batch_size"],
        precision=config["precision"],
        engine=config["engine"],
        top=config["top"],
    script:
        "../scripts/setup.py"


# snakemake autotune_seed: make the seed that later runs start from.
rule autotune_seed:
    input:
        work=rules.setup.output.work,
    log:
        f"{OUT}/logs/autotune_seed.log",
    conda:
        "../../envs/cpu.yaml"
    params:
        seed=config["autotune"]["seed"],
    script:
        "../scripts/autotune_seed.py"
