"""Nightly releases on an index of their own, such as PyTorch's: its pages are HTML, and versions have the days."""

from __future__ import annotations

import contextlib
import datetime as dt
import os
import re
import ssl
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from html.parser import HTMLParser
from urllib.parse import unquote, urlsplit

from packaging.utils import (
    InvalidSdistFilename,
    InvalidWheelFilename,
    canonicalize_name,
    parse_sdist_filename,
    parse_wheel_filename,
)
from packaging.version import InvalidVersion, Version

from repros.engine.environments.pip_settings import uv_settings
from repros.engine.environments.releases import ReleaseFile
from repros.model.errors import ReprosError
from repros.model.process_environ import changed_environ

_TIMEOUT = 60
"""Seconds."""
_MOST = 50 * 2**20
"""Bytes of a page."""


class _Links(HTMLParser):
    """Collector of the links of a page of the simple API (PEP 503)."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[dict[str, str | None]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Keep the attributes of a link."""
        if tag == "a":
            self.found.append(dict(attrs))


def fetch_nightlies(project: str, index: str) -> list[ReleaseFile]:
    """Return the files of a project on an index whose versions name their day: `2.10.0.dev20251126`.

    Args:
        project: its name.
        index: the address of an index that follows the simple API, `https://...` or `file://...`.

    Raises:
        ReprosError: the index does not answer, or has no such release of the project.
    """
    address = f"{index.rstrip('/')}/{canonicalize_name(project)}/"
    try:
        page = _read(address)
    except (OSError, ValueError) as error:
        if isinstance(error, urllib.error.HTTPError):
            error.close()  # it is also the response, with an open socket
        raise ReprosError(f"--index {index} does not list {project}: {error}.") from error
    links = _Links()
    links.feed(page)
    found = [file for link in links.found if (file := _as_file(link)) is not None]
    if not found:
        problem = (
            f"--index {index} has no release of {project} whose version names its day, such as 2.10.0.dev20251126."
        )
        raise ReprosError(problem)
    return found


def version_of(name: str) -> Version | None:
    """Return the version in a file's name; None if the name follows no standard."""
    try:
        return parse_wheel_filename(name)[1] if name.endswith(".whl") else parse_sdist_filename(name)[1]
    except (InvalidWheelFilename, InvalidSdistFilename, InvalidVersion):
        return None


@contextlib.contextmanager
def more_index(index: str | None) -> Iterator[None]:
    """Make uv read a further index while the block runs; None for no further index."""
    if index is None:
        yield
        return
    present = {**uv_settings(os.environ), **os.environ}
    more = {
        "UV_INDEX": " ".join(filter(None, (index, present.get("UV_INDEX")))),
        "UV_INDEX_STRATEGY": "unsafe-best-match",
    }
    with changed_environ(more):
        yield


def _read(address: str) -> str:
    if urlsplit(address).scheme not in {"http", "https", "file"}:
        raise ValueError("expected an address such as https://download.pytorch.org/whl/nightly/cpu")
    if address.startswith("file:"):
        address += "index.html"
    tls = ssl.create_default_context(cafile={**os.environ, **uv_settings(os.environ)}.get("SSL_CERT_FILE"))
    with urllib.request.urlopen(address, timeout=_TIMEOUT, context=tls) as response:  # noqa: S310 - checked above
        return str(response.read(_MOST).decode("utf-8", "replace"))


def _as_file(link: Mapping[str, str | None]) -> ReleaseFile | None:
    """Return the file of a link, if its version names its day."""
    name = unquote(urlsplit(link.get("href") or "").path).rpartition("/")[2]
    version = version_of(name)
    day = re.fullmatch(r"(20\d\d)(\d\d)(\d\d)", str(version.dev)) if version else None
    if day is None:
        return None
    try:
        date = dt.date(*map(int, day.groups()))
    except ValueError:  # no day of the calendar
        return None
    return ReleaseFile(name, date, link.get("data-requires-python") or "", yanked="data-yanked" in link)
