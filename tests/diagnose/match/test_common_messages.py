"""No documented failure is the answer to an empty or a common message, or to another program's assertion."""

from __future__ import annotations

import re

import pytest

from repros.diagnose.match import SignatureIndex, match_log
from repros.diagnose.match.log import decode_lines
from repros.model import ExpectedOutcome, Signature
from tests.package_catalogue import load

pytestmark = pytest.mark.of_all_scripts

INDEX = SignatureIndex(load())
SIGNATURES = [
    (repro, variant.signature)
    for repro in load()
    for variant in repro.variants
    if variant.outcome is ExpectedOutcome.FAILS and variant.signature.raises
]
CLASSES = sorted(
    {str(signature.raises) for _, signature in SIGNATURES}
    | {"Exception", "ValueError", "KeyError", "IndexError", "OSError", "torch.OutOfMemoryError"}
)
STACK = 'Traceback (most recent call last):\n  File "/home/u/train.py", line 3, in <module>\n    main()\n'
COMMON = (
    *(
        "",
        "0",
        "1",
        "None",
        "error",
        "failed",
        "x",
        "'x'",
        "'weight'",
        "model",
        "loss",
        "nan",
        "True",
        "internal error",
    ),
    *(
        "internal error",
        "expected",
        "expected 1, got 2",
        "expected 2, got 1",
        "expected 1.0, got 2.0",
        "expected 0.0, got 0.412",
    ),
    *("list index out of range", "division by zero", "not found", "timeout", "timed out", "Broken pipe"),
    *("'NoneType' object is not subscriptable", "object of type 'NoneType' has no len()", "invalid syntax"),
    *("[Errno 2] No such file or directory: 'x'", "[Errno 28] No space left on device", "Connection reset by peer"),
    *("got an unexpected keyword argument 'x'", "missing 1 required positional argument: 'x'", "shape mismatch"),
    *("CUDA error", "CUDA out of memory.", "size mismatch", "dimension out of range", "the loss is nan"),
    "could not convert string to float: 'a'",
)


def answers(text: str) -> list[str]:
    return [candidate.repro.id for candidate in match_log(decode_lines(text.encode()), INDEX).candidates]


@pytest.mark.parametrize("message", COMMON)
def test_no_signature_agrees_with_a_common_message(message: str) -> None:
    for name in CLASSES:
        line = f"{name}: {message}\n" if message else f"{name}\n"
        assert answers(line) == []
        assert answers(STACK + line) == []


def test_an_assertion_without_a_word_of_its_own_is_that_of_its_script_alone() -> None:
    bare = [(repro, signature) for repro, signature in SIGNATURES if is_bare(signature)]
    assert len(bare) >= 5
    for repro, signature in bare:
        line = f"{signature.raises}: {signature.match[0]}\n"
        assert answers(line) == answers(STACK + line) == []
        assert answers(STACK.replace("/home/u/train.py", str(repro.path)) + line)[0] == repro.id


def is_bare(signature: Signature) -> bool:
    return all(re.sub(r"expected|got|None|[\W\d_]", "", text) == "" for text in signature.match)
