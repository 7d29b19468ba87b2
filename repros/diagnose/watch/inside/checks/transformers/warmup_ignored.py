"""A training of transformers' Trainer is scheduled, evaluated and saved as its arguments say.

## What it does
`warmup_ignored`: reports that Trainer makes the schedule `constant` although the arguments ask for a warm-up.
`worst_counts_as_best`: reports, at the second evaluation of a training that loads its best model at the end or stops
early, a metric that is an error by its name (`wer`, `mae`, `perplexity`, `..._error`, `..._loss`), is positive, and for
which `greater_is_better` is True by default. `evaluation_without_labels`: reports that `Trainer.evaluate` returns times
alone although `compute_metrics` is given. `generation_cut_short`: reports that `predict_with_generate` has written 20
tokens, the default of `generate()`, if most texts go on to the last of them and most references are longer.

## Why is this bad?
The first steps have the full rate; the worst model is kept; nothing is measured; or the metric scores cut texts.

## Example
`TrainingArguments(lr_scheduler_type="constant", warmup_steps=500)`, where `constant_with_warmup` was meant.

## Known misses
Optimizers that warm up themselves (schedule-free). A given `greater_is_better`, and names that begin with `neg`.
`predict`, whose data need no labels. Trainers whose class evaluates in its own way. A given length.

## Cost
Nothing in a step.
"""

from __future__ import annotations

import re
import statistics
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from repros.diagnose.watch.inside.check import Check
from repros.diagnose.watch.inside.watch import Watch

if TYPE_CHECKING:
    from transformers import Trainer, TrainingArguments
    from transformers.trainer_utils import EvalLoopOutput

CHECKS = (
    Check("warmup_ignored", "a constant schedule has no warm-up, and the arguments ask for one"),
    Check("worst_counts_as_best", "the greatest error rate counts as the best, by the default of greater_is_better"),
    Check("evaluation_without_labels", "an evaluation finds no labels and computes neither a loss nor a metric"),
    Check("generation_cut_short", "generated texts are scored that the default length has cut"),
)

_ERRORS = "wer|cer|mer|ter|mae|mse|rmse|mape|rmsle|perplexity|ppl|errors?|error_rate|loss"
_NAME = re.compile(rf"(?:.*[_\-/ ])?(?:{_ERRORS})$", re.IGNORECASE)
_NEGATED = re.compile(
    r"(?:^|[_\-/ ])(?:neg|negative|negated|minus|inv|inverse|one_minus|1)(?:[_\-/ ]|$)", re.IGNORECASE
)
_TIMES = re.compile(r"runtime|_per_second|epoch|preparation_time|jit_compilation_time|mem_|num_tokens|num_input_tokens")
_DEFAULT_LENGTHS = (20, 21)
"""The tokens of `generate()` without a given length, without or with a decoder's start token."""
_MATRIX = 2


class _Scored:
    """The trainers of this process."""

    def __init__(self, watch: Watch) -> None:
        self._watch = watch
        self._by_default: set[str] = set()
        """The metrics of arguments without `greater_is_better` that choose the best model."""

    def scheduling(self, trainer: Trainer) -> None:
        arguments = trainer.args
        kind = getattr(arguments, "lr_scheduler_type", "")
        steps, ratio = (getattr(arguments, name, 0) or 0 for name in ("warmup_steps", "warmup_ratio"))
        optimizer = str(getattr(getattr(arguments, "optim", ""), "value", getattr(arguments, "optim", "")))
        is_own = trainer.lr_scheduler is not None or "schedule_free" in optimizer or _is_schedule_free(trainer)
        if getattr(kind, "value", kind) == "constant" and (steps > 0 or ratio > 0) and not is_own:
            asked = f"warmup_steps={steps:g}" if steps > 0 else f"warmup_ratio={ratio:g}"
            text = f"the schedule is constant, which ignores {asked}: the first step has the full rate"
            self._watch.report("warmup_ignored", text, numbers={"steps": steps, "ratio": ratio})

    def arguments_made(self, arguments: TrainingArguments) -> None:
        name = getattr(arguments, "metric_for_best_model", None)
        if isinstance(name, str) and getattr(arguments, "greater_is_better", None) is None:
            self._by_default.add(name)

    def evaluated_to(self, trainer: Trainer, metrics: object) -> None:
        self._check_for_worst(trainer)
        compute = getattr(trainer, "compute_metrics", None)
        if compute is None or not isinstance(metrics, Mapping) or not _evaluates_as_library(trainer):
            return
        measured = [name for name in metrics if not _TIMES.search(name)]
        if metrics and not measured and _has_samples(metrics):
            names = list(getattr(trainer, "label_names", None) or ())
            wanted = f"names {names}" if names else "a name with 'label', nor are label_names given"
            text = f"evaluate() returns no loss, and has not called compute_metrics: it finds no labels of {wanted}"
            self._watch.report("evaluation_without_labels", text, names=names)

    def _check_for_worst(self, trainer: Trainer) -> None:
        arguments = trainer.args
        given = getattr(arguments, "metric_for_best_model", None)
        if given not in self._by_default or getattr(arguments, "greater_is_better", None) is not True:
            return
        name = given if given.startswith("eval_") else f"eval_{given}"
        bare = name[len("eval_") :]
        if not _NAME.match(bare) or _NEGATED.search(bare) or not _chooses(trainer):
            return
        log = getattr(trainer.state, "log_history", ())
        scores = [float(row[name]) for row in log if isinstance(row.get(name), (int, float))]
        if len(scores) > 1 and 0 <= min(scores) < max(scores):
            text = (
                f"the best model is chosen by {given!r}, an error, and greater_is_better is True by default:"
                f" {max(scores):g} counts as better than {min(scores):g}"
            )
            numbers = {"kept": max(scores), "least": min(scores)}
            self._watch.report("worst_counts_as_best", text, numbers=numbers, names=[given])

    def evaluation_looped(self, trainer: Trainer, output: EvalLoopOutput) -> None:
        arguments = trainer.args
        if not getattr(arguments, "predict_with_generate", False) or not _has_default_length(trainer):
            return
        written: Any = getattr(output, "predictions", None)
        wanted: Any = getattr(output, "label_ids", None)
        if getattr(written, "ndim", 0) != _MATRIX or getattr(wanted, "ndim", 0) != _MATRIX:
            return
        if not len(written) or written.shape[1] not in _DEFAULT_LENGTHS:
            return
        tokenizer = getattr(trainer, "processing_class", None) or getattr(trainer, "tokenizer", None)
        configuration = trainer.model.generation_config
        ends = {-100, getattr(tokenizer, "pad_token_id", None), getattr(configuration, "pad_token_id", None)}
        eos = getattr(configuration, "eos_token_id", None)
        ends.update(eos if isinstance(eos, (list, tuple)) else [eos])
        cut = sum(last not in ends for last in written[:, -1].tolist())
        length = statistics.median(sum(label not in ends for label in row) for row in wanted.tolist())
        if cut * 2 > len(written) and length > written.shape[1]:
            text = (
                f"{cut} of {len(written)} generated texts go on to token {written.shape[1]}, where generate() stops by"
                f" default; the references have {length:g} tokens (median)"
            )
            numbers = {"cut": cut, "texts": len(written), "length": written.shape[1], "references": length}
            self._watch.report("generation_cut_short", text, numbers=numbers)


def listen(watch: Watch) -> None:
    """Attach the checks."""
    scored = _Scored(watch)
    watch.listen_to(scored, "scheduling", "arguments_made", "evaluated_to", "evaluation_looped")


def _is_schedule_free(trainer: Trainer) -> bool:
    optimizer = getattr(trainer, "optimizer", None)
    groups = getattr(optimizer, "param_groups", None) or ()
    return "schedulefree" in type(optimizer).__module__ or any("warmup_steps" in group for group in groups)


def _has_samples(metrics: Mapping[str, object]) -> bool:
    rates = [value for name, value in metrics.items() if name.endswith("samples_per_second")]
    return any(isinstance(rate, (int, float)) and rate > 0 for rate in rates)


def _evaluates_as_library(trainer: Trainer) -> bool:
    methods = (getattr(type(trainer), name, None) for name in ("evaluate", "evaluation_loop", "prediction_step"))
    return all(getattr(method, "__module__", "").partition(".")[0] in {"transformers", "trl"} for method in methods)


def _chooses(trainer: Trainer) -> bool:
    """Return whether the metric decides which model is loaded, or when the training stops."""
    callbacks = getattr(getattr(trainer, "callback_handler", None), "callbacks", ())
    stops = any(type(callback).__name__ == "EarlyStoppingCallback" for callback in callbacks)
    return bool(getattr(trainer.args, "load_best_model_at_end", False)) or stops


def _has_default_length(trainer: Trainer) -> bool:
    """Return whether neither the call nor the model's generation configuration has a length other than the default."""
    given: Any = getattr(trainer, "_gen_kwargs", None) or {}
    configuration = getattr(trainer.model, "generation_config", None)
    if configuration is None or any(given.get(name) is not None for name in ("max_length", "max_new_tokens")):
        return False
    lengths = {getattr(configuration, name, None) for name in ("max_length", "max_new_tokens")}
    return lengths <= {None, _DEFAULT_LENGTHS[0]} and given.get("generation_config") is None
