"""Ray as the engine past one machine: the cells of a run on the nodes of a cluster.

The engine's own road runs on each node, in one process of the run (:mod:`.node`). The driver, which is the `repros`
that the user started, plans, places (:mod:`.placement`), asks again for what a dead node had (:mod:`.dispatch`), and
records. The releases of a bisection are probed there in the same way (:mod:`.releases`, :mod:`.release_node`). Nothing
outside this folder imports Ray, and nothing imports this folder but the option `--on`.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import TYPE_CHECKING

from repros.cluster.connection import connect

if TYPE_CHECKING:  # a worker imports this module, and sooner without the engine
    from repros.engine.run_options import Engine
    from repros.scripts.bisect.pool import OpenPool
    from repros.scripts.bisect.question import Question


@contextlib.contextmanager
def open_cluster(on: str, jobs: int | None = None) -> Iterator[Engine]:
    """Connect to a Ray cluster; end everything of this run on its nodes, and leave it, at the end.

    Args:
        on: the cluster, as :func:`repros.cluster.connection.connect` explains.
        jobs: the most cells that run side by side, on all nodes together; None: as many as have room.

    Raises:
        ReprosError: Ray is not installed, or no cluster is at the address.
    """
    with connect(on):
        from repros.cluster.engine import Cluster  # noqa: PLC0415 - imports Ray, which is there by now

        cluster = Cluster(jobs)
        try:
            yield cluster
        finally:
            cluster.close()


@contextlib.contextmanager
def open_releases(on: str) -> Iterator[OpenPool[Question]]:
    """Connect to a Ray cluster, whose nodes then probe the releases of a bisection; leave it at the end.

    Raises:
        ReprosError: as :func:`open_cluster`.
    """
    with connect(on):
        from repros.cluster.releases import ClusterPool  # noqa: PLC0415 - imports Ray, which is there by now

        yield ClusterPool
