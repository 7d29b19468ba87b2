"""Programs with accelerate and datasets: `failing`, one for each check of `alone`, and `healthy` ones nearly the same.

All of a kind run in one process, since importing the libraries takes most of the time.
"""

from __future__ import annotations

import importlib
import os
import sys
import tempfile
from pathlib import Path

import torch
from accelerate import Accelerator, FullyShardedDataParallelPlugin
from datasets import Dataset, load_from_disk
from torch import nn
from torch.utils.data import DataLoader

STEEP, FLAT = torch.tensor([[8.0], [-4.0]] * 2), torch.tensor([[0.2], [0.1]] * 2)


def train(update, data=STEEP, wait=2):
    """Train on micro-batches of one, whose gradient is the sample itself, divided by `wait`."""
    accelerator = Accelerator(cpu=True, gradient_accumulation_steps=wait)
    model = nn.Linear(1, 1, bias=False)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    model, optimizer, loader = accelerator.prepare(model, optimizer, DataLoader(data))
    for number, batch in enumerate(loader):
        with accelerator.accumulate(model):
            update(accelerator, model, optimizer, model(batch).mean(), number)


def clip_each(accelerator, model, optimizer, loss, _, limit=1.0):
    accelerator.backward(loss)
    accelerator.clip_grad_norm_(model.parameters(), limit)
    optimizer.step()
    optimizer.zero_grad()


def measure_each(*call):
    clip_each(*call, limit=float("inf"))


def clip_complete(accelerator, model, optimizer, loss, _):
    accelerator.backward(loss)
    if accelerator.sync_gradients:
        accelerator.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    optimizer.zero_grad()


def clip_and_drop(accelerator, model, optimizer, loss, number):
    accelerator.backward(loss)
    if number == 0:  # a look at the gradient of the first sample, which is no part of the training
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        model.zero_grad()
    else:
        optimizer.step()
        optimizer.zero_grad()


def zero_first(accelerator, model, optimizer, loss, _):
    optimizer.zero_grad()
    accelerator.backward(loss)
    optimizer.step()


def zero_model(accelerator, model, optimizer, loss, _):
    accelerator.backward(loss)
    optimizer.step()
    model.zero_grad()


def skip_second(accelerator, model, optimizer, loss, number):
    accelerator.backward(loss)
    if number == 1:  # as where a loss is not finite
        model.zero_grad()
    else:
        optimizer.step()
        optimizer.zero_grad()


def new_model():
    return nn.Linear(1, 1, bias=False)


def save(folder):
    accelerator = Accelerator(cpu=True)
    accelerator.prepare(new_model())
    accelerator.save_state(folder)
    return Accelerator(cpu=True)


def step_once(model):
    model(torch.ones(1, 1)).sum().backward()


def load_early(folder):
    accelerator = save(folder)
    accelerator.load_state(folder)
    step_once(accelerator.prepare(new_model()))


def load_in_time(folder):
    accelerator = save(folder)
    model = accelerator.prepare(new_model())
    accelerator.load_state(folder)
    step_once(model)


def load_twice(folder):
    accelerator = save(folder)
    accelerator.load_state(folder)
    model = accelerator.prepare(new_model())
    accelerator.load_state(folder)
    step_once(model)


def load_weights_too(folder):
    accelerator = save(folder)
    accelerator.load_state(folder)
    model = accelerator.prepare(new_model())
    model.load_state_dict({"weight": torch.ones(1, 1)})
    step_once(model)


def load_by_a_hook(folder):
    accelerator = save(folder)
    accelerator.register_load_state_pre_hook(lambda models, input_dir: None)
    accelerator.load_state(folder)
    step_once(accelerator.prepare(new_model()))


def load_generators_alone(folder):
    Accelerator(cpu=True).save_state(folder)
    accelerator = Accelerator(cpu=True)
    accelerator.load_state(folder)
    step_once(accelerator.prepare(new_model()))


def skip(again=True, counts=(2, 2), loads=None):
    accelerator = Accelerator(cpu=True)
    loader = accelerator.prepare(DataLoader(torch.arange(4)))
    first, second = counts
    list(accelerator.skip_first_batches(loader, first))
    if loads is not None:
        accelerator.save_state(loads)
        accelerator.load_state(loads)
    list(accelerator.skip_first_batches(loader, second) if again else loader)


def look_first():
    accelerator = Accelerator(cpu=True)
    rest = accelerator.skip_first_batches(accelerator.prepare(DataLoader(torch.arange(4))), 2)
    next(iter(rest))
    list(rest)


def shuffled_stream():
    return Dataset.from_dict({"x": range(20)}).to_iterable_dataset(num_shards=4).shuffle(seed=0, buffer_size=20)


def same(row):
    return row


def read_epochs(stream, target, look=False):
    for epoch in range(2):
        target.set_epoch(epoch)
        if look:
            next(iter(target))
        list(DataLoader(stream))


def prepare_sharded():
    """Ask for FSDP in a program of one process, which has nothing to shard."""
    Accelerator(cpu=True, fsdp_plugin=FullyShardedDataParallelPlugin()).prepare(new_model())
    os.environ.pop("ACCELERATE_USE_FSDP", None)


def divided(workers=(0, 2), shards=2, rows=8):
    """Read the first rows of a stream, and the others, by loaders with these numbers of workers."""
    stream = Dataset.from_dict({"x": range(20)}).to_iterable_dataset(num_shards=shards)
    parts = stream.take(rows), stream.skip(rows).map(same)
    for part, count in zip(parts, workers, strict=True):
        list(DataLoader(part, num_workers=count))


def peeked():
    stream = Dataset.from_dict({"x": range(20)}).to_iterable_dataset(num_shards=2)
    next(iter(stream.take(2)))
    list(DataLoader(stream.skip(8), num_workers=2))


def shown(rows=1, workers=2):
    """Look at the first rows of a part, and read both parts by loaders with one number of workers."""
    stream = Dataset.from_dict({"x": range(20)}).to_iterable_dataset(num_shards=2)
    held_out, rest = stream.take(8), stream.skip(8)
    for _ in zip(range(rows), held_out, strict=False):
        pass
    list(DataLoader(rest, num_workers=workers))
    if rows == 1:
        list(DataLoader(held_out, num_workers=workers))


def map_twice(folder, edit=True, **options):
    """Map the function of a module, edit the module, and map it again, as in a notebook."""
    Dataset.from_dict({"x": [1, 2]}).save_to_disk(f"{folder}/data")
    sys.path.insert(0, folder)
    for number in (1, 10 if edit else 1):
        Path(folder, "steps.py").write_text(f"def add(row):\n    return {{'x': row['x'] + {number}}}\n", "utf-8")
        importlib.invalidate_caches()
        steps = importlib.reload(importlib.import_module("steps"))
        load_from_disk(f"{folder}/data").map(steps.add, **{name: make(number) for name, make in options.items()})
    sys.path.remove(folder)
    del sys.modules["steps"]


def map_without_result(folder):
    Dataset.from_dict({"x": [1, 2]}).save_to_disk(f"{folder}/data")
    seen = []
    load_from_disk(f"{folder}/data").map(lambda row: seen.append(row["x"]))
    load_from_disk(f"{folder}/data").map(lambda row: seen.append(row["x"] + 1))


def failing(folder):
    train(clip_each)
    train(zero_first)
    load_early(f"{folder}/early")
    skip()
    parent = shuffled_stream()
    read_epochs(parent.map(same), parent)
    map_twice(f"{folder}/mapped")
    divided()


def healthy(folder):
    shown()  # before any step
    shown(rows=8)
    for update in (clip_complete, measure_each, clip_and_drop, skip_second):
        train(update)
    train(clip_each, FLAT)
    train(clip_each, wait=1)
    train(zero_first, wait=1)
    train(zero_model, wait=1)
    for load in (load_in_time, load_twice, load_weights_too, load_by_a_hook, load_generators_alone):
        load(f"{folder}/{load.__name__}")
    skip(again=False)
    skip(counts=(1, 2))
    skip(counts=(0, 0))
    skip(loads=f"{folder}/skipped")
    look_first()
    parent = shuffled_stream()
    mapped = parent.map(same)
    read_epochs(mapped, mapped)
    read_epochs(parent, parent)
    read_epochs(parent.map(same), parent, look=True)  # what has the epoch is read, too
    ordered = Dataset.from_dict({"x": range(20)}).to_iterable_dataset(num_shards=4)
    read_epochs(ordered.map(same), ordered)
    divided(workers=(2, 2))
    divided(workers=(0, 0))
    divided(workers=(0, 1))
    divided(shards=1)  # a single worker reads it
    divided(rows=1)
    peeked()
    prepare_sharded()
    map_without_result(f"{folder}/counted")
    map_twice(f"{folder}/unchanged", edit=False)
    map_twice(f"{folder}/computed", load_from_cache_file=lambda _: False)
    map_twice(f"{folder}/named", new_fingerprint=lambda number: f"add{number}")


if __name__ == "__main__":
    sys.dont_write_bytecode = True
    with tempfile.TemporaryDirectory() as place:
        {"failing": failing, "healthy": healthy}[sys.argv[1]](place)
