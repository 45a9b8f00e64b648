"""Compare the run's scores with measured effects."""

from pathlib import Path

from veff import autotune, job, sums
from veff.evaluation import evaluate
from veff.evaluation.truth import Truth
from veff.inputs.identity import Input
from veff.inputs.reference import Reference

with job.logged(snakemake.log[0], snakemake.resources.attempt):
    autotune.enable()
    params, files, output = snakemake.params, snakemake.input, snakemake.output
    given = Input.all(params.sha256)
    aliases = given[files.aliases] if files.aliases else None
    sums.check(files.alleles, files.scores, files.folds)
    evaluate.evaluate(
        {
            name: Truth(**settings | {"table": given[settings["table"]]})
            for name, settings in params.truth.items()
        },
        Reference.open(Path(files.reference[0]).parent, aliases),
        alleles=Path(files.alleles),
        scores=Path(files.scores),
        folds=Path(files.folds),
        max_allele_length=params.max_allele_length,
        out=Path(output.table),
        aligned=Path(output.aligned),
        shown=Path(output.shown),
    )
