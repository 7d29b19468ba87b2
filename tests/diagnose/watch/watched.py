"""Run a toy under the watch, and compare what it has saved with what it saves without."""

from __future__ import annotations

import contextlib
import io
import json
import subprocess
import sys
import zipfile
from pathlib import Path

from repros.cli import main

TOYS = Path(__file__).parent / "toys"


def watch(python: Path, folder: Path, script: str, *words: str, options: tuple[str, ...] = ()) -> list[str]:
    """Run a toy under the watch, whose own part runs in this process; return the checks that reported."""
    findings = folder / "findings.jsonl"
    stderr = io.StringIO()
    with contextlib.redirect_stderr(stderr):
        code = main(["watch", *options, "--json", str(findings), "--", str(python), str(TOYS / script), *words])
    return checks_of(findings, code, stderr.getvalue())


def watch_by_command(python: Path, folder: Path, script: str, *words: str) -> list[str]:
    """Run a toy under the command `repros watch`; return the checks that reported."""
    findings = folder / "findings.jsonl"
    command = [sys.executable, "-m", "repros", "watch", "--json", str(findings), "--", str(python), str(TOYS / script)]
    done = subprocess.run([*command, *words], capture_output=True, text=True, timeout=240, check=False)
    return checks_of(findings, done.returncode, done.stderr)


def checks_of(findings: Path, code: int, stderr: str) -> list[str]:
    """Return the checks that reported in a program with a clean exit."""
    assert code == 0, stderr
    assert "the watch itself failed" not in stderr
    return [json.loads(line)["check"] for line in findings.read_text("utf-8").splitlines()]


def have_same_bits(one: Path, other: Path) -> bool:
    """Return whether two files of `torch.save` hold the same, bit for bit; each is an archive of its own folder."""
    return records_of(one) == records_of(other)


def records_of(file: Path) -> dict[str, int]:
    """Return the checksum of each record of a file that `torch.save` has written."""
    with zipfile.ZipFile(file) as archive:
        return {info.filename.partition("/")[2]: info.CRC for info in archive.infolist()}
