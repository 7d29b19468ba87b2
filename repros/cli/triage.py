"""`repros triage`: an answer for anything that a person has of a failure."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, assert_never, cast

import click

from repros.cli.shared.example import example
from repros.cli.shared.inputs import keep, read_catalogue
from repros.cli.shared.options import catalogue_option, json_option, weak_sandbox_option
from repros.cli.shared.output import console, show_text
from repros.cli.shared.signatures import load_index
from repros.cli.shared.streams import echo, echo_json
from repros.diagnose.match import log
from repros.model.errors import ReprosError, UnknownNameError
from repros.model.settings import CatalogueLocations
from repros.scripts.triage.answer import Answer, Certainty
from repros.scripts.triage.kind import Document, Input, InputKind, recognise

if TYPE_CHECKING:
    from repros.diagnose.messages.nearest import NearFailure
    from repros.scripts.triage.issue_answer import ListedFailure
    from repros.scripts.triage.report import Report
    from repros.scripts.triage.script_uses import FailureUses

ANSWERED, NOT_ANSWERED = 0, 1
_COMMAND = "repros.cli.triage.command"
_TRIAGE = Path(__file__).parents[1] / "scripts" / "triage"


class _Triage(click.Command):
    """A command that keeps the words after `--` apart: they are a command to run."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        at = args.index("--") if "--" in args else len(args)
        ctx.meta[_COMMAND] = args[at + 1 :]
        return super().parse_args(ctx, args[:at])


@click.command(
    cls=_Triage,
    epilog=example("repros triage train.log", "repros issue.md", "repros train.py", "repros -- python train.py"),
)
@click.argument("given", nargs=-1, metavar="[WHATEVER]... [-- COMMAND]")
@click.option("--run", is_flag=True, help="Run the script in a sandbox, on the issue's releases and the newest.")
@click.option("--bisect", is_flag=True, help="Find the release that changed the outcome; implies --run.")
@click.option("--reduce", is_flag=True, help="Write a smaller script; implies --run.")
@click.option("--comment", is_flag=True, help="Print a redacted comment for the issue's thread; implies --run.")
@weak_sandbox_option
@json_option
@catalogue_option
@click.pass_context
def triage(
    context: click.Context,
    given: tuple[str, ...],
    places: CatalogueLocations,
    *,
    run: bool,
    bisect: bool,
    reduce: bool,
    comment: bool,
    weak_sandbox: bool,
    as_json: bool,
) -> int:
    """Answer in at most 15 lines what a failure is, how sure that is, and what to do.

    WHATEVER is recognised by its content: logs, a pasted message, the text of an issue, flight recorder dumps, a
    script, requirements or a lock, an environment's folder, an id, or words. `-` is standard input. COMMAND is run and
    watched. `repros WHATEVER` is the same.

    `certain` and `likely` have the meaning of `repros match`. Without a documented failure, the answer is what the
    words of the error mean. Its cause is likely if the user's own code in the log has it, else possible.

    With --run, the script of an issue runs in the sandbox of `repros try`, watched: on the releases that the issue
    states and on the newest, on simulated GPUs or two ranks where the issue has them. Each run is compared with what is
    reported. Each step says on stderr what it knows before the next begins.

    Exit code: 0 if there is an answer that is certain or likely, 1 if not, 2 if the input cannot be read; with COMMAND
    the exit code of `repros watch`.
    """
    if command := context.meta[_COMMAND]:
        return _watch(command, places)
    found = recognise(given, _read_stdin)
    answer = _answer(found, places)
    if run or bisect or reduce or comment:
        return _run(found, answer, places, (bisect, reduce, weak_sandbox), comment=comment, as_json=as_json)
    if answer.kind is InputKind.WORDS and answer.certainty is Certainty.UNKNOWN and context.parent is not None:
        _refuse_misspelt(context.parent, found.words)
    return _show(answer, as_json=as_json)


def _run(
    found: Input,
    answer: Answer,
    places: CatalogueLocations,
    asked: tuple[bool, bool, bool],
    *,
    comment: bool,
    as_json: bool,
) -> int:
    """Run the script, and print the completed answer or the comment for the thread."""
    from repros.cli.shared.triage_run import RunRequest, run_input  # noqa: PLC0415 - most inputs are not run

    show_text(console(stderr=True), f"by its text: {answer.title}")
    result = run_input(found, answer, places, RunRequest(*asked))
    if not comment:
        return _show(result.answer, as_json=as_json)
    echo(result.comment("repros triage issue.md --run"))
    return ANSWERED if result.answer.certainty.is_answer else NOT_ANSWERED


def _answer(found: Input, places: CatalogueLocations) -> Answer:
    """Return the answer to an input; each kind imports what it needs."""
    match found.kind:
        case InputKind.LOG | InputKind.ISSUE:
            return _answer_text(found, places)
        case InputKind.SCRIPT:
            from repros.scripts.triage.script_answer import answer_script  # noqa: PLC0415 - see above

            (document,) = found.documents
            source = document.raw.decode("utf-8", "replace")
            return answer_script(str(document.path or ""), source, partial(_read_uses, places))
        case InputKind.PACKAGES | InputKind.ENVIRONMENT:
            return _audit(found, places)
        case InputKind.ID:
            from repros.scripts.triage.failure_answer import describe_failure  # noqa: PLC0415 - see above

            return describe_failure(read_catalogue(places).find(found.words[0]))
        case InputKind.WORDS:
            return _search(found.words, places)
        case InputKind.COMMAND:
            raise AssertionError(found)
        case _:
            assert_never(found.kind)


def _answer_text(found: Input, places: CatalogueLocations) -> Answer:
    is_issue = found.kind is InputKind.ISSUE
    report = _read_report(found) if is_issue else None
    answer = _answer_log(found, places, report)
    if is_issue or (not _has_error(answer) and _is_prose(found, answer)):
        report = report or _read_report(found)
        completed = _complete(found, answer, places, report)
        return completed if is_issue or completed.certainty is not Certainty.UNKNOWN else answer
    if found.words and not _has_error(answer) and not answer.repro_id and len(found.words[0]) < _LONGEST_SEARCH:
        return _search(found.words, places)
    return answer


def _answer_log(found: Input, places: CatalogueLocations, report: Report | None) -> Answer:
    from repros.scripts.triage.log_answer import answer_log  # noqa: PLC0415 - see above

    repros, near = partial(read_catalogue, places), partial(_find_near, places)
    return answer_log(found, load_index(places), repros, near, report)


def _complete(found: Input, answer: Answer, places: CatalogueLocations, report: Report) -> Answer:
    """Return the answer to an issue: first to the messages in its sentences, if its lines have no error."""
    from repros.scripts.triage.issue_answer import Readers, complete_issue  # noqa: PLC0415 - see above
    from repros.scripts.triage.quoted import with_messages  # noqa: PLC0415 - see above

    if answer.certainty is Certainty.UNKNOWN and not _has_error(answer) and (quoted := with_messages(found)):
        answer = _answer_log(quoted, places, report)
    readers = Readers(partial(_read_uses, places), partial(_list_failures, places), partial(read_catalogue, places))
    return complete_issue(answer, found.documents[0], report, readers)


def _read_report(found: Input) -> Report:
    from repros.scripts.triage.report import Report  # noqa: PLC0415 - see above

    return Report.of(found.documents[0])


def _has_error(answer: Answer) -> bool:
    return any(section.label == "error" for section in answer.sections)


def _list_failures(places: CatalogueLocations) -> Iterator[ListedFailure]:
    from repros.cli.shared.listing import load_listing  # noqa: PLC0415 - see above
    from repros.scripts.triage.issue_answer import ListedFailure  # noqa: PLC0415 - the same

    for one in load_listing(places).repros:
        yield ListedFailure(one.summary["id"], one.summary["title"], tuple(one.summary["packages"]))


def _is_prose(found: Input, answer: Answer) -> bool:
    """Return whether a text without an error may be somebody's description of a failure."""
    raw = found.documents[0].raw if len(found.documents) == 1 and not found.dumps else b""
    return answer.certainty is Certainty.UNKNOWN and not found.words and 0 < len(raw) <= _LONGEST_PROSE


_LONGEST_PROSE = 65_536
"""Bytes of an issue's text; GitHub allows no more."""


def _find_near(places: CatalogueLocations, message: str) -> tuple[NearFailure, ...]:
    from repros.cli.shared.signatures import load_words  # noqa: PLC0415 - few messages need it

    return load_words(places).find(message)


_LONGEST_SEARCH = 80
"""Characters of a text without an error that is searched as words."""


def _search(words: Sequence[str], places: CatalogueLocations) -> Answer:
    from repros.cli.shared.listing import load_listing  # noqa: PLC0415 - see above
    from repros.scripts.triage.words_answer import SearchedFailure, answer_words  # noqa: PLC0415 - see above

    listed = load_listing(places).repros
    answer = answer_words(
        words, [SearchedFailure(one.summary["id"], one.summary["title"], one.searched) for one in listed]
    )
    if answer.certainty is not Certainty.UNKNOWN:
        return answer
    described = _describe(words, places)
    return answer if described.certainty is Certainty.UNKNOWN else described


def _describe(words: Sequence[str], places: CatalogueLocations) -> Answer:
    """Return the answer to words as to the title of an issue, which describes a failure without its message."""
    document = Document("the words", f"# {' '.join(words)}\n".encode())
    return _answer_text(Input(InputKind.ISSUE, (document,)), places)


def _audit(found: Input, places: CatalogueLocations) -> Answer:
    import datetime as dt  # noqa: PLC0415 - see above

    from repros.advise.audit.assess import assess  # noqa: PLC0415 - see above
    from repros.advise.audit.report import build_report  # noqa: PLC0415 - see above
    from repros.cli.audit import read_subject  # noqa: PLC0415 - see above
    from repros.scripts.triage.packages_answer import answer_packages  # noqa: PLC0415 - see above

    if found.path is None:
        raise ReprosError("the input lists packages, which are read from a file; save it as requirements.txt.")
    catalogue = read_catalogue(places)
    is_environment = found.kind is InputKind.ENVIRONMENT
    file, python = (None, found.path) if is_environment else (found.path, None)
    subject = read_subject(file, python, catalogue)
    today = dt.datetime.now().astimezone().date()
    report = build_report(subject, assess(catalogue, subject, {}), {}, today)
    return answer_packages(report, str(found.path), found.kind)


def _watch(command: Sequence[str], places: CatalogueLocations) -> int:
    from repros.cli.watch import watch  # noqa: PLC0415 - most inputs are not run

    catalogues = [word for path in places.from_option for word in ("--catalogue", str(path))]
    return cast("int", watch.main([*catalogues, "--", *command], standalone_mode=False))


def _refuse_misspelt(group: click.Context, words: Sequence[str]) -> None:
    """Refuse words that no failure has, and of which the first is like a command.

    Raises:
        UnknownNameError: it does.
    """
    import difflib  # noqa: PLC0415 - for words alone

    names = cast("click.Group", group.command).list_commands(group)
    if difflib.get_close_matches(words[0], names, n=1, cutoff=_ALIKE):
        raise UnknownNameError("command", words[0], names)


_ALIKE = 0.7
"""How alike a word and the command are that is suggested for it."""


def _show(answer: Answer, *, as_json: bool) -> int:
    if as_json:
        from repros.scripts.triage.json_format import answer_to_json  # noqa: PLC0415 - text needs none of it

        echo_json(answer_to_json(answer))
    else:
        from repros.scripts.triage.text import format_answer  # noqa: PLC0415 - JSON needs none of it

        out = console()
        show_text(out, format_answer(answer, out.width))
    return ANSWERED if answer.certainty.is_answer else NOT_ANSWERED


def _read_uses(places: CatalogueLocations) -> tuple[FailureUses, ...]:
    """Return what the documented failures use, from the cache unless a script has changed."""
    return keep("uses", places, partial(_uses, places), [_TRIAGE])


def _uses(places: CatalogueLocations) -> tuple[FailureUses, ...]:
    from repros.scripts.triage.script_uses import failure_uses  # noqa: PLC0415 - only what has changed is read

    return tuple(uses for repro in read_catalogue(places) if (uses := failure_uses(repro)))


def _read_stdin() -> bytes:
    if sys.stdin.isatty():
        echo("paste a traceback, a log or an issue; end it with Ctrl-D", err=True)
    return log.read_stream(sys.stdin.buffer)
