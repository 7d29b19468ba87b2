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
    ("key", "value", "problem"),
    [
        ("title", "\"T\\nimport os; os.system('x')\"", "expected a sentence"),
        ("title", '"a \\u001b]0;t\\u0007 b"', "expected a sentence"),
        ("title", '"a \\u202e b"', "expected a sentence"),
        ("title", '"' + "x" * 3_000 + '"', "expected a sentence"),
        ("id", '"RPR-\u0660\u0660\u0660\u0666"', "expected an id"),
        ("processes", "100000000", "expected a world size from 1 to 64"),
        ("deadline", "99999999999999999999999999", "expected a number of seconds from 1 to 3600"),
        ("deadline", HUGE, "not valid TOML"),
        ("dependencies", '["torch\\u0000"]', "expected dependencies: a list of requirements"),
    ],
)
def test_a_hostile_value_is_refused(key: str, value: str, problem: str, tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    lines = [f"# {key} = {value}" if line.startswith(f"# {key} =") else line for line in VALID.splitlines()]
    if f"# {key} = {value}" not in lines:
        lines.insert(lines.index("# [tool.repro]") + 1, f"# {key} = {value}")
    script.write_text("\n".join(lines) + "\n", encoding="utf-8")
    with pytest.raises(HeaderError) as raised:
        read(script)
    assert problem in str(raised.value)
    assert len(str(raised.value)) < 1_000


def test_only_regular_files_of_a_scripts_size_are_read(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.py")
    (tmp_path / "zero.py").symlink_to("/dev/zero")
    with (tmp_path / "large.py").open("wb") as file:
        file.write(b"# [tool.repro]\n")
        file.truncate(10 * 2**30)
    for name in ("pipe.py", "zero.py", "large.py"):
        assert not has_header(tmp_path / name)
        with pytest.raises(HeaderError, match=r"not a regular file|more than 1,048,576 bytes"):
            read(tmp_path / name)
    assert not load([tmp_path]).repros
