"""Nightly releases on a separate index, such as PyTorch's: its pages are HTML, and versions contain the date."""

from __future__ import annotations

import contextlib
import datetime as dt
import re
from collections.abc import Iterator, Mapping
from html.parser import HTMLParser
from urllib.parse import unquote, urlsplit

from packaging.utils import canonicalize_name

from repros.engine.environments.index import ReleaseFile, fetch, index_settings, version_of
from repros.model.errors import ReprosError
from repros.model.process_environ import changed_environ


class _Links(HTMLParser):
    """Parser of the links of a page of the simple API (PEP 503)."""

    def __init__(self) -> None:
        super().__init__()
        self.links: list[dict[str, str | None]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Store the attributes of a link."""
        if tag == "a":
            self.links.append(dict(attrs))


def fetch_nightlies(project: str, index: str) -> list[ReleaseFile]:
    """Return the files of a project whose versions contain their date: `2.10.0.dev20251126`.

    Args:
        project: the name of the project.
        index: the address of an index that follows the simple API, `https://...` or `file://...`.

    Raises:
        ReprosError: the index does not answer, or has no such release of the project.
    """
    address = f"{index.rstrip('/')}/{canonicalize_name(project)}/"
    try:
        page = _read(address)
    except (OSError, ValueError) as error:
        raise ReprosError(f"--index {index} does not list {project}: {error}.") from error
    parser = _Links()
    parser.feed(page)
    files = [file for link in parser.links if (file := _as_file(link)) is not None]
    if not files:
        problem = (
            f"--index {index} has no release of {project} whose version contains its date, such as 2.10.0.dev20251126."
        )
        raise ReprosError(problem)
    return files


@contextlib.contextmanager
def more_index(index: str | None) -> Iterator[None]:
    """Add an index to uv's settings within the context; None adds none."""
    if index is None:
        yield
        return
    settings = index_settings()
    more = {
        "UV_INDEX": " ".join(filter(None, (index, settings.get("UV_INDEX")))),
        "UV_INDEX_STRATEGY": "unsafe-best-match",
    }
    with changed_environ(more):
        yield


def _read(address: str) -> str:
    if urlsplit(address).scheme not in {"http", "https", "file"}:
        raise ValueError("expected an address such as https://download.pytorch.org/whl/nightly/cpu")
    if address.startswith("file:"):
        address += "index.html"
    return fetch(address).body.decode("utf-8", "replace")


def _as_file(link: Mapping[str, str | None]) -> ReleaseFile | None:
    """Return the file of a link; None unless its version contains a date."""
    name = unquote(urlsplit(link.get("href") or "").path).rpartition("/")[2]
    version = version_of(name)
    date_digits = re.fullmatch(r"(20\d\d)(\d\d)(\d\d)", str(version.dev)) if version else None
    if date_digits is None:
        return None
    try:
        date = dt.date(*map(int, date_digits.groups()))
    except ValueError:  # not a calendar date
        return None
    return ReleaseFile(name, date, link.get("data-requires-python") or "", yanked="data-yanked" in link)
