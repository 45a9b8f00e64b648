"""Draw the run as one page."""

from pathlib import Path

from veff import autotune, job, report, sums
from veff.inputs.identity import Input
from veff.inputs.reference import Reference

with job.logged(snakemake.log[0], snakemake.resources.attempt):
    autotune.enable()
    files = snakemake.input
    given = Input.all(snakemake.params.sha256)
    aliases = given[files.aliases] if files.aliases else None
    tables = (files.alleles, files.summary, files.scores, files.folds, files.biosamples)
    sums.check(*tables, *files.nulls, *([files.profiles, files.words] if files.profiles else []))
    report.build(
        Path(snakemake.output[0]),
        alleles=Path(files.alleles),
        summary=Path(files.summary),
        scores=Path(files.scores),
        folds=Path(files.folds),
        biosamples=Path(files.biosamples),
        provenance=Path(files.provenance),
        experiments=Path(files.experiments),
        reference=Reference.open(Path(files.reference[0]).parent, aliases),
        nulls=map(Path, files.nulls),
        figures=sorted(Path(files.top).glob("*.png")) if files.top else (),
        profiles=Path(files.profiles) if files.profiles else None,
        words=Path(files.words) if files.words else None,
        genes=given[files.genes] if files.genes else None,
        peaks=given[files.peaks] if files.peaks else None,
        peaks_of={name: given[path] for name, path in snakemake.params.peaks_of.items()},
        evaluation=Path(files.evaluation) if files.evaluation else None,
        haplotypes=Path(files.haplotypes) if files.haplotypes else None,
        personal=Path(files.personal) if files.personal else None,
    )
