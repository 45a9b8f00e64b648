"""A Hugging Face hub on the loopback: what the real client asks of it, and how it can fail."""

import hashlib
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

REPOSITORY = "programmable-genomics/CATv1"
COMMIT = "a" * 40
SMALL = (".tsv", ".md")  # the hub keeps these in git, and all others as large files


class Hub:
    """Serves `files` ({name: bytes}) of one repository at `main` and at one commit.

    `asked` are the requests so far, (method, name, Range or None). `token` is required where set.
    `busy` requests are answered with 429, `down` ones with 503, before any other; the first
    `cut` downloads end in the middle; the first `changed` ones send other bytes than announced.
    """

    def __init__(self, files: dict[str, bytes]):
        self.files = dict(files)
        self.asked: list[tuple] = []
        self.token: str | None = None
        self.busy = self.down = self.cut = self.changed = 0

    def take(self, fault: str) -> bool:
        left = getattr(self, fault)
        setattr(self, fault, max(left - 1, 0))
        return left > 0

    def etag(self, name: str) -> str:
        data = self.files[name]
        if name.endswith(SMALL):
            return hashlib.sha1(b"blob %d\0" % len(data) + data).hexdigest()
        return hashlib.sha256(data).hexdigest()

    @contextmanager
    def serving(self):
        """The address of the hub, while it serves."""
        server = ThreadingHTTPServer(("127.0.0.1", 0), handler(self))
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            server.server_close()


def handler(hub: Hub) -> type:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *_):
            pass

        def do_HEAD(self):
            self.answer()

        def do_GET(self):
            self.answer()

        def answer(self):
            parts = self.path.lstrip("/").split("/")
            if parts[0] == "cdn":
                return self.send("/".join(parts[1:]))
            if len(parts) < 5 or parts[2] != "resolve":
                return self.head(404)
            revision, name = parts[3], "/".join(parts[4:])
            hub.asked.append((self.command, name, self.headers["Range"]))
            if hub.take("busy"):
                return self.head(429)
            if hub.take("down"):
                return self.head(503)
            if hub.token and self.headers["Authorization"] != f"Bearer {hub.token}":
                return self.head(401)
            if "/".join(parts[:2]) != REPOSITORY:
                return self.head(404, {"X-Error-Code": "RepoNotFound"})
            if revision not in ("main", COMMIT):
                return self.head(404, {"X-Error-Code": "RevisionNotFound"})
            about = {"X-Repo-Commit": COMMIT}
            if name not in hub.files:
                return self.head(404, about | {"X-Error-Code": "EntryNotFound"})
            if name.endswith(SMALL):
                return self.send(name, about | {"ETag": f'"{hub.etag(name)}"'})
            about |= {
                "X-Linked-Etag": f'"{hub.etag(name)}"',
                "X-Linked-Size": str(len(hub.files[name])),
                # Another host, as the content network of the hub is.
                "Location": f"http://localhost:{self.server.server_port}/cdn/{name}",
            }
            return self.head(302, about)

        def head(self, status, headers=None):
            self.send_response(status)
            for key, value in (headers or {}).items():
                self.send_header(key, value)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def send(self, name, headers=None):
            data, first = hub.files[name], 0
            if self.path.startswith("/cdn"):
                hub.asked.append((self.command, name, self.headers["Range"]))
            if self.headers["Range"]:
                first = int(self.headers["Range"].removeprefix("bytes=").split("-")[0])
            self.send_response(206 if first else 200)
            for key, value in (headers or {}).items():
                self.send_header(key, value)
            if first:
                self.send_header("Content-Range", f"bytes {first}-{len(data) - 1}/{len(data)}")
            body = data[first:]
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            if self.command == "HEAD":
                return
            if hub.take("changed"):
                body = bytes(byte ^ 1 for byte in body)
            if hub.take("cut"):
                self.wfile.write(body[: len(body) // 2])
                self.close_connection = True
                return
            self.wfile.write(body)

    return Handler
