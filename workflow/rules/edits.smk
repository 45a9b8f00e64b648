# What changes do that nobody carries: every one of a region, and a list. They are scored as alleles
# are, in chunks of their own.


checkpoint plan_edits:
    input:
        regions=ancient(config["regions"] or []),
        edits=ancient(config["edits"] or []),
        reference=rules.reference.output,
        aliases=ALIASES,
        models=rules.models.output.models,
        content=content_of(
            "plan_edits", config["regions"], config["edits"], config["contig_aliases"]
        ),
    output:
        virtual=f"{OF_EDITS}/virtual.parquet",
        planned=f"{OF_EDITS}/planned.parquet",
        summary=f"{OF_EDITS}/summary.json",
    log:
        f"{OUT}/logs/plan_edits.log",
    conda:
        "../../envs/cpu.yaml"
    resources:
        **asks(resources.LIGHT),
    params:
        tile=config["tile"],
        chunk_size=config["chunk_size"],
        cut=lambda wildcards: asdict(cut()),
        sha256=sha256(config["regions"], config["edits"], config["contig_aliases"]),
    script:
        "../scripts/plan_edits.py"


use rule score as score_edits with:
    input:
        scoreable=ancient(rules.plan_edits.output.virtual),
        content=as_planned("edits"),
        bases=rules.reference.output.bases,
        contigs=rules.contig_hashes.output[0] if STORE else [],
        models=rules.resolve.output[0],
        setup=rules.setup.output[0],
    output:
        answers=f"{OF_EDITS}/answers/{{chunk}}.{{bundle}}.parquet",
        folds=f"{OF_EDITS}/folds/{{chunk}}.{{bundle}}.parquet",
        job=f"{OF_EDITS}/jobs/{{chunk}}.{{bundle}}.json",
    log:
        f"{OUT}/logs/score_edits/{{chunk}}.{{bundle}}.log",


rule edits:
    input:
        planned=rules.plan_edits.output.planned,
        bases=rules.reference.output.bases,
        answers=parts_besides("edits", "answers"),
        jobs=parts_besides("edits", "jobs"),
        models=rules.models.output.models,
    output:
        edits=table(f"{OUT}/edits.parquet"),
        figures=directory(f"{OUT}/saturation"),
        tracks=directory(f"{OUT}/saturation_tracks"),
    log:
        f"{OUT}/logs/edits.log",
    conda:
        "../../envs/cpu.yaml"
    resources:
        **asks(to_go_through(tables=len(EXPERIMENTS))),
    params:
        experiments=lambda wildcards: [one.name for one in EXPERIMENTS],
        partitioned=PARTITIONED,
        how=HOW,
    script:
        "../scripts/edits.py"
