rule top:
    input:
        summary=rules.collect.output.summary,
        scoreable=rules.prepare.output.scoreable,
        bases=rules.reference.output.bases,
        models=rules.models.output.models,
        setup=rules.setup_top.output[0],
        hits=rules.motif_hits.output[0] if LOOKED_FOR else [],
        motifs=ancient(MOTIF_FILE or []),
    output:
        figures=report(
            directory(f"{OUT}/top"),
            patterns=["{allele}.svg"],
            caption="../report/top.rst",
            category="Top alleles",
            labels={"allele": "{allele}"},
        ),
        tracks=directory(f"{OUT}/tracks"),
        profiles=f"{OUT}/profiles.parquet",
        attributions=f"{OUT}/attributions.parquet",
        job=f"{OUT}/parts/top.json",
    log:
        f"{OUT}/logs/top.log",
    conda:
        "../../envs/gpu.yaml"
    threads: 4
    resources:
        **asks(resources.WARMING, **GPU),
    params:
        how=HOW,
        top=config["top"],
        motifs=lambda wildcards: MOTIFS["set"] if LOOKED_FOR else None,
        sha256=sha256(MOTIF_FILE),
    script:
        "../scripts/top.py"


# The files that an allele's page shows the surroundings from.
SHOWN_AROUND = [ANNOTATIONS.get(kind) for kind in ("genes", "peaks")]
SHOWN_AROUND += peaks_of(EXPERIMENTS).values()


rule report:
    input:
        alleles=rules.prepare.output.alleles,
        summary=rules.collect.output.summary,
        scores=rules.collect.output.scores,
        folds=rules.collect.output.folds,
        biosamples=rules.collect.output.biosamples,
        nulls=nulls("parquet"),
        provenance=f"{OUT}/provenance.json",
        experiments=rules.models.output.experiments,
        reference=rules.reference.output,
        aliases=ALIASES,
        content=content_of("report", config["contig_aliases"], *SHOWN_AROUND),
        top=rules.top.output.figures if TOP else [],
        words=rules.words.output[0] if TOP else [],
        profiles=rules.top.output.profiles if TOP else [],
        genes=ancient(ANNOTATIONS.get("genes", [])),
        peaks=ancient(ANNOTATIONS.get("peaks", [])),
        peaks_of=ancient(list(peaks_of(EXPERIMENTS).values())),
        evaluation=rules.evaluate.output.shown if TRUTH else [],
        haplotypes=rules.haplotypes.output.shown if HAPLOTYPES else [],
        personal=rules.background.output.shown if BACKGROUND else [],
    output:
        report(
            f"{OUT}/report.html",
            caption="../report/report.rst",
            category="Results",
            labels={"what": "all results at a glance"},
        ),
    log:
        f"{OUT}/logs/report.log",
    conda:
        "../../envs/cpu.yaml"
    resources:
        **asks(to_go_through(tables=len(EXPERIMENTS))),
    params:
        peaks_of=peaks_of(EXPERIMENTS),
        sha256=sha256(config["contig_aliases"], *SHOWN_AROUND),
    script:
        "../scripts/report.py"
