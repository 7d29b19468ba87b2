"""Every optimizer with sample settings in PyTorch (`optim_db`, in the wheel) computes the CPU's results on sim.

The settings are those for CUDA, including `capturable` and learning rates that are tensors, in each implementation that
an optimizer has there: a loop, foreach, fused, and its default.
"""

from __future__ import annotations

import copy
import io
import re
import warnings
from typing import Any

import pytest

from repros.simulated_gpus.tests.release import TORCH

torch = pytest.importorskip("torch", reason="runs in an environment with torch")
pytest.importorskip("expecttest", reason="PyTorch's sample inputs need expecttest")
with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    samples = pytest.importorskip(
        "torch.testing._internal.common_optimizers", reason="PyTorch keeps optimizers' sample settings from 2.3 on"
    )

SIM = "cuda:1"
LOOP = {"foreach": False, "fused": False}
WAYS: dict[str, dict[str, Any]] = {
    "loop": LOOP,
    "foreach": {**LOOP, "foreach": True},
    "fused": {**LOOP, "fused": True},
    "chosen": {},
}
STEPS = 4


def implementations(info: Any) -> list[str]:
    """Return the implementations on CUDA; an optimizer with only one has no choice."""
    has = set(info.supported_impls)
    if "cuda" not in getattr(info, "supports_fused_on", ("cuda",)):
        has.discard("fused")
    return ["loop", *(implementation for implementation in ("foreach", "fused") if implementation in has), "chosen"]


# Of optimizers for sparse gradients there is one, and its samples have none: test_sparse.py trains with it.
CASES = [
    (info, implementation)
    for info in samples.optim_db
    if not info.only_supports_sparse_grads
    for implementation in implementations(info)
]


def settings(info: Any, sample: Any, implementation: str) -> Any:
    """Return the sample's settings with those of an implementation, if the optimizer has them."""
    return {**sample, **{name: on for name, on in WAYS[implementation].items() if name in info.supported_impls}}


class Run:
    """Some steps of an optimizer on two parameters, always from the same start to the same targets."""

    def __init__(self, info: Any, device: Any, options: Any) -> None:
        self.device = torch.device(device)
        shapes = [(4, 3), (3, 2) if info.name == "Muon" else (5,)]  # Muon is for matrices only
        generator = torch.Generator().manual_seed(0)
        drawn = [torch.randn(2, *shape, generator=generator) for shape in shapes]
        self.parameters = [torch.nn.Parameter(pair[0].to(device)) for pair in drawn]
        self.targets = [pair[1].to(device) for pair in drawn]
        self.optimizer = info.optim_cls(self.parameters, **copy.deepcopy(options))

    def loss(self) -> Any:
        self.optimizer.zero_grad()
        pairs = zip(self.parameters, self.targets)  # `strict` is from Python 3.10
        loss = sum((parameter - target).pow(2).sum() for parameter, target in pairs)
        loss.backward()
        return loss

    def go(self, steps: int = STEPS) -> Run:
        for _ in range(steps):
            self.optimizer.step(self.loss)
        return self

    def made(self) -> dict[str, Any]:
        """Return parameters and state by name, including tensors in lists (L-BFGS) and plain numbers."""
        found = {f"parameter {i}": parameter.detach() for i, parameter in enumerate(self.parameters)}
        for i, parameter in enumerate(self.parameters):
            for name, value in self.optimizer.state[parameter].items():
                for j, item in enumerate(value if isinstance(value, list) else [value]):
                    found[f"{name} {i} {j}"] = item
        return found


def attempt(info: Any, device: Any, options: Any) -> Any:
    """Return a run, or the exception that the optimizer raises."""
    try:
        return Run(info, device, options).go()
    except (AssertionError, RuntimeError, ValueError) as refusal:
        return refusal


def on_device(info: Any, options: Any, name: str) -> bool:
    """Return whether CUDA keeps a part of the state on the device. Source: `_init_group` in each torch/optim/*.py."""
    part = name.split(maxsplit=1)[0]
    if part == "step":
        return bool(options.get("capturable") or options.get("fused") or info.name == "ASGD")
    if part == "mu_product":  # NAdam's
        return bool(options.get("capturable"))
    return (info.name, part) != ("LBFGS", "t")  # the learning rate of the settings


def compare(there: Run, here: Run, *, exactly: bool) -> None:
    found, expected = there.made(), here.made()
    assert list(found) == list(expected)
    for name, value in expected.items():
        if not isinstance(value, torch.Tensor):
            assert found[name] == value, name
        elif exactly:
            assert found[name].dtype == value.dtype, name
            assert torch.equal(found[name].cpu(), value.cpu()), name
        else:
            torch.testing.assert_close(found[name].cpu(), value)


def on_cpu(info: Any, options: Any, implementation: str) -> tuple[Any, bool]:
    """Return the settings with which the CPU computes CUDA's results, and whether to the last bit."""
    if options.get("capturable"):  # for CUDA only; corrects biases in tensors of float32, not in Python's numbers
        return settings(info, {**options, "capturable": False}, "loop"), False
    if options.get("fused") and TORCH < (2, 4):  # for CUDA only
        return settings(info, options, "loop"), False
    if implementation == "chosen" and info.name != "Adafactor":  # the CPU chooses the loop, CUDA foreach
        return settings(info, options, "foreach"), True
    return options, True


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("info", "implementation"), CASES, ids=lambda value: getattr(value, "name", value))
def test_an_optimizer_computes_the_same(sim: Any, info: Any, implementation: str) -> None:
    for sample in info.optim_inputs_func("cuda"):
        options = settings(info, sample.kwargs, implementation)
        there = attempt(info, SIM, options)
        if options.get("capturable") and not options.get("fused") and TORCH < (2, 4):
            assert re.match(r"If capturable=True, .* must be CUDA", str(there)), sample.desc  # by name
            continue
        same, exactly = on_cpu(info, options, implementation)
        here = attempt(info, "cpu", same)
        if isinstance(here, Exception):
            assert (type(there), str(there)) == (type(here), str(here)), sample.desc
            continue
        compare(there, here, exactly=exactly)
        for name, value in there.made().items():
            if isinstance(value, torch.Tensor):
                wanted = torch.device(SIM if on_device(info, options, name) else "cpu")
                assert value.device == wanted, (sample.desc, name)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("info", "implementation"), CASES, ids=lambda value: getattr(value, "name", value))
def test_an_optimizer_resumes_from_either_device(sim: Any, info: Any, implementation: str) -> None:
    for sample in info.optim_inputs_func("cuda"):
        options = settings(info, sample.kwargs, implementation)
        before = attempt(info, SIM, options)
        if isinstance(before, Exception):
            continue
        file = io.BytesIO()
        torch.save(before.optimizer.state_dict(), file)
        resumed = [resume(Run(info, SIM, options), before, file, where) for where in (SIM, "cpu")]
        before.go(1)
        for after in resumed:
            compare(after.go(1), before, exactly=True)


def resume(after: Run, before: Run, file: io.BytesIO, where: str) -> Run:
    """Return a run with the parameters of another, and with its optimizer's state, which is loaded to a device."""
    file.seek(0)
    after.optimizer.load_state_dict(torch.load(file, map_location=where))
    with torch.no_grad():
        for old, new in zip(before.parameters, after.parameters):  # `strict` is from Python 3.10
            new.copy_(old)
    return after
