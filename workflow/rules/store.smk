# What was scored before, by whichever run: the store that the configuration names.
localrules:
    store_lookup,
    store_export,


rule contig_hashes:
    input:
        bases=rules.reference.output.bases,
    output:
        f"{OUT}/reference/contig_hashes.json",
    log:
        f"{OUT}/logs/contig_hashes.log",
    conda:
        "../../envs/cpu.yaml"
    resources:
        **asks(to_read("reference")),
    script:
        "../scripts/contig_hashes.py"


if STORE:

    checkpoint stored:
        input:
            scoreable=rules.prepare.output.scoreable,
            contigs=rules.contig_hashes.output[0],
            # Those that `resolve` may refuse too: a bad model stops its own bundle alone.
            inspected=rules.inspect.output[0],
        output:
            to_score=f"{OUT}/prepared/to_score/{{bundle}}.parquet",
            answers=f"{OUT}/parts/answers/stored.{{bundle}}.parquet",
            folds=f"{OUT}/parts/folds/stored.{{bundle}}.parquet",
            record=f"{OUT}/parts/stored/{{bundle}}.json",
        log:
            f"{OUT}/logs/stored/{{bundle}}.log",
        conda:
            "../../envs/gpu.yaml"  # the libraries of the scoring jobs, which decide the bits
        resources:
            **asks(to_go_through(tables=len(EXPERIMENTS))),
        params:
            how=HOW,
            on_gpu=lambda wildcards: cut().gpu,
        script:
            "../scripts/stored.py"


# snakemake store_lookup: answer from the store alone, with neither a GPU nor a forward pass.
rule store_lookup:
    input:
        alleles=rules.prepare.output.alleles,
        scoreable=rules.prepare.output.scoreable,
        contigs=rules.contig_hashes.output[0],
        inspected=expand(rules.inspect.output, bundle=BUNDLES),
    output:
        found=f"{OUT}/store_lookup.tsv.gz",
        missing=f"{OUT}/store_missing.tsv.gz",
    log:
        f"{OUT}/logs/store_lookup.log",
    conda:
        "../../envs/gpu.yaml"
    resources:
        **asks(to_go_through(tables=len(EXPERIMENTS))),
    params:
        how=HOW,
        on_gpu=lambda wildcards: cut().gpu,
    script:
        "../scripts/store_lookup.py"


# snakemake store_export: all that the store has of the sheet's models, as it would be published.
rule store_export:
    input:
        bases=rules.reference.output.bases,
        contigs=rules.contig_hashes.output[0],
        inspected=expand(rules.inspect.output, bundle=BUNDLES),
    output:
        tsv=f"{OUT}/store.tsv.gz",
        vcf=f"{OUT}/store.vcf.gz",
    log:
        f"{OUT}/logs/store_export.log",
    conda:
        "../../envs/gpu.yaml"
    resources:
        **asks(to_go_through(tables=len(EXPERIMENTS))),
    params:
        how=HOW,
        on_gpu=lambda wildcards: cut().gpu,
    script:
        "../scripts/store_export.py"
