"""The connection to a Ray cluster: to one that runs, or to a local one that starts and ends with this process."""

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
"""Ray's own environment variable with a cluster's address."""

_FORM = re.compile(r"(ray://)?\[?[\w.:-]+\]?:\d+")
_KNOCK = 5.0
"""Seconds that a cluster's port gets to answer; Ray itself waits for minutes."""
_STORE = 80 * 2**20
"""Bytes of a local cluster's object store, of which Ray demands 75 MB; a result has some thousand."""
_SETTINGS = {
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_ENABLE_UV_RUN_RUNTIME_ENV": "0",  # the nodes have environments of their own
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",
    "RAY_worker_niceness": "0",
    "RAY_NUM_REDIS_GET_RETRIES": "1",  # each takes 40 s where something else than Ray listens
    "RAY_BACKEND_LOG_LEVEL": "fatal",  # what matters comes as an exception, too
}
"""Settings of Ray for this process and a local cluster, unless the user has others."""


@contextlib.contextmanager
def connect(on: str) -> Iterator[None]:
    """Connect this process to a cluster, and leave it at the end.

    Args:
        on: `ray` for the cluster that RAY_ADDRESS names, else for the one that runs on this machine, else for a new one
            that ends with this process; or `ray://HOST:PORT`, for a driver that is outside of the cluster.

    Raises:
        ReprosError: Ray is not installed, no cluster is at the address, or it has another version of Ray or Python.
    """
    address = os.environ.get(ADDRESS, "") if on == "ray" else on
    if address not in {"", "auto", "local"}:
        _knock(address)
    for name, value in _SETTINGS.items():
        os.environ.setdefault(name, value)
    ray = _import_ray(client=address.startswith("ray://"))
    try:
        with _own_signal_handlers(), _words(address):
            _connect(ray, address)
        _drop_messages()
        yield
    finally:
        with _own_signal_handlers():
            ray.shutdown()


def _drop_messages() -> None:
    """Leave out what raylets say of dead workers and nodes, which Ray prints amid the results without an option."""
    with contextlib.suppress(ImportError):  # another release may have it elsewhere
        from ray._private import worker  # noqa: PLC0415 - see above

        worker.print_to_stdstream = lambda *_, **__: None


def _import_ray(*, client: bool) -> Any:
    try:
        import ray  # noqa: PLC0415 - nobody without --on waits for its import

        if client:
            import grpc  # noqa: F401, PLC0415 - the same
    except ImportError as error:
        raise ReprosError(f'--on needs Ray ({error}): pip install "repros[ray]".') from error
    return ray


def _knock(address: str) -> None:
    """Raise ReprosError unless something listens at an address."""
    if not _FORM.fullmatch(address):
        problem = "expected 'ray', 'ray://HOST:PORT', or 'ray' with RAY_ADDRESS=HOST:PORT"
        raise ReprosError(f"{address!r} is no address of a Ray cluster; {problem}.")
    found = urlsplit(address if "//" in address else f"//{address}")
    try:
        socket.create_connection((found.hostname or "", found.port or 0), _KNOCK).close()
    except OSError as error:
        reason = error.strerror or str(error)
        raise ReprosError(f"no Ray cluster answers at {address} ({reason}); 'ray start --head' starts one.") from error


@contextlib.contextmanager
def _words(address: str) -> Iterator[None]:
    """Turn what Ray raises when it cannot connect into one sentence."""
    try:
        with _quiet_stderr():
            yield
    except Exception as error:
        first = re.sub(r"\s+", " ", str(error)).strip()[:300]
        raise ReprosError(f"cannot join the Ray cluster at {address or 'this machine'}: {first}") from error


@contextlib.contextmanager
def _quiet_stderr() -> Iterator[None]:
    """Drop what is written to stderr: Ray's parts log there what they tell in an exception, too."""
    sys.stderr.flush()
    kept = os.dup(2)
    try:
        with Path(os.devnull).open("wb") as nowhere:
            os.dup2(nowhere.fileno(), 2)
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)


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
    # By its loopback address: nothing of it is reachable from another machine.
    ray.init(
        address="local", include_dashboard=False, object_store_memory=_STORE, _node_ip_address="127.0.0.1", **quiet
    )


@contextlib.contextmanager
def _own_signal_handlers() -> Iterator[None]:
    """Keep this process's handlers of signals: Ray puts its own in their place, which end the process at once."""
    before = {}
    with contextlib.suppress(ValueError):  # only the main thread may set handlers, Ray included
        before = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)}
    try:
        yield
    finally:
        for number, handler in before.items():
            with contextlib.suppress(ValueError):
                signal.signal(number, handler)
