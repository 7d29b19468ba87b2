"""The help of all commands."""

from __future__ import annotations

import re

import pytest
from syrupy.assertion import SnapshotAssertion

from repros.cli.main import load_commands
from tests.cli.command import Command, lines_over
from tests.transcript import transcript

COMMANDS = load_commands()
SUBCOMMANDS = {"stacks": ("stacks new", "stacks compare")}


def test_help(repros: Command, snapshot: SnapshotAssertion) -> None:
    names = [name for command in COMMANDS for name in (command, *SUBCOMMANDS.get(command, ()))]
    assert snapshot == transcript(repros, "--version", "--help", *(f"{name} --help" for name in names))


def test_without_a_command_the_help_lists_all(repros: Command) -> None:
    code, out, _ = repros()
    assert (code, out) == (0, repros("--help")[1])
    groups = out[out.index("You have a failure:") : out.index("  Example:")]
    assert re.findall(r"^  (\w+)  ", groups, re.MULTILINE) == list(COMMANDS)


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_help_with_an_example(name: str, repros: Command) -> None:
    code, out, _ = repros(name, "--help")
    assert code == 0
    assert f"\n  Example:\n    repros {name}" in out
    assert max(map(len, out.splitlines())) <= 100


def test_help_in_sixty_columns(repros: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    for name in COMMANDS:
        out = repros(name, "--help")[1]
        # Examples are never broken, since readers copy them; nor are the choices in a metavar.
        prose = out[: out.index("\n  Example:")]
        assert [line for line in lines_over(60, prose) if "|" not in line] == []
