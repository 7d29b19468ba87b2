"""Whether a run did what an issue reports: in doubt, no agreement."""

from __future__ import annotations

from dataclasses import replace

import pytest

from repros.diagnose.issue import read_issue
from repros.scripts.try_.outcome import Link, ScriptOutcome, Status
from repros.scripts.try_.reported import Agreement, compare_with_issue

AS, NOT, OPEN = Agreement.AS_REPORTED, Agreement.NOT_AS_REPORTED, Agreement.NOT_COMPARED
CLEAN = ScriptOutcome(Status.CLEAN, None)
TRACEBACK = """
```
Traceback (most recent call last):
  File "/home/ann/pearson.py", line 8, in <module>
    main()
  File "/opt/conda/lib/python3.10/site-packages/torch/nn/functional.py", line 2546, in layer_norm
    return torch.layer_norm(input)
{last}
```
"""


def raised(kind: str, message: str, *frames: str) -> ScriptOutcome:
    return ScriptOutcome(Status.EXCEPTION, f"{kind}: {message}", chain=(Link(kind, message, frames, None),))


def compared(text: str, outcome: ScriptOutcome, *output: str) -> tuple[Agreement, str]:
    found = compare_with_issue(read_issue(text), outcome, output)
    return found.agreement, found.reason


DEVICES = "RuntimeError: Expected all tensors to be on the same device, but found at least two devices, cpu and cuda:0!"
PLACE = "torch/nn/functional.py:2900 layer_norm"


@pytest.mark.parametrize(
    ("last", "outcome", "agreement"),
    [
        ("ValueError: the input has too few rows", raised("ValueError", "the input has too few rows"), AS),
        (
            "RuntimeError: tensors on cuda:1 and cpu differ",
            raised("RuntimeError", "tensors on cuda:0 and cpu differ"),
            AS,
        ),
        ("ValueError: the input has 3 rows", raised("ValueError", "the input has 5 rows", PLACE), AS),
        ("ValueError: the input has 3 rows", raised("ValueError", "the input has 5 rows"), OPEN),
        (DEVICES, raised("RuntimeError", DEVICES[14:].replace("cpu and cuda:0", "cuda:0 and cpu"), PLACE), AS),
        (DEVICES, raised("RuntimeError", DEVICES[14:54] + " got index is on cpu", PLACE), AS),
        (DEVICES, raised("RuntimeError", "mat1 and mat2 shapes cannot be multiplied", PLACE), NOT),
        ("AssertionError: expected 0.99, got -0.5", raised("AssertionError", "expected 0.99, got 0.2", PLACE), NOT),
        ("KeyError: 'labels'", raised("KeyError", "'labels'", PLACE), AS),
        ("KeyError: 'labels'", raised("KeyError", "'labels'", "torch/other.py:3 forward"), OPEN),
        ("AssertionError", raised("AssertionError", "", "mine.py:3 <module>"), OPEN),
        ("AssertionError", raised("AssertionError", "", PLACE), AS),
        ("AssertionError", raised("ValueError", "the input has too few rows"), NOT),
        ("ValueError: the input has too few rows", raised("ModuleNotFoundError", "No module named 'x'"), NOT),
        ("ValueError: the input has too few rows", CLEAN, NOT),
        ("ValueError: the input has too few rows", ScriptOutcome(Status.TIME_LIMIT, "time limit"), OPEN),
        ("ValueError: the input has too few rows", ScriptOutcome(Status.NOT_RUN, None, note="lacks x"), OPEN),
    ],
)
def test_exceptions(last: str, outcome: ScriptOutcome, agreement: Agreement) -> None:
    assert compared(TRACEBACK.format(last=last), outcome)[0] is agreement


@pytest.mark.parametrize(
    ("reported", "output", "agreement"),
    [
        ("R2 is -0.5", "R2 is -0.5000", AS),
        ("R2 is -0.5", "R2 is 0.9996", NOT),
        ("tensor(nan)", "tensor(nan)", AS),
        ("tensor(nan)", "tensor(0.9996)", NOT),
        ("loss 1.2345e-05", "loss 1.2346e-05", AS),
        ("step 1 of 2", "step 1 of 2", OPEN),
        ("took 1.234 s", "took 1.234 s", OPEN),
        ("tensor([0.1234, 0.5000])", "tensor([0.1234, 0.6000])", NOT),
        ("rows 1234", "rows 1235", NOT),
        ("1.5.3", "1.5.4", OPEN),
        ("nothing here", "nothing here", OPEN),
    ],
)
def test_numbers(reported: str, output: str, agreement: Agreement) -> None:
    assert compared(f"### Bug\n\n```\n{reported}\n```\n", CLEAN, output)[0] is agreement


def test_the_reason_has_the_words_of_both() -> None:
    issue = "### Bug\n\n```\nR2 is -0.5\n```\n\n### Expected behavior\n\n```\nr2 of sklearn 0.9996\n```\n"
    assert compared(issue, CLEAN, "R2 is 0.9996") == (NOT, "R2 is 0.9996 where the issue has R2 is -0.5")
    assert compared(issue, CLEAN, "r2 of sklearn 0.9996") == (NOT, "r2 of sklearn 0.9996, which the issue expects")
    seen = raised("torch.ValueError", "too few rows in it", "pearson.py:9 f", PLACE)
    assert compared(TRACEBACK.format(last="ValueError: too few rows in it"), seen) == (AS, f"ValueError at {PLACE}")


def test_a_line_that_agrees_next_to_one_that_does_not_decides_nothing() -> None:
    issue = "```\nsklearn 0.9996\ntorchmetrics -0.5\n```\n"
    agreement, reason = compared(issue, CLEAN, "sklearn 0.9996", "torchmetrics 0.9996")
    assert agreement is OPEN
    assert "torchmetrics 0.9996 where it has torchmetrics -0.5" in reason


def test_hangs_and_signals() -> None:
    hang = ScriptOutcome(Status.HANG, "hang")
    assert compared("# Training is stuck with DDP\n\nIt never returns.", hang)[0] is AS
    assert compared(TRACEBACK.format(last="ValueError: too few rows in it"), hang)[0] is NOT
    assert compared("# Training hangs", CLEAN) == (NOT, "it exits cleanly where the issue has a hang")
    signal = ScriptOutcome(Status.SIGNAL, "signal SIGSEGV")
    assert compared("It ends in\n\n```\nSegmentation fault (core dumped)\n```\n", signal)[0] is AS
    assert compared("# It is slow", replace(signal, signature="signal SIGKILL"))[0] is NOT


def test_an_issue_without_a_statement_agrees_with_nothing() -> None:
    for outcome in (CLEAN, raised("ValueError", ""), ScriptOutcome(Status.EXIT, "exit 1")):
        assert compared("It does not work.", outcome, "1.2345", "x")[0] is not AS


SHAPES = "the two inputs have shapes that no broadcast joins"


@pytest.mark.parametrize(
    "prompt",
    ["(env) [ann@node7]$ python pearson.py 1024", "$ python pearson.py --seed 1234", "ann@node7:~/x# ls -l 4096"],
)
def test_a_line_of_a_shell_is_no_output(prompt: str) -> None:
    text = f"# It fails in the second step\n\n```\n{prompt}\n```\n"
    assert read_issue(text).printed.seen == ()
    agreement, reason = compared(text, raised("RuntimeError", SHAPES))
    assert agreement is OPEN
    assert prompt not in reason
    titled = text.replace("It fails", f"RuntimeError: {SHAPES}, it fails")
    assert compared(titled, raised("RuntimeError", SHAPES))[0] is AS


def test_a_title_with_the_message_of_the_run_reports_it() -> None:
    text = f"# Layer norm: {SHAPES}\n\nIt ends in the first step.\n"
    assert compared(text, raised("RuntimeError", f"{SHAPES}\nwhile norm ran"))[0] is AS
    assert compared(text, raised("RuntimeError", "no rows are left"))[0] is OPEN
    titled = f"# ValueError: {SHAPES}\n\nIt ends in the first step.\n"
    assert compared(titled, raised("KeyError", "'labels'"))[0] is NOT


def test_a_message_that_agrees_up_to_its_first_line_is_as_reported() -> None:
    last = f"ValueError: {SHAPES}\n  in the 2nd call of the function that has many other words to say here"
    other = f"{SHAPES}\nset another flag for more information about what has happened before it"
    assert compared(TRACEBACK.format(last=last), raised("ValueError", other))[0] is AS
    assert compared(TRACEBACK.format(last=last), raised("KeyError", other))[0] is NOT


def test_a_first_line_that_only_introduces_the_next_decides_nothing() -> None:
    last = "BackendError: backend='b' raised this error:\nNotImplementedError: sparse rows"
    other = raised("BackendError", "backend='b' raised this error:\nTypeError: dense columns have no name")
    assert compared(TRACEBACK.format(last=last), other)[0] is not AS


def test_an_output_that_differs_is_needed_to_say_that_a_run_is_not_as_reported() -> None:
    ended = raised("ValueError", SHAPES)
    assert compared("# It is wrong\n\n```\nstarting up\n```\n", ended)[0] is OPEN
    assert compared("# It is wrong\n\n```\nR2 is -0.5\n```\n", ended)[0] is NOT
