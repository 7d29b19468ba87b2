"""A package index on this machine, as a company has one: the JSON of the simple API, with the days of uploads."""

from __future__ import annotations

import contextlib
import hashlib
import json
import threading
from collections.abc import Iterator, Mapping
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

_JSON = "application/vnd.pypi.simple.v1+json"

DATED = True
"""Whether it says the days."""


class _Index(SimpleHTTPRequestHandler):
    """Lists a folder's wheels by project below `/simple/`, and serves the files themselves."""

    def __init__(self, *arguments: Any, days: Mapping[str, str], **rest: Any) -> None:
        self._days = days
        super().__init__(*arguments, **rest)

    def do_GET(self) -> None:
        parts = self.path.strip("/").split("/")
        if parts[0] != "simple":
            super().do_GET()
            return
        name = parts[1] if len(parts) > 1 else ""
        wheels = sorted(Path(self.directory).glob(f"{name}-*.whl"))
        body = json.dumps({"meta": {"api-version": "1.1"}, "name": name, "files": [*map(self._describe, wheels)]})
        self.send_response(200 if wheels else 404)
        self.send_header("Content-Type", _JSON)
        self.end_headers()
        self.wfile.write(body.encode())

    def _describe(self, wheel: Path) -> dict[str, Any]:
        return {
            "filename": wheel.name,
            "url": f"/{wheel.name}",
            "hashes": {"sha256": hashlib.sha256(wheel.read_bytes()).hexdigest()},
            "size": wheel.stat().st_size,
            **({"upload-time": f"{self._days[wheel.name]}T12:00:00Z"} if DATED else {}),
        }

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the name in the standard library
        pass


@contextlib.contextmanager
def serve(folder: Path, days: Mapping[str, str]) -> Iterator[str]:
    """Serve a folder's wheels, uploaded on these days by file name; yield the index's address."""
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(_Index, directory=str(folder), days=days)) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{server.server_address[1]}/simple"
        server.shutdown()
        thread.join()
