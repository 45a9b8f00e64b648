"""A page in a real browser: what it says of itself after a script has used it."""

import json
import shutil
import subprocess
from html import unescape
from pathlib import Path

import pytest

CHROMIUM = shutil.which("chromium") or shutil.which("google-chrome")
# The page stands in a frame as wide as asked for: headless windows have a least width.
FRAME = """<!DOCTYPE html><meta charset="utf-8"><style>body {{ margin: 0 }}</style>
<iframe src="{page}" width="{width}" height="{height}" style="border: 0"></iframe>
<pre id="said"></pre>
<script>
addEventListener("message", (event) => {{
  document.getElementById("said").textContent = event.data;
}});
</script>
"""
# Errors of the page, what it loads, and what the probe finds, sent to the frame's page.
BEFORE = """<script>
const errors = [];
addEventListener("error", (event) => errors.push(String(event.message)), true);
addEventListener("unhandledrejection", (event) => errors.push(String(event.reason)));
addEventListener("securitypolicyviolation", (event) => errors.push("blocked " + event.blockedURI));
for (const kind of ["error", "warn"]) {
  console[kind] = (...words) => errors.push(words.join(" "));
}
</script>
"""
AFTER = """<script>
setTimeout(async () => {
  const probe = async () => { PROBE };
  const found = await probe().catch((error) => String(error));
  const loaded = performance.getEntriesByType("resource").map((entry) => entry.name);
  parent.postMessage(JSON.stringify({ errors, loaded, found }), "*");
}, 4000);
</script>
"""


def look(page: Path, folder: Path, *, width: int, probe: str, height: int = 900) -> dict:
    """{errors, loaded, found} of a page, where `probe` is the body of a JavaScript function.

    `found` is what that returns, `loaded` the resources that the page asked for. Skips where
    there is no Chromium.
    """
    if CHROMIUM is None:
        pytest.skip("needs Chromium")
    html = page.read_text(encoding="utf-8")
    html = html.replace("<body>", "<body>" + BEFORE, 1)
    # The last one: the charts' JavaScript holds another.
    before, end, after = html.rpartition("</body>")
    html = before + AFTER.replace("PROBE", probe) + end + after
    probed = folder / "probed.html"
    probed.write_text(html, encoding="utf-8")
    frame = folder / "frame.html"
    frame.write_text(FRAME.format(page=probed.name, width=width, height=height))
    command = [
        CHROMIUM,
        "--headless",
        "--no-sandbox",
        "--disable-gpu",
        "--disable-background-networking",
        "--virtual-time-budget=20000",
        f"--user-data-dir={folder / 'profile'}",
        f"--window-size={max(width, 600)},{height}",
        "--dump-dom",
        frame.as_uri(),
    ]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    said = done.stdout.partition('<pre id="said">')[2].partition("</pre>")[0]
    assert said, done.stderr[-2000:]
    return json.loads(unescape(said))
