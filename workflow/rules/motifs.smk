# Which motif an allele gains or loses. Scanning needs no model, and comes before the figures, in
# which motifs are drawn; verdicts need the attributions that come with these.
MOTIFS = config["motifs"]
OF_ALL = MOTIFS["alleles"] == "all"
LOOKED_FOR = bool(MOTIFS["set"] and (OF_ALL or TOP))


rule motif_hits:
    input:
        motifs=ancient(MOTIF_FILE or []),
        summary=[] if OF_ALL else rules.collect.output.summary,
        scoreable=rules.prepare.output.scoreable,
        bases=rules.reference.output.bases,
        regions=ancient(NULLS.get("regions") or []),
        content=content_of("motif_hits", MOTIFS["set"], NULLS.get("regions")),
    output:
        f"{OUT}/parts/motif_hits.parquet",
    log:
        f"{OUT}/logs/motif_hits.log",
    conda:
        "../../envs/cpu.yaml"
    threads: 2
    resources:
        # Ten minutes for a million alleles: what thousands of motifs take.
        **asks(to_go_through(tables=10)),
    params:
        motifs=lambda wildcards: MOTIFS["set"],
        top=TOP,
        nulls=NULLS and {key: NULLS[key] for key in ("seed", "scheme", "regions")},
        sha256=sha256(MOTIF_FILE, NULLS.get("regions")),
    script:
        "../scripts/motif_hits.py"


rule motifs:
    input:
        summary=rules.collect.output.summary,
        hits=rules.motif_hits.output[0],
        attributions=f"{OUT}/attributions.parquet" if TOP else [],
    output:
        f"{OUT}/motifs.parquet",
    log:
        f"{OUT}/logs/motifs.log",
    conda:
        "../../envs/cpu.yaml"
    resources:
        **asks(to_go_through(tables=1)),
    script:
        "../scripts/motifs.py"


# One sentence on each of the largest effects.
rule words:
    input:
        summary=rules.collect.output.summary,
        scores=rules.collect.output.scores,
        motifs=rules.motifs.output[0] if LOOKED_FOR else [],
    output:
        f"{OUT}/words.parquet",
    log:
        f"{OUT}/logs/words.log",
    conda:
        "../../envs/cpu.yaml"
    resources:
        **asks(to_go_through(tables=1)),
    params:
        top=TOP,
    script:
        "../scripts/words.py"
