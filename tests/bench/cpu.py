"""How many windows a second does a core predict, beside Cherimoya's own forward?

    python tests/bench/cpu.py [--seconds 30]

One thread, a default-size model and one of the demo's; windows/s are by the processor's time, so
that other work on the machine counts less, and both engines take turns. Errors are against a
float64 forward, as the proof has them. Writes `results/cpu.json`.
"""

import argparse
import datetime
import json
import sys
import time
from pathlib import Path

ROOT = Path(__file__).parents[2]
RESULT = Path(__file__).parent / "results/cpu.json"
sys.path.insert(0, str(ROOT / "workflow"))

from veff import autotune  # noqa: E402

autotune.enable()

import torch  # noqa: E402
from cherimoya import Cherimoya  # noqa: E402

from veff.cherimoya import checkpoint, engine, proof  # noqa: E402
from veff.models.architecture import Geometry  # noqa: E402

GEOMETRY = Geometry(2114, 1000)
ENGINES = ("fast", "cherimoya")


def measure(model: Cherimoya, seconds: float) -> dict:
    bases = proof.sample(1, GEOMETRY.input_length)
    truth = proof.exact(model, bases)
    how = {"device": "cpu", "batch_size": 1}
    predictors = {name: engine.Predictor(model, GEOMETRY, engine=name, **how) for name in ENGINES}
    windows = torch.from_numpy(bases)
    taken = {name: [] for name in ENGINES}
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        for name, predictor in predictors.items():
            began = time.process_time()
            predictor._forward(windows)  # without the threads that a batch is divided among
            taken[name].append(time.process_time() - began)
    median = {name: sorted(all_)[len(all_) // 2] for name, all_ in taken.items()}
    return {
        "windows_per_s": {name: round(1 / s, 1) for name, s in median.items()},
        "ratio": round(median["cherimoya"] / median["fast"], 2),
        "error": {
            name: proof.error(one.predict(bases), truth) for name, one in predictors.items()
        },
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=30)
    seconds = parser.parse_args().seconds
    torch.set_num_threads(1)
    demo = checkpoint.load(ROOT / "resources/demo/models/cellA.fold0.torch")
    models = {"default size": Cherimoya(compile=False, random_state=0).eval(), "demo": demo}
    cpu = next(x for x in Path("/proc/cpuinfo").read_text().splitlines() if "model name" in x)
    result = {
        "date": datetime.date.today().isoformat(),
        "cpu": cpu.split(": ")[1],
        "instructions": torch.backends.cpu.get_cpu_capability(),
        "torch": torch.__version__,
        **{name: measure(model, seconds) for name, model in models.items()},
    }
    RESULT.write_text(json.dumps(result, indent=1) + "\n")
    print(json.dumps(result))


if __name__ == "__main__":
    main()
