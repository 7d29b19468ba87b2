from __future__ import annotations

import pytest

from repros.diagnose.match.wrappers import unwrap_lines


@pytest.mark.parametrize(
    ("text", "label", "bare"),
    [
        ("RuntimeError: x", "", "RuntimeError: x"),
        ('  File "a.py", line 1', "", '  File "a.py", line 1'),
        ('[rank1]:   File "a.py"', "rank1", '  File "a.py"'),
        ("[rank: 1] Seed set to 1", "rank: 1", "Seed set to 1"),
        ("[default0]:x", "default0", "x"),
        ("0: x", "task 0", "x"),
        (" 12:", "task 12", ""),
        ("0:[rank0]: x", "", "0:[rank0]: x"),
        ("0: [rank3]: x", "task 0 rank3", "x"),
        ("[1,7]<stderr>:x", "7", "x"),
        ("worker-1  | x", "worker-1", "x"),
        ("(RayTrainWorker pid=12, ip=10.0.0.1) x", "RayTrainWorker pid=12", "x"),
        ("[pod/train-0/pytorch] x", "pod/train-0/pytorch", "x"),
        ("[trainer-a] 2025-11-02T08:15:30Z   x", "trainer-a", "  x"),
        ("[trainer-a] B2025-11-02T08:15:30.290114123Z Traceback", "trainer-a", "Traceback"),
        ("[trainer-a] \N{REPLACEMENT CHARACTER}2025-11-02T08:15:30.290114123Z   x", "trainer-a", "  x"),
        ("[trainer-a] 92025-11-02T08:15:30.290114123Z ERROR: x", "trainer-a", "x"),
        ("[ERROR] 2025-11-02T08:15:30Z x", "", "x"),
        ("[trainer-a] x", "", "[trainer-a] x"),
        ("> x", "", "x"),
        (">>   x", "", "  x"),
        ("2024-05-21T14:03:22.123456Z x", "", "x"),
        ("2024-05-21 14:03:22,123 - trainer.main - ERROR -   x", "", "  x"),
        ("[2024-05-21 14:03:22,123][ERROR]: x", "", "[2024-05-21 14:03:22,123][ERROR]: x"),
        ("[2024-05-21 14:03:22,123] [ERROR] x", "", "x"),
        ("14:03:22.1 x", "", "x"),
        ("May 21 14:03:22 node7 train.sh[4711]:   x", "", "  x"),
        ("E0521 14:03:22.123000 4711 torch/distributed/elastic/api.py:826] x", "", "x"),
        ("[rank1]:E0521 14:03:22.123000 4711 torch/x.py:826] [1/0] x", "rank1", "[1/0] x"),
        ("ERROR:root:x", "", "x"),
        ("ERROR: x", "", "x"),
        ("WARNING - x", "", "x"),
        ("Epoch 3: 60%|###   | [00:01]Traceback (most recent call last):", "", None),
        ("Epoch 3: 60%|###   | [00:01][rank1]: Traceback (most recent call last):", "rank1", None),
    ],
)
def test_one_line(text: str, label: str, bare: str | None) -> None:
    _, line = unwrap_lines([(6, "x"), (7, text)])
    # A number before a single line may be a task or a line number; only many lines show which.
    assert (line.number, line.text) == (7, text if bare is None else bare)
    if "task" not in label:
        assert line.label == label


def test_repeated_numbers_before_lines_are_tasks() -> None:
    tasks = unwrap_lines(enumerate(["0: a", "1: a", "0: b", "1: b", "0: c", "1: c"]))
    assert [line.label for line in tasks] == ["task 0", "task 1"] * 3
    numbered = unwrap_lines(enumerate(["8: a", "9: b", "10: c [rank1]: d"]))
    assert [(line.label, line.text) for line in numbered] == [("", "a"), ("", "b"), ("", "c [rank1]: d")]


def test_common_indentation_is_removed() -> None:
    assert [line.text for line in unwrap_lines([(1, "    a"), (2, ""), (3, "      b")])] == ["a", "", "  b"]


def test_text_after_a_carriage_return_has_the_label_of_its_line() -> None:
    found = unwrap_lines([(1, "[rank1]: 50%"), (1, "60%"), (2, "x")])
    assert [(line.label, line.text) for line in found] == [("rank1", "50%"), ("rank1", "60%"), ("", "x")]


def test_prefixes_of_loggers() -> None:
    assert [line.has_log_prefix for line in unwrap_lines([(1, "14:03:22 x"), (2, "[rank1]: x"), (3, "x")])] == [
        True,
        False,
        False,
    ]
