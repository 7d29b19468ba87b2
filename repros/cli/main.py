"""The command line: dispatch to commands, and one sentence and an exit code per error."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
from collections.abc import Sequence
from importlib import import_module
from keyword import iskeyword

import click

from repros import __version__
from repros.cli.shared.example import example
from repros.cli.shared.exit_codes import BAD_INPUT
from repros.cli.shared.signals import interruption_exit_code
from repros.cli.shared.streams import drop_output, echo, flush, prepare_streams
from repros.model.errors import ReprosError

_LONGEST_MESSAGE = 300
_FEWEST_COLUMNS, _PIPE_WIDTH, _MOST_COLUMNS = 50, 80, 100
"""Columns of help: at least, in a pipe, and at most."""

_COMPLETION = "_REPROS_COMPLETE"
"""The environment variable by which a shell asks click for completions."""

_GROUPS = {
    "You have a failure": {
        "triage": ("triage", "Answer what it is, from anything you have of it; the same as 'repros WHATEVER'."),
        "match": ("match", "Find the documented failures in a log."),
        "watch": ("watch", "Run a training program and report documented failures in it."),
        "compare": ("compare", "Run a training twice and find the first step at which the runs diverge."),
        "audit": ("audit", "Find failures that affect pinned or installed packages."),
        "list": ("list_repros", "List the documented failures."),
        "show": ("show", "Show one failure: cause, fixes, and a diff."),
    },
    "You have a script that fails": {
        "try": ("try_script", "Run an untrusted script in a sandbox on chosen stacks and report the outcome."),
        "reduce": ("reduce", "Minimize a failing script."),
        "bisect": ("bisect_repro", "Find the first and the last affected release."),
        "report": ("report", "Write a Markdown block for an upstream issue."),
        "doctor": ("doctor", "Test what the sandbox keeps out on this machine."),
    },
    "You have no GPU": {
        "simulate": ("simulate", "Run any program on simulated GPUs."),
    },
    "You work with the catalogue": {
        "run": ("run", "Run repros and report the verdict of each cell."),
        "summary": ("summary", "Print the table of a results file."),
        "export": ("export", "Write a repro as a standalone script, or as an OSV record."),
        "stacks": ("stacks", "List the sets of library versions to run on."),
        "matrix": ("matrix", "Measure the catalogue on all stacks, or compare it with the evidence."),
        "new": ("new", "Write a new repro script from a template."),
        "check": ("check", "Check a new script and list what is left to do."),
    },
}
"""The commands by what a person has: each with its function in its module, and one line of help."""
_COMMANDS = {name: command for group in _GROUPS.values() for name, command in group.items()}
_ALIASES = {"search": "list", "find": "list", "explain": "show"}
"""Names by which people look for a command."""


class _Commands(click.Group):
    """A group that imports commands lazily and suggests the nearest name for a typo."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - part of click's signature
        return list(_COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002 - see above
        if cmd_name not in _COMMANDS:
            return None
        function, _ = _COMMANDS[cmd_name]
        command: click.Command = getattr(import_module(f"repros.cli.{_module_name(cmd_name)}"), function)
        if _COMPLETION in os.environ:
            import_module("repros.cli.shared.completion").add_completion(command)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002 - see above
        longest = max(map(len, _COMMANDS))
        for title, commands in _GROUPS.items():
            with formatter.section(title):
                # One column for all groups: names of one length.
                formatter.write_dl([(f"{name:<{longest}}", line) for name, (_, line) in commands.items()])

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        first = args[0] if args else ""
        if first in _ALIASES and args[1:]:
            args = [_ALIASES[first], *args[1:]]
        elif first in {"-", "--"} or (first and not first.startswith("-") and first not in _COMMANDS):
            args = ["triage", *args]
        elif not args and _is_terminal() and not ctx.resilient_parsing:
            args = ["triage"]
        return super().parse_args(ctx, args)


def _is_terminal() -> bool:
    """Whether a person may paste a text: both ends are a terminal."""
    return sys.stdin.isatty() and sys.stdout.isatty()


def _module_name(command: str) -> str:
    """Return the module of a command: its name, or `try_` where that is a keyword of Python."""
    return f"{command}_" if iskeyword(command) else command


@click.group(
    cls=_Commands,
    invoke_without_command=True,
    subcommand_metavar="WHATEVER... | COMMAND [ARGS]...",
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": _MOST_COLUMNS},
    epilog=example("repros train.log", "repros issue.md", "repros -- python train.py", "repros RPR-0005"),
)
@click.version_option(__version__, prog_name="repros", message="%(prog)s %(version)s")
@click.pass_context
def cli(context: click.Context) -> None:
    """Answer what a failure of a PyTorch training is, from anything that you have of it: `repros WHATEVER`.

    WHATEVER is a log, a pasted message, the text of an issue, a script, requirements, an id, words, or `--` and a
    command. The answers rest on documented failures, which are scripts that were run on real releases.
    """
    if context.invoked_subcommand is None:
        echo(context.get_help())


def load_commands() -> dict[str, click.Command]:
    """Return all commands by name, imported."""
    context = click.Context(cli)
    return {name: command for name in _COMMANDS if (command := cli.get_command(context, name))}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code.

    0: every cell that ran agrees. 1: a cell disagrees, or could not be judged. 2: the request cannot be met; one line
    on stderr states why. 130: Ctrl-C. 128 plus the number: another signal. 141: the reader closed the output
    (`repros list | head -1`), as by SIGPIPE.
    """
    try:
        return _run(arguments)
    finally:
        drop_output()


def _run(arguments: Sequence[str] | None) -> int:
    """Run a command and return its exit code, or that of its error."""
    try:
        prepare_streams()
        code = cli.main(arguments, prog_name="repros", standalone_mode=False, terminal_width=_help_width())
        flush()
    except click.ClickException as error:
        return _refuse(error.format_message(), _help_hint(error))
    except ReprosError as error:
        return _refuse(str(error))
    except KeyboardInterrupt as interruption:
        return interruption_exit_code(interruption)
    except click.Abort:
        return interruption_exit_code(KeyboardInterrupt())
    except BrokenPipeError:
        return 128 + signal.SIGPIPE
    except Exception as error:  # noqa: BLE001 - the last catch: Python's own exit code, 1, means "affected" to CI
        return _refuse(f"{_describe_unexpected(error)}; {_save_details(error)}.")
    return code if isinstance(code, int) else 0


def _help_width() -> int:
    """Return the columns of help as click finds them, without `shutil`, whose import takes longer than the help."""
    columns = os.environ.get("COLUMNS", "")
    width = int(columns) if columns.isdigit() else 0
    with contextlib.suppress(OSError, ValueError, AttributeError):  # no terminal; a closed stream, or none
        width = width or os.get_terminal_size(sys.__stdout__.fileno()).columns  # type: ignore[union-attr]
    return max(min(width or _PIPE_WIDTH, _MOST_COLUMNS) - 2, _FEWEST_COLUMNS)


def _refuse(problem: str, hint: str = "") -> int:
    with contextlib.suppress(OSError, ReprosError):  # stderr may be as broken as stdout
        echo(f"repros: {problem}{hint}", err=True)
    return BAD_INPUT


def _describe_unexpected(error: Exception) -> str:
    if isinstance(error, MemoryError):
        return "there is not enough memory for this input"
    import textwrap  # noqa: PLC0415 - needed for errors only; imports delay every command

    message = textwrap.shorten(str(error), _LONGEST_MESSAGE)
    return f"unexpected {type(error).__name__}{f': {message}' if message else ''}"


def _save_details(error: Exception) -> str:
    """Write an error's traceback to a new file that only the user can read; return a clause with its path."""
    import tempfile  # noqa: PLC0415 - needed for errors only; imports delay every command
    import traceback  # noqa: PLC0415 - the same

    details = traceback.format_exception(error)
    try:
        with tempfile.NamedTemporaryFile("w", prefix="repros-", suffix=".txt", delete=False, errors="replace") as file:
            file.writelines(details)
    except OSError as problem:
        return f"the details could not be written ({problem.strerror})"
    return f"the details are in {file.name}"


def _help_hint(error: click.ClickException) -> str:
    context = getattr(error, "ctx", None)
    return f" (try '{context.command_path} --help')" if context else ""
