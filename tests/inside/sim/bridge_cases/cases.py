"""A case for each bridge: what the library does at the bridge's line, with the bridge and without it."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from typing import Any, NamedTuple


class Case(NamedTuple):
    """A use of a bridge; the outcome is the text of what `act` returns or raises."""

    act: Callable[[], Any]
    bridged: str
    """A part of the outcome with the bridge."""
    bare: str
    """A regular expression for the outcome without the bridge; messages differ between versions."""


def _trainer(**settings: Any) -> Any:
    from lightning.pytorch import Trainer

    quiet = {"logger": False, "enable_checkpointing": False, "enable_progress_bar": False}
    return Trainer(**{"devices": 1, "enable_model_summary": False, **quiet, **settings})


def _both(act: Callable[[Any], Any]) -> str:
    """Return the outcomes of the Trainer and of Fabric, which both have the line."""
    from lightning.fabric import Fabric

    outcomes = []
    for make in (_trainer, lambda **settings: Fabric(**{"devices": 1, **settings})):
        try:
            outcomes.append(str(act(make)))
        except Exception as error:  # noqa: BLE001 # the message is the outcome
            outcomes.append(str(error))
    return " | ".join(outcomes)


def _accelerator() -> str:
    return _both(lambda make: _part(make(accelerator="sim"), "accelerator").__class__.__name__)


def _part(of: Any, name: str) -> Any:
    return getattr(of, name, None) or getattr(of, f"_{name}")


def _process_group() -> str:
    import torch
    from lightning.fabric.utilities import distributed

    return str(distributed._get_default_process_group_backend_for_device(torch.device("sim")))


def _one_rank(strategy: Any, **settings: Any) -> Any:
    """Return a DDP strategy in a process group of one rank."""
    import torch
    from lightning.fabric.plugins.environments import LightningEnvironment

    os.environ.update(MASTER_ADDR="localhost", MASTER_PORT="0", WORLD_SIZE="1", RANK="0")
    torch.distributed.init_process_group("simccl", store=torch.distributed.HashStore(), rank=0, world_size=1)
    return strategy(parallel_devices=[torch.device("sim:0")], cluster_environment=LightningEnvironment(), **settings)


def _ddp() -> str:
    """Compute a gradient in one rank; both strategies wrap the module with the same line."""
    import torch
    from lightning.fabric.strategies import DDPStrategy

    module = _one_rank(DDPStrategy).setup_module(torch.nn.Linear(2, 2).to("sim:0"))
    module(torch.ones(1, 2, device="sim:0")).sum().backward()
    return str(module.module.weight.grad.device)


def _communication_hook() -> str:
    import torch
    from lightning.pytorch.strategies import DDPStrategy
    from torch.distributed.algorithms.ddp_comm_hooks.default_hooks import allreduce_hook

    strategy = _one_rank(DDPStrategy, ddp_comm_hook=allreduce_hook)
    strategy.model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(2, 2).to("sim:0"))
    strategy._register_ddp_hooks()
    return str(strategy.model._get_ddp_logging_data().get("comm_hook"))


def _one_device() -> str:
    return _both(lambda make: _part(make(accelerator="sim"), "strategy").root_device)


def _auto() -> str:
    return _both(lambda make: _part(make(accelerator="auto"), "accelerator").__class__.__name__)


def _gpu() -> str:
    return _both(lambda make: _part(make(accelerator="gpu"), "accelerator").__class__.__name__)


def _mixed_precision() -> str:
    def device(make: Any) -> Any:
        made = make(accelerator="sim", precision="bf16-mixed")
        return (made.precision_plugin if hasattr(made, "precision_plugin") else made._precision).device

    return _both(device)


def _fsdp() -> str:
    return _both(lambda make: _part(make(accelerator="sim", strategy="fsdp"), "strategy").__class__.__name__)


def _out_of_memory_error() -> RuntimeError:
    import torch

    try:
        torch.empty(1 << 60, dtype=torch.uint8, device="sim")
    except RuntimeError as error:
        return error
    raise AssertionError("an exbibyte was allocated")


def _lightning_out_of_memory() -> bool:
    from lightning.pytorch.utilities.memory import is_oom_error

    return bool(is_oom_error(_out_of_memory_error()))


def _default_device() -> str:
    import torch
    from accelerate import Accelerator

    accelerator = Accelerator()
    model, batches = accelerator.prepare(torch.nn.Linear(2, 2), torch.utils.data.DataLoader(torch.ones(2, 2)))
    return f"{model(next(iter(batches))).device} {accelerator.num_processes}"


def _rank() -> str:
    import torch
    from accelerate import Accelerator

    with tempfile.TemporaryDirectory() as folder:
        store = torch.distributed.FileStore(f"{folder}/store", 1)
        os.environ.update(LOCAL_RANK="0", RANK="0", WORLD_SIZE="1", MASTER_ADDR="localhost", MASTER_PORT="29511")
        begin = torch.distributed.init_process_group

        def init_with_file(backend: str, **settings: Any) -> None:  # a port may be in use
            begin(backend, store=store, **{"rank": 0, "world_size": 1, **settings})

        torch.distributed.init_process_group = init_with_file
        accelerator = Accelerator()
        gathered = accelerator.gather(torch.ones(1, device=accelerator.device))
        backend = torch.distributed.get_backend() if torch.distributed.is_initialized() else None
        return f"{gathered.device} {backend}"


def _device_map() -> str:
    import torch
    from accelerate import infer_auto_device_map
    from accelerate.utils import get_balanced_memory

    model = torch.nn.Sequential(*(torch.nn.Linear(8, 8) for _ in range(4)))
    return str(sorted(map(str, set(infer_auto_device_map(model, get_balanced_memory(model)).values()))))


def _random_state() -> bool:
    import torch
    from accelerate import Accelerator

    os.environ["ACCELERATE_TORCH_DEVICE"] = "sim"
    accelerator = Accelerator()
    with tempfile.TemporaryDirectory() as folder:
        accelerator.save_state(folder)
        drawn = torch.rand(4, device="sim:1")
        accelerator.load_state(folder)
    return bool(torch.equal(drawn, torch.rand(4, device="sim:1")))


def _float16() -> str:
    import torch
    from accelerate import Accelerator

    os.environ["ACCELERATE_TORCH_DEVICE"] = "sim"
    accelerator = Accelerator(mixed_precision="fp16")
    layer = torch.nn.Linear(2, 2)
    layer, optimizer = accelerator.prepare(layer, torch.optim.SGD(layer.parameters()))
    with accelerator.autocast():
        loss = layer(torch.ones(1, 2, device="sim")).sum()
    accelerator.backward(loss)
    optimizer.step()
    return f"{accelerator.scaler.get_scale():.0f} {layer.weight.grad.device}"


def _accelerate_out_of_memory() -> bool:
    from accelerate.utils.memory import should_reduce_batch_size

    return bool(should_reduce_batch_size(_out_of_memory_error()))


def _file_for_a_device() -> str:
    import torch
    from safetensors import safe_open
    from safetensors.torch import load_file, save_file

    with tempfile.TemporaryDirectory() as folder:
        save_file({"weight": torch.ones(4, 2, device="sim:1")}, f"{folder}/file")
        whole = load_file(f"{folder}/file", device="sim:1")["weight"]
        with safe_open(f"{folder}/file", framework="pt", device="sim:1") as file:
            part = file.get_slice("weight")
            assert part.get_shape() == [4, 2]
            assert file.keys() == ["weight"]
            return f"{whole.device} {part[:2].device} {file.get_tensor('weight').device}"


def _transformers_trainer() -> str:
    from transformers import TrainingArguments

    with tempfile.TemporaryDirectory() as folder:
        arguments = TrainingArguments(folder, report_to=[])
        return f"{arguments.device} {arguments.n_gpu}"


CASES = {
    "lightning: the registry of accelerators": Case(
        _accelerator,
        "SimAccelerator | SimAccelerator",
        r"accelerator name: `accelerator='sim'`.* \| .*accelerator name: `accelerator='sim'`",
    ),
    "lightning: the process group's backend": Case(_process_group, "simccl", "^gloo$"),
    "lightning: DDP's stream": Case(
        _ddp, "sim:0", "NVIDIA|CUDA error|requires CUDA support|not compiled with CUDA|dummy base"
    ),
    "lightning: DDP's communication hooks": Case(_communication_hook, "allreduce_hook", "^None$"),
    "lightning: the strategy for one device": Case(_one_device, "sim:0 | sim:0", r"^cpu \| cpu$"),
    'lightning: accelerator="auto"': Case(
        _auto, "SimAccelerator | SimAccelerator", r"^CPUAccelerator \| CPUAccelerator$"
    ),
    'lightning: accelerator="gpu"': Case(
        _gpu, "SimAccelerator | SimAccelerator", r"^No supported gpu backend found! \| No supported gpu backend found!$"
    ),
    "lightning: mixed precision": Case(_mixed_precision, "sim | sim", r"^cuda \| cuda$"),
    "lightning: FSDP": Case(_fsdp, "FSDPStrategy | FSDPStrategy", r"GPU.* \| .*GPU"),
    "lightning: out of memory": Case(_lightning_out_of_memory, "True", "^False$"),
    "accelerate: the default device": Case(_default_device, "sim:0 1", "^cpu 1$"),
    "accelerate: ranks": Case(_rank, "sim:0 simccl", r"^sim:0 undefined$|^sim:0 None$|^cpu gloo$"),
    "accelerate: the memory of devices": Case(_device_map, "['0', '1']", r"^\['cpu'\]$"),
    "accelerate: random state in checkpoints": Case(_random_state, "True", "^False$"),
    "accelerate: float16": Case(_float16, "32768 sim:0", "fp16 mixed precision requires a (GPU|device)"),
    "accelerate: out of memory": Case(_accelerate_out_of_memory, "True", "^False$"),
    "safetensors: a file for a device": Case(_file_for_a_device, "sim:1 sim:1 sim:1", "device sim:1 is invalid"),
    "transformers: the Trainer's device": Case(_transformers_trainer, "sim:0 1", "^cpu 0$"),
}
