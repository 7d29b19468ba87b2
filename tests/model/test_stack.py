from __future__ import annotations

from pathlib import Path

from repros.engine.stacks import load_stacks
from repros.model.stack import Pin, read_lock

LOCK = """\
# Every version of a stack.
Click==8.5.1                        # via huggingface-hub, torch
torch==2.1.2                        # via the stack itself
plain==1.0
hashed==1.0.post1 \\
    --hash=sha256:00
"""


def test_a_lock_is_read_as_pins_by_canonical_name(tmp_path: Path) -> None:
    (tmp_path / "x.lock.txt").write_text(LOCK)
    assert read_lock(tmp_path / "x.lock.txt") == {
        "click": Pin("click", "8.5.1", frozenset({"huggingface-hub", "torch"})),
        "torch": Pin("torch", "2.1.2", frozenset({"the stack itself"})),
        "plain": Pin("plain", "1.0"),
        "hashed": Pin("hashed", "1.0.post1"),
    }


def test_every_line_of_the_stacks_locks_is_read() -> None:
    for stack in load_stacks().values():
        lines = [line for line in stack.lock.read_text().splitlines() if line and not line.startswith("#")]
        assert len(stack.pins) == len(lines) > 20
