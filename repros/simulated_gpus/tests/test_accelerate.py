"""accelerate, unmodified: an Accelerator in one process and in two ranks, and models dispatched over devices."""

from __future__ import annotations

import textwrap
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="runs in an environment with torch")

LAUNCH = """
import runpy, sys
sys.argv = ["torchrun", "--standalone", "--nproc-per-node", "2", *sys.argv[1:]]
runpy.run_module("torch.distributed.run", run_name="__main__")
"""
RANKS = """
    import os, sys
    import torch
    from accelerate import Accelerator
    accelerator = Accelerator()
    torch.manual_seed(0)
    layer = torch.nn.Linear(2, 1)
    data = torch.arange(16.0).reshape(8, 2)
    layer, optimizer, loader = accelerator.prepare(
        layer, torch.optim.SGD(layer.parameters(), lr=0.1), torch.utils.data.DataLoader(data, batch_size=2)
    )
    for batch in loader:
        loss = layer(batch).pow(2).mean()
        accelerator.backward(loss)
        gradients = accelerator.gather(layer.module.weight.grad)
        optimizer.zero_grad()
    state = (accelerator.device, accelerator.distributed_type.value, len(loader), gradients.device)
    equal = torch.equal(gradients[0], gradients[1])
    seen = int(accelerator.gather(batch).sum())
    # one write, because two ranks share the pipe
    sys.stdout.write(" ".join(map(str, (*state, type(layer).__name__, equal, seen))) + "\\n")
    torch.distributed.destroy_process_group()
    sys.stdout.flush()
    os._exit(0)  # as Python ends, a thread of Gloo's may abort the process (pytorch#190489)
"""


@pytest.fixture
def accelerate(sim: Any) -> Any:
    return pytest.importorskip("accelerate", reason="accelerate is not installed in this environment")


@pytest.fixture
def model() -> Any:
    torch.manual_seed(0)
    return torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.Linear(8, 8), torch.nn.Linear(8, 2)).eval()


@pytest.mark.usefixtures("collectives")
def test_two_ranks_train_alike(accelerate: Any, run_warm: Any, tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(textwrap.dedent(RANKS))
    ended = run_warm(LAUNCH, str(script))
    lines = sorted(line for line in ended.stdout.splitlines() if line.startswith("cuda:"))
    # Each rank sees half of the batches; the last two contain 8 to 15.
    assert lines == [
        f"cuda:{rank} MULTI_GPU 2 cuda:{rank} DistributedDataParallel True {sum(range(8, 16))}" for rank in range(2)
    ], ended.stdout + ended.stderr


@pytest.mark.parametrize(
    "device_map",
    [
        {"0": "cuda:0", "1": "cuda:1", "2": "cpu"},
        {"0": "cpu", "1": "cuda:1", "2": "cuda:0"},
        {"": "cuda:1"},
    ],
    ids=["to the cpu", "from the cpu", "whole"],
)
def test_a_dispatched_model_computes_the_same(accelerate: Any, model: Any, device_map: Any) -> None:
    x = torch.arange(8.0).reshape(2, 4)
    expected = model(x)
    main = next(device for device in device_map.values() if device != "cpu")
    there = accelerate.dispatch_model(model, dict(device_map), main_device=main)
    assert {str(tensor.device) for tensor in there.parameters()} <= {"cuda:0", "cuda:1", "meta"}
    # A model on one device gets no hooks that move its input.
    assert torch.equal(there(x.to(main) if len(device_map) == 1 else x).cpu(), expected)


@pytest.mark.parametrize("form", ["torch", "safetensors"])
def test_weights_are_loaded_to_where_they_belong(accelerate: Any, model: Any, form: Any, tmp_path: Path) -> None:
    if form == "torch":
        file = tmp_path / "model.bin"
        torch.save(model.state_dict(), file)
    else:
        pytest.importorskip("safetensors", reason="safetensors is not installed in this environment")
        from safetensors.torch import save_file

        file = tmp_path / "model.safetensors"
        save_file(model.state_dict(), file, metadata={"format": "pt"})
    with accelerate.init_empty_weights():
        empty = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.Linear(8, 8), torch.nn.Linear(8, 2))
    device_map = {"0": "cuda:1", "1": "cuda:0", "2": "cuda:1"}
    loaded = accelerate.load_checkpoint_and_dispatch(empty, str(file), device_map=device_map)
    assert [str(layer.weight.device) for layer in loaded] == ["cuda:1", "cuda:0", "cuda:1"]
    assert torch.equal(loaded[1].weight.cpu(), model[1].weight)


def test_a_model_kept_on_the_cpu_comes_to_the_device_for_each_call(accelerate: Any, model: Any) -> None:
    x = torch.ones(1, 4)
    expected = model(x)
    there, hook = accelerate.cpu_offload_with_hook(model, "cuda:1")
    made = there(x)
    assert made.device == there[0].weight.device == torch.device("cuda:1")
    assert torch.equal(made.cpu(), expected)
    hook.offload()
    assert there[0].weight.device.type == "cpu"


@pytest.fixture
def new_state(accelerate: Any) -> Any:
    from accelerate.state import AcceleratorState

    AcceleratorState._reset_state(True)
    yield
    AcceleratorState._reset_state(True)


@pytest.mark.usefixtures("new_state", "collectives")
def test_bfloat16_is_computed_in(accelerate: Any) -> None:
    accelerator = accelerate.Accelerator(mixed_precision="bf16")
    layer = torch.nn.Linear(2, 2).to(accelerator.device)
    with accelerator.autocast():
        assert layer(torch.ones(1, 2, device="cuda")).dtype == torch.bfloat16
