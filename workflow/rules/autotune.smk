localrules:
    autotune_seed,


# For each bundle, so that a bundle that is added leaves the others as they are. The first job on a
# GPU benchmarks, for minutes at most; the next ones of that geometry find its seed.
rule setup:
    input:
        models=rules.resolve.output[0],
    output:
        # Beside it stand the seed archives: of this job's GPU, and later of others that jobs meet.
        f"{OUT}/autotune/{{bundle}}.json",
    log:
        f"{OUT}/logs/setup/{{bundle}}.log",
    conda:
        "../../envs/gpu.yaml"
    threads: 4
    resources:
        **asks(resources.WARMING, **GPU),
    params:
        how=HOW,
        batch_size=config["batch_size"],
        shuffles=0,
    script:
        "../scripts/setup.py"


# Apart from the others, with seeds of its own: drawing more alleles must not score all of them
# again, nor give scoring jobs a second set of choices to take.
use rule setup as setup_top with:
    input:
        models=rules.models.output.models,
    output:
        f"{OUT}/autotune/top/setup.json",
    log:
        f"{OUT}/logs/setup/top.log",
    priority: 1  # it compiles while another job has the GPU
    params:
        how=HOW,
        batch_size=config["batch_size"],
        shuffles=config["top"]["shuffles"],


# snakemake autotune_seed: make the seed that later runs start from.
rule autotune_seed:
    input:
        expand(rules.setup.output, bundle=BUNDLES),
    log:
        f"{OUT}/logs/autotune_seed.log",
    conda:
        "../../envs/cpu.yaml"
    resources:
        **asks(resources.LIGHT),
    params:
        seed=config["autotune"]["seed"],
    script:
        "../scripts/autotune_seed.py"
