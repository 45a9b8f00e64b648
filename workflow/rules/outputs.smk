localrules:
    provenance,


ANNOTATED = ANNOTATIONS or peaks_of(EXPERIMENTS)


rule nearby:
    input:
        **{kind: ancient(path) for kind, path in ANNOTATIONS.items()},
        alleles=rules.prepare.output.alleles,
        reference=rules.reference.output,
        aliases=ALIASES,
        peaks_of=ancient(list(peaks_of(EXPERIMENTS).values())),
        content=content_of(
            "nearby",
            *(ANNOTATIONS.get(kind) for kind in config["annotations"]),
            *peaks_of(EXPERIMENTS).values(),
            config["contig_aliases"],
        ),
    output:
        f"{OUT}/annotations.parquet",
    log:
        f"{OUT}/logs/nearby.log",
    conda:
        "../../envs/cpu.yaml"
    resources:
        **asks(to_go_through(tables=1)),
    params:
        files=ANNOTATIONS,
        peaks_of=peaks_of(EXPERIMENTS),
        sha256=sha256(
            *ANNOTATIONS.values(),
            *peaks_of(EXPERIMENTS).values(),
            config["contig_aliases"],
        ),
    script:
        "../scripts/nearby.py"


rule collect:
    input:
        alleles=rules.prepare.output.alleles,
        annotations=rules.nearby.output[0] if ANNOTATED else [],
        members=rules.fine_mapping.output[0] if FINE_MAPPING else [],
        answers=parts("answers"),
        folds=parts("folds"),
        jobs=parts("jobs"),
        stored=stored,
        nulls=nulls("parquet"),
        null_jobs=nulls("json"),
        regions=ancient(NULLS.get("regions") or []),
        peaks=ancient(list(peaks_of(EXPERIMENTS).values())),
        content=content_of(
            "collect", NULLS.get("regions"), *peaks_of(EXPERIMENTS).values()
        ),
        models=rules.models.output.models,
        experiments=rules.models.output.experiments,
        contigs=rules.reference.output.contigs,
    output:
        # Above so many experiments, folders with a file for each.
        scores=table(f"{OUT}/scores.parquet"),
        folds=table(f"{OUT}/folds.parquet"),
        biosamples=f"{OUT}/biosamples.parquet",
        summary=f"{OUT}/summary.parquet",
        summary_tsv=f"{OUT}/summary.tsv.gz",
    log:
        f"{OUT}/logs/collect.log",
    conda:
        "../../envs/cpu.yaml"
    resources:
        **asks(to_go_through(tables=len(EXPERIMENTS))),
    params:
        # By a function, since a list's braces would be wildcards.
        experiments=lambda wildcards: [one.name for one in EXPERIMENTS],
        partitioned=PARTITIONED,
        nulls=lambda wildcards: of_nulls(peaks_of(EXPERIMENTS), random_classes()),
        fdr=config["fdr"],
        how=HOW,
        sha256=sha256(NULLS.get("regions"), *peaks_of(EXPERIMENTS).values()),
    script:
        "../scripts/collect.py"


rule scores_tsv:
    input:
        rules.collect.output.scores,
    output:
        f"{OUT}/scores.tsv.gz",
    log:
        f"{OUT}/logs/scores_tsv.log",
    conda:
        "../../envs/cpu.yaml"
    resources:
        **asks(to_go_through(tables=len(EXPERIMENTS))),
    script:
        "../scripts/scores_tsv.py"


rule annotate:
    input:
        variants=VARIANTS,
        reference=rules.reference.output,
        aliases=ALIASES,
        content=content_of("annotate", config["variants"], config["contig_aliases"]),
        summary=rules.collect.output.summary,
        scores=rules.collect.output.scores,
        haplotypes=rules.haplotypes.output.of_alleles if HAPLOTYPES else [],
        models=rules.models.output.models,
    output:
        f"{OUT}/annotated.vcf.gz",
    log:
        f"{OUT}/logs/annotate.log",
    conda:
        "../../envs/cpu.yaml"
    resources:
        **asks(to_read("variants")),
    params:
        experiments=config["info_experiments"],
        positions=config["positions"],
        sha256=sha256(None if LISTED else config["variants"], config["contig_aliases"]),
    script:
        "../scripts/annotate.py"


rule provenance:
    input:
        contigs=rules.reference.output.contigs,
        prepared=rules.prepare.output.summary,
        models=rules.models.output.models,
        setup=setups,
        jobs=parts("jobs"),
        haplotypes=parts_besides("haplotypes", "jobs"),
        edits=parts_besides("edits", "jobs"),
        background=parts_besides("background", "jobs"),
        stored=stored,
        nulls=nulls("json"),
        pairs=nulls_of_pairs("json"),
        top=f"{OUT}/parts/top.json" if TOP else [],
        scores=rules.collect.output.scores,
        summary=rules.collect.output.summary,
        text=tsv_of_scores,
    output:
        record=f"{OUT}/provenance.json",
        closing=f"{OUT}/closing.txt",  # the words that a run ends with
    log:
        f"{OUT}/logs/provenance.log",
    conda:
        "../../envs/cpu.yaml"
    resources:
        **asks(resources.LIGHT),
    params:
        config=config,
    script:
        "../scripts/provenance.py"
