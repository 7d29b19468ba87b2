"""Time the steps of a training; print JSON: rank 0's seconds of each step, by clock, and its peak memory in bytes.

Usage: python training.py NETWORK PROCESSES STEPS [accounted]

`accounted` adds, under `repros watch`, the processor seconds that the watch's own observers take in each step.
"""

from __future__ import annotations

import importlib
import itertools
import json
import resource
import sys
import tempfile
import time
from collections.abc import Callable
from typing import Any

own = [0.0]
"""Processor seconds of the watch's observers so far."""
CLOCKS: dict[str, Callable[[], float]] = {
    "wall": time.perf_counter,
    "processor": time.process_time,
    "own": lambda: own[0],
}


def main(name: str, processes: int, steps: int, *options: str) -> None:
    """Train on one process, or on forked ranks."""
    import torch

    if "accounted" in options:
        account()

    torch.set_num_threads(1)  # threads that wait for each other on a busy machine would count as cost of the watch
    if processes == 1:
        train(0, name, steps)
        return
    with tempfile.TemporaryDirectory() as folder:
        arguments = (name, steps, processes, folder)
        torch.multiprocessing.start_processes(train, arguments, processes, start_method="fork")


def account() -> None:
    """Time the watch's observers, by the CPU time of the thread."""
    compiling: Any = importlib.import_module("repros.diagnose.watch.inside.observe.compiling")
    call, depth = compiling._call, 0

    def timed(observer: Any, *args: Any, **kwargs: Any) -> Any:
        nonlocal depth
        depth, began = depth + 1, time.thread_time()
        try:
            return call(observer, *args, **kwargs)
        finally:
            depth -= 1
            if depth == 0:
                own[0] += time.thread_time() - began

    compiling._call = timed


def train(rank: int, name: str, steps: int, processes: int = 1, folder: str = "") -> None:
    """Train a new network on random batches."""
    import torch

    torch.manual_seed(0)
    network, batch = NETWORKS[name]()
    if processes > 1:
        torch.distributed.init_process_group(
            "gloo", init_method=f"file://{folder}/store", rank=rank, world_size=processes
        )
        network = torch.nn.parallel.DistributedDataParallel(network)
    optimizer = torch.optim.AdamW(network.parameters(), lr=1e-4)
    torch.manual_seed(rank)  # data of its own, which the watch asks for
    data = torch.utils.data.TensorDataset(*(part.flatten(0, 1) for part in batch(steps)))
    loader = torch.utils.data.DataLoader(data, batch_size=len(data) // steps)
    seconds: dict[str, list[float]] = {clock: [] for clock in CLOCKS}
    began = {clock: read() for clock, read in CLOCKS.items()}
    for x, target in loader:
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(network(x).flatten(0, -2), target.flatten()).backward()
        optimizer.step()
        for clock, read in CLOCKS.items():
            now = read()
            seconds[clock].append(round(now - began[clock], 6))
            began[clock] = now
    if rank == 0:
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
        print(json.dumps({"seconds": seconds, "peak_bytes": peak}), flush=True)


def perceptron() -> Any:
    """Build small layers: the cost of a call dominates."""
    import torch

    layers = [torch.nn.Linear(64, 64), torch.nn.ReLU()] * 3
    network = torch.nn.Sequential(*layers, torch.nn.Linear(64, 10))
    return network, lambda steps: (torch.randn(steps, 32, 64), torch.randint(10, (steps, 32)))


def residual() -> Any:
    """Build a residual network of twenty convolutions over images of 32 by 32: arithmetic dominates."""
    import torch
    from torch import nn

    class Block(nn.Module):  # type: ignore[misc] # mypy does not see torch
        def __init__(self, before: int, after: int) -> None:
            super().__init__()
            stride = after // before
            self.inner = nn.Sequential(
                *(nn.Conv2d(before, after, 3, stride, 1, bias=False), nn.BatchNorm2d(after), nn.ReLU()),
                *(nn.Conv2d(after, after, 3, 1, 1, bias=False), nn.BatchNorm2d(after)),
            )
            self.outer = nn.Conv2d(before, after, 1, stride, bias=False) if stride > 1 else nn.Identity()

        def forward(self, x: Any) -> Any:
            return torch.relu(self.inner(x) + self.outer(x))

    sizes = [16, 16, 16, 16, 32, 32, 32, 64, 64, 64]
    blocks = [Block(*pair) for pair in itertools.pairwise(sizes)]
    network = nn.Sequential(
        *(nn.Conv2d(3, 16, 3, 1, 1, bias=False), nn.BatchNorm2d(16), nn.ReLU(), *blocks),
        *(nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(64, 10)),
    )
    return network, lambda steps: (torch.randn(steps, 16, 3, 32, 32), torch.randint(10, (steps, 16)))


def transformer() -> Any:
    """Build twelve layers of width 768 and an embedding of 20,000 words: 100 million parameters."""
    import torch
    from torch import nn

    class Model(nn.Module):  # type: ignore[misc] # mypy does not see torch
        def __init__(self) -> None:
            super().__init__()
            layer = nn.TransformerEncoderLayer(768, 12, 3072, dropout=0.1, batch_first=True, norm_first=True)
            self.words, self.places = nn.Embedding(20_000, 768), nn.Embedding(32, 768)
            self.layers = nn.TransformerEncoder(layer, 12, enable_nested_tensor=False)
            self.head = nn.Linear(768, 20_000, bias=False)
            self.head.weight = self.words.weight

        def forward(self, x: Any) -> Any:
            mask = nn.Transformer.generate_square_subsequent_mask(x.shape[1])
            inner = self.words(x) + self.places.weight[: x.shape[1]]
            return self.head(self.layers(inner, mask=mask, is_causal=True))

    def batch(steps: int) -> Any:
        return torch.randint(20_000, (steps, 2, 32)), torch.randint(20_000, (steps, 2, 32))

    return Model(), batch


NETWORKS = {"perceptron": perceptron, "residual": residual, "transformer": transformer}

if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), *sys.argv[4:])
