"""Access to package indexes: pages, with pip's settings, and the files that they list."""

from __future__ import annotations

import contextlib
import datetime as dt
import os
import ssl
import threading
import urllib.error
import urllib.request
from dataclasses import dataclass
from http import HTTPStatus
from http.client import HTTPException, HTTPResponse
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
    request = urllib.request.Request(address, headers={"Accept": accept})  # noqa: S310 - an index that the user chose
    try:
        with _open(request, _TIMEOUT) as response:
            return IndexPage(response.headers.get("Content-Type", ""), response.read(_MAX_PAGE))
    except urllib.error.HTTPError as error:
        error.close()  # it is also the response, with an open socket
        raise


def answers(address: str, seconds: float) -> bool:
    """Return whether an index has a page at an address, `https://...`, and says so within a time in seconds."""
    found: list[bool] = []

    def ask() -> None:
        request = urllib.request.Request(address)  # noqa: S310 - an index that the user chose
        with contextlib.suppress(OSError, HTTPException, ValueError), _open(request, seconds) as response:
            found.append(response.status == HTTPStatus.OK)

    # The socket's timeout covers neither the resolution of the name nor several slow responses. A daemon thread that
    # still waits does not delay the end of the process.
    asking = threading.Thread(target=ask, daemon=True)
    asking.start()
    asking.join(seconds)
    return found == [True]


def _open(request: urllib.request.Request, seconds: float) -> HTTPResponse:
    tls = ssl.create_default_context(cafile=index_settings().get("SSL_CERT_FILE"))
    response: HTTPResponse = urllib.request.urlopen(request, timeout=seconds, context=tls)  # noqa: S310 - see the callers
    return response


def version_of(name: str) -> Version | None:
    """Return the version in a file name; None if the name follows no standard."""
    try:
        return parse_wheel_filename(name)[1] if name.endswith(".whl") else parse_sdist_filename(name)[1]
    except (InvalidWheelFilename, InvalidSdistFilename, InvalidVersion):
        return None
