"""Gradients and parameters of replicated modules agree between ranks.

## What it does
Compares the norm and the sum of each gradient and parameter of a DistributedDataParallel (DDP) between ranks. It
reports `gradients_differ`, under the name of its cause, or `parameters_differ` if one of them differs by more than a
thousandth. At an optimizer's step 1, 2, 4, 8, ... each rank writes them for the parameters that the optimizer holds,
and the process outside compares. The gradients are also compared as the backward leaves them: if they agreed then,
`gradients_differ_changed` is reported, whatever else is known. In a program without an optimizer the gradients after
backward 1, 2, 4, 8, ... are compared at the program's end. `no_sync_too_late` is reported at the backward.

## Why is this bad?
Each rank trains a model of its own. The loss still falls, and a checkpoint of rank 0 has learned from a part of the
data alone.

## Example
`ddp.module(x)` in the place of `ddp(x)`: DDP prepares no reduction, and each rank keeps its own gradients.

## Known misses
Steps whose backward ran under `no_sync` (local SGD, the middle of an accumulation). Models with a communication hook
that is not torch's own. Parameters that DDP ignores. Gradients that are missing, sparse, infinite or NaN. FSDP and
tensor parallel, which are not replicas. `parameters_differ` is not reported once the gradients of that module have
differed, since its parameters drift apart from there.

## Cost
At the inspected steps one pass over the gradients after the backward, one at the step over those that are small or were
written to since, and one over the parameters. Nothing at other steps.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from repros.diagnose.watch.inside.check import Check
from repros.diagnose.watch.inside.location import user_location
from repros.diagnose.watch.inside.observe import replicas
from repros.diagnose.watch.inside.observe.optimizers import is_step_due, parameters_of, steps
from repros.diagnose.watch.inside.observe.replicas import Replica
from repros.diagnose.watch.inside.values import Digested, digest
from repros.diagnose.watch.inside.watch import Watch

if TYPE_CHECKING:
    from torch.nn import Module, Parameter
    from torch.nn.parallel import DistributedDataParallel
    from torch.optim import Optimizer

CHECKS = (
    Check("gradients_differ_bypassed", "the wrapped module was called directly, past DDP's forward"),
    Check("gradients_differ_static_graph", "the first backward of a static graph was not reduced"),
    Check("gradients_differ_converted", "the module got another dtype or device after it was wrapped"),
    Check("gradients_differ_unfrozen", "parameters were frozen when it was wrapped, and are trained now"),
    Check("gradients_differ_no_sync", "only the forward ran under `no_sync`"),
    Check("gradients_differ_checkpointed", "reentrant checkpoints ran in that backward, which DDP reduces only once"),
    Check(
        "gradients_differ_changed",
        "they agreed after the backward, and the program changed them before the step",
        "make the change from values that all ranks share, such as a clip by a norm that was reduced over them",
    ),
    Check(
        "gradients_differ",
        "any other cause",
        "call the wrapped module itself, and run forward and backward in the same context on all ranks",
    ),
    Check(
        "parameters_differ",
        "the parameters differ, although their gradients agreed",
        "give the optimizers of all ranks the same options and states, and write weights on all ranks alike",
    ),
    Check("no_sync_too_late", "`no_sync` was entered after the forward, so the backward is reduced all the same"),
)


class _State:
    """The state of one replica between two steps."""

    def __init__(self) -> None:
        self.preparations = 0  # at the last backward
        self.backwards = 0
        self.steps = 0
        self.check = "gradients_differ"
        """The check that names why the gradients of the last backward may differ."""
        self.is_called = False
        """Whether the wrapper was called since the last backward, in the inspected calls."""
        self.is_private = False
        self.place: str | None = None
        self.reduced: dict[str, list[Any]] = {}
        """The digest of the gradients after the last backward, if the next step is due."""
        self.digested: Digested | None = None
        """The gradients of `reduced`, to recognise those that do not change."""


class _Agreement:
    """The digests of this process, and what its replicas did before each."""

    def __init__(self, watch: Watch) -> None:
        self._watch = watch
        self._states: dict[int, _State] = {}
        self._inner = 0
        """The number of backward passes inside the last one, of reentrant checkpoints."""

    def calling(self, module: Module) -> None:
        for replica in replicas.replicas:
            if replica.module() is module:
                self._states.setdefault(id(replica), _State()).is_called = True

    def replica(self, *_: object) -> None:
        """Listen from the first replica on."""
        self._watch.listen_to(self, "calling", "before_backward", "inner_backward", "after_inspected_backward")

    def inner_backward(self) -> None:
        self._inner += 1

    def before_backward(self) -> None:
        self._inner = 0
        for replica, ddp, state in self._live():
            state.backwards += 1
            is_prepared, state.preparations = replica.preparations > state.preparations, replica.preparations
            state.is_private = not ddp.require_backward_grad_sync and not is_prepared
            state.check = _check_of(replica, ddp, state, is_prepared=is_prepared)
            state.is_called = False
            state.reduced, state.digested = {}, None
            replica.forget()
            if self._watch.is_due(state.backwards):
                state.place = user_location()
            if is_prepared and not ddp.require_backward_grad_sync:
                text = "no_sync begins after the forward: this backward is reduced all the same"
                self._watch.report("no_sync_too_late", text, step=state.backwards)

    def after_inspected_backward(self) -> None:
        has_stepped = self._watch.count("before_step") > 0
        for replica, _, state in self._live():
            if self._inner > 1 and state.check == "gradients_differ":
                state.check = "gradients_differ_checkpointed"
            is_pending = not has_stepped and self._watch.is_due(state.backwards)
            if state.is_private or not (is_pending or not steps or is_step_due(self._watch)):
                continue
            parameters = replica.parameters()
            gradients, known = {name: parameter.grad for name, parameter in parameters.items()}, self._watch.known()
            state.reduced = digest(gradients, known)
            state.digested = Digested([gradients[name] for name in state.reduced["names"]], known)
            if is_pending:
                _write(self._watch, replica, state, "gradients", state.backwards, parameters, is_pending=True)

    def before_step(self, *_: object) -> None:
        self._watch.events.write("stepping")
        self._watch.ignore("before_step", self.before_step)

    def after_inspected_step(self, optimizer: Optimizer, number: int) -> None:
        # The number of this optimizer's step, and not of all: GANs step several in turn.
        if not replicas.replicas or not self._watch.is_due(number):
            return
        held = {id(parameter) for parameter in parameters_of(optimizer)}
        for replica, _, state in self._live():
            mine = {name: parameter for name, parameter in replica.parameters().items() if id(parameter) in held}
            if mine and not state.is_private:
                _write(self._watch, replica, state, "gradients", number, mine, optimizer)
                _write(self._watch, replica, state, "parameters", number, mine, optimizer)

    def _live(self) -> list[tuple[Replica, DistributedDataParallel, _State]]:
        pairs = [(replica, replica.module()) for replica in replicas.replicas]
        return [
            (replica, ddp, self._states.setdefault(id(replica), _State())) for replica, ddp in pairs if ddp is not None
        ]


def listen(watch: Watch) -> None:
    """Attach the checks."""
    checks = _Agreement(watch)
    watch.listen("replica", checks.replica)
    if replicas.replicas:  # made before this watch
        checks.replica()
    watch.listen("before_step", checks.before_step)
    # Afterwards, since Lightning runs the backward in a closure within the step. The gradients are still there.
    watch.listen("after_inspected_step", checks.after_inspected_step)


def _check_of(replica: Replica, ddp: DistributedDataParallel, state: _State, *, is_prepared: bool) -> str:
    if getattr(ddp, "static_graph", False):
        return "gradients_differ_static_graph"
    if not is_prepared:
        return "gradients_differ_no_sync" if state.is_called else "gradients_differ_bypassed"
    return "gradients_differ_converted" if replica.is_converted else "gradients_differ"


def _write(
    watch: Watch,
    replica: Replica,
    state: _State,
    what: str,
    number: int,
    parameters: dict[str, Parameter],
    optimizer: Optimizer | None = None,
    *,
    is_pending: bool = False,
) -> None:
    """Write the digest of gradients or parameters, for the process outside to compare."""
    tensors, known = parameters, watch.known()
    if what == "gradients":
        tensors = {name: parameter.grad for name, parameter in parameters.items()}
        known.update(state.digested.still_known() if state.digested is not None else {})
    numbers = state.reduced if is_pending else digest(tensors, known)
    if not numbers["names"]:
        return
    check = state.check if what == "gradients" else "parameters_differ"
    # A converted parameter may be another object.
    if check == "gradients_differ" and any(id(value) not in replica.trained for value in parameters.values()):
        check = "gradients_differ_unfrozen"
    details: dict[str, object] = {**numbers, "total": len(parameters), "place": state.place or user_location()}
    if what == "gradients" and not is_pending and state.reduced:
        changed = "gradients_differ_changed"
        details.update({"reduced": state.reduced, "changed": changed if watch.is_enabled(changed) else None})
    # Which optimizer, by the first parameter that it holds: the same on all ranks.
    key = [*replica.key, next(iter(parameters)) if optimizer is not None else None, len(parameters)]
    wanted = check if watch.is_enabled(check) else None
    if wanted or details.get("changed"):
        watch.events.write("digest", check=wanted, what=what, key=key, number=number, pending=is_pending, **details)
