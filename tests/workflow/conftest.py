"""The demo, run once for all tests that look at its results."""

import pytest

from project import Project


@pytest.fixture(scope="session")
def demo(tmp_path_factory):
    """The demo, run once as shipped: its project, with what the run printed as `said`."""
    project = Project(tmp_path_factory.mktemp("demo"))
    project.said = project.run(chunk_size=160, models_per_job=2)
    return project
