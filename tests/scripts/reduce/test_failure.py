"""What must stay: the same for scripts that fail alike, another for those that do not."""

from __future__ import annotations

import pytest

from repros.scripts.reduce.failure import Failure, failure_of
from repros.scripts.try_.outcome import Link, RankLocation, ScriptOutcome, Status

LIBRARY = "torch/nn/functional.py:2546 layer_norm"


def raised(message: str, *frames: str, type_: str = "RuntimeError") -> ScriptOutcome:
    link = Link(type_, message, frames, None)
    return ScriptOutcome(Status.EXCEPTION, f"{type_}: {message}", ("rank 0",), (link,))


def failure(outcome: ScriptOutcome, source: str = "", output: str = "", texts: tuple[str, ...] = ()) -> Failure | None:
    return failure_of(outcome, "train.py", source, output, texts)


def test_lines_do_not_count_and_the_function_does() -> None:
    found = failure(raised("bad", "train.py:7 f", LIBRARY))
    assert found == failure(raised("bad", "train.py:2 <module>", "torch/nn/functional.py:9 layer_norm"))
    assert found is not None
    assert found.locations == ("torch/nn/functional.py layer_norm",)
    assert found != failure(raised("bad", "train.py:2 <module>", "torch/nn/functional.py:9 linear"))
    assert found != failure(raised("worse", "train.py:7 f", LIBRARY))


def test_what_the_script_raises_itself_stays_with_its_conditions() -> None:
    source = "if a > b:\n    if c:\n        raise RuntimeError('bad')\n"
    whole = failure(raised("bad", "train.py:3 <module>"), source)
    assert whole is not None
    assert whole.locations == ("the script", "raise RuntimeError('bad')", "c", "a > b")
    bare = failure(raised("bad", "train.py:1 <module>"), "raise RuntimeError('bad')\n")
    assert whole != bare
    moved = "def f():\n    x = 1\n    if a > b:\n        if c:\n            raise RuntimeError('bad')\n"
    assert whole == failure(raised("bad", "train.py:5 f"), moved)


def test_what_fails_in_the_script_by_what_it_does_may_change() -> None:
    before = failure(raised("bad", "train.py:1 <module>"), "y = relu(a @ b)\n")
    assert before == failure(raised("bad", "train.py:2 f"), "def f():\n    a @ b\n")


def test_a_hang_is_where_each_rank_waits() -> None:
    def hang(*calls: str) -> ScriptOutcome:
        locations = tuple(
            RankLocation(f"rank {n}", "waits", f"{call} (torch/c10d.py:{n})") for n, call in enumerate(calls)
        )
        return ScriptOutcome(Status.HANG, "hang", locations=locations)

    assert failure(hang("barrier", "all_reduce")) == failure(hang("all_reduce", "barrier"))
    assert failure(hang("barrier", "all_reduce")) != failure(hang("barrier", "barrier"))


def test_of_another_processes_traceback_its_end_counts() -> None:
    def spawned(line: int) -> ScriptOutcome:
        trace = f'Traceback (most recent call last):\n  File "/tmp/x/train.py", line {line}, in f\n    g()\n'
        return raised(f"\n\n-- Process 1 terminated with the following error:\n{trace}ValueError: bad\n")

    assert failure(spawned(3)) == failure(spawned(30))
    found = failure(spawned(3))
    assert found is not None
    assert found.signature == "RuntimeError: ValueError: bad"


def test_the_lines_that_torch_compile_quotes_do_not_count() -> None:
    def compiled(line: int, code: str) -> ScriptOutcome:
        quoted = f'from user code: File "{{path}}", line {line}, in forward {code}'
        return raised(f"False != True {quoted} Set TORCH_LOGS=+dynamo for more", LIBRARY)

    assert failure(compiled(17, "self.op(**inputs)")) == failure(compiled(3, "op(x)"))
    found = failure(compiled(17, "self.op(**inputs)"))
    assert found is not None
    assert found.pattern == "RuntimeError: False != True Set TORCH_LOGS=+dynamo for more"


def test_numbers_in_a_message_may_change_and_parts_of_names_may_not() -> None:
    sizes = "size of tensor a ({}) must match {}, [{}, 2] at layers.0.weight of float16"
    assert failure(raised(sizes.format(64, 10, 5))) == failure(raised(sizes.format(1, 2, 1)))
    assert failure(raised("Tensor: 0.83 -7.5e-01 0 1.1")) == failure(raised("Tensor: 1"))
    for one, other in (
        ("layers.0.weight", "layers.1.weight"),
        ("float16", "float32"),
        ("[1]", "[1, 1]"),
        ("a 1", "b 1"),
    ):
        assert failure(raised(one)) != failure(raised(other))
    found = failure(raised("size 64"))
    assert found is not None
    assert found.signature == "RuntimeError: size 64", "it is shown as it is"


def test_another_exit_code_is_another_failure() -> None:
    assert failure(ScriptOutcome(Status.EXIT, "exit 3")) != failure(ScriptOutcome(Status.EXIT, "exit 4"))


@pytest.mark.parametrize(
    "outcome",
    [
        ScriptOutcome(Status.CLEAN, None),
        ScriptOutcome(Status.NOT_JUDGED, None),
        ScriptOutcome(Status.TIME_LIMIT, "hang"),
    ],
)
def test_these_are_no_failures(outcome: ScriptOutcome) -> None:
    assert failure(outcome) is None


def test_a_text_is_looked_for_in_the_output() -> None:
    clean = ScriptOutcome(Status.CLEAN, None)
    assert failure(clean, output="loss: nan\n", texts=("loss: nan",)) == Failure(
        Status.CLEAN, "", "", (), ("loss: nan",)
    )
    assert failure(clean, output="loss: 1\n", texts=("loss: nan",)) is None
    assert failure(clean, output="loss: nan\n", texts=("loss: nan", "step 2")) is None
