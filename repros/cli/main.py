"""The command itself: its sub-commands, and how whatever goes wrong ends in one sentence and an exit code."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

import click

from repros import __version__
from repros.cli import completion
from repros.cli.audit import audit
from repros.cli.bisect import bisect_repro
from repros.cli.export import export
from repros.cli.look import list_repros, show, stacks
from repros.cli.match import match
from repros.cli.matrix import matrix
from repros.cli.new import new
from repros.cli.options import example
from repros.cli.report import report
from repros.cli.run import run, summary
from repros.cli.signals import exit_code
from repros.errors import ReprosError, UnknownNameError

BAD_INPUT = 2


class _Commands(click.Group):
    """Commands in the order in which a newcomer meets them; a typo gets the nearest one."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click hands it over
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
    """Run documented failures of PyTorch training frameworks; say, with evidence, whether they are there."""
    if context.invoked_subcommand is None:
        click.echo(context.get_help())


for _command in (list_repros, show, run, summary, match, report, export, audit, stacks, matrix, bisect_repro, new):
    cli.add_command(_command)
completion.attach(cli)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code.

    0: every cell that was run agrees. 1: one does not, or could not be judged. 2: the input was not right;
    one line on stderr says what. 130: interrupted; 128 and its number: ended by another signal.
    """
    try:
        code = cli.main(arguments, prog_name="repros", standalone_mode=False)
    except click.ClickException as error:
        return _refuse(error.format_message(), _usage(error))
    except ReprosError as error:
        return _refuse(str(error))
    except KeyboardInterrupt as interruption:
        return exit_code(interruption)
    except click.Abort:
        return exit_code(KeyboardInterrupt())
    except BrokenPipeError:
        # The reader has seen enough (`repros list | head`); what is still buffered must not complain at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    return code if isinstance(code, int) else 0


def _refuse(problem: str, way_out: str = "") -> int:
    click.echo(f"repros: {problem}{way_out}", err=True)
    return BAD_INPUT


def _usage(error: click.ClickException) -> str:
    context = getattr(error, "ctx", None)
    return f" (try '{context.command_path} --help')" if context else ""
