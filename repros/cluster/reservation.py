"""Resource reservation: the Ray task that holds the CPUs and GPUs of a cell. Few imports, since each worker has it."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import ray

from repros.cluster.worker_environment import restore_priority


def run_reserved(node_agent: Any, method: str, *arguments: Any) -> Any:
    """Call a method of the node agent with the GPUs that Ray has assigned to this task, and return its result."""
    restore_priority()
    gpus = tuple(map(str, ray.get_gpu_ids()))
    result = getattr(node_agent, method).remote(*arguments, gpus)
    # Not in the main thread: Ray releases the CPUs of a task that waits there.
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(ray.get, result).result()
