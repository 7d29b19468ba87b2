"""What the commands print of hostile logs, scripts, requirements, results and file names: nothing a terminal obeys."""

from __future__ import annotations

import ast
import json
import re
from pathlib import Path

import pytest

from tests.cli.command import CLAIMED, RAISES, ROOT, Command

FORBIDDEN = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]")
ATTACKS = (
    "\x1bc\x1b(0\x1b#8",
    "\x1b]52;c;aGk=\x07",
    "\x1b\x1b[0m]52;c;aGk=\x1b\x1b[0m\\",
    "\x1b]8;;http://attacker\x1b\\link\x1b]8;;\x1b\\",
    "\x9d0;title\x9c\x9b2J\x7f\r",
    "\u202eesrever\u2066",
)
HOSTILE = "begin " + " ".join(ATTACKS) + " end"

OWN = ("--python", "/usr/venv/bin/python")


def script(docstring: str, message: str = "as documented") -> str:
    """Return a repro script with an escaped docstring, which Python turns into the hostile text."""
    escaped = docstring.encode("unicode_escape").decode()
    return CLAIMED.replace('"""Symptom: it fails."""', f'"""Symptom: {escaped}"""').replace(
        'raise ValueError("as documented")', f"raise ValueError({message!r})"
    )


def check_harmless(answer: tuple[int, str, str], *codes: int) -> str:
    """Return what was printed, which must hold nothing that a terminal obeys."""
    code, out, err = answer
    assert code in (codes or (0,)), err
    assert not FORBIDDEN.search(out), out
    assert not FORBIDDEN.search(err), err
    return out + err


@pytest.fixture
def hostile_catalogue(here: Path) -> str:
    folder = here / "cat\x1b]0;folder\x07\u202e"
    folder.mkdir()
    # At the repository's file names too: a file may be called anything but `/` and NUL.
    (folder / "script\n\x1b[2J\x9b1m.py").write_text(script(HOSTILE, HOSTILE), encoding="utf-8")
    return str(folder)


@pytest.mark.parametrize("options", [(), ("--json",)])
def test_match(options: tuple[str, ...], repros: Command, here: Path) -> None:
    name = "log\x1b]0;name\x07\u202e.txt"
    (here / name).write_text(f"Traceback (most recent call last):\nRuntimeError: {HOSTILE}\n", encoding="utf-8")
    check_harmless(repros("match", name, *options), 1)
    (here / "empty\x1bc").write_text("", encoding="utf-8")
    assert "empty" in check_harmless(repros("match", "empty\x1bc", *options), 2)


@pytest.mark.parametrize("form", ["text", "json", "sarif"])
def test_audit(form: str, repros: Command, here: Path) -> None:
    name = "req\x1b]0;name\x07\u202e.txt"
    (here / name).write_text(f"torch==2.1.2\n{HOSTILE}\nlightning {HOSTILE}==2.1.3\n", encoding="utf-8")
    check_harmless(repros("audit", name, "--format", form), 0, 1)
    (here / "pyproject.toml").write_text('[project]\ndependencies = ["torch\\u001b]0;t\\u0007 \\u202e==2"]\n')
    check_harmless(repros("audit", "pyproject.toml", "--format", form), 0, 1)


@pytest.mark.parametrize("options", [(), ("--json",), ("--verbose",)])
def test_summary(options: tuple[str, ...], repros: Command, here: Path) -> None:
    repros("run", *OWN, "--catalogue", RAISES, "--variant", "failing")
    file = here / ".repros/latest.jsonl"
    (line,) = map(json.loads, file.read_text(encoding="utf-8").splitlines())
    for place in (line, line["stack"]):
        place.update(dict.fromkeys(place.keys() & {"title", "reason", "signature", "variant", "name"}, HOSTILE))
    file.write_text(json.dumps(line, ensure_ascii=False), encoding="utf-8")
    check_harmless(repros("summary", *options))


@pytest.mark.parametrize("words", ["list", "list --json", "list --markdown", "show RPR-0007", "show RPR-0007 --json"])
def test_a_catalogue(words: str, repros: Command, hostile_catalogue: str) -> None:
    check_harmless(repros(*words.split(), "--catalogue", hostile_catalogue))


def test_an_exported_script(repros: Command, here: Path) -> None:
    main = f"def main(variant, strategy, accelerator):\n    {HOSTILE!a}\n# {HOSTILE}\n"
    own = CLAIMED.replace('raise ValueError("as documented")\n', main.replace("\r", ""))
    (here / "own.py").write_text(own, encoding="utf-8")
    assert "def main" in check_harmless(repros("export", "RPR-0007", "-o", "-", "--catalogue", "own.py"))


def test_a_refused_script(repros: Command, hostile_catalogue: str) -> None:
    for file in Path(hostile_catalogue).iterdir():
        file.write_text("# /// script\n# [tool.repro]\n# x = 1\n# ///\n", encoding="utf-8")
    assert "script" in check_harmless(repros("list", "--catalogue", hostile_catalogue), 2)


def test_a_run_and_its_report(repros: Command, hostile_catalogue: str) -> None:
    words = ("--catalogue", hostile_catalogue)
    shown = check_harmless(repros("run", *OWN, *words, "--variant", "failing", "--variant", "fixed"), 1)
    assert "different" in shown
    for option in ((), ("--json",)):
        check_harmless(repros("report", "RPR-0007", *words, *option))


def test_names_on_the_command_line(repros: Command) -> None:
    for words in (["show", HOSTILE], [HOSTILE], ["run", "--stack", HOSTILE], ["list", "--catalogue", HOSTILE]):
        check_harmless(repros(*words), 2)


def test_there_is_no_other_way_to_stdout() -> None:
    """All output of the commands goes through `output.py` and `streams.py` in `cli/shared`."""
    ways = {"print", "click.echo", "click.secho", "sys.stdout.write", "sys.stderr.write", "Console", "rich.print"}
    files = [*(ROOT / "repros/cli").rglob("*.py"), *(ROOT / "repros/pytest_plugin").rglob("*.py")]
    found = [
        f"{file.relative_to(ROOT)}:{node.lineno} calls {ast.unparse(node.func)}"
        for file in files
        if file.name not in {"output.py", "streams.py"}
        for node in ast.walk(ast.parse(file.read_text("utf-8")))
        if isinstance(node, ast.Call) and ast.unparse(node.func) in ways
    ]
    assert files
    assert not found, "\n".join(found)
