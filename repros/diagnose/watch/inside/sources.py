"""The source code of a module's class: the names that a method uses, and dropout that ignores the mode."""

from __future__ import annotations

import ast
import functools
import inspect
import textwrap
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from torch.nn import Module

_FREEZING = {"requires_grad", "requires_grad_"}
_FLASH = "_flash_attention_forward"
"""transformers' entry to the kernels of flash-attn, which know no mode; its argument is `dropout`."""
_MOST_CLASSES = 1000


class Dropout(NamedTuple):
    """A call of a function that drops in every mode."""

    text: str
    """The call as it is written."""
    probability: float | str
    """A number, or the name of the module's attribute with it."""
    place: str = ""
    """`file:line function` of the call."""

    def rate(self, module: Module) -> float:
        """Return the rate of a module's dropout; 0 if it is unknown."""
        value = getattr(module, self.probability, 0) if isinstance(self.probability, str) else self.probability
        return float(value) if isinstance(value, (int, float)) else 0.0


@functools.lru_cache(maxsize=_MOST_CLASSES)
def has_freezing_train(kind: type) -> bool:
    """Return whether a class has a `train` of its own that names what freezes parameters, or a method that does."""
    import torch

    own = inspect.getattr_static(kind, "train", None)
    if own is torch.nn.Module.train or _is_torch(kind):
        return False
    names = _names(own)
    methods = (inspect.getattr_static(kind, name, None) for name in names)
    return any(_FREEZING & set(_names(method)) for method in (own, *methods))


@functools.lru_cache(maxsize=_MOST_CLASSES)
def unconditional_dropout(kind: type) -> Dropout | None:
    """Return a call in `forward` that also drops in eval mode, or None."""
    forward: Any = inspect.getattr_static(kind, "forward", None)
    names = set(_names(forward))
    if not names & {"dropout", "scaled_dot_product_attention", _FLASH} or "training" in names or _is_torch(kind):
        return None
    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(forward)))
    except (OSError, TypeError, SyntaxError):
        return None
    words = {node.arg for node in ast.walk(tree) if isinstance(node, ast.keyword)}
    if "training" in words:
        return None
    code = inspect.unwrap(forward).__code__  # of which `getsource` gives the source, too
    ast.increment_lineno(tree, code.co_firstlineno - 1)
    return next(_calls(tree, getattr(forward, "__globals__", {}), code.co_filename), None)


def _is_torch(kind: type) -> bool:
    return kind.__module__.partition(".")[0] == "torch"


def _names(function: object) -> tuple[str, ...]:
    names: tuple[str, ...] = getattr(getattr(function, "__code__", None), "co_names", ())
    return names


def _calls(tree: ast.AST, scope: Mapping[str, object], file: str) -> Iterator[Dropout]:
    from torch.nn import functional

    for node in ast.walk(tree):
        if not isinstance(node, ast.Call) or any(isinstance(part, ast.Starred) for part in node.args):
            continue
        called = _resolve(node.func, scope)
        options = {option.arg: option.value for option in node.keywords}
        if None in options:
            continue
        if called is functional.dropout and len(node.args) < 3:  # noqa: PLR2004 - input, p, training
            given = options.get("p", node.args[1] if len(node.args) > 1 else ast.Constant(0.5))
        elif called is functional.scaled_dot_product_attention:
            place = 4  # query, key, value, attn_mask, dropout_p
            given = options.get("dropout_p", node.args[place] if len(node.args) > place else ast.Constant(0.0))
        elif isinstance(node.func, ast.Name) and node.func.id == _FLASH:
            given = options.get("dropout", ast.Constant(0.0))
        else:
            continue
        probability = _probability(given)
        if probability is not None:
            yield Dropout(ast.unparse(node), probability, f"{file}:{node.lineno} forward")


def _probability(node: ast.AST) -> float | str | None:
    """Return a number that is written out, or the name of an attribute of `self`."""
    if isinstance(node, ast.Constant) and isinstance(node.value, (int, float)):
        return float(node.value)
    if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "self":
        return node.attr
    return None


def _resolve(node: ast.AST, scope: Mapping[str, object]) -> object:
    """Return the value of a dotted name among a function's globals; None for another expression."""
    if isinstance(node, ast.Name):
        return scope.get(node.id)
    if isinstance(node, ast.Attribute):
        owner = _resolve(node.value, scope)
        return getattr(owner, node.attr, None) if inspect.ismodule(owner) else None
    return None
