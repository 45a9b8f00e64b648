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
import subprocess
import sys
import tempfile
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import numpy as np

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE.parents[1] / "workflow"), str(HERE.parent)]

from browser import CHROMIUM  # noqa: E402
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
PAGE = """<!DOCTYPE html><style>body { margin: 0 }</style>
<iframe src="/page" width="1280" height="900" style="border: 0"></iframe>
<script>
addEventListener("message", (event) => fetch("/said", { method: "POST", body: event.data }));
</script>
"""
PROBE = """<script type="module">
await window.ready;
const found = { ready: performance.now(), filters: [] };
found.paint = performance.getEntriesByName("first-contentful-paint")[0]?.startTime;
await window.drawn;
found.drawn = performance.now();
const form = document.getElementById("filters");
for (const values of FILTERS.flatMap((one) => [one, one, one, one, one])) {
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
parent.postMessage(JSON.stringify(found), "*");
</script>
"""


class Realistic(Run):
    """With p-values as a null of 10,000 variants gives them."""

    def scores(self, i, p):
        null = np.sort(np.abs(np.random.default_rng(i).standard_t(3, 10_000) * 0.1))
        above = len(null) - np.searchsorted(null, np.abs(self.logfc[i]))
        return super().scores(i, p) | {"abs_logfc.pval": (1 + above) / (1 + len(null))}


def look(page: Path) -> dict:
    """What the probe finds, in real time."""
    html = page.read_text(encoding="utf-8")
    before, end, after = html.rpartition("</body>")
    probed = before + PROBE.replace("FILTERS", json.dumps(FILTERS)) + end + after
    pages = {"/": PAGE.encode(), "/page": probed.encode()}
    said, heard = {}, threading.Event()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            body = pages.get(self.path, b"")
            self.send_response(200)
            self.send_header("Content-Type", "text/html; charset=utf-8")
            self.end_headers()
            self.wfile.write(body)

        def do_POST(self):
            said.update(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
            self.send_response(204)
            self.end_headers()
            heard.set()

        def log_message(self, *_):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    with tempfile.TemporaryDirectory() as profile:
        command = [
            CHROMIUM,
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--window-size=1300,950",
        ]
        command += [f"--user-data-dir={profile}", "--remote-debugging-port=0"]
        command.append(f"http://127.0.0.1:{server.server_port}/")
        browser = subprocess.Popen(command, stderr=subprocess.DEVNULL)
        try:
            assert heard.wait(300), "the page said nothing"
        finally:
            browser.terminate()
            browser.wait()
            server.shutdown()
    return said


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
        "machine": {"cpu": platform.machine(), "chromium": _version(), "load": os.getloadavg()[0]},
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


def _version() -> str:
    done = subprocess.run([CHROMIUM, "--version"], capture_output=True, text=True, check=True)
    return done.stdout.strip()


if __name__ == "__main__":
    main()
