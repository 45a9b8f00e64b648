"""A partition with two GPU models: a seed for each, and a run that is held to one of them."""

import pytest

from cluster.runs import CHUNKS
from cluster.slurm import Slurm
from veff.autotune import seeds

pytestmark = pytest.mark.slow

MODELS = {"n1": "NVIDIA H200", "n2": "NVIDIA H100"}


def test_each_gpu_model_has_its_seed_and_a_run_can_be_held_to_one(whole, tmp_path):
    chunks = [0, 3, 6, 9]
    run = whole.copy(tmp_path / "run", chunks)
    with Slurm(models=("h200", "h100")) as cluster:
        run.finish(run.start(cluster, target="out/provenance.json"))
        tuned = [run.reports[chunk] for chunk in chunks]
        assert {one["device"] for one in tuned} == set(MODELS.values())
        assert all(one["device"] == MODELS[one["host"]] for one in tuned)
        on_h100 = [one["autotune"]["node"] for one in tuned if one["device"] == "NVIDIA H100"]
        assert sorted(on_h100) == ["benchmarked", *["warm"] * (len(on_h100) - 1)]
        made_for = [seeds.Seed(p).fingerprint["GPU"] for p in run.out.glob("autotune/*.tar")]
        assert sorted(made_for) == sorted(MODELS.values())
        n = {"NVIDIA H100": len(on_h100), "NVIDIA H200": CHUNKS - len(on_h100)}
        said = ", ".join(f"{name} ({jobs} jobs)" for name, jobs in n.items())
        assert f"scored on {said}: " in run.said
        assert run.tables == whole.tables

        (setup,) = run.out.glob("autotune/*.json")
        setup.unlink()
        held = {"target": str(setup.relative_to(run.folder)), "gpu_model": "h100"}
        run.finish(run.start(cluster, **held))
        assert '"gpu": "NVIDIA H100"' in setup.read_text()

        # A scheduler that does not know of models gives another one.
        setup.unlink()
        other = ["--set-resources", "setup:gpu_model=h200", "--retries=0"]
        process = run.start(cluster, *other, **held)
        assert process.wait(300) != 0
        assert "gpu_model is h100, but the GPU of this job is NVIDIA H200: have the" in run.said
