"""The engine on a Ray cluster: the cells of a run on several nodes.

On each node, one process of the run executes cells with the local engine (:mod:`.node_agent`). The driver, the `repros`
process of the user, plans, places cells (:mod:`.placement`), reschedules cells of a dead node (:mod:`.dispatch`), and
records results. Releases of a bisection are probed in the same way (:mod:`.releases`, :mod:`.release_agent`). Only this
folder imports Ray, and only the option `--on` imports this folder.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import TYPE_CHECKING

from repros.cluster.connection import connect

if TYPE_CHECKING:  # workers import this module, faster without the engine
    from repros.engine.run_options import Engine
    from repros.scripts.bisect.pool import OpenPool
    from repros.scripts.bisect.question import Question


@contextlib.contextmanager
def open_cluster(on: str, jobs: int | None = None) -> Iterator[Engine]:
    """Connect to a Ray cluster; at the end, kill all processes of this run on its nodes and disconnect.

    Args:
        on: the cluster; see :func:`repros.cluster.connection.connect`.
        jobs: maximum number of concurrent cells on all nodes; None: limited by resources only.

    Raises:
        ReprosError: Ray is not installed, or no cluster is at the address.
    """
    with connect(on):
        from repros.cluster.engine import Cluster  # noqa: PLC0415 - imports Ray

        cluster = Cluster(jobs)
        try:
            yield cluster
        finally:
            cluster.close()


@contextlib.contextmanager
def open_releases(on: str) -> Iterator[OpenPool[Question]]:
    """Connect to a Ray cluster whose nodes probe the releases of a bisection; disconnect at the end.

    Raises:
        ReprosError: as :func:`open_cluster`.
    """
    with connect(on):
        from repros.cluster.releases import ClusterPool  # noqa: PLC0415 - imports Ray

        yield ClusterPool
