"""More evidence never gives a worse answer: a log keeps the candidates of each of its parts.

A part is a run of a log's lines. The whole is the log, two logs one behind the other, a log between other lines, or one
with prefixes. What the part may be, the whole may be, too, unless a line contradicts it: then the answer quotes it.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from repros.diagnose.match import Confidence, ContradictionKind, LogMatch, RuledOut, match_log
from repros.diagnose.match.log import decode_lines
from repros.diagnose.match.occurrences import ContradictingLine
from repros.diagnose.match.reasons import WATCH, next_commands, next_without_candidates, other_causes
from repros.diagnose.match.text import format_match
from repros.model.errors import ReprosError
from tests.diagnose.match.golden_logs import GOLDEN, read_golden_logs
from tests.diagnose.match.wrappers import WRAPPERS, wrap_text
from tests.package_catalogue import load_index

LOGS = tuple(read_golden_logs())
MOST = 40
"""Examples of each property; one takes two or three searches of the catalogue."""
REMOVING = {"last-lines", "flattened", "progress", "renamed", "interleaved", "cuda"}
"""Wrappers that change or remove text, so that the whole does not contain the part."""
AROUND = (
    "Epoch 3:  50%|#####     | 5/10 [00:01<00:01]",
    "torch==2.1.2\nlightning==2.1.3",
    "srun: error: node1: task 0: Exited with exit code 1",
    "wandb: Synced 5 files",
    "we got this:",
    "",
    "```",
    "E   assert x",
    '  File "x.py", line 3, in f',
    "Traceback (most recent call last):",
    "RuntimeError                              Traceback (most recent call last)",
    "ValueError: skipped sample 4",
    "During handling of the above exception, another exception occurred:",
)


@cache
def found(text: str) -> LogMatch:
    return match_log(decode_lines(text.encode()), load_index())


def ids(result: LogMatch) -> set[str]:
    return {candidate.repro.id for candidate in result.candidates}


def is_quoted(out: RuledOut, text: str) -> bool:
    """Whether the line that contradicts a repro is in the log."""
    if out.contradiction.kind in {ContradictionKind.CONSEQUENCE, ContradictionKind.OTHER_TEXT}:
        return out.contradiction.quote.split()[0] in text
    location, _, function = out.contradiction.quote.rpartition(" ")
    return location.rpartition(":")[0] in text and function in text


def answers(part: str) -> set[str]:
    try:
        return ids(found(part))
    except ReprosError:  # a part without any text
        return set()


def lost(known: set[str], whole: str) -> set[str]:
    """Return the answers that a log does not give and that no line of it contradicts."""
    result = found(whole)
    contradicted = {out.entry.repro.id for out in result.ruled_out if is_quoted(out, whole)}
    return known - ids(result) - contradicted


def keeps_its_answers(part: str, whole: str) -> None:
    known = answers(part)
    assume(known)
    assert lost(known, whole) == set()


@st.composite
def runs(draw: st.DrawFn) -> tuple[str, str]:
    """Return a golden log and a run of its lines, often the whole."""
    text = draw(st.sampled_from(LOGS)).text
    lines = text.splitlines()
    first = draw(st.sampled_from([0, len(lines) // 2]) | st.integers(0, len(lines) - 1))
    last = draw(st.just(len(lines)) | st.integers(first + 1, len(lines)))
    return text, "\n".join(lines[first:last])


@settings(max_examples=MOST)
@given(runs())
def test_of_a_run_of_lines(log: tuple[str, str]) -> None:
    whole, part = log
    keeps_its_answers(part, whole)


@settings(max_examples=MOST)
@given(runs(), runs(), st.sampled_from(["\n", "\n\n"]), st.booleans())
def test_of_one_log_behind_another(one: tuple[str, str], other: tuple[str, str], between: str, is_first: bool) -> None:
    parts = (one[1], other[1]) if is_first else (other[1], one[1])
    keeps_its_answers(one[1], between.join(parts))


@settings(max_examples=MOST)
@given(runs(), st.lists(st.sampled_from(AROUND), max_size=3), st.lists(st.sampled_from(AROUND), max_size=3))
def test_of_a_log_between_other_lines(log: tuple[str, str], before: Sequence[str], after: Sequence[str]) -> None:
    keeps_its_answers(log[1], "\n".join([*before, log[1], *after]))


@settings(max_examples=MOST)
@given(runs(), st.sampled_from(sorted(WRAPPERS.keys() - REMOVING)))
def test_of_a_log_with_prefixes(log: tuple[str, str], wrapper: str) -> None:
    keeps_its_answers(log[1], wrap_text(f"{log[1]}\n", (wrapper,)))


def test_of_each_golden_log(request: pytest.FixtureRequest) -> None:
    """Each log with its halves, its end and its last line, and between other lines; a sample without `--all-cells`."""
    chosen = LOGS if request.config.getoption("--all-cells") else LOGS[:: len(LOGS) // MOST]
    compared = 0
    for log in chosen:
        lines = log.text.splitlines()
        half, end = len(lines) // 2, len(lines)
        cuts = {(0, half), (half, end), (max(0, end - 6), end), (end - 1, end), (0, end)}
        for part in sorted("\n".join(lines[first:last]) for first, last in cuts):
            known = answers(part)
            between = "\n".join([*AROUND[:3], part, *AROUND[3:6]])
            compared += bool(known)
            assert not known or (lost(known, log.text), lost(known, between)) == (set(), set()), log.name
    assert compared > len(chosen)


SAME_DEVICE = "Expected all tensors to be on the same device, but found at least two devices, cuda:1 and cuda:0!"
HOOKED = """\
Traceback (most recent call last):
  File "/home/user/train.py", line 30, in <module>
    loss = model(batch).sum()
  File "/env/site-packages/accelerate/hooks.py", line 165, in new_forward
    output = old_forward(*args, **kwargs)
  File "/env/site-packages/torch/nn/modules/linear.py", line 114, in forward
    return F.linear(input, self.weight, self.bias)
"""


def test_each_line_more_keeps_the_first_sentence_of_a_message() -> None:
    logs = [
        SAME_DEVICE,
        f"RuntimeError: {SAME_DEVICE}",
        f"{HOOKED}RuntimeError: {SAME_DEVICE}",
        f"{HOOKED}RuntimeError: {SAME_DEVICE}\naccelerate==0.25.0",
        f"GPU available: True\n{HOOKED}RuntimeError: {SAME_DEVICE}\n\naccelerate==1.13.0\nbitsandbytes==0.49.0",
    ]
    answers = [[(candidate.repro.id, candidate.confidence) for candidate in found(log).candidates] for log in logs]
    assert answers == [[("RPR-0002", Confidence.POSSIBLE)]] * 5


@cache
def golden(name: str) -> str:
    return (GOLDEN / f"{name}.log").read_text("utf-8")


@pytest.mark.parametrize("count", [999, 1_000, 3_000])
def test_any_number_of_handled_exceptions_hides_no_failure(count: int) -> None:
    known = golden("rpr-0001-failing-ddp-hand-2023-12")
    handled = "".join(f"ValueError: skipped sample {number}\n" for number in range(count))
    for text in (handled + known, known + handled, handled + known + handled.replace("skipped", "other")):
        assert [(answer.repro.id, answer.confidence) for answer in found(text).candidates] == [("RPR-0001", "certain")]


PLAIN_DDP = """\
Traceback (most recent call last):
  File "/home/user/train.py", line 41, in <module>
    loss = model(batch).sum()
  File "/env/site-packages/torch/nn/modules/module.py", line 1553, in _wrapped_call_impl
    return self._call_impl(*args, **kwargs)
  File "/env/site-packages/torch/nn/parallel/distributed.py", line 1632, in forward
    inputs, kwargs = self._pre_forward(*inputs, **kwargs)
  File "/env/site-packages/torch/nn/parallel/distributed.py", line 1523, in _pre_forward
    if torch.is_grad_enabled() and self.reducer._rebuild_buckets():
RuntimeError: Expected to have finished reduction in the prior iteration before starting a new one.
"""


def test_a_failure_of_ddp_is_found_without_lightning() -> None:
    (candidate,) = found(PLAIN_DDP).candidates
    assert (candidate.repro.id, candidate.confidence) == ("RPR-0179", Confidence.LIKELY)
    (out,) = found(PLAIN_DDP).ruled_out
    assert out.entry.repro.id == "RPR-0024"
    assert out.contradiction == ContradictingLine(ContradictionKind.OTHER_CALL, "/home/user/train.py:41 <module>")


def test_a_library_s_call_rules_out_the_failure_that_its_own_is_a_case_of() -> None:
    fit = '  File "/env/site-packages/pytorch_lightning/trainer/trainer.py", line 696, in fit\n    ...\n'
    head, _, rest = PLAIN_DDP.partition('  File "/env/site-packages/torch/nn/modules')
    match = found(f'{head}{fit}  File "/env/site-packages/torch/nn/modules{rest}')
    assert [candidate.repro.id for candidate in match.candidates] == ["RPR-0024"]
    (out,) = match.ruled_out
    trainer = "/env/site-packages/pytorch_lightning/trainer/trainer.py:696 fit"
    assert out.contradiction == ContradictingLine(ContradictionKind.OTHER_REPRO, trainer, "RPR-0024")


def test_a_message_alone_may_be_of_both() -> None:
    match = found(PLAIN_DDP.rpartition("\n  ")[2].partition("\n")[2])
    assert [(candidate.repro.id, candidate.confidence) for candidate in match.candidates] == [
        ("RPR-0179", Confidence.POSSIBLE),
        ("RPR-0024", Confidence.POSSIBLE),
    ]


NO_GRADIENT = "RuntimeError: element 0 of tensors does not require grad and does not have a grad_fn"


@pytest.mark.parametrize(
    ("sign", "ids"),
    [
        ("", ["RPR-0142"]),
        ("torch/utils/checkpoint.py:90: UserWarning: None of the inputs have requires_grad=True.", ["RPR-0142"]),
        ("Using bfloat16 Automatic Mixed Precision (AMP), 16-mixed", ["RPR-0011", "RPR-0142"]),
        ("  Number of trainable parameters = 0", ["RPR-0141", "RPR-0142"]),
        ("  Number of trainable parameters = 1,024", ["RPR-0142"]),
        ("trainable params: 0 || all params: 6,738,415,616 || trainable%: 0.0", ["RPR-0141", "RPR-0142"]),
        ("transformers==5.23.0\nUsing 16-mixed", ["RPR-0011", "RPR-0142"]),
    ],
)
def test_an_error_that_follows_from_silent_failures_is_possible(sign: str, ids: list[str]) -> None:
    """The usual cause of its message always, each other one with its signs."""
    candidates = found(f"{sign}\n{NO_GRADIENT}").candidates
    assert [candidate.repro.id for candidate in candidates] == ids
    assert {candidate.confidence for candidate in candidates} == {Confidence.POSSIBLE}


def test_a_message_that_silent_failures_share_says_what_would_speak_for_each() -> None:
    (usual,) = found(NO_GRADIENT).candidates
    assert [repro.id for repro in usual.without_words] == ["RPR-0011", "RPR-0141"]
    precision, adapter, *_ = other_causes(usual)
    assert "`mixed precision`" in precision
    assert adapter.startswith("RPR-0141, A loaded adapter without is_trainable")
    assert "`trainable params: 0`, `trainable parameters = 0`" in adapter
    first, second = found(f"autocast\n{NO_GRADIENT}").candidates
    assert [repro.id for repro in first.without_words] == [repro.id for repro in second.without_words] == ["RPR-0141"]
    shown = format_match(found(f"autocast\n{NO_GRADIENT}\ntorch==2.9.0"), 100).plain
    assert "requires_grad" in shown
    assert "apart     where no other parameter has a gradient" in shown


EVAL_MODE = (
    "/env/lightning/pytorch/loops/fit_loop.py:527: Found 3 module(s) in eval mode at the start of training. This may "
    "lead to unexpected behavior during training. If this is intentional, you can ignore this warning."
)


@pytest.mark.parametrize("lines", [0, 10, 5_000])
def test_a_warning_leads_to_a_silent_failure(lines: int) -> None:
    steps = "".join(f"step {number} loss 0.3\n" for number in range(lines))
    (candidate,) = found(f"{steps}{EVAL_MODE}\n{steps}").candidates
    assert (candidate.repro.id, candidate.confidence) == ("RPR-0006", Confidence.POSSIBLE)
    assert (candidate.repro.silent, candidate.occurrences[0].match.is_symptom) == (True, True)
    assert WATCH in next_commands(candidate.repro)


@pytest.mark.parametrize(
    ("name", "id_"),
    [
        ("rpr-0006-failing-auto-hand-2026-07", "RPR-0006"),
        ("rpr-0026-failing-auto-hand-2023-12", "RPR-0026"),
        ("rpr-0142-failing-auto-hand-2024-03", "RPR-0142"),
    ],
)
def test_a_warning_of_a_real_run_is_enough(name: str, id_: str) -> None:
    """The log of a silent failure's script without the assertion by which the script notices it."""
    printed = golden(name).partition("Traceback")[0]
    assert [candidate.repro.id for candidate in found(printed).candidates] == [id_]


def test_a_log_without_an_exception_leads_to_the_watch() -> None:
    match = found("Epoch 1: loss 2.3\nEpoch 2: loss 2.3\n")
    assert (match.candidates, match.failures) == ((), ())
    assert next_without_candidates(match)[0].startswith(WATCH)
