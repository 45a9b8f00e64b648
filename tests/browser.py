"""A page in a real browser: what it says of itself after a script has used it."""

import json
import shutil
import subprocess
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from queue import Queue
from threading import Thread

import pytest

CHROMIUM = shutil.which("chromium") or shutil.which("google-chrome")
# The page stands in a frame as wide as asked for: headless windows have a least width.
FRAME = """<!DOCTYPE html><meta charset="utf-8"><style>body {{ margin: 0 }}</style>
<iframe src="{page}" width="{width}" height="{height}" style="border: 0"></iframe>
<script>
addEventListener("message", (event) => {{
  fetch("{listener}", {{ method: "POST", mode: "no-cors", body: event.data }});
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
addEventListener("load", async () => {
  const probe = async () => { PROBE };
  await window.drawn?.catch((error) => errors.push(String(error)));
  const found = await probe().catch((error) => String(error));
  const loaded = performance.getEntriesByType("resource").map((entry) => entry.name);
  parent.postMessage(JSON.stringify({ errors, loaded, found }), "*");
});
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
    with _listener() as (server, said):
        address = f"http://127.0.0.1:{server.server_port}/"
        text = FRAME.format(page=probed.name, width=width, height=height, listener=address)
        frame = folder / "frame.html"
        frame.write_text(text)
        command = [
            CHROMIUM,
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-background-networking",
            "--remote-debugging-port=0",  # stay open until told
            f"--user-data-dir={folder / 'profile'}",
            f"--window-size={max(width, 600)},{height}",
            frame.as_uri(),
        ]
        chromium = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            return json.loads(said.get(timeout=120))
        finally:
            chromium.terminate()
            chromium.wait()


@contextmanager
def _listener():
    """A server, and what is posted to it. In virtual time, which headless browsers offer, a page
    would be asked before work on other threads, such as unpacking, is done."""
    said = Queue()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self):
            said.put(self.rfile.read(int(self.headers["Content-Length"])))
            self.send_response(204)
            self.end_headers()

        def log_message(self, *_):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield server, said
    finally:
        server.shutdown()
        server.server_close()
