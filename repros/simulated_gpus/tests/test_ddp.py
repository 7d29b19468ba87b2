"""DistributedDataParallel on sim compared with Gloo on CPU tensors: losses, weights and buffers."""

from __future__ import annotations

import warnings
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


class Net(torch.nn.Module):  # type: ignore[name-defined] # Any here
    """Two branches; a step uses one or both."""

    def __init__(self) -> None:
        super().__init__()
        self.first = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.BatchNorm1d(16), torch.nn.ReLU())
        self.second = torch.nn.Linear(16, 16)
        self.last = torch.nn.Linear(16, 2)
        self.register_buffer("seen", torch.zeros(1))

    def forward(self, rows: Any, both: bool = True) -> Any:
        self.seen += rows.mean()
        hidden = self.first(rows)
        return self.last(self.second(hidden) if both else hidden)


RECIPES: dict[str, dict[str, Any]] = {
    "plain": {},
    "small buckets": {"bucket_cap_mb": 0.0005},
    "no_sync": {"accumulate": True},
    "static graph": {"static_graph": True},
    "unused parameters": {"find_unused_parameters": True, "skip": True},
    "unused parameters, small buckets": {"find_unused_parameters": True, "skip": True, "bucket_cap_mb": 0.0005},
    "buffers of their own": {"broadcast_buffers": False},
    "gradients in the buckets": {"gradient_as_bucket_view": True, "bucket_cap_mb": 0.0005},
    "device_ids": {"bound": True},
    "hook: allreduce": {"hook": "default_hooks.allreduce_hook"},
    "hook: fp16_compress": {"hook": "default_hooks.fp16_compress_hook"},
    "hook: bf16_compress": {"hook": "default_hooks.bf16_compress_hook"},
    "hook: PowerSGD": {"hook": "powerSGD_hook.powerSGD_hook"},
}


def _train(rank: int, device: str, recipe: dict[str, Any]) -> tuple[list[Bits], list[Bits], list[Bits]]:
    recipe = dict(recipe)
    accumulate, skip, hook = recipe.pop("accumulate", False), recipe.pop("skip", False), recipe.pop("hook", None)
    if recipe.pop("bound", False) and device == "cuda":
        recipe["device_ids"] = [rank]
    torch.manual_seed(0)
    net = Net().to(device)
    ddp = torch.nn.parallel.DistributedDataParallel(net, **recipe)
    if hook:
        ddp.register_comm_hook(*_hook(hook))
    optimizer = torch.optim.AdamW(net.parameters(), lr=0.05)
    rows = torch.randn(2 * STEPS, 16, 8, generator=torch.Generator().manual_seed(rank))
    losses = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for step in range(STEPS):
            optimizer.zero_grad()
            if accumulate:
                with ddp.no_sync():
                    ddp(rows[STEPS + step].to(device)).pow(2).mean().backward()
            loss = ddp(rows[step].to(device), both=not (skip and step % 2)).pow(2).mean()
            loss.backward()
            optimizer.step()
            losses.append(Bits.of(loss))
    weights, buffers = ([Bits.of(tensor) for tensor in tensors] for tensors in (net.parameters(), net.buffers()))
    return losses, weights, buffers


def _hook(name: str) -> tuple[Any, Any]:
    import importlib

    module, _, function = name.partition(".")
    hooks = importlib.import_module(f"torch.distributed.algorithms.ddp_comm_hooks.{module}")
    if module == "powerSGD_hook":
        state = hooks.PowerSGDState(None, matrix_approximation_rank=1, start_powerSGD_iter=2, min_compression_rate=1)
        return state, hooks.powerSGD_hook
    return dist.group.WORLD, getattr(hooks, function)


def _content(answers: list[Any]) -> list[Any]:
    return [[[bits.content for bits in part] for part in answer] for answer in answers]


@pytest.mark.parametrize("name", RECIPES)
def test_training_is_bit_for_bit_that_on_the_cpu(name: str, ranks: Ranks) -> None:
    if name == "hook: bf16_compress" and torch.version.cuda is None:
        with pytest.raises(RankFailedError, match=r"BF16 all reduce communication hook required CUDA"):
            ranks.call(_train, "cuda", RECIPES[name])
        return
    (losses, weights, _), other = on_sim = ranks.call(_train, "cuda", RECIPES[name])
    assert {bits.device for answer in on_sim for part in answer for bits in part} == {"cuda"}
    assert losses[0] != losses[-1]
    assert weights == other[1]
    if name == "hook: bf16_compress" and TORCH < (2, 2):
        with pytest.raises(RankFailedError, match=r"Invalid scalar type"):  # Gloo has no bfloat16 yet, sim does
            ranks.call(_train, "cpu", RECIPES[name])
        return
    if name == "hook: PowerSGD":  # waits for the gradients' device as soon as there is a GPU
        with pytest.raises(RankFailedError, match=r"Expected a cuda device, but got: cpu"):
            ranks.call(_train, "cpu", RECIPES[name])
        return
    assert _content(on_sim) == _content(ranks.call(_train, "cpu", RECIPES[name]))


def _batch_norm(rank: int, kind: str) -> list[Any]:
    """Return batch norm's results and gradients: synchronised over ranks on sim, or of all rows at once on the CPU."""
    rows = torch.randn(12, 3, 5, generator=torch.Generator().manual_seed(7))
    share = slice(0, 4) if rank == 0 else slice(4, 12)  # ranks of different weight
    norm = torch.nn.BatchNorm1d(3)
    if kind == "cuda":
        norm = torch.nn.SyncBatchNorm.convert_sync_batchnorm(norm).to("cuda")
        given = rows[share].to("cuda").requires_grad_()
        out = norm(given)
        (out**3).sum().backward()
        for parameter in norm.parameters():
            dist.all_reduce(parameter.grad)
        found = [out, given.grad]
    else:
        given = rows.requires_grad_()
        out = norm(given)
        (out**3).sum().backward()
        found = [out[share], given.grad[share]]
    found += [norm.weight.grad, norm.bias.grad, norm.running_mean, norm.running_var]
    return [tensor.detach().cpu().tolist() for tensor in found]


def test_synchronised_batch_norm_is_batch_norm_of_all_ranks_rows(ranks: Ranks) -> None:
    """PyTorch accepts this device (torch/nn/modules/batchnorm.py) but has operators for CUDA only; sim has its own."""
    for on_sim, on_cpu in zip(*(ranks.call(_batch_norm, kind) for kind in ("cuda", "cpu"))):  # as above
        for found, expected in zip(on_sim, on_cpu):
            torch.testing.assert_close(torch.tensor(found), torch.tensor(expected), rtol=1e-4, atol=1e-5)
