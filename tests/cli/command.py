"""What the tests of the commands share: scripts to run, a probe that needs no torch, and readers of output."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from textwrap import dedent

from repros.engine import record
from repros.model import Device, Environment
from tests.toy_cells import TOYS

ROOT = Path(__file__).parents[2]

RAISES = str(TOYS / "raises.py")
HANGS = str(TOYS / "ignores_signals.py")

# Indented, so that the plugin does not take this file for a repro script.
CLAIMED = dedent('''\
    # /// script
    # dependencies = ["torch"]
    #
    # [tool.repro]
    # id = "RPR-0007"
    # title = "A script of one's own"
    # kind = "bug"
    # upstream.reports = ["https://example.org/1"]
    # packages = ["torch"]
    # affected = ["torch>=2.1"]
    # home = "2023-12"
    # strategies = ["ddp"]
    #
    # [tool.repro.variants.failing]
    # about = "fails"
    # raises = "ValueError"
    # match = "as documented"
    #
    # [tool.repro.variants.claimed]
    # outcome = "fails"
    # about = "does something unrelated"
    # claim = "it helps"
    #
    # [tool.repro.variants.fixed]
    # about = "fails all the same"
    # ///
    """Symptom: it fails."""
    raise ValueError("as documented")
    ''')
"""A user's own script with a claim and a fix, which both fail."""

Command = Callable[..., tuple[int, str, str]]
"""Runs a command; returns its exit code and its two outputs."""


def fake_probe(
    python: Path, stack: str | None = None, *, sim: bool = True, report_progress: object = None
) -> Environment:
    """Describe this interpreter as one with torch and without CUDA."""
    absent = {Device.CUDA: "torch 2.13.0 is a build without CUDA"}
    versions = {"torch": "2.13.0"}
    return Environment(
        stack or str(python), Path(sys.executable), "3.11.9", versions, {Device.CPU: 2}, absent, stack=stack
    )


def read_verdicts(file: str = ".repros/latest.jsonl") -> list[str]:
    """Return the variant and the verdict of each line of a results file."""
    return [f"{line['variant']} {line['verdict']}" for line in record.read(Path(file))]


def lines_over(width: int, text: str) -> list[str]:
    """Return the lines that are too wide although they could be broken."""
    return [line for line in text.splitlines() if len(line) > width and " " in line.strip()]
