"""The command line: its commands, and one sentence and an exit code for every error."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

import click

from repros import __version__
from repros.cli.audit import audit
from repros.cli.bisect import bisect_repro
from repros.cli.export import export
from repros.cli.list import list_repros
from repros.cli.match import match
from repros.cli.matrix import matrix
from repros.cli.new import new
from repros.cli.report import report
from repros.cli.run import run
from repros.cli.shared.completion import add_completion
from repros.cli.shared.exit_codes import BAD_INPUT
from repros.cli.shared.options import example
from repros.cli.shared.signals import interruption_exit_code
from repros.cli.show import show
from repros.cli.stacks import stacks
from repros.cli.summary import summary
from repros.errors import ReprosError, UnknownNameError


class _Commands(click.Group):
    """A group that keeps its commands in the order of their use, and offers the nearest name for a typo."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - part of click's signature
        return list(self.commands)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args and not args[0].startswith("-") and args[0] not in self.commands:
            raise UnknownNameError("command", args[0], self.commands)
        return super().resolve_command(ctx, args)


@click.group(
    cls=_Commands,
    invoke_without_command=True,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog=example("repros list", "repros show RPR-0005", "repros run RPR-0005"),
)
@click.version_option(__version__, prog_name="repros", message="%(prog)s %(version)s")
@click.pass_context
def cli(context: click.Context) -> None:
    """Run documented failures of PyTorch training frameworks and report, with evidence, which are present."""
    if context.invoked_subcommand is None:
        click.echo(context.get_help())


for _command in (list_repros, show, run, summary, match, report, export, audit, stacks, matrix, bisect_repro, new):
    cli.add_command(_command)
add_completion(cli)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code.

    0: every cell that was run agrees. 1: a cell does not agree, or could not be judged. 2: the request cannot be met;
    one line on stderr states why. 130: Ctrl-C; 128 plus its number: another signal.
    """
    try:
        code = cli.main(arguments, prog_name="repros", standalone_mode=False)
    except click.ClickException as error:
        return _refuse(error.format_message(), _help_hint(error))
    except ReprosError as error:
        return _refuse(str(error))
    except KeyboardInterrupt as interruption:
        return interruption_exit_code(interruption)
    except click.Abort:
        return interruption_exit_code(KeyboardInterrupt())
    except BrokenPipeError:
        # The reader has closed the pipe (`repros list | head`); flushing the rest at exit must not fail.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    return code if isinstance(code, int) else 0


def _refuse(problem: str, hint: str = "") -> int:
    click.echo(f"repros: {problem}{hint}", err=True)
    return BAD_INPUT


def _help_hint(error: click.ClickException) -> str:
    context = getattr(error, "ctx", None)
    return f" (try '{context.command_path} --help')" if context else ""
