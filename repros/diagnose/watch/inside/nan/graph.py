"""The graph of a loss: the operation that gives a value, or a gradient, that is not finite."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torch import Tensor
    from torch.autograd.graph import Node

_MOST_NODES = 20_000

_SINGULAR = (
    *("Sqrt", "Rsqrt", "Pow", "Div", "Log", "Log2", "Log10", "Log1P", "Acos", "Asin", "Acosh", "Atanh", "Std", "Tan"),
    *("Reciprocal", "Norm", "LinalgVectorNorm", "Exp", "Expm1", "Cdist", "Atan2", "Prod", "Logsumexp", "StdMean"),
    *("LinalgEigh", "LinalgSvd", "LinalgEig", "LinalgQr", "LinalgInvEx", "Softmax", "LogSoftmax"),
)
"""Operations whose derivative or value is infinite or NaN somewhere, by the prefix of their nodes' names."""
_MULTIPLYING = ("Mul", "Bmm", "Mm", "Addmm")
"""Operations that give NaN for 0 times inf alone."""

_POLES: dict[str, tuple[str, Callable[[Tensor], Tensor], str]] = {
    "LogBackward0": ("_saved_self", lambda x: x <= 0, "values of at most 0"),
    "Log2Backward0": ("_saved_self", lambda x: x <= 0, "values of at most 0"),
    "Log10Backward0": ("_saved_self", lambda x: x <= 0, "values of at most 0"),
    "Log1PBackward0": ("_saved_self", lambda x: x <= -1, "values of at most -1"),
    "DivBackward0": ("_saved_other", lambda x: x == 0, "a divisor of 0"),
    "SqrtBackward0": ("_saved_result", lambda x: x.isnan(), "values below 0"),
    "ExpBackward0": ("_saved_result", lambda x: x.isinf(), "values whose exponential is too large"),
    "ReciprocalBackward0": ("_saved_result", lambda x: x.isinf(), "0"),
    "RsqrtBackward0": ("_saved_result", lambda x: ~x.isfinite(), "values of at most 0"),
    "AcosBackward0": ("_saved_self", lambda x: x.abs() > 1, "values beyond 1"),
    "AsinBackward0": ("_saved_self", lambda x: x.abs() > 1, "values beyond 1"),
}
"""By node: the attribute with a tensor that the operation saved, its values at a pole, and these in words."""


def _walk(roots: list[Node | None]) -> list[Node]:
    """Return the nodes of a graph, the nearest to the loss first."""
    order = [root for root in roots if root is not None]
    visited = {id(node) for node in order}
    for node in order:  # which grows
        for following, _ in node.next_functions:
            if following is not None and id(following) not in visited and len(order) < _MOST_NODES:
                visited.add(id(following))
                order.append(following)
    return order


def nearest_parameter(roots: list[Node | None], bad: set[int]) -> int | None:
    """Return the `id` of that parameter among `bad` which the backward reaches first."""
    for node in _walk(roots):
        variable = getattr(node, "variable", None)
        if variable is not None and id(variable) in bad:
            return id(variable)
    return None


def operation_of_gradient(roots: list[Node | None], bad: set[int], good: set[int]) -> str | None:
    """Return the node that most likely made gradients not finite, such as `SqrtBackward0`; None if no node qualifies.

    That is an operation with a pole, or one that the program wrote itself, from which the backward reaches parameters
    of `bad` and none of `good`; the nearest to the loss. `bad` and `good` hold `id`s.
    """
    order = _walk(roots)
    below: dict[int, tuple[bool, bool]] = {}
    _reach(order, below, bad, good)
    only_bad = [node for node in order if below[id(node)] == (True, False)]
    for names in (_SINGULAR, _MULTIPLYING):
        for node in only_bad:
            name = type(node).__name__
            if name.startswith(tuple(f"{operation}Backward" for operation in names)):
                return name
            if names is _SINGULAR and isinstance(node, _custom()):
                return name
    return None


def _custom() -> type:
    import torch

    kind: type = torch.autograd.function.BackwardCFunction
    return kind


def _reach(order: list[Node], below: dict[int, tuple[bool, bool]], bad: set[int], good: set[int]) -> None:
    """Fill `below`: whether parameters of `bad`, and of `good`, are reached from each node."""
    waiting = [*order]
    opened: set[int] = set()
    while waiting:
        node = waiting[-1]
        if id(node) in below:
            waiting.pop()
            continue
        following = [successor for successor, _ in node.next_functions if successor is not None]
        missing = [successor for successor in following if id(successor) not in below]
        if missing and id(node) not in opened:
            opened.add(id(node))
            waiting += missing
            continue
        key = id(getattr(node, "variable", None))
        parts = [below.get(id(successor), (False, False)) for successor in following]
        below[id(node)] = (key in bad or any(b for b, _ in parts), key in good or any(g for _, g in parts))
        waiting.pop()


def operation_of_value(roots: list[Node | None]) -> tuple[str, str] | None:
    """Return the operation in a loss's graph whose value is not finite, and its input in words, before the backward.

    It is the farthest one from the loss. This reads the tensors that nodes have saved, so it must not be called where
    hooks unpack them.
    """
    operation = None
    for node in _walk(roots):
        name = type(node).__name__
        if name in _POLES:
            attribute, is_pole, words = _POLES[name]
            try:
                value = getattr(node, attribute)
                is_here = value is not None and bool(is_pole(value.detach()).any())
            except (RuntimeError, AttributeError):  # freed, or not kept by this release
                continue
            if is_here:
                operation = name, words
    return operation
