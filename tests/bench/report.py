"""How large the report is, and how fast in a browser: its first paint, and a filter.

    python tests/bench/report.py [--alleles 100000] [--experiments 200] [--demo results/demo]

Makes the tables of a run that never was, their report, and looks at it in a real Chromium, without
a network; writes results/report.json. The time of a filter is that of the page's answer to an
event, its layout included (the heat map follows behind it): of five tries of each, the median and
the shortest, which tells more where the machine has other work to do (`load`: how many processes
wanted its cores).
"""

import argparse
import datetime
import json
import os
import platform
import statistics
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE.parents[1] / "workflow"), str(HERE.parent)]

import browser  # noqa: E402
from reported import Run  # noqa: E402

TISSUES = ("liver", "heart", "lung", "brain", "kidney", "spleen", "colon", "muscle", "skin", "eye")
FILTERS = [
    {"text": "rs77"},
    {"text": "1:4000000-5000000"},
    {"text": "liver"},
    {"experiment": "experiment_17_of_muscle"},
    {"biosample": "heart"},
    {"p": "0.001"},
    {"size": "0.3", "agree": True},
    {},
]
PROBE = """async (filters) => {
const found = { filters: [] };
found.paint = performance.getEntriesByName("first-contentful-paint")[0].startTime;
const form = document.getElementById("filters");
for (const values of filters.flatMap((one) => [one, one, one, one, one])) {
  form.reset();
  await new Promise((then) => setTimeout(then, 400));
  for (const [name, value] of Object.entries(values)) {
    if (value === true) form.elements[name].checked = true;
    else form.elements[name].value = value;
  }
  const begun = performance.now();
  form.dispatchEvent(new Event("input"));
  document.body.getBoundingClientRect();
  const ms = performance.now() - begun;
  found.filters.push({ values, ms, said: document.getElementById("shown").textContent });
}
const begun = performance.now();
document.querySelector("[data-sort=jsd] button").click();
found.sort = performance.now() - begun;
return found;
}"""


class Realistic(Run):
    """With p-values as a null of 10,000 variants gives them."""

    def scores(self, i, p):
        null = np.sort(np.abs(np.random.default_rng(i).standard_t(3, 10_000) * 0.1))
        above = len(null) - np.searchsorted(null, np.abs(self.logfc[i]))
        return super().scores(i, p) | {"abs_logfc.pval": (1 + above) / (1 + len(null))}


def look(path: Path) -> dict:
    """What the probe finds, and when the page was ready and drawn."""
    with browser.chromium() as chromium:
        page = chromium.new_page(viewport={"width": 1280, "height": 900})
        page.set_default_timeout(300_000)
        # As early as the page's own scripts end, without a message of ours between.
        page.add_init_script("""addEventListener("DOMContentLoaded", () => {
          for (const name of ["ready", "drawn"]) {
            window[name].then(() => (window[`was_${name}`] = performance.now()));
          }
        });""")
        page.goto(path.as_uri())
        page.evaluate("window.drawn")
        found = page.evaluate(PROBE, FILTERS)
        return found | {
            "ready": page.evaluate("window.was_ready"),
            "drawn": page.evaluate("window.was_drawn"),
            "chromium": chromium.version,
        }


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--alleles", type=int, default=100_000)
    parser.add_argument("--experiments", type=int, default=200)
    parser.add_argument("--demo", type=Path, default=HERE.parents[1] / "results/demo")
    options = parser.parse_args()
    names = [f"experiment_{i}_of_{TISSUES[i % 10]}" for i in range(options.experiments)]
    about = {name: (TISSUES[i % 10], ("DNase", "ATAC")[i % 2]) for i, name in enumerate(names)}
    with tempfile.TemporaryDirectory() as folder:
        run = Realistic(Path(folder), options.alleles, names, about=about)
        begun = time.perf_counter()
        page = run.report()
        seconds = time.perf_counter() - begun
        said = look(page)
        size = page.stat().st_size
    times = {}
    for one in said["filters"]:
        times.setdefault(json.dumps(one["values"]), []).append(one["ms"])
    demo = options.demo / "report.html"
    found = {
        "date": datetime.date.today().isoformat(),
        "machine": {
            "cpu": platform.machine(),
            "chromium": said["chromium"],
            "load": os.getloadavg()[0],
        },
        "alleles": options.alleles,
        "experiments": options.experiments,
        "bytes": size,
        "demo_bytes": demo.stat().st_size if demo.exists() else None,
        "build_s": round(seconds, 1),
        "first_paint_ms": round(said["paint"]),
        "usable_ms": round(said["ready"]),
        "all_charts_ms": round(said["drawn"]),
        "filter_ms": {
            name: {"median": round(statistics.median(ms), 1), "shortest": round(min(ms), 1)}
            for name, ms in times.items()
        },
        "sort_ms": round(said["sort"], 1),
    }
    print(json.dumps(found, indent=2))
    (HERE / "results/report.json").write_text(json.dumps(found, indent=2) + "\n")


if __name__ == "__main__":
    main()
