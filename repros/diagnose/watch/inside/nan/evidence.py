"""The first cause of a loss or gradient that is not finite, in words."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from repros.diagnose.watch.inside.location import is_library
from repros.diagnose.watch.inside.nan import graph, weights
from repros.diagnose.watch.inside.nan.calls import Suspect, Suspects
from repros.diagnose.watch.inside.nan.ranges import NAN, Range, count_not_finite, words_of
from repros.diagnose.watch.inside.observe.optimizers import steps

if TYPE_CHECKING:
    from torch import Tensor
    from torch.autograd.graph import Node
    from torch.nn import Module

_MOST_NAMES = 5
_LARGEST_HALF = 65504
_DIVERGING = 1e6
"""How many times larger the outputs of a step are that the step before has thrown off."""
_WRAPPERS = ("module", "_orig_mod", "_fsdp_wrapped_module")
"""The attributes with the wrapped module: names are those of the program's own module."""


@dataclass
class Evidence:
    """The first cause in a step, kept until it is known whether the step is taken."""

    kind: str
    """`batch`, `output`, `loss`, `gradient`, `step` or `weight`: what was first not finite."""
    text: str
    names: list[str] = field(default_factory=list)
    numbers: dict[str, object] = field(default_factory=dict)
    place: str | None = None
    step: int = 0
    """The optimizer's step; 0 for the coming one."""
    has_bad_loss: bool = True
    bad: set[int] = field(default_factory=set)
    """The parameters whose gradients are not finite, by `id`."""


@dataclass(frozen=True)
class InBatch:
    """A tensor of a batch, as its loader handed it out."""

    path: str
    tensor: Tensor
    value_range: Range

    def is_new(self, healthy: dict[str, int]) -> bool:
        """Return whether steps had no such values at this place with a finite loss; a loader may be read ahead."""
        return healthy.get(self.path, 0) <= 3  # noqa: PLR2004 - as many batches as are remembered


def _numbers(suspect_count: int, value_range: Range, inputs: list[Range]) -> dict[str, object]:
    numbers: dict[str, object] = {"not_finite": suspect_count, "values": value_range.size, "dtype": value_range.dtype}
    whole = _whole(inputs)
    if whole is not None:
        numbers.update(input_minimum=whole[0], input_maximum=whole[1], input_dtype=inputs[0].dtype)
    return numbers


def _whole(inputs: list[Range]) -> tuple[float, float] | None:
    """Return the least and the greatest value of finite inputs; None without any."""
    finite = [input_range for input_range in inputs if not input_range.kinds]
    if not finite:
        return None
    return min(input_range.low for input_range in finite), max(input_range.high for input_range in finite)


def _share(count: int, value_range: Range) -> str:
    return f"{count:,} of {value_range.size:,} values ({value_range.dtype})"


def of_suspect(calls: Suspects, suspect: Suspect) -> Evidence:
    """Return the evidence against a module, or the code between two."""
    what, share = words_of(suspect.kinds), _share(suspect.count, suspect.value_range)
    if suspect.kind == "output":
        parts = [f"{_named(calls, suspect.module)} is the first to give {what}: {share}", *_how(calls, suspect)]
    else:
        parts = [f"{_where(calls, suspect)} is the first to give {what}: {share}"]
    owner = suspect.module if suspect.module is not None else suspect.following
    place = suspect.place or location_of_forward(owner)
    numbers = _numbers(suspect.count, suspect.value_range, suspect.inputs)
    return Evidence("output", "; ".join(parts), [_named(calls, owner)], numbers, place)


def _named(calls: Suspects, module: Module) -> str:
    return name_of_module(module, calls.roots)


def _where(calls: Suspects, suspect: Suspect) -> str:
    """Return the code that has given such values."""
    if suspect.kind == "output":
        return _named(calls, suspect.module)
    if suspect.kind != "between":
        return f"the code outside of modules, before {_named(calls, suspect.following)},"
    place = f"before {_named(calls, suspect.following)}"
    if suspect.before is not None:
        place = f"after {_named(calls, suspect.before)} and {place}"
    return f"the forward of {_named(calls, suspect.module)}, {place},"


def _how(calls: Suspects, suspect: Suspect) -> Iterator[str]:
    """Yield the known circumstances of a module's output."""
    if type(suspect.module).__name__ == "OptimizedModule":
        yield "compiled code is seen as a whole alone"
    if suspect.before is not None:
        yield f"its own code does, after {_named(calls, suspect.before)}"
    whole = _whole(suspect.inputs)
    if whole is not None:
        yield f"its input is finite, from {whole[0]:.4g} to {whole[1]:.4g} ({suspect.inputs[0].dtype})"
    for given in [one for one in suspect.inputs if one.kinds and one.origin is not None][:1]:
        origin, what = given.origin, words_of(given.kinds)
        after = f" after {_named(calls, origin.before)}" if origin.before is not None else ""
        if origin.kind == "between":
            yield f"it was given {what}, which the forward of {_named(calls, origin.module)} gave{after}"
        elif origin.kind == "output":
            yield f"it was given {what}, which {_named(calls, origin.module)} gave"
        else:
            yield f"it was given {what}"
    if suspect.value_range.dtype == "float16" and suspect.kinds & ~NAN:
        yield f"float16 ends at {_LARGEST_HALF}"


def of_arrived(calls: Suspects, suspect: Suspect, handed: InBatch | None) -> Evidence:
    """Return the evidence of an input that no module has computed."""
    name, what = name_of_module(suspect.following, calls.roots), words_of(suspect.kinds)
    text = f"the input of {name} has {what} as it arrives: {_share(suspect.count, suspect.value_range)}"
    if handed is not None:
        text += f"; the loader handed them out in batch{handed.path}"
    return Evidence("batch", text, [name], _numbers(suspect.count, suspect.value_range, []), suspect.place or None)


def of_batch(handed: InBatch) -> Evidence:
    """Return the evidence of a loader's batch that no module was given."""
    count = count_not_finite(handed.tensor)
    text = (
        f"the loader handed out {words_of(handed.value_range.kinds)} in batch{handed.path}:"
        f" {_share(count, handed.value_range)}; all that modules gave is finite, and the loss is not"
    )
    return Evidence("batch", text, [f"batch{handed.path}"], _numbers(count, handed.value_range, []))


def of_loss(
    calls: Suspects,
    loss: list[Range],
    operation: tuple[str, str] | None,
    before: tuple[float, float] | None,
    *,
    is_compiled: bool,
) -> Evidence:
    """Return the evidence of a loss that is not finite although all modules gave finite values.

    Args:
        calls: the calls of this step.
        loss: the ranges of the loss.
        operation: the one that has given such values, and its input.
        before: the least and the greatest output of the outermost module one step before.
        is_compiled: whether the program compiles.
    """
    kinds = 0
    for value_range in loss:
        kinds |= value_range.kinds
    text = f"the loss is {words_of(kinds)}, and all that modules gave is finite"
    if operation is not None:
        text += f": {operation[0].partition('Backward')[0].lower()} was given {operation[1]} ({operation[0]})"
    given = last_given(calls)
    if calls.last is not None and given is not None:
        text += f"; {_named(calls, calls.last[0])} gave values from {given[0]:.4g} to {given[1]:.4g}"
        text += f", a step before from {before[0]:.4g} to {before[1]:.4g}" if before is not None else ""
        if before is not None and max(map(abs, given)) > _DIVERGING * max(1.0, *map(abs, before)):
            text += "".join(f"; between them lies a step of {rate}" for rate in weights.rates()[:1])
    if is_compiled:
        text += "; compiled code is seen as a whole alone"
    return Evidence("loss", text, [operation[0]] if operation is not None else [])


def last_given(calls: Suspects) -> tuple[float, float] | None:
    """Return the least and the greatest output of the outermost module that has returned last."""
    return _whole(calls.last[1]) if calls.last is not None else None


def of_gradients(
    calls: Suspects, roots: list[Node | None], loss: list[Range], bad: set[int], norms: dict[int, float]
) -> Evidence:
    """Return the first gradient that is not finite, with the operation that the graph has there."""
    names = names_of_parameters(calls.roots)
    held = weights.held()
    first = graph.nearest_parameter(roots, bad)
    if first is None:
        first = [key for key in held if key in bad][-1]
    operation = graph.operation_of_gradient(roots, bad, set(norms) - bad)
    value = ", ".join(f"{value_range.high:.4g}" for value_range in loss[:1])
    text = (
        f"the gradient of {names.get(first, 'a parameter')} is the first that is not finite, and the loss is"
        f" ({value}): {len(bad):,} of {len(norms):,} gradients"
    )
    if operation is not None:
        text += f"; on the way from the loss to them and to no other lies {operation}"
    numbers: dict[str, object] = {"gradients_not_finite": len(bad), "gradients": len(norms)}
    shown = [names.get(key, "") for key in [first, *(key for key in held if key in bad and key != first)]]
    return Evidence("gradient", text, [*filter(None, shown)][:_MOST_NAMES], numbers, has_bad_loss=False)


def of_weights(calls: Suspects, bad: set[int], norms: dict[int, float]) -> Evidence:
    """Return the optimizer's step that has made parameters not finite, or that they were so before any."""
    names, held = names_of_parameters(calls.roots), weights.held()
    ordered = [key for key in held if key in bad]
    key = ordered[0]
    name = names.get(key, "a parameter")
    numbers: dict[str, object] = {"parameters_not_finite": len(bad), "parameters": len(held)}
    optimizer, group = weights.owner_of(key) or (None, {})
    number = steps.get(optimizer, 0) if optimizer is not None else 0
    shown = [names.get(parameter, "") for parameter in ordered]
    if not number:
        text = f"{name} is not finite before the first step: it was made or loaded so"
        return Evidence("weight", text, [*filter(None, shown)][:_MOST_NAMES], numbers)
    gradient = norms.get(key)
    why = "; ".join(weights.reasons(optimizer, group, held[key], gradient))
    text = (
        f"step {number} of this {type(optimizer).__name__} made {name} not finite,"
        f" {len(bad):,} of {len(held):,} parameters in all: {why}"
    )
    if gradient is not None and math.isfinite(gradient):
        numbers.update(gradient_norm=gradient, learning_rate=float(group.get("lr", 0.0)))
    return Evidence("step", text, [*filter(None, shown)][:_MOST_NAMES], numbers, step=number)


def of_buffers(calls: Suspects, suspect: Suspect | None) -> Evidence | None:
    """Return the evidence of a buffer or frozen parameter that is not finite, of the module of a suspect."""
    if suspect is None or suspect.kind != "output" or suspect.module is None:
        return None
    module = suspect.module
    own = {**module._parameters, **module._buffers}
    floating = {name: tensor for name, tensor in own.items() if tensor is not None and tensor.is_floating_point()}
    _, bad = weights.not_finite(floating, {})
    if not bad:
        return None
    name = name_of_module(module, calls.roots)
    text = f"{min(bad)} of {name} is not finite, and no optimizer holds it: {words_of(suspect.kinds)} comes of it"
    return Evidence("weight", text, sorted(bad), _numbers(suspect.count, suspect.value_range, suspect.inputs))


def _unwrapped(module: Module) -> Module:
    for _ in range(5):
        inner = next((module._modules[name] for name in _WRAPPERS if list(module._modules) == [name]), None)
        if inner is None or not _is_wrapper(module):
            return module
        module = inner
    return module


def _is_wrapper(module: Module) -> bool:
    return type(module).__module__.startswith(("torch.", "lightning", "pytorch_lightning", "accelerate"))


def _by_size(roots: Iterable[Module]) -> Iterator[tuple[str, Module]]:
    """Yield roots, the largest first: one root may be a part of another."""
    own = {id(inner): inner for root in list(roots) for inner in [_unwrapped(root)]}
    sized = sorted(own.values(), key=lambda root: -sum(1 for _ in root.modules()))
    return ((type(root).__name__, root) for root in sized)


def name_of_module(module: Module, roots: Iterable[Module]) -> str:
    """Return `Net.layers.2 (LayerNorm)`; `Net` for the outermost itself."""
    module = _unwrapped(module)
    kind = type(module).__name__
    for title, root in _by_size(roots):
        for name, inner in root.named_modules():
            if inner is module:
                return f"{title}.{_clean(name)} ({kind})" if name else title
    return kind


def names_of_parameters(roots: Iterable[Module]) -> dict[int, str]:
    """Return the names of all parameters, by `id`."""
    names: dict[int, str] = {}
    for title, root in _by_size(roots):
        for name, parameter in root.named_parameters():
            names.setdefault(id(parameter), f"{title}.{_clean(name)}")
    return names


def _clean(name: str) -> str:
    return ".".join(part for part in name.split(".") if part not in {"_orig_mod", "_fsdp_wrapped_module"})


def location_of_forward(module: Module) -> str | None:
    """Return `file:line forward` of a module's class if that is the program's own; None for a library's."""
    code = getattr(getattr(type(module), "forward", None), "__code__", None)
    if code is None or is_library(code.co_filename):
        return None
    return f"{code.co_filename}:{code.co_firstlineno} {code.co_name}"
