"""The connection to a running Ray cluster, or to a local one that lives as long as this process."""

from __future__ import annotations

import contextlib
import logging
import os
import re
import signal
import socket
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from repros.model.errors import ReprosError

ADDRESS = "RAY_ADDRESS"
"""Ray's environment variable for the address of a cluster."""

_FORM = re.compile(r"(ray://)?\[?[\w.:-]+\]?:\d+")
_CONNECT_TIMEOUT = 5.0
"""Connection timeout of a cluster's port, in seconds; Ray itself waits for minutes."""
_STORE = 80 * 2**20
"""Size of a local cluster's object store in bytes; Ray requires 75 MB, a result has a few thousand bytes."""
_SETTINGS = {
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_ENABLE_UV_RUN_RUNTIME_ENV": "0",  # nodes have their own environments
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",
    "RAY_worker_niceness": "0",
    "RAY_NUM_REDIS_GET_RETRIES": "1",  # each takes 40 s if another program listens
    "RAY_BACKEND_LOG_LEVEL": "fatal",  # relevant errors are raised as exceptions
}
"""Defaults of Ray's settings for this process and a local cluster."""


@contextlib.contextmanager
def connect(on: str) -> Iterator[None]:
    """Connect this process to a cluster, and disconnect at the end.

    Args:
        on: `ray` for the cluster at RAY_ADDRESS, or else the one on this machine, or else a new one that ends with this
            process; or `ray://HOST:PORT` for a driver outside the cluster.

    Raises:
        ReprosError: Ray is not installed, no cluster is at the address, or it has another version of Ray or Python.
    """
    address = os.environ.get(ADDRESS, "") if on == "ray" else on
    if address not in {"", "auto", "local"}:
        _check_port(address)
    for name, value in _SETTINGS.items():
        os.environ.setdefault(name, value)
    ray = _import_ray(client=address.startswith("ray://"))
    try:
        with _own_signal_handlers(), _one_line_errors(address):
            _connect(ray, address)
        _silence_raylets()
        yield
    finally:
        with _own_signal_handlers():
            ray.shutdown()


def _silence_raylets() -> None:
    """Suppress messages of raylets on dead workers and nodes, for which Ray has no option."""
    with contextlib.suppress(ImportError):  # moved in another release
        from ray._private import worker  # noqa: PLC0415 - see above

        worker.print_to_stdstream = lambda *_, **__: None


def _import_ray(*, client: bool) -> Any:
    try:
        import ray  # noqa: PLC0415 - slow, and needed with --on only

        if client:
            import grpc  # noqa: F401, PLC0415 - see above
    except ImportError as error:
        raise ReprosError(f'--on needs Ray ({error}): pip install "repros[ray]".') from error
    return ray


def _check_port(address: str) -> None:
    """Check the format of an address and that its port accepts connections.

    Raises:
        ReprosError: it is not an address of a Ray cluster, or nothing listens there.
    """
    if not _FORM.fullmatch(address):
        problem = "expected 'ray', 'ray://HOST:PORT', or 'ray' with RAY_ADDRESS=HOST:PORT"
        raise ReprosError(f"{address!r} is not an address of a Ray cluster; {problem}.")
    url = urlsplit(address if "//" in address else f"//{address}")
    try:
        socket.create_connection((url.hostname or "", url.port or 0), _CONNECT_TIMEOUT).close()
    except OSError as error:
        reason = error.strerror or str(error)
        raise ReprosError(f"no Ray cluster answers at {address} ({reason}); 'ray start --head' starts one.") from error


@contextlib.contextmanager
def _one_line_errors(address: str) -> Iterator[None]:
    """Convert Ray's connection errors into a ReprosError of one line."""
    try:
        with _quiet_stderr():
            yield
    except Exception as error:
        first = re.sub(r"\s+", " ", str(error)).strip()[:300]
        raise ReprosError(f"cannot join the Ray cluster at {address or 'this machine'}: {first}") from error


@contextlib.contextmanager
def _quiet_stderr() -> Iterator[None]:
    """Discard output to stderr, to which Ray's components log errors that are also raised."""
    sys.stderr.flush()
    saved = os.dup(2)
    try:
        with Path(os.devnull).open("wb") as null:
            os.dup2(null.fileno(), 2)
        yield
    finally:
        os.dup2(saved, 2)
        os.close(saved)


def _connect(ray: Any, address: str) -> None:
    quiet = {"log_to_driver": False, "logging_level": logging.CRITICAL}
    if address not in {"", "auto", "local"}:
        ray.init(address=address, **({} if address.startswith("ray://") else quiet))
        return
    if address != "local":
        try:
            ray.init(address="auto", **quiet)
        except ConnectionError:
            if address == "auto":
                raise
        else:
            return
    # Bound to loopback, so that it is not reachable from other machines.
    ray.init(
        address="local", include_dashboard=False, object_store_memory=_STORE, _node_ip_address="127.0.0.1", **quiet
    )


@contextlib.contextmanager
def _own_signal_handlers() -> Iterator[None]:
    """Restore this process's signal handlers, which Ray replaces with ones that exit immediately."""
    before = {}
    with contextlib.suppress(ValueError):  # only the main thread may set handlers, Ray included
        before = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)}
    try:
        yield
    finally:
        for number, handler in before.items():
            with contextlib.suppress(ValueError):
                signal.signal(number, handler)
