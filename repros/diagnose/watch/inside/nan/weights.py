"""What optimizers hold: the gradients and parameters that are not finite, and why a step made them so."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, TypeVar

from repros.diagnose.watch.inside.observe.optimizers import parameters_of, steps, unstepped
from repros.diagnose.watch.inside.values import Known, is_plain, norms_of

if TYPE_CHECKING:
    from torch import Tensor
    from torch.nn import Parameter
    from torch.optim import Optimizer

_Key = TypeVar("_Key", int, str)


def optimizers() -> list[Optimizer]:
    """Return the live optimizers."""
    return [*{id(optimizer): optimizer for optimizer in [*steps, *unstepped]}.values()]


def held(some: list[Optimizer] | None = None) -> dict[int, Parameter]:
    """Return the parameters of optimizers, by `id`; of all live optimizers if none are given."""
    chosen = optimizers() if some is None else some
    return {id(parameter): parameter for optimizer in chosen for parameter in parameters_of(optimizer)}


def _local(tensor: Tensor) -> Tensor:
    """Return a tensor whose values can be read here: this rank's part of a DTensor, the values of a sparse one."""
    tensor = getattr(tensor, "_local_tensor", tensor)
    return tensor._values() if tensor.is_sparse else tensor


def not_finite(tensors: dict[_Key, Tensor | None], known: Known) -> tuple[dict[_Key, float], set[_Key]]:
    """Return the norm of each tensor that can be read, and the keys of those with a value that is not finite.

    Args:
        tensors: floating ones of any shapes, by any key; None is left out.
        known: the norms and sums of tensors that nothing has written to since.
    """
    local = {key: _local(tensor) for key, tensor in tensors.items() if tensor is not None}
    floating: dict[_Key, Tensor] = {
        key: tensor for key, tensor in local.items() if is_plain(tensor) and tensor.is_floating_point()
    }
    norms = dict(zip(floating, norms_of([*floating.values()], known)))
    # The norm of large elements may itself be infinite.
    suspects = [key for key, norm in norms.items() if norm - norm != 0]
    return norms, {key for key in suspects if not bool(floating[key].detach().isfinite().all())}


def owner_of(key: int) -> tuple[Optimizer, dict[str, Any]] | None:
    """Return the optimizer that holds a parameter, given by `id`, and its group."""
    for optimizer in optimizers():
        for group in optimizer.param_groups:
            if any(id(parameter) == key for parameter in group["params"]):
                return optimizer, group
    return None


def rates() -> list[str]:
    """Return what each optimizer is and its largest learning rate, `SGD at the learning rate 0.1`."""
    return [
        f"{type(optimizer).__name__} at the learning rate {_rate(optimizer):g}"
        for optimizer in optimizers()
        if optimizer.param_groups
    ]


def _rate(optimizer: Optimizer) -> float:
    return max(float(group.get("lr", 0)) for group in optimizer.param_groups)


def reasons(optimizer: Optimizer, group: dict[str, Any], parameter: Parameter, gradient: float | None) -> Iterator[str]:
    """Yield the evidence for why a step made a parameter not finite.

    Args:
        optimizer: the optimizer.
        group: its group with the parameter.
        parameter: the parameter.
        gradient: the norm of its gradient as the backward left it; None if it had none.
    """
    import torch

    rate = float(group.get("lr", 0.0))
    yield f"its learning rate is {rate:g}"
    if gradient is not None and math.isfinite(gradient):
        yield f"the backward had left a finite gradient of norm {gradient:.4g}"
    eps = group.get("eps")
    if isinstance(eps, float) and float(torch.tensor(eps).to(parameter.dtype)) == 0 < eps:
        kind = str(parameter.dtype).rpartition(".")[2]
        yield f"its eps of {eps:g} is 0 in {kind}, so it divides by 0 where a gradient is 0"
    for name, value in optimizer.state.get(parameter, {}).items():
        if isinstance(value, torch.Tensor) and value.is_floating_point() and not bool(_local(value).isfinite().all()):
            yield f"its {name} ({str(value.dtype).rpartition('.')[2]}) is not finite, either"
