"""A server of the built site, and Chromium, for the tests that open pages."""

from __future__ import annotations

import functools
import http.server
import shutil
import tarfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tools.site import npm

AXE = npm.Package(
    "axe-core",
    "4.14.1",
    "sha512-FHfa+lmNjQZfJz1q8wKqIDwC6DExcHt/pkjNQb09a3NPjCKg2rhu5qb2S4r76ASyFNNtuFooJpZe37OgudVGtQ==",
)
"""The checker of accessibility; used by the tests only, never served."""

NAMES = ("chromium", "chromium-browser", "google-chrome")


class _Handler(http.server.SimpleHTTPRequestHandler):
    extensions_map = {  # noqa: RUF012 - as in the base class
        **http.server.SimpleHTTPRequestHandler.extensions_map,
        ".mjs": "text/javascript",
        ".wasm": "application/wasm",
    }

    def log_message(self, *_: Any) -> None:
        """Print nothing."""


@contextmanager
def serve(folder: Path) -> Iterator[str]:
    """Serve a folder on this machine and yield its address."""
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(_Handler, directory=str(folder)))
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


@contextmanager
def chromium() -> Iterator[Any]:
    """Yield headless Chromium; skip where it, or Playwright, is not installed."""
    playwright = pytest.importorskip("playwright.sync_api", reason="Playwright is not installed: nox -s browser")
    program = next(filter(None, map(shutil.which, NAMES)), None)
    if program is None:
        pytest.skip("no Chromium: .ci/chromium installs it")
    with playwright.sync_playwright() as running:
        # Without its sandbox, which root may not use; it opens nothing but this site.
        browser = running.chromium.launch(executable_path=program, args=["--no-sandbox"])
        yield browser
        browser.close()


def axe_source() -> str:
    """Return axe-core's program; skip where npm cannot download it."""
    with tarfile.open(downloaded(AXE)) as archive:
        member = archive.extractfile("package/axe.min.js")
        assert member is not None
        return member.read().decode()


def downloaded(package: npm.Package) -> Path:
    """Return a package's archive; skip where it cannot be downloaded."""
    try:
        return npm.download(package)
    except npm.NpmError as error:
        pytest.skip(str(error))


def watch(page: Any) -> list[str]:
    """Return a list to which every error of a page is added."""
    problems: list[str] = []
    page.on("console", lambda message: problems.append(message.text) if message.type in {"error", "warning"} else None)
    page.on("pageerror", lambda error: problems.append(str(error)))

    def add_failure(request: Any) -> None:
        if request.failure != "net::ERR_ABORTED":  # the next page was opened before this one was complete
            problems.append(f"{request.url}: {request.failure}")

    page.on("requestfailed", add_failure)
    return problems
