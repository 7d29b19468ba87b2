"""A loss function gets the input that it is made for.

## What it does
Inspects the graph of the loss, and reports what it has found in three backwards. `loss_broadcast` (possible): a
difference of shape (N, N), squared or made positive and then averaged or summed as a whole, or a loss of PyTorch (MSE,
L1, smooth L1, Huber), between a prediction of shape (N, 1) or (N,) with a gradient and a target of the other shape
without one. `loss_of_softmax`: the logarithm of a softmax of a softmax, as by cross_entropy of probabilities.
`loss_without_log`: nll_loss of a softmax or of a layer's output, without a logarithm. `loss_of_sigmoid`:
binary_cross_entropy_with_logits of a sigmoid. `softmax_over_batch`: a softmax over the rows of (N, C) logits, with or
without a logarithm, that cross_entropy or nll_loss takes for one over the classes.

## Why is this bad?
The network learns something else than the target: the mean of all targets, or badly scaled probabilities. The loss
falls all the same.

## Example
`mse_loss(model(x), y)` with a prediction of shape (32, 1) and a target of shape (32,).

## Known misses
`loss_broadcast`: predictions that are a view, as by `pred[:, None]`; targets with a gradient; before torch 2.6, whose
graphs have no shapes, a difference that the program takes itself of anything but a linear layer's output, squeezed or
not; programs with hooks on saved tensors (checkpoints, offloading). The others: anything between the two that is
neither a view nor a copy; a logarithm of a logarithm, which changes nothing. `softmax_over_batch`: as many rows as
classes, as a contrastive loss has them; programs with hooks on saved tensors. All: compiled losses.

## Cost
A walk over at most 60 nodes of the graph at backward 1, 2, 4, 8, ... and at the three after each: so each of up to four
losses that take turns is inspected. From the first mistake until its report, the calls of loss functions are observed.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from repros.diagnose.watch.inside.check import Check
from repros.diagnose.watch.inside.location import user_location
from repros.diagnose.watch.inside.observe.loss_calls import LossCalls
from repros.diagnose.watch.inside.watch import Watch

if TYPE_CHECKING:
    from torch import Tensor
    from torch.autograd.graph import Node

CHECKS = (
    Check(
        "loss_broadcast",
        "a target of another shape is broadcast: each prediction is compared with each target",
        "give both the same shape: `prediction.squeeze(1)` or `target[:, None]`",
    ),
    Check(
        "loss_of_softmax",
        "cross_entropy gets probabilities instead of logits",
        "give cross_entropy the logits, without the softmax before it",
    ),
    Check(
        "loss_without_log",
        "nll_loss gets probabilities or logits instead of their logarithms",
        "cross_entropy of the logits, or `nll_loss(log_softmax(logits, 1), target)`",
    ),
    Check(
        "loss_of_sigmoid",
        "binary_cross_entropy_with_logits gets probabilities instead of logits",
        "give binary_cross_entropy_with_logits the logits, without the sigmoid before it",
    ),
    Check(
        "softmax_over_batch",
        "a softmax of a classifier's output is taken over the batch instead of the classes",
        "`softmax(logits, dim=-1)`, or the logits themselves for cross_entropy",
    ),
)

_MOST_NODES = 60
_TIMES = 3
_IN_A_ROW = 4
"""Backwards that are inspected from each that is due: a GAN's third loss in each round is none of 1, 2, 4, 8, ..."""
_CORNER = 8
"""Rows and columns of a difference that are inspected."""

_PASSING = {
    *("ViewBackward0", "ReshapeAliasBackward0", "UnsafeViewBackward0", "TransposeBackward0", "PermuteBackward0"),
    *("SqueezeBackward0", "SqueezeBackward1", "UnsqueezeBackward0", "CloneBackward0", "ToCopyBackward0"),
    *("TBackward0", "SliceBackward0", "SelectBackward0", "IndexBackward0", "ExpandBackward0", "AliasBackward0"),
}
"""Nodes whose result has the numbers of their input."""
_NLL = {"NllLossBackward0", "NllLoss2DBackward0", "NllLossNdBackward0"}
_PAIRED = {"MseLossBackward0", "SmoothL1LossBackward0", "HuberLossBackward0"}
_WHOLE = {"MeanBackward0", "SumBackward0"}
_INSPECTED = {*_NLL, *_PAIRED, *_WHOLE, "BinaryCrossEntropyWithLogitsBackward0"}
_OF_DIFFERENCE = {"PowBackward0", "AbsBackward0", "MulBackward0"}
_LAYERS = {"AddmmBackward0", "ConvolutionBackward0"}

_TEXTS = {
    "loss_of_softmax": "cross_entropy gets the output of a softmax{}, and applies another: expected logits",
    "loss_without_log": "nll_loss gets no logarithms of probabilities: its input is the output of {}",
    "loss_of_sigmoid": "binary_cross_entropy_with_logits gets the output of a sigmoid, and applies another",
    "loss_broadcast": (
        "possible: a loss compares each of {0} predictions with each of {0} targets: one has the shape ({0}, 1), the"
        " other ({0},)"
    ),
    "softmax_over_batch": "the loss gets a softmax over dim 0, the batch, of an output of shape {}: expected dim 1",
}
_CALLED = {
    "loss_of_softmax": ("cross_entropy", "nll_loss"),
    "loss_without_log": ("nll_loss",),
    "loss_of_sigmoid": ("binary_cross_entropy_with_logits",),
    "loss_broadcast": ("mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss"),
    "softmax_over_batch": ("cross_entropy", "nll_loss"),
}
"""The functions whose call is the place of a mistake."""


class _Losses:
    """How often each mistake was seen in the graph of a loss."""

    def __init__(self, watch: Watch) -> None:
        self._watch = watch
        self._backwards = 0
        self._left = 0
        """The number of further backwards to inspect."""
        self._times: Counter[str] = Counter()
        self._has_hooks = False
        self._calls = LossCalls()

    def hooks_saved(self) -> None:
        self._has_hooks = True

    def differentiating(self, tensors: Tensor | Sequence[Tensor]) -> None:
        self._backwards += 1
        if self._watch.is_due(self._backwards):
            self._left = _IN_A_ROW
        if not self._left:
            return
        self._left -= 1
        roots = tensors if isinstance(tensors, (list, tuple)) else [tensors]
        mistakes: dict[str, str] = {}
        for node in _nodes([getattr(root, "grad_fn", None) for root in roots]):
            for check, what in _mistakes(node, can_unpack=not self._has_hooks):
                mistakes.setdefault(check, what)
        for check, what in mistakes.items():
            self._times[check] += 1
            if self._times[check] == 1 and not self._watch.compiles:
                self._calls.start()
                for name in ("compiles", "ends"):
                    self._watch.listen(name, self._calls.stop)
            if self._times[check] == _TIMES:
                place = self._calls.place_of(*_CALLED[check]) or user_location()
                self._watch.report(check, _TEXTS[check].format(what), place=place)
                if all(times >= _TIMES for times in self._times.values()):
                    self._calls.stop()


def listen(watch: Watch) -> None:
    """Attach the checks."""
    losses = _Losses(watch)
    watch.listen_to(losses, "differentiating", "hooks_saved")


def _nodes(roots: list[Node | None]) -> Iterator[Node]:
    """Yield the nodes nearest to the loss at which a mistake shows."""
    waiting, visited = deque(node for node in roots if node is not None), 0
    while waiting and visited < _MOST_NODES:
        node = waiting.popleft()
        visited += 1
        kind = type(node).__name__  # which takes less time than `node.name()`
        if kind in _INSPECTED:
            yield node
        if kind != "AccumulateGrad" and len(waiting) + visited < _MOST_NODES:
            waiting += [following for following, _ in node.next_functions if following is not None]


def _mistakes(node: Node, *, can_unpack: bool) -> Iterator[tuple[str, str]]:
    """Yield the checks that report a node of a loss's graph, each with a word for its text."""
    name = node.name()
    if name in _NLL:
        below = _below(node)
        under = below.name() if below is not None else ""
        soft = below if under == "LogSoftmaxBackward0" else _below(below) if under == "LogBackward0" else None
        if under == "LogSoftmaxBackward0" and _name(_below(below)) == "SoftmaxBackward0":
            soft = _below(below)
            yield "loss_of_softmax", " over dim 0, the batch" if can_unpack and _rows_and_classes(soft) else ""
        if can_unpack and (shape := _rows_and_classes(soft)):
            yield "softmax_over_batch", str(shape)
        if under == "LogSoftmaxBackward0":
            return
        if under == "SoftmaxBackward0" or under in _LAYERS:
            yield "loss_without_log", "a softmax" if under == "SoftmaxBackward0" else "a layer"
    elif name == "BinaryCrossEntropyWithLogitsBackward0":
        if _name(_below(node)) == "SigmoidBackward0":
            yield "loss_of_sigmoid", ""
    elif can_unpack and (name in _PAIRED or name in _WHOLE):
        number = _paired(node) if name in _PAIRED else _difference(_following(node, 0))
        if number:
            yield "loss_broadcast", str(number)


def _rows_and_classes(node: Node | None) -> tuple[int, int] | None:
    """Return the shape (N, C) of a softmax over its rows, of other length than its classes; None for another node."""
    result = _saved(node, "result") if node is not None and "SoftmaxBackward0" in _name(node) else None
    if node is None or result is None or result.dim() != 2 or node._saved_dim not in {0, 2**64 - 2}:  # noqa: PLR2004
        return None
    rows, classes = map(int, result.shape)
    return (rows, classes) if rows != classes and rows > 1 else None


def _name(node: Node | None) -> str:
    return str(node.name()) if node is not None else ""


def _following(node: Node, place: int) -> Node | None:
    return node.next_functions[place][0] if len(node.next_functions) > place else None


def _below(node: Node) -> Node | None:
    """Return the node of a node's first input, with views and copies skipped."""
    node = _following(node, 0)
    while node is not None and node.name() in _PASSING:
        node = _following(node, 0)
    return node


def _shape(node: Node) -> tuple[int, ...]:
    """Return the shape of a node's result; () if it is unknown."""
    (facts, *_) = getattr(node, "_input_metadata", None) or (None,)
    return tuple(map(int, facts.shape)) if facts is not None else _shape_by_sizes(node)


def _shape_by_sizes(node: Node) -> tuple[int, ...]:
    """Return the shape of a layer's or squeeze's result before torch 2.6, from the sizes that its node saves."""
    name, sizes = _name(node), tuple(map(int, getattr(node, "_saved_self_sym_sizes", ())))
    if name == "AddmmBackward0":
        return int(node._saved_mat1_sym_sizes[0]), int(node._saved_mat2_sym_sizes[1])
    if name == "MmBackward0":
        return sizes[0], int(node._saved_mat2_sym_sizes[1])
    if name == "SqueezeBackward1":
        squeezed = (node._saved_dim + len(sizes)) % 2**64 % len(sizes)  # -1 is kept without its sign
        return tuple(size for place, size in enumerate(sizes) if place != squeezed or size != 1)
    return tuple(size for size in sizes if size != 1) if name == "SqueezeBackward0" else ()


def _paired(node: Node) -> int:
    """Return N if a loss of PyTorch has inputs of shape (N, N), expanded from N numbers each; else 0."""
    expanded, target = _following(node, 0), _following(node, 1)
    if _name(expanded) != "ExpandBackward0" or target is not None:
        return 0
    pairs = _saved(node, "self")
    number = _broadcast(_following(expanded, 0), expanded, pairs)
    return number if number and _are_pairs(pairs, _saved(node, "target")) else 0


def _difference(node: Node | None) -> int:
    """Return N if a node squares the (N, N) differences of N predictions and targets, or takes absolute values."""
    if _name(node) not in _OF_DIFFERENCE:
        return 0
    minus = _following(node, 0)
    if minus is None or _name(minus) not in {"SubBackward0", "RsubBackward0"}:
        return 0
    operands = [following for following, _ in minus.next_functions if following is not None]
    if len(operands) != 1:
        return 0
    (operand,) = operands
    differences = _saved(node, "self")
    prediction = _following(operand, 0) if _name(operand) == "ExpandBackward0" else operand
    number = _broadcast(prediction, operand, differences)
    return number if number and _are_pairs(differences) else 0


def _broadcast(prediction: Node | None, operand: Node, result: Tensor | None) -> int:
    """Return N if a prediction of shape (N, 1) or (N,) was broadcast to a result of shape (N, N); else 0."""
    if prediction is None or result is None or prediction.name() == "torch::autograd::AccumulateGrad":
        return 0
    if prediction.name() in _PASSING - {"SqueezeBackward0", "SqueezeBackward1"}:
        return 0
    try:
        shape = _shape(prediction) if operand is prediction else tuple(map(int, operand._saved_self_sym_sizes))
    except (RuntimeError, TypeError):  # a nested or a symbolic shape
        return 0
    number = shape[0] if shape else 0
    return number if number > 1 and result.shape == (number, number) and shape in {(number,), (number, 1)} else 0


def _saved(node: Node, name: str) -> Tensor | None:
    """Return a tensor that a node saves for its backward, or None."""
    try:
        return getattr(node, f"_saved_{name}", None)
    except RuntimeError:  # changed in place since, for which the program's backward will raise
        return None


def _are_pairs(prediction: Tensor | None, target: Tensor | None = None) -> bool:
    """Return whether a difference of shape (N, N) is a sum of a number by row and one by column, neither constant."""
    import torch

    given = [prediction, *([] if target is None else [target])]
    if not all(type(tensor) is torch.Tensor and tensor.dim() == 2 for tensor in given):  # noqa: PLR2004 - rows, columns
        return False
    with torch.no_grad():
        corners = [tensor.detach()[:_CORNER, :_CORNER].double() for tensor in given]
        corner = corners[0] if target is None else corners[0] - corners[1]
        rows, columns = corner - corner[:1], corner - corner[:, :1]
        rest = rows - rows[:, :1]
        return bool(rows.any()) and bool(columns.any()) and bool((rest.abs() <= 1e-3 * corner.abs().max()).all())
