"""The question before an untrusted script runs on a system that cannot build the whole sandbox."""

from __future__ import annotations

import sys

import click

from repros.cli.shared.output import console, show_text
from repros.model.errors import ReprosError
from repros.scripts.try_.sandbox import Sandbox
from repros.scripts.try_.text import format_open
from repros.text.wording import wrap


def accept_sandbox(sandbox: Sandbox, *, is_accepted: bool) -> None:
    """Ask whether a script may run in a sandbox that this system cannot build whole.

    Args:
        sandbox: what this system can provide.
        is_accepted: whether the user has accepted any sandbox.

    Raises:
        ReprosError: nobody can be asked.
        click.Abort: the user refuses.
    """
    if is_accepted or not sandbox.problems:
        return
    sentence = format_open(sandbox)
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        raise ReprosError(f"{sentence} The script is not run; --weak-sandbox runs it anyway, if you trust it.")
    err = console(stderr=True)
    show_text(err, "\n".join(wrap(sentence, err.width)), "yellow")
    click.confirm("Run the script anyway?", abort=True, err=True)
