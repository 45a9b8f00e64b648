"""What the autotune cache does on a GPU; `tests/unit/test_autotune_standin.py` has the rest.

Two nodes (folders) are benchmarked, each by its own process as on a cold start; about two minutes.
"""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from veff.autotune import seeds

TESTS = Path(__file__).parents[1]
WORKFLOW = TESTS.parent / "workflow"
WORK = {
    "task": "score",
    "n_filters": 128,
    "n_layers": 9,
    "expansion": 2,
    "signal_groups": [1],
    "n_control_tracks": 0,
    "input_length": 2114,
    "output_length": 1000,
    "precision": "fp32",
    "engine": "fast",
}
# As rule `setup` does: the batch, and what a pass falls back to where memory runs out.
WORKS = [{**WORK, "batch_size": 32}, {**WORK, "batch_size": 16}]
NOTHING = {"benchmarks": 0, "autotune_misses": 0, "compile_misses": 0, "build_misses": 0}

# Scores random SNVs in chunks of many sizes, as the rule `score` does.
CHUNKS = """
import json, sys
from pathlib import Path
folder, works, settings = Path(sys.argv[1]), *map(json.loads, sys.argv[2:4])
from veff import autotune
autotune.enable(settings, works, [])
import numpy as np, pyarrow as pa, torch
from cherimoya import Cherimoya
from veff.cherimoya import checkpoint, engine
from veff.models import experiment
from veff.models.sheet import Request
from veff.scoring import score
from veff.scoring.how import How
from veff.inputs.reference import Reference, build
rng = np.random.default_rng(0)
bases = "".join(rng.choice(list("ACGT"), 20_000))
(folder / "genome.fa").write_text(f">one\\n{bases}\\n")
build(folder / "genome.fa", folder / "reference")
Cherimoya(compile=False, random_state=1).save(folder / "model.torch")
request = Request("e", (str(folder / "model.torch"),))
experiments = experiment.experiments(checkpoint.inspect([request], {}))
start = np.sort(rng.choice(np.arange(2_000, 18_000), 200, replace=False))
alleles = pa.table({
    "allele_id": pa.array(range(200), pa.int64()),
    "contig": pa.array([0] * 200, pa.int32()),
    "start": pa.array(start, pa.int64()),
    "ref_len": pa.array([1] * 200, pa.int32()),
    "alt": ["CGTA"["ACGT".index(bases[s])] for s in start],
})
reference = Reference.open(folder / "reference")
def answers(alleles):
    how, size = How(device="cuda"), works[0]["batch_size"]
    return next(score.score(alleles, reference, experiments, how, batch_size=size))[0]
whole = answers(alleles)
for size in (1, 7, 15, 16, 17, 100):
    parts = [
        answers(alleles.slice(at, size))
        for at in range(0, 200 if size > 50 else 3 * size, size)
    ]
    joined = pa.concat_tables(parts)
    assert joined.equals(whole.slice(0, len(joined))), f"chunks of {size} differ"

forward, passes = engine.Predictor._forward, []
def with_less_memory(self, bases):
    passes.append(len(bases))
    if len(bases) > works[1]["batch_size"]:
        raise torch.OutOfMemoryError("a test's own")
    return forward(self, bases)
engine.Predictor._forward = with_less_memory
answers(alleles.slice(0, 20))
assert set(passes) == {work["batch_size"] for work in works}, passes
print(json.dumps(autotune.report()))
"""

# The driver's own answer, before torch is there to ask for a context.
STARTED = """
import ctypes, json, sys, time
from veff import autotune
autotune.enable(json.loads(sys.argv[2]), json.loads(sys.argv[1]), [])
cuda, flags, active = ctypes.CDLL("libcuda.so.1"), ctypes.c_uint(), ctypes.c_int()
end = time.monotonic() + 20
while not active.value and time.monotonic() < end:
    time.sleep(0.05)
    cuda.cuDevicePrimaryCtxGetState(0, ctypes.byref(flags), ctypes.byref(active))
assert "torch" not in sys.modules
print(json.dumps(active.value))
"""


def python(*arguments):
    path = os.pathsep.join([str(WORKFLOW), os.environ.get("PYTHONPATH", "")]).rstrip(os.pathsep)
    environment = {**os.environ, "PYTHONPATH": path}
    done = subprocess.run(
        [sys.executable, *map(str, arguments)], env=environment, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


def job(disk, *places, **settings):
    asked = {
        "settings": {"device": "cuda", "cache_dir": str(disk), **settings},
        "work": WORKS,
        "seeds": [str(place) for place in places],
    }
    return python(TESTS / "gpu_job.py", json.dumps(asked))


def part(report):
    return {key: report[key] for key in NOTHING}


def choices(run):
    """The options that the seed in a run's folder holds for each kernel."""
    (path,) = run.iterdir()
    seed = seeds.Seed(path)
    winners = [json.loads(seed.read(file)) for file in seed.files if "autotune" in file]
    return sorted(
        str(min(winner["configs_timings"], key=lambda pair: pair[1])[0]) for winner in winners
    )


@pytest.fixture(scope="module")
def nodes(tmp_path_factory):
    """Two nodes that benchmarked for themselves: [(disk, folder of seeds, the job's report)]."""
    made = []
    for name in ("a", "b"):
        disk, run = tmp_path_factory.mktemp(f"disk-{name}"), tmp_path_factory.mktemp(f"run-{name}")
        made.append((disk, run, job(disk, run)))
    return made


def test_the_job_that_warmed_its_node_neither_benchmarks_nor_compiles(nodes):
    for _, _, report in nodes:
        assert report["node"] == "benchmarked"
        assert part(report) == NOTHING
        assert report["autotune_hits"] == 1  # the batch decides no choice
        assert report["knob"] is True


def test_a_warm_job_neither_benchmarks_nor_compiles_and_has_the_same_bits(nodes):
    disk, run, first = nodes[0]
    report = job(disk, run)
    print(f"warm in {report['warm_seconds']} s")
    assert report["node"] == "warm"
    assert part(report) == NOTHING
    assert report["outputs"] == first["outputs"]


def test_a_job_starts_its_gpu_before_torch_is_imported(nodes):
    disk, _, _ = nodes[0]
    settings = {"device": "cuda", "cache_dir": str(disk)}
    assert python("-c", STARTED, json.dumps(WORKS), json.dumps(settings)) == 1


def test_a_seed_in_another_folder_with_the_original_gone_gives_the_same_bits(nodes, tmp_path):
    _, run, first = nodes[0]
    shutil.copytree(run, tmp_path / "run")
    report = job(tmp_path / "disk", tmp_path / "run")
    print(f"restored in {report['warm_seconds']} s")
    assert report["node"] == "restored"
    assert part(report) == NOTHING
    assert report["outputs"] == first["outputs"]


def test_nodes_that_chose_for_themselves_agree_seeded_or_not(nodes):
    (disk_a, run_a, a), (disk_b, run_b, b) = nodes
    print(f"two cold starts: the same choices: {choices(run_a) == choices(run_b)}")
    assert a["outputs"] == b["outputs"]  # whichever: a choice decides no bit
    assert job(disk_b, run_a)["outputs"] == a["outputs"]
    assert job(disk_a, run_b)["outputs"] == b["outputs"]


def test_no_chunk_size_partial_batch_or_lack_of_memory_benchmarks_and_rows_keep_their_bits(
    nodes, tmp_path
):
    disk, _, _ = nodes[0]
    settings = {"device": "cuda", "cache_dir": str(disk), "strict": True}
    report = python("-c", CHUNKS, tmp_path, json.dumps(WORKS), json.dumps(settings))
    assert report["node"] == "warm"
    assert part(report) == NOTHING
