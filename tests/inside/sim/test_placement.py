"""Tensors on different devices are refused where CUDA refuses them, in the words of the version of torch."""

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="runs in an environment with torch")
pytestmark = pytest.mark.usefixtures("sim")

ON_TWO = "Expected all tensors to be on the same device, but found at least two devices"
NEWER_WORDING = tuple(int(part) for part in torch.__version__.split(".")[:2]) >= (2, 8)


def two_devices(first: str, second: str, argument: str, method: str) -> str:
    if NEWER_WORDING:
        return (
            f"Expected all tensors to be on the same device, but got {argument} is on {second}, different from other "
            f"tensors on {first} (when checking argument in method {method})"
        )
    return f"{ON_TWO}, {first} and {second}! (when checking argument for argument {argument} in method {method})"


def refusal(action: Any) -> str:
    with pytest.raises(RuntimeError) as raised:
        action()
    return str(raised.value).splitlines()[0]


def test_a_layer_on_another_device_than_its_input() -> None:
    layer = torch.nn.Linear(4, 2).to("sim:1")
    said = refusal(lambda: layer(torch.ones(3, 4, device="sim:0")))
    assert said == two_devices("sim:1", "sim:0", "mat1", "aten::addmm")


def test_a_layer_on_a_device_with_an_input_on_the_cpu() -> None:
    layer = torch.nn.Linear(4, 2).to("sim:0")
    said = refusal(lambda: layer(torch.ones(3, 4)))
    assert said == two_devices("sim:0", "cpu", "mat1", "aten::addmm")


def test_placement_is_checked_before_shapes() -> None:
    said = refusal(lambda: torch.mm(torch.ones(2, 3, device="sim"), torch.ones(5, 7)))
    assert said == two_devices("sim:0", "cpu", "mat2", "aten::mm")


@pytest.mark.parametrize("other", ["cpu", "sim:1"])
def test_pointwise_operators_refuse_in_tensoriterators_words(other: Any) -> None:
    a, b = torch.ones(3, device="sim:0"), torch.ones(3, device=other)
    for action in (lambda: a + b, lambda: a.mul_(b), lambda: torch.where(a > 0, a, b), lambda: torch.add(a, a, out=b)):
        said = refusal(action)
        assert said.startswith(ON_TWO), said
        assert said.endswith("!")


def test_a_zero_dimensional_cpu_tensor_mixes_in_pointwise_operators() -> None:
    a = torch.ones(3, device="sim:1")
    assert (a + torch.tensor(2.0)).device == torch.device("sim:1")
    assert a.mul_(torch.tensor(3.0)).tolist() == [3.0, 3.0, 3.0]
    assert a.masked_fill(a > 0, torch.tensor(7.0)).tolist() == [7.0, 7.0, 7.0]


def test_a_zero_dimensional_cpu_tensor_does_not_mix_elsewhere() -> None:
    said = refusal(lambda: torch.dot(torch.ones(1, device="sim"), torch.tensor(1.0).reshape(1)))
    assert "sim:0" in said
    assert "cpu" in said


def test_a_zero_dimensional_device_tensor_does_not_mix_with_a_cpu_tensor() -> None:
    assert refusal(lambda: torch.ones(3) + torch.tensor(1.0, device="sim")).startswith(ON_TWO)


def test_indices_may_be_on_the_cpu() -> None:
    a = torch.arange(4.0, device="sim")
    index = torch.tensor([1, 3])
    assert a[index].tolist() == [1.0, 3.0]
    a[index] = 0.0
    assert a.tolist() == [0.0, 0.0, 2.0, 0.0]


def test_lists_are_checked() -> None:
    said = refusal(lambda: torch.cat([torch.ones(2, device="sim:0"), torch.ones(2, device="sim:1")]))
    assert "sim:0" in said
    assert "sim:1" in said


def test_lists_of_foreach_operators_are_checked_position_by_position() -> None:
    first = [torch.ones(2, device="sim:0"), torch.ones(2, device="sim:1")]
    assert [t.device.index for t in torch._foreach_add(first, first)] == [0, 1]
    assert refusal(lambda: torch._foreach_add(first, first[::-1])).startswith(ON_TWO)


def test_fused_optimizers_name_the_list_that_is_elsewhere() -> None:
    def one(device: Any) -> Any:
        return [torch.ones(2, device=device)]

    step = [torch.ones((), device="cpu")]
    said = refusal(
        lambda: torch._fused_adamw_(
            one("sim"), one("sim"), one("sim"), one("sim"), [], step, lr=0.1, beta1=0.9, beta2=0.99,
            weight_decay=0.0, eps=1e-8, amsgrad=False, maximize=False,
        )
    )  # fmt: skip
    assert said == two_devices("sim:0", "cpu", "state_steps", "aten::_fused_adamw_")


def test_moving_a_module_keeps_its_parameters() -> None:
    layer = torch.nn.Linear(2, 2)
    weight = layer.weight
    layer.to("sim")
    assert layer.weight is weight
    assert weight.device == torch.device("sim:0")
