"""The demo, run once for all tests that look at its results."""

import pytest

from project import DEMO, ROOT, Project

# What a user has who says nothing of it.
DEFAULT = ("--workflow-profile", str(ROOT / "workflow/profiles/default"))


@pytest.fixture(scope="session")
def demo(tmp_path_factory):
    """The demo with annotations, run once: its project, with what the run printed as `said`."""
    project = Project(tmp_path_factory.mktemp("demo"))
    project.genes = [("simA", 1000 * i, 1000 * i + 700, f"gene{i}") for i in range(8)]
    rows = [
        f'{contig}\tsim\tgene\t{start + 1}\t{end}\t.\t+\t.\tgene_id "{name}";\n'
        for contig, start, end, name in project.genes
    ]
    project.write("genes.gtf", "".join(rows))
    project.write("peaks.bed", "chrsimA\t2000\t9000\n")
    project.settings = {
        "chunk_size": 320,
        "models_per_job": 2,
        "annotations": "{genes: genes.gtf, peaks: peaks.bed}",
        "truth": f"{{planted: {{table: {DEMO / 'effects.tsv'}, effect: logfc, effect_allele: alt, "
        "label: changes, experiment: experiment, block: 5000}}",
    }
    project.said = project.run(*DEFAULT, **project.settings)
    return project
