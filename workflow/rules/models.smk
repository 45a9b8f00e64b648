# The sheet's models, bundle by bundle: a bundle is the models that one job scores. Its name is a
# hash of its content, so that a later sheet with more experiments leaves it as it is.
localrules:
    download,
    resolve,
    models,


# Where the network is: on the machine that Snakemake was started on, never in a GPU job.
rule download:
    input:
        claimed=claimed,
    output:
        f"{OUT}/models/{{bundle}}/downloads.json",
    log:
        f"{OUT}/logs/models/{{bundle}}.download.log",
    conda:
        "../../envs/cpu.yaml"
    resources:
        **asks(resources.LIGHT),
        downloads=1,
    params:
        files=lambda wildcards: from_hub(wildcards.bundle),
        revision=config["catv1_revision"],
    script:
        "../scripts/download.py"


# Reads each checkpoint once, however often it is then accepted or refused for another reason.
rule inspect:
    input:
        checkpoints=lambda wildcards: ancient(checkpoint_files(wildcards)),
        content=content_of("inspect.{bundle}", checkpoint_files),
        downloads=downloads,
    output:
        f"{OUT}/models/{{bundle}}/inspected.json",
    log:
        f"{OUT}/logs/models/{{bundle}}.inspect.log",
    conda:
        "../../envs/cpu.yaml"
    resources:
        **asks(resources.LIGHT),
    params:
        experiments=lambda wildcards: [
            one.predicting for one in BUNDLES[wildcards.bundle]
        ],
        sha256=lambda wildcards: sha256(*checkpoint_files(wildcards))(wildcards),
    script:
        "../scripts/inspect_models.py"


# Fails over a checkpoint that cannot be used, and with it the scoring jobs of its bundle alone.
rule resolve:
    input:
        inspected=rules.inspect.output[0],
        contigs=rules.reference.output.contigs,
    output:
        f"{OUT}/models/{{bundle}}/models.json",
    log:
        f"{OUT}/logs/models/{{bundle}}.resolve.log",
    conda:
        "../../envs/cpu.yaml"
    resources:
        **asks(resources.LIGHT),
    params:
        max_allele_length=config["max_allele_length"],
        assemblies=lambda wildcards: {
            one.name: None if config["allow_assembly_mismatch"] else one.assembly
            for one in BUNDLES[wildcards.bundle]
        },
    script:
        "../scripts/resolve.py"


rule models:
    input:
        expand(rules.resolve.output, bundle=BUNDLES),
    output:
        models=f"{OUT}/models.json",
        experiments=f"{OUT}/experiments.tsv",
    log:
        f"{OUT}/logs/models.log",
    conda:
        "../../envs/cpu.yaml"
    resources:
        **asks(resources.LIGHT),
    params:
        experiments=[asdict(one) for one in EXPERIMENTS],
    script:
        "../scripts/models.py"
