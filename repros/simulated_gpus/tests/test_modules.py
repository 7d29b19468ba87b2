"""Every module that PyTorch keeps sample inputs for (`module_db`, in the wheel) computes the CPU's results on sim."""

from __future__ import annotations

import copy
import functools
import importlib
import warnings
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="runs in an environment with torch")
pytest.importorskip("expecttest", reason="PyTorch's sample inputs need expecttest")
with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    module_db = importlib.import_module("torch.testing._internal.common_modules").module_db


def move(value: Any, device: Any) -> Any:
    """Return the inputs on a device, with the same `requires_grad`."""
    if isinstance(value, torch.Tensor):
        there = value.detach().to(device)
        return there.requires_grad_(value.requires_grad)
    if isinstance(value, (list, tuple)):
        return type(value)(move(item, device) for item in value)
    return {name: move(item, device) for name, item in value.items()} if isinstance(value, dict) else value


def tensors(value: Any) -> Any:
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from tensors(item)


def compute(module: Any, args: Any, kwargs: Any) -> Any:
    """Return the outputs and the parameters' gradients."""
    torch.manual_seed(1)
    made = [tensor for tensor in tensors(module(*args, **kwargs)) if tensor is not None]
    wanted = [tensor for tensor in made if tensor.requires_grad]
    if wanted:
        sum(tensor.abs().sum() for tensor in wanted).backward()
    gradients = [parameter.grad for parameter in module.parameters() if parameter.grad is not None]
    return [*made, *gradients, *(tensor.grad for tensor in tensors(args) if tensor.is_leaf and tensor.grad is not None)]


def passes(act: Any) -> Any:
    try:
        return act()
    except Exception:  # samples that the CPU does not compute are left out
        return None


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("info", module_db, ids=lambda info: info.name)
def test_a_module_computes_the_same(sim: Any, info: Any) -> None:
    compared = 0
    for training in (True, False) if info.train_and_eval_differ else (True,):
        wanted = {"device": "cpu", "dtype": torch.float32, "requires_grad": True, "training": training}
        inputs = passes(functools.partial(info.module_inputs_func, info, **wanted))
        for sample in inputs or []:
            if sample.forward_input is None:
                continue
            made, given = sample.constructor_input, sample.forward_input
            torch.manual_seed(0)
            here = info.module_cls(*made.args, **made.kwargs).train(training)
            there = copy.deepcopy(here).to("cuda:1")
            on_cpu, on_sim = ((move(given.args, to), move(given.kwargs, to)) for to in ("cpu", "cuda:1"))
            expected = passes(functools.partial(compute, here, *on_cpu))
            if expected is None:
                continue
            with torch.backends.cudnn.flags(enabled=training):  # its layers have no derivative in eval mode
                found = compute(there, *on_sim)
            assert len(found) == len(expected)
            compared += 1
            # The seed set the offset to 0. A module that draws on a device gets CUDA's numbers, not the CPU's.
            has_drawn = any(torch.cuda.get_rng_state("cuda:1")[8:].tolist())
            for a, b in zip(found, expected):  # `strict` is from Python 3.10
                assert a.device == torch.device("cuda:1")
                if has_drawn:
                    assert a.shape == b.shape
                    continue
                # Attention has another algorithm on the CPU than on a device, with another order of additions.
                torch.testing.assert_close(a.cpu(), b, equal_nan=True, rtol=1e-4, atol=1e-4)
    if not compared:
        pytest.skip("the CPU computes none of its samples")
