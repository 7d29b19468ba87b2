"""Access to package indexes: pages, with pip's settings, and the files that they list."""

from __future__ import annotations

import datetime as dt
import os
import ssl
import urllib.error
import urllib.request
from dataclasses import dataclass
from typing import NamedTuple

from packaging.utils import InvalidSdistFilename, InvalidWheelFilename, parse_sdist_filename, parse_wheel_filename
from packaging.version import InvalidVersion, Version

from repros.engine.environments.pip_settings import uv_settings

_TIMEOUT = 60
"""Seconds."""
_MAX_PAGE = 100 * 2**20
"""Bytes."""


@dataclass(frozen=True)
class ReleaseFile:
    """One file of a release, as the index describes it."""

    name: str
    uploaded: dt.date
    requires_python: str
    yanked: bool
    size: int | None = None
    """Bytes; None if the index does not give it."""


class IndexPage(NamedTuple):
    """A response of an index."""

    content_type: str
    body: bytes


def index_settings() -> dict[str, str]:
    """Return the environment variables with pip's settings as uv's: `UV_DEFAULT_INDEX`, `SSL_CERT_FILE` and others."""
    return {**os.environ, **uv_settings(os.environ)}


def fetch(address: str, accept: str = "text/html") -> IndexPage:
    """Return the page at an address, `https://...` or `file://...`; of a large page the first 100 MiB.

    Args:
        address: the address.
        accept: the HTTP header `Accept`.

    Raises:
        OSError: the index does not answer, or answers with an error.
        ValueError: not an address.
    """
    tls = ssl.create_default_context(cafile=index_settings().get("SSL_CERT_FILE"))
    request = urllib.request.Request(address, headers={"Accept": accept})  # noqa: S310 - an index that the user chose
    try:
        with urllib.request.urlopen(request, timeout=_TIMEOUT, context=tls) as response:  # noqa: S310 - see above
            return IndexPage(response.headers.get("Content-Type", ""), response.read(_MAX_PAGE))
    except urllib.error.HTTPError as error:
        error.close()  # it is also the response, with an open socket
        raise


def version_of(name: str) -> Version | None:
    """Return the version in a file name; None if the name follows no standard."""
    try:
        return parse_wheel_filename(name)[1] if name.endswith(".whl") else parse_sdist_filename(name)[1]
    except (InvalidWheelFilename, InvalidSdistFilename, InvalidVersion):
        return None
