"""Output and input that are closed, full or without an encoding: one sentence and exit code 2, never a traceback."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import click
import pytest
from syrupy.assertion import SnapshotAssertion

from tests.cli.command import ROOT, Command
from tests.transcript import mask

COMMANDS = ("list", "list --json", "show RPR-0005", "stacks", "audit {requirements}", "match {log}")


def run_in_shell(line: str, folder: Path, **settings: str) -> tuple[int, str, str]:
    """Run a line of bash in which `repros` is this checkout's command; return its exit code and outputs."""
    prologue = f'repros() {{ "{sys.executable}" -m repros "$@"; }}\nset -o pipefail\n'
    done = subprocess.run(
        ["bash", "-c", prologue + line],
        cwd=ROOT, capture_output=True, text=True, timeout=60, check=False,
        env={"PATH": "/usr/bin:/bin", "HOME": str(folder), **settings},
    )  # fmt: skip
    return done.returncode, done.stdout, done.stderr


@pytest.fixture
def files(tmp_path: Path) -> dict[str, Path]:
    requirements, log = tmp_path / "requirements.txt", tmp_path / "train.log"
    requirements.write_text("torch==2.1.2\nlightning==2.1.3\naccelerate==0.25.0\n")
    log.write_text("Traceback (most recent call last):\nRuntimeError: caf\u00e9 \u4e2d\n", encoding="utf-8")
    return {"requirements": requirements, "log": log}


def test_text(files: dict[str, Path], tmp_path: Path, snapshot: SnapshotAssertion) -> None:
    lines = ("list > /dev/full", "list >&-", "run --help > /dev/full", "stacks")
    answers = [run_in_shell(f"repros {line}", tmp_path, REPROS_CACHE_DIR="~nouser/x") for line in lines]
    assert [(code, out, err.count("\n")) for code, out, err in answers] == [(2, "", 1)] * len(lines)
    details = Path(answers[2][2].rpartition(" ")[2].removesuffix(".\n"))
    shown = [f"$ repros {line}\n{err}" for line, (_, _, err) in zip(lines, answers, strict=True)]
    assert snapshot == mask("\n".join(shown), details=details)
    details.unlink()


@pytest.mark.parametrize("words", COMMANDS)
def test_a_full_output(words: str, files: dict[str, Path], tmp_path: Path) -> None:
    code, _, err = run_in_shell(f"repros {words.format(**files)} > /dev/full", tmp_path)
    assert (code, err.count("\n")) == (2, 1)
    assert "No space left on device" in err


def test_help_into_a_full_output(tmp_path: Path) -> None:
    code, _, err = run_in_shell("repros run --help > /dev/full", tmp_path)
    assert (code, err.count("\n")) == (2, 1)
    assert "OSError: [Errno 28] No space left on device" in err
    Path(err.rpartition(" ")[2].removesuffix(".\n")).unlink()


@pytest.mark.parametrize("words", COMMANDS)
def test_a_closed_output(words: str, files: dict[str, Path], tmp_path: Path) -> None:
    code, _, err = run_in_shell(f"repros {words.format(**files)} >&-", tmp_path)
    assert (code, err.startswith("repros: "), err.count("\n")) == (2, True, 1)


@pytest.mark.parametrize("words", ["list --json", "match {log}"])
def test_all_outputs_closed_or_full(words: str, files: dict[str, Path], tmp_path: Path) -> None:
    for redirections in (">&- 2>&-", ">/dev/full 2>/dev/full", ">&- 2>&- <&-"):
        assert run_in_shell(f"repros {words.format(**files)} {redirections}", tmp_path) == (2, "", "")


def test_a_closed_input(tmp_path: Path) -> None:
    code, out, err = run_in_shell("repros match - <&-", tmp_path)
    assert (code, out, err.count("\n")) == (2, "", 1)
    code, _, err = run_in_shell("repros new slug_of_it --from-issue - --catalogue . <&-", tmp_path)
    assert (code, err.count("\n"), "Traceback" in err) == (2, 1, False)


@pytest.mark.slow
@pytest.mark.parametrize("words", ["list", "list --json", "show RPR-0005", "stacks", "audit {requirements}"])
def test_a_reader_that_ends_early(words: str, files: dict[str, Path], tmp_path: Path) -> None:
    code, out, err = run_in_shell(f"repros {words.format(**files)} | head -c 1", tmp_path)
    # A short text may be in the pipe before its reader ends; 1 is the answer of `audit`.
    assert code in ((0, 1, 141) if words.startswith("audit") else (0, 141))
    assert (len(out), err) == (1, "")
    code, out, err = run_in_shell(f"repros {words.format(**files)} > >(exec true)", tmp_path)
    assert (code in (0, 1, 141), out, err) == (True, "", "")


@pytest.mark.slow
def test_a_pipe_that_nobody_reads_is_never_an_answer_of_audit(files: dict[str, Path], tmp_path: Path) -> None:
    line = f"(sleep 3; repros audit {files['requirements']}; echo $? >&2) | true"
    assert run_in_shell(line, tmp_path)[2] == "141\n"


def test_an_encoding_without_the_characters(files: dict[str, Path], tmp_path: Path) -> None:
    code, out, err = run_in_shell(f"repros match {files['log']}", tmp_path, PYTHONIOENCODING="ascii")
    assert (code, err) == (1, "")
    assert "RuntimeError: caf\\xe9 \\u4e2d" in out


@pytest.mark.parametrize("columns", ["0", "1", "-5", "x", "99999999999"])
def test_odd_widths(columns: str, repros: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", columns)
    code, out, err = repros("list")
    assert (code, err) == (0, "")
    assert "RPR-0001" in out


def test_a_cache_folder_that_cannot_be_named(tmp_path: Path) -> None:
    code, _, err = run_in_shell("repros stacks", tmp_path, REPROS_CACHE_DIR="~nouser/x")
    assert (code, err.count("\n"), "REPROS_CACHE_DIR='~nouser/x'" in err) == (2, 1, True)


@pytest.mark.parametrize("error", [RuntimeError("unfore\nseen \x1b]0;t\x07"), RecursionError("deep"), MemoryError()])
def test_what_nobody_foresaw_is_a_sentence_with_the_details_in_a_file(
    error: Exception, repros: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise error

    monkeypatch.setattr(click.Group, "main", fail)
    code, out, err = repros("list")
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert "\x1b" not in err
    details = Path(err.rpartition(" ")[2].removesuffix(".\n"))
    assert f"raise error\n{type(error).__name__}" in details.read_text()
    assert details.stat().st_mode & 0o077 == 0
    details.unlink()
