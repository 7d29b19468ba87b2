"""What programs do with processes, loaders and short lives."""

from __future__ import annotations

import gc
import os
import tempfile
from pathlib import Path

import torch
from situations import batch, network, situation, train
from torch.utils.data import DataLoader, IterableDataset, TensorDataset


class Stream(IterableDataset):
    def __iter__(self):
        worker = torch.utils.data.get_worker_info()
        yield from (torch.randn(4) for _ in range(4 if worker is None else 2 + worker.id))


@situation
def loaders():
    model = network()
    data = TensorDataset(torch.randn(32, 4))
    seen = []
    for source, options in (
        (data, {"shuffle": True, "num_workers": 2, "multiprocessing_context": "fork", "persistent_workers": True}),
        (data, {"sampler": torch.utils.data.WeightedRandomSampler(torch.ones(32), 16)}),
        (Stream(), {"num_workers": 2, "multiprocessing_context": "fork"}),
    ):
        loader = DataLoader(source, batch_size=4, **options)
        for _ in range(2):
            for loaded in loader:
                seen.append(loaded[0] if isinstance(loaded, list) else loaded)
                train(model, steps=1, forward=lambda _, x=seen[-1]: model(x) if len(x) > 1 else model(batch()))
    return model, seen


@situation
def forked():
    model = network()
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    train(model, optimizer, 2)
    with tempfile.TemporaryDirectory() as folder:
        child = os.fork()
        if child == 0:
            train(model, optimizer, 2)
            torch.save(model.state_dict(), Path(folder, "child.pt"))
            os._exit(0)
        assert os.waitpid(child, 0)[1] == 0
        theirs = torch.load(Path(folder, "child.pt"))
    return train(model, optimizer, 2), theirs


@situation
def from_a_generator():
    model = network()
    optimizer = torch.optim.SGD(model.parameters(), 0.1)

    def losses():
        while True:
            optimizer.zero_grad()
            loss = model(batch()).mean()
            loss.backward()
            optimizer.step()
            yield loss.detach()

    stream = losses()
    seen = [next(stream) for _ in range(3)]
    stream.close()
    return model, seen


@situation
def many_short_lives():
    for _ in range(20):
        model = train(network(), steps=2)
    gc.collect()
    return model
