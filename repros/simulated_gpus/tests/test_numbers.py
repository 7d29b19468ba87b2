"""Python numbers as operands, and copies of bytes: the fast paths give the CPU's bits and errors."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest

NUMBERS = (0.1, -3, 2**53 + 1, 1e300, float("nan"), True, 1.5 + 0.5j)
TYPES = ("float32", "float64", "bfloat16", "int32", "bool", "complex64")
SHAPES = ((), (0,), (7,), (3, 40))
ON_TENSOR: dict[str, Callable[[Any, Any], Any]] = {
    "add": lambda x, number: x + number,
    "add with alpha": lambda x, number: x.add(number, alpha=2),
    "sub": lambda x, number: x - number,
    "rsub": lambda x, number: number - x,
    "mul": lambda x, number: x * number,
    "div": lambda x, number: x / number,
    "rdiv": lambda x, number: number / x,
    "add_": lambda x, number: x.add_(number),
    "mul_": lambda x, number: x.mul_(number),
}
ON_LISTS: dict[str, Callable[[Any, int], Any]] = {
    "_foreach_add_": lambda number, _: number,
    "_foreach_mul_": lambda number, _: number,
    "_foreach_div_": lambda number, count: [number] * count,
}


def outcome(call: Any, *arguments: Any) -> Any:
    """Return the type and the bits of a result, or the words of the error."""
    import torch

    try:
        result = call(*arguments)
    except RuntimeError as error:
        return str(error).replace("cuda:0", "cpu").splitlines()[0]
    given = result if isinstance(result, list) else [result]
    hosts = [tensor.cpu().contiguous() for tensor in given]
    return [(tensor.dtype, tensor.shape, bytes(tensor.reshape(-1).view(torch.uint8).tolist())) for tensor in hosts]


def tensors(kind: str) -> list[Any]:
    import torch

    torch.manual_seed(0)
    return [(torch.randn(shape) * 3).to(getattr(torch, kind)) for shape in SHAPES]


@pytest.mark.parametrize("kind", TYPES)
@pytest.mark.parametrize("name", ON_TENSOR)
def test_a_number_beside_a_tensor(sim: Any, name: str, kind: str) -> None:
    for number in NUMBERS:
        for host in tensors(kind):
            device = host.cuda()
            expected = outcome(ON_TENSOR[name], host.clone(), number)
            assert outcome(ON_TENSOR[name], device, number) == expected, (number, host.shape)


@pytest.mark.parametrize("kind", TYPES)
@pytest.mark.parametrize("name", ON_LISTS)
def test_a_number_beside_lists(sim: Any, name: str, kind: str) -> None:
    import torch

    for number in NUMBERS:
        hosts = tensors(kind)
        devices = [tensor.cuda() for tensor in hosts]
        numbers = ON_LISTS[name](number, len(hosts))

        def run(lists: list[Any], numbers: Any = numbers) -> list[Any]:
            getattr(torch, name)(lists, numbers)
            return lists

        expected = outcome(run, copy.deepcopy(hosts))
        assert outcome(run, devices) == expected, number


@pytest.mark.parametrize("name", ON_LISTS)
def test_a_number_beside_a_list_of_large_tensors_and_of_gaps(sim: Any, name: str) -> None:
    import torch

    torch.manual_seed(0)
    hosts = [torch.randn(200, 200), torch.randn(40, 3).t(), torch.randn(8, 8)[:, ::3], torch.randn(7)]
    devices = [tensor.cuda() for tensor in hosts[:2]] + [
        torch.randn(8, 8).cuda()[:, ::3].copy_(hosts[2]),
        hosts[3].cuda(),
    ]
    for lists in (hosts, devices):
        getattr(torch, name)(lists, ON_LISTS[name](0.1, len(lists)))
    assert all(torch.equal(device.cpu(), host) for device, host in zip(devices, hosts))


def test_too_few_numbers_are_refused_as_on_the_cpu(sim: Any) -> None:
    import torch

    for device in ("cpu", "cuda"):
        with pytest.raises(RuntimeError, match="same number of elements as scalar list"):
            torch._foreach_div_([torch.ones(2, device=device)] * 2, [1.0])


@pytest.mark.parametrize("kind", ["float32", "int64", "bool", "complex64", "float16"])
def test_copies_have_the_cpus_bits(sim: Any, kind: str) -> None:
    import torch

    whole = (torch.arange(2 * 24 * 24).reshape(2, 24, 24) % 7).to(getattr(torch, kind))
    views: dict[str, Callable[[Any], Any]] = {
        "whole": lambda x: x,
        "part": lambda x: x[1],
        "transposed": lambda x: x[0].t(),
        "strided": lambda x: x[0, ::2, ::3],
        "expanded": lambda x: x[0, 0].expand(24, 24),
        "number": lambda x: x[1, 2, 3],
        "empty": lambda x: x[:0],
        "conjugate": lambda x: x[0].conj(),
    }
    for name, view in views.items():
        expected = view(whole).clone()
        device = whole.cuda()
        assert torch.equal(view(device).cpu(), expected), name
        assert torch.equal(view(whole).cuda().cpu(), expected), name
        assert torch.equal(view(device).clone().cpu(), expected), name
        filled = torch.zeros_like(device[0])
        assert torch.equal(filled.copy_(device[1]).cpu(), whole[1]), name
    device = whole.cuda()
    device[0].copy_(device[1])
    assert torch.equal(device.cpu(), torch.stack([whole[1]] * 2))
    assert device.copy_(device) is device
