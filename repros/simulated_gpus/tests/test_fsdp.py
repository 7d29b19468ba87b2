"""Sharded training on sim compared with Gloo on CPU tensors: FSDP1, FSDP2, their checkpoints, and DTensor.

Where a version has one of them for CUDA only, or not at all, the test expects that version's own error.
"""

from __future__ import annotations

import importlib
import warnings
from pathlib import Path
from typing import Any

import pytest

from repros.simulated_gpus.tests.release import TORCH

torch = pytest.importorskip("torch", reason="runs in an environment with torch")
if TORCH < (2, 1):
    reason = "torch 2.0 has no process-group backends for devices other than the CPU and CUDA"
    pytest.skip(reason, allow_module_level=True)

from repros.simulated_gpus.tests.ranks import Bits, RankFailedError, Ranks  # noqa: E402

dist = torch.distributed
STEPS = 4

needs_fsdp2 = pytest.mark.skipif(TORCH < (2, 4), reason="FSDP2 is from torch 2.4 on")


def _first_available(*places: str) -> Any:
    """Return the first `module:name` that this version has."""
    for place in places:
        module, _, name = place.partition(":")
        try:
            return getattr(importlib.import_module(module), name)
        except (ImportError, AttributeError):
            continue
    raise AssertionError(places)


def _net(device: str) -> Any:
    torch.manual_seed(0)
    inner = torch.nn.Sequential(torch.nn.Linear(16, 16), torch.nn.ReLU())
    layers = [torch.nn.Linear(8, 16), torch.nn.ReLU(), inner, torch.nn.Linear(16, 3)]
    return torch.nn.Sequential(*layers).to(device)


def _train(net: Any, device: str, rank: int) -> tuple[list[Bits], Any]:
    optimizer = torch.optim.AdamW(net.parameters(), lr=0.05)
    rows = torch.randn(STEPS, 16, 8, generator=torch.Generator().manual_seed(rank)).to(device)
    losses = []
    for batch in rows:
        optimizer.zero_grad()
        loss = net(batch).pow(2).mean()
        loss.backward()
        losses.append(Bits.of(loss))
        optimizer.step()
    return losses, optimizer


def _bits(tensors: Any) -> dict[str, Bits]:
    return {name: Bits.of(tensor) for name, tensor in sorted(tensors.items())}


def _rounded_bits(norm: Any) -> Bits:
    """Return a norm without its last bits, which depend on memory addresses: 1 run of 25, on the CPU too."""
    return Bits.of(norm.bfloat16())


def _without_devices(answers: Any) -> Any:
    """Return answers without the names of devices."""
    if isinstance(answers, Bits):
        return answers._replace(device="")
    if isinstance(answers, dict):
        return {name: _without_devices(value) for name, value in answers.items()}
    return [_without_devices(value) for value in answers] if isinstance(answers, (list, tuple)) else answers


# --- FSDP1


def _fsdp1(rank: int, device: str, strategy: str, original: bool) -> list[Any]:
    from torch.distributed import fsdp

    policy = _first_available("torch.distributed.fsdp.wrap:ModuleWrapPolicy")({torch.nn.Sequential})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        net = fsdp.FullyShardedDataParallel(
            _net(device),
            auto_wrap_policy=policy,
            sharding_strategy=getattr(fsdp.ShardingStrategy, strategy),
            use_orig_params=original,
            device_id=torch.device("cuda", rank) if device == "cuda" else torch.device("cpu"),
        )
        losses, optimizer = _train(net, device, rank)
        norm = _rounded_bits(net.clip_grad_norm_(0.01))
        whole = _bits(net.state_dict())
        state = fsdp.FullyShardedDataParallel.optim_state_dict(net, optimizer)["state"]
        momenta = {name: Bits.of(value["exp_avg"]) for name, value in sorted(state.items())}
    return [losses, norm, whole, momenta]


def _ddp(rank: int) -> list[Any]:
    """Train with DDP on the CPU, which is the same computation."""
    net = torch.nn.parallel.DistributedDataParallel(_net("cpu"))
    losses, optimizer = _train(net, "cpu", rank)
    names = [name for name, _ in net.module.named_parameters()]
    momenta = {name: Bits.of(value["exp_avg"]) for name, value in zip(names, optimizer.state.values())}
    return [losses, _bits(net.module.state_dict()), dict(sorted(momenta.items()))]


@pytest.mark.parametrize("original", [True, False], ids=["original parameters", "flat parameters"])
@pytest.mark.parametrize("strategy", ["FULL_SHARD", "SHARD_GRAD_OP", "NO_SHARD"])
def test_fsdp1_trains_bit_for_bit_as_on_the_cpu(strategy: str, original: bool, ranks: Ranks) -> None:
    on_sim = ranks.call(_fsdp1, "cuda", strategy, original)
    assert all(bits.device == "cuda" for answer in on_sim for bits in (*answer[0], answer[1], *answer[2].values()))
    for (losses, _, weights, momenta), ddp in zip(on_sim, ranks.call(_ddp)):  # as above
        # On the CPU FSDP1 itself returns views: a momentum has the values of the state gathered later.
        assert _without_devices([losses, weights, momenta]) == _without_devices(ddp)
    if TORCH < (2, 2):
        with pytest.raises(RankFailedError, match=r"Stream\(\) takes no arguments"):
            ranks.call(_fsdp1, "cpu", strategy, original)
    else:
        on_cpu = ranks.call(_fsdp1, "cpu", strategy, original)
        assert _without_devices([answer[:3] for answer in on_sim]) == _without_devices(
            [answer[:3] for answer in on_cpu]
        )


# --- FSDP2


def _fsdp2_net(device: str) -> Any:
    fully_shard = _first_available(
        "torch.distributed.fsdp:fully_shard", "torch.distributed._composable.fsdp:fully_shard"
    )
    mesh = _first_available("torch.distributed.device_mesh:init_device_mesh")(device, (2,))
    net = _net(device)
    fully_shard(net[2], mesh=mesh)
    fully_shard(net, mesh=mesh)
    return net


def _fsdp2(rank: int, device: str, folder: str) -> list[Any]:
    checkpoint = importlib.import_module("torch.distributed.checkpoint")
    state_dicts = importlib.import_module("torch.distributed.checkpoint.state_dict")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        net = _fsdp2_net(device)
        losses, optimizer = _train(net, device, rank)
        norm = _rounded_bits(torch.nn.utils.clip_grad_norm_(net.parameters(), 0.01).full_tensor())
        whole = _bits(state_dicts.get_model_state_dict(net, options=state_dicts.StateDictOptions(full_state_dict=True)))
        shards = {name: Bits.of(shard.to_local()) for name, shard in net.state_dict().items()}
        model, state = state_dicts.get_state_dict(net, optimizer)
        checkpoint.save({"model": model, "optimizer": state}, checkpoint_id=f"{folder}/{device}")
        fresh = _fsdp2_net(device)
        with torch.no_grad():
            for parameter in fresh.parameters():
                parameter.zero_()
        fresh_optimizer = torch.optim.AdamW(fresh.parameters(), lr=0.05)
        model, state = state_dicts.get_state_dict(fresh, fresh_optimizer)
        checkpoint.load({"model": model, "optimizer": state}, checkpoint_id=f"{folder}/{device}")
        state_dicts.set_state_dict(fresh, fresh_optimizer, model_state_dict=model, optim_state_dict=state)
        back = {name: Bits.of(shard.to_local()) for name, shard in fresh.state_dict().items()}
        momenta = [Bits.of(value["exp_avg"].to_local()) for value in fresh_optimizer.state.values()]
    assert back == shards
    return [losses, norm, whole, momenta]


@needs_fsdp2
def test_fsdp2_trains_and_resumes_bit_for_bit_as_on_the_cpu(ranks: Ranks, tmp_path: Path) -> None:
    on_sim = ranks.call(_fsdp2, "cuda", str(tmp_path))
    assert _without_devices([[answer[0], answer[2]] for answer in on_sim]) == _without_devices(
        [result[:2] for result in ranks.call(_ddp)]
    )
    assert all(bits.device == "cuda" for answer in on_sim for bits in (*answer[0], *answer[2].values(), *answer[3]))
    if TORCH < (2, 7):
        with pytest.raises(RankFailedError, match=r"has no attribute 'record_event'|modified by an inplace operation"):
            ranks.call(_fsdp2, "cpu", str(tmp_path))
    else:
        assert _without_devices(on_sim) == _without_devices(ranks.call(_fsdp2, "cpu", str(tmp_path)))


# --- DTensor


def _dtensor(rank: int, device: str) -> list[Any]:
    place = "torch.distributed.tensor", "torch.distributed._tensor"
    distribute, shard, replicate, device_mesh = (
        _first_available(*(f"{module}:{name}" for module in place))
        for name in ("distribute_tensor", "Shard", "Replicate", "DeviceMesh")
    )
    mesh = device_mesh(device, list(range(2)))
    numbers = torch.arange(20.0).reshape(4, 5).to(device)
    rows, columns = distribute(numbers, mesh, [shard(0)]), distribute(numbers.t().contiguous(), mesh, [shard(1)])
    # Early versions return a tensor that is not yet there; an operator waits for it.
    product = (columns @ rows).redistribute(mesh, [replicate()]).to_local() + 0
    turned = rows.redistribute(mesh, [shard(1)]).to_local() + 0
    return [Bits.of(product), Bits.of(turned), tuple(turned.shape)]


def test_dtensors_are_multiplied_and_redistributed(ranks: Ranks) -> None:
    on_sim = ranks.call(_dtensor, "cuda")
    assert {bits.device for answer in on_sim for bits in answer[:2]} == {"cuda"}
    assert [answer[2] for answer in on_sim] == [(4, 3), (4, 2)]
    assert _without_devices(on_sim) == _without_devices(ranks.call(_dtensor, "cpu"))


def _cast_after_sharding(_rank: int) -> list[str]:
    fully_shard = _first_available(
        "torch.distributed.fsdp:fully_shard", "torch.distributed._composable.fsdp:fully_shard"
    )
    mesh = _first_available("torch.distributed.device_mesh:init_device_mesh")("cuda", (2,))
    model = torch.nn.Linear(4, 4, device="cuda")
    fully_shard(model, mesh=mesh)
    model.to(torch.float64)
    model(torch.ones(2, 4, device="cuda", dtype=torch.float64)).sum().backward()
    return [str(tensor.grad.dtype) for tensor in model.parameters()]


@needs_fsdp2
def test_sharded_parameters_change_their_type(ranks: Ranks) -> None:
    assert ranks.call(_cast_after_sharding) == [["torch.float64"] * 2] * 2
