"""Operators on lists of tensors: computed together on one device, one by one on several."""

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="these tests run in an environment with torch")

# The first is called through boxes, the others without.
IN_PLACE = {
    "_foreach_sub_": (1.5,),
    "_foreach_add_": (1.5,),
    "_foreach_mul_": (1.5,),
    "_foreach_div_": ([1.0, 2.0, 3.0],),
}


def tensors(device: str) -> list[Any]:
    """Three tensors with equal values on every device; the last two share their memory."""
    shared = torch.arange(12.0, device="cpu").to(device)
    return [torch.ones(2, 3, device=device), shared[:6], shared[6:].view(2, 3)]


@pytest.mark.parametrize("name", IN_PLACE)
def test_a_change_in_place_is_the_cpu_s_and_counts_once(sim: Any, name: str) -> None:
    changed = {device: tensors(device) for device in ("cpu", "cuda")}
    for lists in changed.values():
        before = [tensor._version for tensor in lists]
        with torch.no_grad():
            getattr(torch, name)(lists, *IN_PLACE[name])
        assert [tensor._version for tensor in lists] == [before[0] + 1, before[1] + 2, before[2] + 2]
    assert all(torch.equal(host, device.cpu()) for host, device in zip(*changed.values(), strict=True))


@pytest.mark.parametrize("name", ["_foreach_sqrt", "_foreach_exp"])
def test_results_are_memory_of_the_device(sim: Any, name: str) -> None:
    given = tensors("cuda:1")
    before = torch.cuda.memory_allocated(1)
    results = getattr(torch, name)(given)
    assert torch.cuda.memory_allocated(1) == before + 3 * 512
    assert {str(tensor.device) for tensor in results} == {"cuda:1"}
    assert all(
        torch.equal(host, device.cpu())
        for host, device in zip(getattr(torch, name)(tensors("cpu")), results, strict=True)
    )


def test_gradients_see_a_change(sim: Any) -> None:
    parameter = torch.ones(3, device="cuda", requires_grad=True)
    product = (parameter * parameter).sum()
    with torch.no_grad():
        torch._foreach_add_([parameter], 1.0)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        product.backward()


def test_each_tensor_of_a_list_may_be_on_another_device(sim: Any) -> None:
    both = [torch.ones(2, device="cuda:0"), torch.ones(2, device="cuda:1")]
    torch._foreach_add_(both, 1.0)
    assert [tensor.tolist() for tensor in both] == [[2.0, 2.0]] * 2
    with pytest.raises(RuntimeError, match="on the same device"):
        torch._foreach_add_([torch.ones(2, device="cuda")], [torch.ones(2)])


def test_float16_is_computed(sim: Any) -> None:
    half = [torch.ones(2, device="cuda", dtype=torch.half)]
    torch._foreach_mul_(half, 2.0)
    assert half[0].tolist() == [2.0, 2.0]
