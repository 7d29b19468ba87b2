"""Real Ray clusters on this machine: nodes on loopback addresses, with a stack of a few bytes."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import sys
import tempfile
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil

from repros.model.cache import cache_folder
from tests.tiny_stack import write_wheel

TOY = Path(__file__).with_name("toys") / "takes_a_while.py"
TORCH = """\
__version__ = "1.0"
class backends:
    class cuda:
        is_built = staticmethod(lambda: False)
"""
"""As much of torch as the probe reads."""

STORE = 80 * 2**20
_MARK = "REPROS_TEST_CLUSTER"
_SETTINGS = {
    "RAY_USAGE_STATS_ENABLED": "0",
    # A dead node is noticed after five seconds rather than half a minute, and a slow one is left alone.
    "RAY_health_check_initial_delay_ms": "1000",
    "RAY_health_check_period_ms": "1000",
    "RAY_health_check_timeout_ms": "10000",
    "RAY_health_check_failure_threshold": "5",
}


def write_catalogue(folder: Path, *scripts: Path) -> Path:
    """Write a private catalogue of these scripts, with a stack `tiny` that is made without a network; return it."""
    catalogue = folder / "catalogue"
    stacks = catalogue / "stacks"
    stacks.mkdir(parents=True)
    for script in scripts:
        shutil.copy(script, catalogue)
    write_wheel(folder, "torch", TORCH)
    (stacks / "tiny.lock.txt").write_text(f"--no-index\n--find-links {folder}\ntorch==1.0\n", "utf-8")
    python = f"{sys.version_info.major}.{sys.version_info.minor}"
    lines = ['about = "for tests"', f'python = "{python}"', 'requirements = ["torch==1.0"]', "until = 2026-01-01"]
    (stacks / "tiny.toml").write_text("\n".join(lines) + "\n", "utf-8")
    return catalogue


class LocalCluster:
    """Nodes on this machine: a head without processors, and workers, which come and go."""

    def __init__(self, workers: int, cores: int, client_port: int | None = None) -> None:
        """Start the nodes."""
        from ray.cluster_utils import Cluster

        head: dict[str, Any] = {"num_cpus": 0, "include_dashboard": False, "node_ip_address": "127.0.0.2"}
        if client_port:
            head["ray_client_server_port"] = client_port
        self._cores = cores
        self._cluster = Cluster(initialize_head=True, head_node_args=head | {"object_store_memory": STORE})
        self.workers = [self._start() for _ in range(workers)]

    @property
    def address(self) -> str:
        """What RAY_ADDRESS has to be."""
        return str(self._cluster.address)

    def add(self) -> None:
        """Start one more worker."""
        self.workers.append(self._start())

    def _start(self) -> Any:
        number = next(_numbers)
        return self._cluster.add_node(
            num_cpus=self._cores, object_store_memory=STORE, node_ip_address=f"127.0.0.{number}", wait=False
        )

    def raylet(self, worker: Any) -> psutil.Process:
        """Return a worker's raylet."""
        return psutil.Process(worker.all_processes["raylet"][0].process.pid)

    def processes(self, worker: Any, title: str = "ray::") -> list[psutil.Process]:
        """Return a worker's Ray processes whose title begins with a text; a cell's processes are none of them."""
        found = []
        with contextlib.suppress(psutil.Error):
            for child in self.raylet(worker).children():
                with contextlib.suppress(psutil.Error):
                    if " ".join(child.cmdline()).startswith(title):
                        found.append(child)
        return found

    def kill(self, worker: Any) -> None:
        """SIGKILL a worker: its raylet and all processes of Ray, in one go; take it off the list."""
        raylet = self.raylet(worker)
        victims = [raylet, *self.processes(worker)]
        raylet.suspend()  # or it would restart or report what is killed before it
        for victim in reversed(victims):
            with contextlib.suppress(psutil.Error):
                victim.kill()
        self.forget(worker)

    def forget(self, worker: Any) -> None:
        """Take a worker that was killed off the list, with what is left of it."""
        self.workers.remove(worker)
        self._cluster.remove_node(worker, allow_graceful=False)

    def close(self) -> None:
        """End all nodes."""
        self._cluster.shutdown()


_numbers = iter(range(3, 250))
"""The last parts of the workers' addresses."""


@contextlib.contextmanager
def local_cluster(
    workers: int = 2, cores: int = 1, client_port: int | None = None, *, own_cache: bool = True
) -> Iterator[LocalCluster]:
    """Start a cluster with surroundings of its own, and end it; nothing of it may be left.

    Args:
        workers: the nodes that run cells.
        cores: the processors of each.
        client_port: the port for drivers that are outside of it.
        own_cache: whether the nodes make environments anew; else they have those of this machine.

    Yields:
        The cluster; :func:`marked` finds its processes, those of cells included.
    """
    before = dict(os.environ)
    folder = Path(tempfile.mkdtemp(prefix="cluster-cache-"))
    os.environ.update(_SETTINGS | {_MARK: uuid.uuid4().hex, "TMPDIR": str(folder)})
    if own_cache:
        _make_cache(folder / "repros")
        os.environ.update({"REPROS_CACHE_DIR": str(folder / "repros"), "UV_CACHE_DIR": str(folder / "uv")})
        os.environ.pop("UV_TORCH_BACKEND", None)
    try:
        cluster = LocalCluster(workers, cores, client_port)
        try:
            yield cluster
        finally:
            cluster.close()
    finally:
        mark = os.environ[_MARK]
        for process in marked(mark):
            process.send_signal(signal.SIGKILL)
        os.environ.clear()
        os.environ.update(before)
        shutil.rmtree(folder, ignore_errors=True)


def _make_cache(cache: Path) -> None:
    """Make a cache folder with what takes minutes to compile, and is the same wherever it is compiled."""
    compiled = cache_folder() / "sim"
    compiled.mkdir(parents=True, exist_ok=True)
    cache.mkdir()
    (cache / "sim").symlink_to(compiled)


def marked(mark: str | None = None, *, with_variable: str | None = None) -> list[psutil.Process]:
    """Return the living processes that were started by the cluster, or by whom it started.

    Args:
        mark: the cluster's mark; by default that of the one that runs.
        with_variable: only those that have this variable, too, such as REPROS_RUNNER, which the engine's have.
    """
    wanted = mark or os.environ[_MARK]
    found = []
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error, OSError):
            has = process.environ()
            is_of_it = process.pid != os.getpid() and has.get(_MARK) == wanted
            if is_of_it and process.status() != psutil.STATUS_ZOMBIE and (with_variable or _MARK) in has:
                found.append(process)
    return found
