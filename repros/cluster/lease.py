"""The lease: the task by which Ray gives what runs on a node its processors and GPUs. Light: each worker imports it."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import ray

from repros.cluster.surroundings import restore_priority


def run_leased(node: Any, method: str, *arguments: Any) -> Any:
    """Let the node's own process run a method, with the GPUs that Ray has given to this task; return the outcome."""
    restore_priority()
    gpus = tuple(map(str, ray.get_gpu_ids()))
    outcome = getattr(node, method).remote(*arguments, gpus)
    # Not in the main thread: a task that waits there gives its processors back.
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(ray.get, outcome).result()
