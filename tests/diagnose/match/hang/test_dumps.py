"""Dumps are found by what is in a file, and whatever is wrong with one is a sentence with its name."""

from __future__ import annotations

import json
import pickle
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from syrupy.assertion import SnapshotAssertion

from repros.diagnose.match.hang import dumps as module
from repros.diagnose.match.hang import entries as parsing
from repros.diagnose.match.hang.calls import PythonFrame, State
from repros.diagnose.match.hang.dumps import STDIN, find_dumps, is_dump, read_dump, read_dumps, split_inputs
from repros.diagnose.match.hang.entries import parse_dump
from repros.diagnose.match.hang.find import find_hang
from repros.model.errors import ReprosError
from tests.diagnose.match.hang.made import STACK, content, entry, write
from tests.transcript import mask

BOTH = {rank: content([entry(1, frames=STACK), entry(2, state="scheduled")], {"0": [0, 1]}) for rank in (0, 1)}


def test_a_folder_is_searched_by_content(tmp_path: Path) -> None:
    write(tmp_path, BOTH)
    (tmp_path / "train.log").write_text("step 1\n")
    (tmp_path / "config.json").write_text('{"ranks": [0, 1]}')
    (tmp_path / "empty_3").write_bytes(b"")
    (tmp_path / "folder_4").mkdir()
    assert [path.name for path in find_dumps(tmp_path)] == ["nccl_trace_rank_0", "nccl_trace_rank_1"]


def test_json_is_the_same_as_a_pickle(tmp_path: Path) -> None:
    pickles = read_dumps(find_dumps(write(tmp_path / "pickles", BOTH)))
    texts = read_dumps(find_dumps(write(tmp_path / "texts", BOTH, as_json=True)))
    assert [dump.calls for dump in pickles] == [dump.calls for dump in texts]
    assert [dump.groups for dump in pickles] == [dump.groups for dump in texts]


def test_a_call_has_what_the_entry_says(tmp_path: Path) -> None:
    dump = read_dump(write(tmp_path, BOTH) / "nccl_trace_rank_1")
    assert (dump.rank, dump.version, dump.is_complete, dump.overwritten) == (1, "2.10", True, 0)
    first, second = dump.calls
    assert (first.number, first.operation, first.backend, first.text) == (
        1,
        "all_reduce",
        "nccl",
        "all_reduce of 4x2 Float",
    )
    assert (first.state, second.state) == (State.FINISHED, State.SCHEDULED)
    assert first.location == PythonFrame("/home/user/train.py", 31, "step")
    assert second.location is None


@pytest.mark.parametrize(
    ("name", "rank"),
    [("nccl_trace_rank_12", 12), ("_dump_7", 7), ("nccl_trace_rank_node02_5", 5), ("rank3.json", 3), ("fr0.pkl", 0)],
)
def test_the_rank_is_the_number_at_the_end_of_the_name(tmp_path: Path, name: str, rank: int) -> None:
    (tmp_path / name).write_text(json.dumps(BOTH[0]))
    assert read_dump(tmp_path / name).rank == rank


def test_the_first_versions_are_read_too() -> None:
    old = entry(5, state="started")
    for key in ("collective_seq_id", "p2p_seq_id", "process_group", "is_p2p", "record_id", "timeout_ms"):
        del old[key]
    dump = parse_dump([{**old, "seq_id": 5, "pg_id": 3}], 0, "dump_0")
    (call,) = dump.calls
    assert (call.group, call.number, call.state) == ("3", 5, State.STARTED)


def test_gloo_has_finished_what_is_retired_and_not_behind_the_last_completed() -> None:
    gloo = {"profiling_name": "gloo:all_reduce", "state": "scheduled"}
    entries = [entry(1, retired=True, **gloo), entry(2, retired=True, **gloo), entry(3, retired=False, **gloo)]
    dump = parse_dump(content(entries, {}, {0: (3, 1)}), 0, "dump_0")
    assert [call.is_finished for call in dump.calls] == [True, False, False]


def test_with_nccl_a_retired_call_has_timed_out() -> None:
    dump = parse_dump(content([entry(1, state="scheduled", retired=True)], {}, {0: (1, 1)}), 0, "dump_0")
    assert not dump.calls[0].is_finished


BROKEN: dict[str, Any] = {
    "no entry's name": content([{key: value for key, value in entry(1).items() if key != "profiling_name"}], {}),
    "sizes of text": content([entry(1, input_sizes=["wide"])], {}),
    "entries of text": {"entries": "none", "pg_config": {}},
    "another pickle": {"state_dict": {}},
}


def refused(function: Callable[[Any], object], given: Any) -> str:
    with pytest.raises(ReprosError) as caught:
        function(given)
    return str(caught.value)


def test_refusals(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, snapshot: SnapshotAssertion) -> None:
    """Each begins with the file or the folder; no other test has the sentence."""
    sentences = []
    for name, value in BROKEN.items():
        path = tmp_path / f"{name}_0"
        path.write_bytes(pickle.dumps(value, 2))
        sentences.append(refused(read_dump, path))
    (tmp_path / "trace").write_text(json.dumps(BOTH[0]))
    sentences.append(refused(read_dump, tmp_path / "trace"))
    (tmp_path / "cut_0").write_text(json.dumps(BOTH[0])[:-10])
    sentences.append(re.sub(r"\(.*\)", "(...)", refused(read_dump, tmp_path / "cut_0")))  # the words of json
    first, second = write(tmp_path / "a", {0: BOTH[0]}), write(tmp_path / "b", {0: BOTH[0]})
    sentences.append(refused(read_dumps, [*find_dumps(first), *find_dumps(second)]))
    with (tmp_path / "long_0").open("wb") as file:
        file.write(b"\x80\x02")
        file.truncate(2**20 + 1)
    monkeypatch.setattr(module, "MOST_BYTES", 2**20)
    sentences.append(refused(read_dump, tmp_path / "long_0"))
    assert all(sentence.startswith(str(tmp_path)) for sentence in sentences)
    assert snapshot == mask("\n".join(sentences), folder=tmp_path)


def test_a_short_pickle_with_many_calls_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By its number of calls, by one entry that it names again and again, or by a list that all entries share."""
    sizes = [[4, 2]] * 1_000
    many: dict[str, tuple[list[dict[str, Any]], str]] = {
        "too_long": ([{}] * (parsing.MOST_CALLS + 1), "is too long"),
        "again": ([entry(1)] * 1_000, "has one entry several times"),
        "shared": (
            [entry(number, input_sizes=sizes) for number in range(1, 50)],
            "more than 20,000 tensors and frames",
        ),
    }
    monkeypatch.setattr(parsing, "_MOST_VALUES", 20_000)
    for name, (calls, reason) in many.items():
        path = tmp_path / f"{name}_0"
        path.write_bytes(pickle.dumps({"version": "2.10", "pg_config": {}, "entries": calls}, 2))
        assert path.stat().st_size < 10 * len(calls) + 20_000
        assert reason in refused(read_dump, path)


def test_a_folder_without_dumps_is_refused(tmp_path: Path) -> None:
    (tmp_path / "train.log").write_text("step 1\n")
    assert refused(find_dumps, tmp_path).startswith(f"{tmp_path} ")


def test_a_damaged_dump_costs_its_own_rank(tmp_path: Path) -> None:
    """Row 40: the others still tell; without any the first problem is the answer."""
    folder = write(tmp_path, BOTH)
    whole = (folder / "nccl_trace_rank_1").read_bytes()
    (folder / "nccl_trace_rank_1").write_bytes(whole[: len(whole) // 2])
    first, second = read_dumps(find_dumps(folder))
    assert (first.problem, bool(first.calls), second.calls) == ("", True, ())
    assert second.problem.startswith(f"{folder}/nccl_trace_rank_1 ")
    assert find_hang((first, second)).notes[0] == second.problem
    assert refused(read_dumps, [folder / "nccl_trace_rank_1"]) == second.problem


def test_a_folder_for_each_node_is_read(tmp_path: Path) -> None:
    for rank, value in BOTH.items():
        write(tmp_path / f"node{rank}", {rank: value})
    assert [dump.rank for dump in read_dumps(find_dumps(tmp_path))] == [*BOTH]


def test_files_are_told_apart(tmp_path: Path) -> None:
    folder = write(tmp_path / "dumps", BOTH)
    log = tmp_path / "train.log"
    log.write_text("step 1\n")
    assert is_dump(folder / "nccl_trace_rank_0")
    assert not is_dump(log)
    assert split_inputs([log, folder]) == ([log], find_dumps(folder))
    assert split_inputs([folder]) == ([], find_dumps(folder))
    assert split_inputs([STDIN, folder / "nccl_trace_rank_1"]) == ([STDIN], [folder / "nccl_trace_rank_1"])
    assert split_inputs([]) == ([STDIN], [])
