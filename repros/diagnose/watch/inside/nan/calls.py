"""The calls of modules in a step: which of them first gave a value that is not finite, and for which inputs.

Torch's global hooks (`register_module_forward_hook`) see all calls, until the program compiles: from then on only the
call of a compiled module as a whole is seen, since a compiler would trace the hooks with the module.
"""

from __future__ import annotations

import functools
import sys
import threading
import weakref
from types import ModuleType
from typing import TYPE_CHECKING, Any

from repros.diagnose.watch.inside.location import user_location
from repros.diagnose.watch.inside.nan.ranges import INF, NAN, Range, Ranges, can_read, count_not_finite, tensors_in
from repros.diagnose.watch.inside.observe.compiling import unseen
from repros.diagnose.watch.inside.observe.patch import Args, Kwargs, around

if TYPE_CHECKING:
    from torch import Tensor
    from torch.nn import Module
    from torch.utils.hooks import RemovableHandle

_HELD_BYTES = 256 << 20
"""Bytes of an accelerator's tensors that are held until their ranges are read: a read waits for the device."""
_MOST_UNJUDGED = 2000
_MOST_SUSPECTS = 50
_CALLERS = {"_call_impl", "inner"}
"""The functions of torch that call a module's hooks, whose frames have its keyword arguments."""


class Suspect:
    """A place where values that are not finite were first seen."""

    def __init__(self, kind: str, module: Module | None, inputs: list[Range], value_range: Range, count: int) -> None:
        """Record the values.

        Args:
            kind: `output` (of finite inputs), `between` (in the forward of `module`, before `following`), `outside` (of
                all modules, before `following`), `arrived` (as an input of `following`, which nothing has computed).
            module: the module; None outside.
            inputs: the ranges of the inputs of `output`.
            value_range: the range of the values.
            count: how many of the values are not finite.
        """
        self.kind, self.module, self.inputs, self.value_range, self.count = kind, module, inputs, value_range, count
        self.kinds = value_range.kinds
        self.before: Module | None = None
        """The previous module that was called in the forward of `module`."""
        self.following: Module | None = None
        self.place: str | None = None
        self.is_absorbed = False
        """Whether a module that got these values has returned finite ones."""
        self.is_passed_on = False

    @property
    def site(self) -> tuple[object, ...]:
        """What identifies this place in every step."""
        return (self.kind, id(self.module), id(self.following))


class _Call:
    """A call that has not returned."""

    __slots__ = ("inputs", "last", "module")

    def __init__(self, module: Module, inputs: list[tuple[Tensor, Range]]) -> None:
        self.module, self.inputs, self.last = module, inputs, None


class Suspects:
    """The suspects of this step, in the order of time; :meth:`on` attaches the hooks."""

    def __init__(self) -> None:
        self.ranges = Ranges()
        self.suspects: list[Suspect] = []
        self.roots: weakref.WeakSet[Module] = weakref.WeakSet()
        """The outermost modules that were called."""
        self.last: tuple[Module, list[Range]] | None = None
        """The outermost module that has returned last, and the ranges of its outputs."""
        self.is_paused = False
        """True while a backward runs, in which checkpoints call modules again."""
        self._local = threading.local()
        self._unjudged: list[tuple[Any, ...]] = []
        self._held = 0
        self._handles: list[RemovableHandle] = []
        self._is_on = False

    def on(self, module: ModuleType) -> None:
        """Observe all calls; `module` is torch.nn.modules.module."""
        self.off()
        self._is_on = True
        self._handles = [
            module.register_module_forward_pre_hook(unseen(self._calling)),
            module.register_module_forward_hook(unseen(self._called)),
        ]

    def off(self) -> None:
        """Observe no call."""
        for handle in self._handles:
            handle.remove()
        self._handles, self._is_on = [], False

    def follow_compiled(self) -> None:
        """Observe the calls of compiled modules alone, as a whole."""
        was_on = self._is_on
        self.off()
        self._is_on = was_on

    def see_compiled(self, torch: ModuleType) -> None:
        """Observe the calls of each module that `torch.compile` makes from now on, once the program compiles."""

        def made(_: object, __: object, compiled: object) -> None:
            # Of this object alone: torch 2.1 and 2.2 make others of its class, of a graph each, and would trace the
            # observer with them. In torch 2.0 it has no `forward` of its own.
            if isinstance(compiled, torch.nn.Module) and "forward" in compiled.__dict__:
                calling = functools.partial(self._compiled_calling, compiled)
                around(compiled, "forward", before=calling, returned=functools.partial(self._compiled_called, compiled))

        if hasattr(torch, "compile"):
            around(torch, "compile", returned=made)

    def _compiled_calling(self, module: Module, args: Args, kwargs: Kwargs) -> None:
        if self._is_on:
            self._begin(module, (args, kwargs))

    def _compiled_called(self, module: Module, _: object, __: object, output: object) -> None:
        if self._is_on:
            self._end(module, output)

    @property
    def _stack(self) -> list[_Call]:
        stack: list[_Call] | None = getattr(self._local, "stack", None)
        if stack is None:
            stack = self._local.stack = []
        return stack

    def _calling(self, module: Module, inputs: tuple[object, ...]) -> None:
        given = inputs
        if not inputs or not self._stack:
            given = (inputs, _keywords())
        self._begin(module, given)

    def _called(self, module: Module, _: object, output: object) -> None:
        self._end(module, output)

    def _begin(self, module: Module, given: object) -> None:
        if self.is_paused:
            return
        stack = self._stack
        inputs = []
        if can_read():
            inputs = [(tensor, self.ranges.of(tensor)) for _, tensor in tensors_in(given)]
            if not stack:
                self.roots.add(module)
            parent = stack[-1] if stack else None
            entry = ("given", module, parent and parent.module, parent and parent.last, inputs)
            self._take(entry, inputs, inputs)
        stack.append(_Call(module, inputs))

    def _end(self, module: Module, output: object) -> None:
        stack = self._stack
        if self.is_paused or not any(call.module is module for call in stack):
            return
        while stack[-1].module is not module:  # those that an exception has left
            stack.pop()
        call = stack.pop()
        if stack:
            stack[-1].last = module
        if not can_read():
            return
        outputs = [(tensor, self.ranges.of(tensor)) for _, tensor in tensors_in(output)]
        if not stack and outputs:
            self.last = module, [value_range for _, value_range in outputs]
        entry = ("returned", module, call.last, call.inputs, outputs)
        self._take(entry, outputs, [*outputs, *call.inputs])

    def _take(
        self, entry: tuple[Any, ...], new: list[tuple[Tensor, Range]], concerned: list[tuple[Tensor, Range]]
    ) -> None:
        """Judge a call at once, or when the ranges of its tensors are read, in the order of time."""
        if new and (self._unjudged or not all(value_range.is_read for _, value_range in new)):
            self._unjudged.append(entry)
            self._held += sum(
                tensor.numel() * tensor.element_size() for tensor, value_range in new if not value_range.is_read
            )
            if self._held > _HELD_BYTES or len(self._unjudged) > _MOST_UNJUDGED:
                self.read()
        elif any(value_range.kinds for _, value_range in concerned):
            self._judge(entry, user_location())

    def read(self) -> None:
        """Read the ranges that are still on accelerators, and judge their calls."""
        self.ranges.read()
        unjudged, self._unjudged, self._held = self._unjudged, [], 0
        for entry in unjudged:
            self._judge(entry, None)

    def _judge(self, entry: tuple[Any, ...], place: str | None) -> None:
        if entry[0] == "given":
            self._judge_inputs(*entry[1:], place=place)
        else:
            self._judge_outputs(*entry[1:], place=place)

    def _judge_inputs(
        self,
        module: Module,
        parent: Module | None,
        before: Module | None,
        inputs: list[tuple[Tensor, Range]],
        *,
        place: str | None,
    ) -> None:
        for tensor, value_range in inputs:
            if value_range.kinds and value_range.origin is None:
                kind = "between" if parent is not None else "outside" if value_range.is_computed else "arrived"
                suspect = self._suspect(kind, parent, [], tensor, value_range, place)
                suspect.before, suspect.following = before, module

    def _judge_outputs(
        self,
        module: Module,
        last: Module | None,
        inputs: list[tuple[Tensor, Range]],
        outputs: list[tuple[Tensor, Range]],
        *,
        place: str | None,
    ) -> None:
        """Give each output that is not finite its origin: the suspect among the inputs that explains it, or a new one.

        Attention adds a mask of -inf to its scores, softmax returns probabilities, and a norm divides by zero:

            call        input             output            suspects afterwards
            `mask`                        -inf              S1 (output of `mask`, -inf)
            `add`       -inf, origin S1   -inf, origin S1   S1 is passed on: -inf explains -inf
            `softmax`   -inf, origin S1   finite            S1 is absorbed: `first_of` leaves it out, unless passed on
            `norm`      finite            NaN               S2 (output of `norm`, NaN)
            `linear`    NaN, origin S2    NaN, origin S2    S2 is passed on
            a loss of NaN: S1 is usual at its place in earlier steps, so `first_of` returns S2

        If `add` had returned NaN, -inf would not explain it, and `add` would be a suspect itself. NaN explains all
        kinds of values.
        """
        origins = [value_range.origin for _, value_range in inputs if value_range.origin is not None]
        bad = [(tensor, value_range) for tensor, value_range in outputs if value_range.kinds]
        for origin in origins:
            origin.is_absorbed, origin.is_passed_on = origin.is_absorbed or not bad, origin.is_passed_on or bool(bad)
        for tensor, value_range in bad:
            explaining = [origin for origin in origins if origin.kinds & NAN or not value_range.kinds & ~origin.kinds]
            if value_range.origin is None and explaining:
                value_range.origin = explaining[0]
            elif value_range.origin is None:
                input_ranges = [input_range for _, input_range in inputs]
                suspect = self._suspect("output", module, input_ranges, tensor, value_range, place)
                suspect.before = last

    def _suspect(
        self,
        kind: str,
        module: Module | None,
        inputs: list[Range],
        tensor: Tensor,
        value_range: Range,
        place: str | None,
    ) -> Suspect:
        suspect = Suspect(kind, module, inputs, value_range, count_not_finite(tensor))
        suspect.place = place
        value_range.origin = suspect
        if len(self.suspects) < _MOST_SUSPECTS:
            self.suspects.append(suspect)
        return suspect

    def forget(self) -> None:
        """Forget the step."""
        self.suspects.clear()
        self.last = None
        self.ranges.forget()
        self._stack.clear()


def first_of(suspects: list[Suspect], usual: dict[tuple[object, ...], int]) -> Suspect | None:
    """Return the most likely origin of a loss that is not finite.

    It is the first suspect with NaN or inf, else the first with -inf, which masks have. Suspects that are usual at
    their place, and those that a module has made finite again, are left out.

    Args:
        suspects: in the order of time.
        usual: the kinds of values that each place had in steps with a finite loss.
    """
    unusual = [
        suspect
        for suspect in suspects
        if suspect.kinds & ~usual.get(suspect.site, 0) and (suspect.is_passed_on or not suspect.is_absorbed)
    ]
    severe = [suspect for suspect in unusual if suspect.kinds & (NAN | INF)]
    return next(iter(severe or unusual), None)


def _keywords() -> object:
    """Return the keyword arguments of the call whose hook runs; global hooks do not get them."""
    frame = sys._getframe(1).f_back
    for _ in range(8):
        if frame is None:
            return ()
        if frame.f_code.co_name in _CALLERS:
            return frame.f_locals.get("kwargs") or ()
        frame = frame.f_back
    return ()
