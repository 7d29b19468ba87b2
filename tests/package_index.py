"""A package index on this machine, for the tests that read releases."""

from __future__ import annotations

import datetime as dt
import json
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Pages = Mapping[str, tuple[str, bytes]]
"""Content type and body by path."""
Serve = Callable[[Pages], str]
"""Starts an index with these pages and returns its address, which pip's and uv's settings name from then on."""
SIMPLE_API = "application/vnd.pypi.simple.v1+json"


class _Server(ThreadingHTTPServer):
    def handle_error(self, request: Any, client_address: Any) -> None:
        """Print an error, unless the client has closed its connection, as uv does once it knows enough."""
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)


@contextmanager
def package_index(pages: Pages) -> Iterator[str]:
    """Serve pages on this machine, and yield the address of the index."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.wfile.write(self.do_HEAD())

        def do_HEAD(self) -> bytes:
            kind, body = pages.get(self.path, ("", b""))
            self.send_response(200 if kind else 404)
            self.send_header("Content-Type", kind or "text/plain")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            return body

        def log_message(self, *arguments: object) -> None:
            """Say nothing."""

    server = _Server(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/simple"
    finally:
        server.shutdown()
        server.server_close()


def release_pages(releases: Mapping[str, Mapping[str, dt.date]]) -> Pages:
    """Return the pages of an index with a pure wheel of each project for each of its versions, and their days."""
    return {
        f"/simple/{project}/": (SIMPLE_API, json.dumps({"files": _files(project, days)}).encode())
        for project, days in releases.items()
    }


def _files(project: str, days: Mapping[str, dt.date]) -> list[dict[str, str]]:
    return [
        {"filename": f"{project}-{version}-py3-none-any.whl", "upload-time": f"{day}T12:00:00Z"}
        for version, day in days.items()
    ]
