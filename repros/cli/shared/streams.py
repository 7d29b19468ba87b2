"""The standard streams of the commands: plain text and JSON on stdout, sentences on stderr."""

from __future__ import annotations

import contextlib
import errno
import os
import sys
from typing import Any

import click

from repros.cli.shared.live_line import LiveLine
from repros.model.errors import ReprosError
from repros.text.control import dump_json, remove_controls


class OutputError(ReprosError):
    """Standard output or error cannot be written: the disk is full, or the terminal is gone."""

    def __init__(self, error: OSError) -> None:
        """Compose the message."""
        super().__init__(f"the output cannot be written ({error.strerror}); expected a file or a terminal with room.")


def echo(text: object = "", *, nl: bool = True, err: bool = False) -> None:
    """Print text without control characters."""
    echo_styled(remove_controls(str(text)), nl=nl, err=err)


def echo_styled(text: str, *, nl: bool = True, err: bool = False, color: bool | None = None) -> None:
    """Print text whose control characters are the caller's colours."""
    try:
        with LiveLine.current.erased() if LiveLine.current else contextlib.nullcontext():
            # Not click's own stream, which writes UTF-8 where the user asked for another encoding.
            click.echo(text, file=sys.stderr if err else sys.stdout, nl=nl, color=color)
    except BrokenPipeError:
        raise BrokenPipeError from None  # without a number, by which click would end the program with 1
    except OSError as error:
        raise OutputError(error) from error


def echo_json(value: Any, *, indent: int = 2) -> None:
    """Print a value as JSON, its control characters escaped."""
    echo(dump_json(value, indent=indent))


def prepare_streams() -> None:
    """Make stdin, stdout and stderr usable, whatever the caller did to them.

    Raises:
        OutputError: stdout is closed. The next file that is opened would take its place and receive its output.
    """
    for stream in (sys.stdout, sys.stderr):
        # What an encoding lacks is written as an escape (`\u00e9`) rather than refused.
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")
    if sys.stdin is None:
        sys.stdin = open(os.devnull, encoding="utf-8")  # noqa: PTH123, SIM115 - for as long as the program
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w", encoding="utf-8")  # noqa: PTH123, SIM115 - the same
    if sys.stdout is None:
        raise OutputError(OSError(errno.EBADF, "standard output is closed"))


def flush() -> None:
    """Write what is still buffered, while an error can be reported.

    Raises:
        OutputError: it cannot be written.
    """
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        raise
    except OSError as error:
        raise OutputError(error) from error


def drop_output() -> None:
    """Send what is buffered, and all further output, to nowhere: flushing it at exit must not fail again."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (OSError, ValueError, AttributeError):
            os.dup2(nowhere, 1 if stream is sys.stdout else 2)
