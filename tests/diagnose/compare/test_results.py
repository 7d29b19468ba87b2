"""What programs get from calls that are no modules': observed in real programs, and compared in recordings by hand."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from repros.cli import main
from repros.diagnose.compare.run import CompareResult, compare
from tests.diagnose.compare.changed import difference_of_changed, first_difference
from tests.diagnose.compare.recorded import end, evaluation, forward, recording, results, step, summary

PROGRAMS = Path(__file__).parent / "toys/results.py"


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run in a folder of its own, without a network."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.setenv("HF_DATASETS_CACHE", str(tmp_path / "datasets"))
    monkeypatch.setenv("OMP_NUM_THREADS", "1")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("program", "kind", "what", "values"),
    [
        ("read", "results", "result of item() in read (2)", ("sum 1", "sum 0.5")),
        ("row", "results", "result [0] of Subset[...] in row (2)", ("sum 12", "sum 21")),
        (
            "collated",
            "results",
            "result [y] of default_collate() in collated",
            ("largest element 3", "largest element 4"),
        ),
        ("compiled", "results", "result of ReLU() in compiled", ("smallest element 0", "smallest element -1")),
        ("nameless", "end", "optimizer state momentum_buffer of parameter 0", ("sum 1", "sum 2")),
    ],
)
def test_what_a_program_gets_is_compared(
    warm_python: Path, capfd: pytest.CaptureFixture[str], program: str, kind: str, what: str, values: tuple[str, str]
) -> None:
    found = difference_of_changed([str(warm_python), str(PROGRAMS), program], capfd)
    assert (found["kind"], found["step"], found["what"]) == (kind, int(kind == "end"), what)
    assert (found["first"], found["second"]) == values


@pytest.mark.slow
@pytest.mark.long(keep=1)
@pytest.mark.parametrize(
    ("program", "kind", "what", "values"),
    [
        ("tokens", "results", "result [input_ids] of TokenizersBackend() in tokens", ("sum 2", "sum 0")),
        ("logged", "evaluation", "logged value a", ("sum 1", "sum 2")),
        ("labels", "results", "result [labels] of DataCollatorForSeq2Seq() in labels", ("sum 2", "sum -100")),
        ("column", "results", "result of next(Column) in column", ("sum 1", "sum 2")),
        ("stream", "results", "result [x] of next(IterableDataset) in stream", None),
    ],
)
def test_what_libraries_hand_to_a_program_is_compared(
    warm_python: Path,
    capfd: pytest.CaptureFixture[str],
    program: str,
    kind: str,
    what: str,
    values: tuple[str, str] | None,
) -> None:
    found = difference_of_changed([str(warm_python), str(PROGRAMS), program], capfd)
    assert (found["kind"], found["what"]) == (kind, what)
    assert values is None or (found["first"], found["second"]) == values


@pytest.mark.slow
def test_what_ranks_gather_is_compared_and_texts_are_not(
    current_python: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    # The path, a text that differs in each run, comes before the rows.
    found = first_difference([str(current_python), str(PROGRAMS), "gathered"], capfd, "--ranks", "2,2")
    assert (found["what"], found["rank"]) == ("result [0][rows] of all_gather_object() in gathered", "rank 0")
    assert (found["first"], found["second"]) == ("sum 2", "sum 3")


@pytest.mark.slow
def test_a_program_that_prints_more_is_no_different(warm_python: Path, capfd: pytest.CaptureFixture[str]) -> None:
    words = [str(warm_python), str(PROGRAMS), "printed"]
    assert main(["compare", "--json", "--", *words, "--", *words, "changed"]) == 0, capfd.readouterr().err


def compared(tmp_path: Path, one: Sequence[Any], other: Sequence[Any], **options: Any) -> CompareResult:
    """Compare two runs, each the steps of one rank or a list of those of several."""
    tmp_path.mkdir(exist_ok=True)
    ranks = [run if run and isinstance(run[0], list) else [run] for run in (one, other)]
    first, second = (recording(tmp_path / name, *of) for name, of in zip(("one", "two"), ranks, strict=True))
    return compare(first, second, **options)


def found_in(result: CompareResult) -> tuple[int, str, str, tuple[str, str]]:
    """Return the first difference: the step and the kind of its record, what differs, and both values."""
    assert result.difference is not None
    assert result.at is not None
    return result.at.number, result.at.kind, result.difference.text, result.difference.values


def test_a_result_is_named_where_all_else_is_the_same(tmp_path: Path) -> None:
    one = [step(), results(read=[1.0]), step(), end()]
    result = compared(tmp_path, one, [step(), results(read=[2.0]), step(), end()])
    assert found_in(result) == (1, "results", "result of read() in main", ("sum 1", "sum 2"))
    assert (result.notes, result.same_bits) == (("no step differs",), 2)


def test_what_differs_later_and_is_no_mere_result_comes_first(tmp_path: Path) -> None:
    result = compared(tmp_path, [results(read=[1.0]), step()], [results(read=[2.0]), step(rate=0.5)])
    assert found_in(result) == (1, "step", "learning rate of weight", ("0.1", "0.5"))
    at_end = compared(
        tmp_path / "end", [step(), results(read=[1.0]), end()], [step(), results(read=[2.0]), end(rate=0.5)]
    )
    assert found_in(at_end)[1:] == ("end", "learning rate of weight", ("0.1", "0.5"))


def test_no_result_is_compared_where_a_bit_differs(tmp_path: Path) -> None:
    nearly = step(after=(0.5, 1.5 * (1 + 2**-23)))
    one, other = [step(), results(read=[1e-9])], [nearly, results(read=[3e-9])]
    assert compared(tmp_path, one, other).difference is None
    assert compared(tmp_path / "same", one, [step(), other[1]]).difference is not None


@pytest.mark.parametrize(
    "other",
    [
        results(read=[2.0, 2.0]),
        results(gathered=[2.0]),
    ],
    ids=["more", "of another kind"],
)
def test_results_of_a_kind_are_compared_where_both_have_equally_many(tmp_path: Path, other: dict[str, Any]) -> None:
    assert compared(tmp_path, [step(), results(read=[1.0])], [step(), other]).difference is None


def test_results_on_another_number_of_ranks_are_not_compared(tmp_path: Path) -> None:
    one, other = ([results(gathered=[value]), end()] for value in (1.0, 2.0))
    assert compared(tmp_path, one, [other, other]).difference is None
    found = compared(tmp_path / "two", [one, one], [other, other]).difference
    assert found is not None
    assert (found.text, found.rank) == ("result of gathered() in main", "rank 0")


def test_what_a_program_gets_as_it_resumes_is_not_compared(tmp_path: Path) -> None:
    one = [step(), results(read=[1.0]), step(), results(read=[3.0])]
    assert compared(tmp_path, one, [results(read=[9.0]), step(), results(read=[3.0])], offset=1).difference is None
    found = compared(tmp_path / "later", one, [results(read=[9.0]), step(), results(read=[4.0])], offset=1)
    assert found_in(found) == (1, "results", "result of read() in main", ("sum 3", "sum 4")), "of the second run"


def test_another_shape_or_number_of_tensors_is_a_difference(tmp_path: Path) -> None:
    one, longer, named = results(read=[1.0]), results(read=[1.0]), results(read=[1.0])
    longer["results"][0]["values"][""] = summary([1.0, 1.0])
    named["results"][0]["values"]["[mask]"] = summary([1.0])
    found = compared(tmp_path, [one], [longer]).difference
    assert found is not None
    assert found.values == ("shape []", "shape [2]")
    found = compared(tmp_path / "named", [one], [named]).difference
    assert found is not None
    assert (found.text, found.values) == ("result [mask] of read() in main", ("none", "numbers"))


def test_parts_that_several_processes_of_a_rank_got_are_one_list(tmp_path: Path) -> None:
    parts = [step(), results(read=[1.0]), results(read=[2.0])]
    assert compared(tmp_path, [step(), results(read=[1.0, 2.0])], parts).results == 2
    found = compared(tmp_path / "other", [step(), results(read=[1.0, 3.0])], parts).difference
    assert found is not None
    assert found.text == "result of read() in main (2)"


def test_logged_values_are_compared_by_name_and_on_equally_many_ranks(tmp_path: Path) -> None:
    bare = {**forward([]), "inputs": {}, "outputs": {}}
    one = evaluation(bare, logged={"a": summary([1.0], []), "b": summary([2.0], [])})
    other = evaluation(bare, logged={"b": summary([3.0], []), "c": summary([1.0], [])})
    found = found_in(compared(tmp_path, [one], [other]))
    assert found == (0, "evaluation", "logged value b", ("sum 2", "sum 3"))
    assert compared(tmp_path / "ranks", [one], [[other], [other]]).difference is None


def test_what_a_rank_got_before_another_is_named_first(tmp_path: Path) -> None:
    one = [[results(data=[1.0], gathered=[1.0])], [results(data=[1.0], gathered=[1.0])]]
    other = [[results(data=[1.0], gathered=[2.0])], [results(data=[2.0], gathered=[2.0])]]
    found = compared(tmp_path, one, other).difference
    assert found is not None
    assert (found.text, found.rank) == ("result of data() in main", "rank 1")
