"""A repro is ruled out only by a line of the log, which the answer quotes."""

from __future__ import annotations

import pytest

from repros.diagnose.match import LogMatch, match_log
from repros.diagnose.match.log import decode_lines
from repros.diagnose.match.occurrences import ContradictingLine, ContradictionKind
from tests.package_catalogue import load_index

HEAD = "Traceback (most recent call last):\n"
NO_BACKEND = "RuntimeError: No backend type associated with device type cpu\n"
IN_PLACE = (
    "RuntimeError: one of the variables needed for gradient computation has been modified by an inplace operation: "
    "[torch.FloatTensor [2]], which is output 0 of Exp, is at version 1; expected version 0 instead.\n"
)


def frame(file: str, line: int, function: str) -> str:
    return f'  File "{file}", line {line}, in {function}\n    ...\n'


def found(text: str) -> LogMatch:
    return match_log(decode_lines(text.encode()), load_index())


REDUCE = HEAD + frame("/home/user/train.py", 9, "main") + frame("/env/torch/distributed/c10d.py", 3, "all_reduce")
METRIC = HEAD + frame("/env/torchmetrics/utilities/distributed.py", 97, "gather_all_tensors")
SCRIPT = HEAD + frame("/home/user/lr_finder_leaves_results_on_cpu.py", 77, "main")


@pytest.mark.parametrize(
    ("text", "candidates", "contradictions"),
    [
        (
            REDUCE + NO_BACKEND,
            [],
            {
                id_: ContradictingLine(ContradictionKind.OTHER_CALL, "/home/user/train.py:9 main")
                for id_ in ("RPR-0001", "RPR-0019", "RPR-0020")
            },
        ),
        (
            METRIC.replace(HEAD, "") + NO_BACKEND,
            ["RPR-0020"],
            dict.fromkeys(
                ("RPR-0001", "RPR-0019"),
                ContradictingLine(
                    ContradictionKind.OTHER_REPRO,
                    "/env/torchmetrics/utilities/distributed.py:97 gather_all_tensors",
                    "RPR-0020",
                ),
            ),
        ),
        (
            SCRIPT + NO_BACKEND + "\nexit\n\n" + NO_BACKEND,
            ["RPR-0001"],
            dict.fromkeys(
                ("RPR-0019", "RPR-0020"),
                ContradictingLine(
                    ContradictionKind.OTHER_SCRIPT, "/home/user/lr_finder_leaves_results_on_cpu.py:77 main", "RPR-0001"
                ),
            ),
        ),
        (IN_PLACE, [], {"RPR-0031": ContradictingLine(ContradictionKind.OTHER_TEXT, "which is output")}),
    ],
)
def test_the_line_that_contradicts_is_quoted(
    text: str, candidates: list[str], contradictions: dict[str, ContradictingLine]
) -> None:
    result = found(text)
    assert [candidate.repro.id for candidate in result.candidates] == candidates
    assert {out.entry.repro.id: out.contradiction for out in result.ruled_out} == contradictions


def test_another_script_s_log_hides_no_failure_with_a_stack_of_its_own() -> None:
    """The message of the script is that of a metric, which has another traceback in the same log."""
    result = found(f"{SCRIPT}{NO_BACKEND}\n\n{METRIC}{NO_BACKEND}")
    assert [candidate.repro.id for candidate in result.candidates] == ["RPR-0001", "RPR-0020"]


def test_what_follows_a_message_hides_none_that_ends_it() -> None:
    step = HEAD + frame("/env/torch/optim/adam.py", 9, "_single_tensor_adam")
    message = (
        "RuntimeError: Expected all tensors to be on the same device, but found at least two devices, cuda:0 and cpu!"
    )
    for behind in ("", "\nsrun: error: node1: task 0: Exited with exit code 1"):
        assert [candidate.repro.id for candidate in found(step + message + behind).candidates] == ["RPR-0028"]
