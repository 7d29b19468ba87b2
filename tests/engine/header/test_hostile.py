"""Headers and files that would do more than describe a failure: refused with the line and what was expected."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from repros.engine.catalogue import load
from repros.engine.header import HeaderError, has_header, read
from tests.factories import VALID

HUGE = "9" * 5_000


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("title", "\"T\\nimport os; os.system('x')\""),
        ("title", '"a \\u001b]0;t\\u0007 b"'),
        ("title", '"a \\u202e b"'),
        ("title", '"' + "x" * 3_000 + '"'),
        ("id", '"RPR-\u0660\u0660\u0660\u0666"'),
        ("processes", "100000000"),
        ("deadline", "99999999999999999999999999"),
        ("deadline", HUGE),
        ("dependencies", '["torch\\u0000"]'),
    ],
)
def test_a_hostile_value_is_refused(key: str, value: str, tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    lines = [f"# {key} = {value}" if line.startswith(f"# {key} =") else line for line in VALID.splitlines()]
    if f"# {key} = {value}" not in lines:
        lines.insert(lines.index("# [tool.repro]") + 1, f"# {key} = {value}")
    script.write_text("\n".join(lines) + "\n", encoding="utf-8")
    with pytest.raises(HeaderError) as raised:
        read(script)
    of_the_block = value == HUGE  # which cannot be parsed at all
    assert raised.value.line == (2 if of_the_block else lines.index(f"# {key} = {value}") + 1)
    assert len(str(raised.value)) < 1_000


def test_only_regular_files_of_a_scripts_size_are_read(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.py")
    (tmp_path / "zero.py").symlink_to("/dev/zero")
    with (tmp_path / "large.py").open("wb") as file:
        file.write(b"# [tool.repro]\n")
        file.truncate(10 * 2**30)
    for name in ("pipe.py", "zero.py", "large.py"):
        assert not has_header(tmp_path / name)
        with pytest.raises(HeaderError, match=rf"{name}:1: "):
            read(tmp_path / name)
    assert not load([tmp_path]).repros
