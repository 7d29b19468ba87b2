"""What the numbers in an issue say by themselves: losses that repeat, a norm of 0, an exact factor, the first NaN."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from repros.diagnose.issue.issue import Issue

_VALUE = r"-?(?:\d+\.?\d*(?:e[+-]?\d+)?|nan|inf)"
_PRINTED = re.compile(
    r"(?<![\w.-])(?P<name>(?:\w*[_/])?(?:train_loss|loss|grad_?norm|reward_std|frac_reward_zero_std|learning_rate|lr))"
    rf"""["'`*]{{0,3}}\s{{0,2}}[:=|]\s{{0,2}}["']?(?P<value>{_VALUE})(?![\w.]*[\w])""",
    re.IGNORECASE,
)
"""A number that a training prints: `'loss': 0.97`, `Loss: 0.97`, `grad_norm=nan`."""
_LISTED = re.compile(
    rf"(?<![\w.-])(?P<name>loss|grad_norm|reward_std|frac_reward_zero_std|learning_rate"
    rf"|lr) (?P<value>{_VALUE})(?=[,;)]|\s*$)",
    re.IGNORECASE | re.MULTILINE,
)
"""A number in a list: `- loss 0.97, grad_norm nan`."""
_VALUES = re.compile(r"(?<![\d.])\d+\.\d{2,}(?:, ?\d+\.\d{2,}){2,}")
"""A series of losses in one line."""
_ROW = re.compile(r"^[ \t>]*\|(?P<cells>[^\n]+)\|[ \t]*$", re.MULTILINE)
_CONSTANT = re.compile(
    r"\bloss\w*\b[^.\n]{0,40}?\b(?:stuck|stays?|remains?|constant\w*|always|flat|plateau\w*|around|hover\w*|at)\b"
    rf"[^\n]{{0,30}}?(?P<value>{_VALUE})"
    rf"|\bloss\w*\b[^.\n]{{0,30}}?(?P<first>{_VALUE}) (?:all the time|always|throughout|(?:in|at|for) (?:each|every"
    rf"|all) \w+)",
    re.IGNORECASE,
)
_FACTOR = re.compile(
    r"\b(?P<what>gradients?|grad[ _]?norms?|loss(?:es)?|norms?|learning rate)\b[^.\n]{0,60}?\b(?:are |is |was |gets? )?"
    r"(?:exactly |about |roughly |almost |approximately |around )?(?:(?P<twice>twice|doubled|double)"
    r"|(?P<number>\d{1,3})\s?(?:x|\u00d7|times)(?!\d))",
    re.IGNORECASE,
)
_ACCUMULATED = re.compile(r"gradient_accumulation_steps\W{1,4}(?P<steps>\d{1,4})")
_FEWEST = 3
"""Values of which something may be said."""
_SHORTEST_PERIOD = 3
_CLASSES = {2: "2 classes (or of a preference loss whose policy equals its reference)", 3: "3 classes", 4: "4 classes"}
_GUESSES = (2, 3, 4, 5, 8, 10, 20, 100, 1_000, 32_000, 50_257, 128_256, 151_936)
_FAR, _SIMILAR = 4, 1.5
"""Ratios of the largest to the smallest accumulation in a table, and of the quotients, if losses are proportional."""
_CLOSE = 2e-3
"""How far a loss may be from the logarithm of a number of classes."""


@dataclass(frozen=True)
class Finding:
    """What numbers say."""

    name: str
    """A fact that causes may name: `gradient-zero`."""
    title: str = ""
    """What they mean, if they decide it; else empty."""
    text: str = ""
    """In a sentence without its full stop, with the numbers."""
    check: str = ""
    """What to print to find the reason."""


_CHANGED = (
    "w = {n: p.detach().clone() for n, p in model.named_parameters()}; optimizer.step(); print([(n, p.requires_grad, "
    "p.grad is not None, (p - w[n]).abs().max().item()) for n, p in model.named_parameters()][-5:])  # frozen: False; "
    "no gradient: False; 0.0: the optimizer lacks it, or its rate is 0"
)
_GRADIENT = (
    "print(loss.requires_grad, loss.grad_fn, [(n, p.grad is not None and p.grad.norm().item()) for n, p in "
    "model.named_parameters() if p.requires_grad][:5])  # after backward: no grad_fn: the graph is cut; all 0: the "
    "loss "
    "does not depend on them"
)


def find_numbers(issue: Issue, text: str) -> list[Finding]:
    """Return what the numbers of an issue say, the most telling first.

    Args:
        issue: the issue.
        text: its whole text.
    """
    source = issue.code.source if issue.code else ""
    series = _read_series(text.replace(source, "") if source else text)
    readers: Sequence[Callable[[], Iterator[Finding]]] = (
        lambda: _of_rewards(series),
        lambda: _of_gradient(series),
        lambda: _of_losses(series),
        lambda: _of_rate(series),
        lambda: _of_table(text),
        lambda: _of_prose(issue),
    )
    found = {finding.name: finding for reader in readers for finding in reader()}
    return list(found.values())


def _read_series(text: str) -> Mapping[str, Sequence[float]]:
    """Return the printed values by name, in the order of the text: `loss`, `gradnorm`, `rate`, ..."""
    series: dict[str, list[float]] = {}
    for found in sorted((*_PRINTED.finditer(text), *_LISTED.finditer(text)), key=lambda found: found.start()):
        name = found["name"].lower()
        short = {"lr": "rate", "learning_rate": "rate", "gradnorm": "grad_norm", "train_loss": "loss"}.get(name, name)
        series.setdefault(short, []).append(float(found["value"]))
    if not series and re.search(r"\bloss", text, re.IGNORECASE):
        series["loss"] = [float(value) for found in _VALUES.finditer(text) for value in found[0].split(",")]
    return series


def _of_rewards(series: Mapping[str, Sequence[float]]) -> Iterator[Finding]:
    flat = series.get("frac_reward_zero_std", ())
    if flat and set(flat) == {1.0}:
        yield Finding(
            "rewards-equal",
            "All answers of a prompt get the same reward, so there is nothing to learn from",
            f"frac_reward_zero_std is 1.0 in {_steps(flat)}: all answers of each prompt have the same total reward, "
            f"so the "
            "advantage, the gradient and the loss are 0, whatever a single reward function's std is over the batch",
            "print(rewards.view(-1, num_generations).std(1))  # per prompt, of the summed rewards: 0 in every row",
        )


def _of_gradient(series: Mapping[str, Sequence[float]]) -> Iterator[Finding]:
    norms = series.get("grad_norm", ())
    if norms and not any(norms):
        yield Finding("gradient-zero", "No weight gets a gradient", f"grad_norm is 0 in {_steps(norms)}", _GRADIENT)
    elif norms and all(map(math.isnan, norms)):
        yield Finding("gradient-nan", text=f"grad_norm is NaN in {_steps(norms)}: the backward pass gives NaN")
    elif norms and all(map(math.isfinite, norms)) and all(norms):
        yield Finding("gradient-not-zero")


def _of_losses(series: Mapping[str, Sequence[float]]) -> Iterator[Finding]:
    losses = series.get("loss", ())
    first = next((at for at, loss in enumerate(losses) if math.isnan(loss)), None)
    if first:
        before = losses[first - 1]
        text = f"the loss is finite in the {first} printed steps before ({before:g} at last), then NaN"
        yield Finding("nan-later", text=text)
    finite = [loss for loss in losses if math.isfinite(loss)]
    if period := _period(finite):
        shown = ", ".join(f"{loss:g}" for loss in finite[:3])
        yield Finding(
            "loss-repeats",
            "No weight changes between the epochs",
            f"the losses {shown}, ... repeat to the last digit after {period} steps: the same batches, and no "
            f"weight has "
            "changed between them",
            _CHANGED,
        )
    elif len(finite) >= _FEWEST and len(set(finite)) == 1 and finite[0] > 0:
        yield from _of_constant(finite[0], f"the loss is {finite[0]:g} in {_steps(finite)}")


def _of_constant(value: float, text: str) -> Iterator[Finding]:
    guess = next((classes for classes in _GUESSES if abs(value - math.log(classes)) < _CLOSE), 0)
    if guess:
        named = _CLASSES.get(guess, f"{guess:,} classes")
        text = f"{text} = ln {guess}, the loss of a model that guesses among {named}: its outputs do not depend on "
        "the input yet"
    yield Finding(
        "loss-constant",
        "The loss is that of an untrained model" if guess else "The loss does not change",
        text,
        _CHANGED,
    )


def _of_rate(series: Mapping[str, Sequence[float]]) -> Iterator[Finding]:
    rates = series.get("rate", ())
    if len(rates) >= _FEWEST and not any(rates):
        check = "print(optimizer.param_groups[0]['lr'], scheduler.get_last_lr(), args.warmup_steps, args.max_steps)"
        yield Finding(
            "rate-zero",
            "The learning rate is 0",
            f"the learning rate is 0 in {_steps(rates)}: no step changes a weight",
            check,
        )


def _of_table(text: str) -> Iterator[Finding]:
    """Yield the column of losses that is proportional to that of accumulation, in a table of Markdown."""
    rows = [[cell.strip() for cell in row["cells"].split("|")] for row in _ROW.finditer(text)]
    head = next((row for row in rows if any(re.search(r"accum|\bacc\b", cell, re.IGNORECASE) for cell in row)), None)
    if head is None:
        return
    at = next(i for i, cell in enumerate(head) if re.search(r"accum|\bacc\b", cell, re.IGNORECASE))
    for i, cell in enumerate(head):
        pairs = [pair for row in rows if len(row) == len(head) and (pair := _numbers(row, (at, i)))]
        if "loss" in cell.lower() and len(pairs) >= _FEWEST and _is_proportional(pairs):
            ratios = [loss / steps for steps, loss in pairs]
            yield Finding(
                "loss-times-accumulation",
                "The printed loss is a sum over the micro-batches, not their mean",
                f"{cell} divided by {head[at]} is {min(ratios):.2g} to {max(ratios):.2g} in all {len(ratios)} rows: "
                f"the "
                "losses of the micro-batches are added and not divided",
                "print(trainer.model_accepts_loss_kwargs, inspect.signature(model.forward))  # transformers: True, "
                "and the "
                "model's loss ignores num_items_in_batch: set it to False; in a loop of your own: loss / "
                "accumulation steps "
                "before backward",
            )
            return


def _is_proportional(pairs: Sequence[tuple[float, float]]) -> bool:
    """Return whether second numbers grow as the first ones, which differ by far."""
    if min(min(pair) for pair in pairs) <= 0:
        return False
    steps, ratios = [one for one, _ in pairs], [other / one for one, other in pairs]
    return max(steps) >= _FAR * min(steps) and max(ratios) <= _SIMILAR * min(ratios)


def _numbers(row: Sequence[str], at: tuple[int, int]) -> tuple[float, float] | None:
    try:
        return float(row[at[0]]), float(row[at[1]])
    except ValueError:
        return None


def _of_prose(issue: Issue) -> Iterator[Finding]:
    prose = f"{issue.title}\n{issue.seen}"
    if constant := _CONSTANT.search(prose):
        value = float(constant["value"] or constant["first"])
        if value < 0 and value.is_integer():
            yield Finding(
                "loss-placeholder",
                "The printed loss is a placeholder of a process that has none",
                f"a loss of {value:g} at all times is a placeholder and no cross-entropy, which is never negative: "
                f"a process "
                "prints it that has no loss; with pipeline parallelism only ranks of the last stage have one",
                "look at the log of the last stage's rank (torchrun --local-ranks-filter, LOG_RANK), not at rank 0's",
            )
        elif value > 0:
            yield from (one for one in _of_constant(value, f"a loss of {value:g}") if " = ln " in one.text)
    if factor := _FACTOR.search(prose):
        yield from _of_factor(issue, factor)


def _of_factor(issue: Issue, found: re.Match[str]) -> Iterator[Finding]:
    number = 2 if found["twice"] else int(found["number"])
    what = found["what"].lower()
    accumulated = {int(steps) for steps in _ACCUMULATED.findall(issue.seen)}
    if number == issue.launch.ranks and number > 1:
        yield Finding(
            "factor-ranks",
            "A sum over the ranks is taken where a mean is meant",
            f"{what} {number} times too large on {number} ranks: a sum over the ranks where a mean is meant, or a "
            f"share "
            "that each rank counts",
            "print(rank, p.grad.norm())  # on 1 rank, on N, and before the reduction: the line where the factor N "
            "comes in "
            "(an all_reduce or a DTensor's Partial without / world_size)",
        )
    elif number in accumulated and number > 1:
        yield Finding(
            "factor-accumulation",
            "A sum over the micro-batches is taken where a mean is meant",
            f"{what} {number} times too large with {number} accumulation steps: each micro-batch adds its whole",
            "print(loss.item(), p.grad.norm())  # of one step: (batch 8, accumulation 1) against (batch 1, "
            "accumulation 8); the "
            "line that divides by the number of micro-batches is missing, or is in one of both alone",
        )


def _period(values: Sequence[float]) -> int:
    """Return after how many values a series repeats itself exactly, with several to show it; 0 if it does not."""
    for period in range(_SHORTEST_PERIOD, len(values) - _FEWEST + 1):
        head = values[:period]
        if len(set(head)) == period and all(value == head[at % period] for at, value in enumerate(values)):
            return period
    return 0


def _steps(values: Sequence[float]) -> str:
    return f"all {len(values)} printed steps" if len(values) > 1 else "the printed step"
