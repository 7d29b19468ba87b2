"""`repros triage`: an answer for anything that a person has of a failure."""

from __future__ import annotations

import sys
from functools import partial
from pathlib import Path
from typing import Any

import click

from repros.cli.shared.example import example
from repros.cli.shared.inputs import keep, name_omissions, read_catalogue
from repros.cli.shared.options import catalogue_option, json_option
from repros.cli.shared.output import console, show_text
from repros.cli.shared.streams import echo, echo_json
from repros.diagnose.match import SignatureIndex, log
from repros.diagnose.match.hints import NAME
from repros.model.settings import CatalogueLocations
from repros.scripts.triage.answer import Answer
from repros.scripts.triage.kind import InputKind, recognise

ANSWERED, NOT_ANSWERED = 0, 1
_COMMAND = "repros.cli.triage.command"
_CODE = Path(log.__file__).parent


class _Triage(click.Command):
    """A command that keeps the words after `--` apart: they are a command to run."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        at = args.index("--") if "--" in args else len(args)
        ctx.meta[_COMMAND] = args[at + 1 :]
        return super().parse_args(ctx, args[:at])


@click.command(
    cls=_Triage,
    epilog=example("repros triage train.log", "repros issue.md", "repros train.py", "repros -- torchrun train.py"),
)
@click.argument("given", nargs=-1, metavar="[WHATEVER]... [-- COMMAND]")
@json_option
@catalogue_option
@click.pass_context
def triage(context: click.Context, given: tuple[str, ...], places: CatalogueLocations, *, as_json: bool) -> Any:
    """Answer in at most 15 lines what a failure is, how sure that is, and what to do.

    WHATEVER is recognised by its content: logs, a pasted message, the text of an issue, flight recorder dumps, a
    script, requirements or a lock, an environment's folder, an id, or words. `-` is standard input. COMMAND is run and
    watched. `repros WHATEVER` is the same.

    Exit code: 0 if there is an answer that is certain or likely, 1 if not, 2 if the input cannot be read.
    """
    if command := context.meta[_COMMAND]:
        from repros.cli.watch import watch  # noqa: PLC0415 - most inputs are not run

        return watch.main(["--", *command], standalone_mode=False)
    found = recognise(given, _read_stdin)
    if found.kind is not InputKind.LOG:
        raise NotImplementedError(found.kind)
    from repros.scripts.triage.log_answer import answer_log  # noqa: PLC0415

    index, clashes = keep("signatures", places, partial(_read_index, places), [_CODE, Path(__file__)], NAME)
    name_omissions(places, clashes, is_empty=index.is_empty)
    return _show(answer_log(found, index, partial(read_catalogue, places)), as_json=as_json)


def _show(answer: Answer, *, as_json: bool) -> int:
    if as_json:
        from repros.scripts.triage.json_format import answer_to_json  # noqa: PLC0415 - text needs none of it

        echo_json(answer_to_json(answer))
    else:
        from repros.scripts.triage.text import format_answer  # noqa: PLC0415 - JSON needs none of it

        out = console()
        show_text(out, format_answer(answer, out.width))
    return ANSWERED if answer.certainty.is_answer else NOT_ANSWERED


def _read_index(places: CatalogueLocations) -> tuple[SignatureIndex, tuple[str, ...]]:
    """Return the index of the signatures, and a sentence for each script that was skipped."""
    catalogue = read_catalogue(places)
    return SignatureIndex(catalogue), catalogue.clashes


def _read_stdin() -> bytes:
    if sys.stdin.isatty():
        echo("paste a traceback, a log or an issue; end it with Ctrl-D", err=True)
    return log.read_stream(sys.stdin.buffer)
