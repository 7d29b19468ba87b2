"""`repros match`: find the documented failures in a log."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from repros.cli.shared.example import example
from repros.cli.shared.inputs import read_catalogue
from repros.cli.shared.options import catalogue_option, json_option, python_option
from repros.cli.shared.output import console, show_text
from repros.cli.shared.signatures import load_index
from repros.cli.shared.streams import echo, echo_json
from repros.diagnose.match import log
from repros.diagnose.match.hang import EvidenceMatch, match_evidence
from repros.diagnose.match.hang.dumps import read_dumps, split_inputs
from repros.model.settings import CatalogueLocations
from repros.text.styled import Text

if TYPE_CHECKING:
    from repros.diagnose.messages import Explanation
    from repros.diagnose.messages.nearest import NearFailure
    from repros.model import Repro

FOUND, NOT_FOUND = 0, 1


@click.command(
    epilog=example("repros match train.log", "python train.py 2>&1 | repros match -", "repros match train.log DUMPS"),
)
@click.argument("files", type=click.Path(path_type=Path, allow_dash=True), nargs=-1, metavar="[LOG|-]... [DUMP]...")
@click.option(
    "--confirm", is_flag=True, help="Run the failing variants of the candidates in the environment of --python."
)
@python_option("Environment for --confirm, and for versions that the log does not state.")
@click.option("--verbose", is_flag=True, help="Quote the line that contradicts each ruled out failure.")
@json_option
@catalogue_option
def match(
    files: tuple[Path, ...],
    python: Path | None,
    places: CatalogueLocations,
    *,
    confirm: bool,
    verbose: bool,
    as_json: bool,
) -> int:
    """Find the documented failures in a log or traceback, and the ranks that cause a hang.

    LOG is a log of any length and origin: mixed ranks, colours, timestamps, and the prefixes of launchers, pytest,
    notebooks and web pages; several are read as one. Class and message of each exception are compared with every
    documented failure, then the call stack with the documented frames, then the versions in the log with the affected
    releases.

    `certain`: class, message, call stack and versions match, or the traceback contains the repro's script. `likely`:
    class and message match, and the call stack if the repro names frames. `possible`: the log has a part of the
    evidence (a part of the message, a message without class or traceback, or a warning), several failures share the
    message, or the versions are outside the affected range. `ruled out`: a line of the log contradicts the failure.

    Without a documented failure, the report says what the words of each error mean: the numbers and names in it, the
    innermost line of your own code, and the causes that public threads have, with a check and a fix for each.

    DUMP is a rank's dump by PyTorch's flight recorder, as pickle or JSON, or a folder of dumps. They are recognised by
    content, and a pickle is never executed. Dumps, and lines of the NCCL watchdog in a log, show which ranks did not
    join a collective, which joined a different one, and where each rank waits.

    Exit code: 0 if a repro or a hang was found, 1 if neither was, 2 if a file cannot be read.
    """
    if confirm != (python is not None):
        raise click.UsageError(
            "--confirm needs --python PATH, the environment to run on, and --python needs --confirm."
        )
    index = load_index(places)
    logs, dumps = split_inputs(files)
    environment = None
    if python is not None:
        from repros.cli.shared.confirm import describe, run_candidates  # noqa: PLC0415 - nothing else needs the engine

        environment = describe(python)
    lines = log.join_logs([(_log_name(file), _read_log(file)) for file in logs]) if logs else None
    evidence = match_evidence(lines, read_dumps(dumps), _repros(places), environment, index)
    found, hangs = evidence.match, evidence.hangs
    unmatched = _explain(evidence, lines, logs, places)
    ids = [candidate.repro.id for candidate in found.candidates]
    if as_json:
        confirmed = (
            run_candidates(read_catalogue(places), ids, python, quiet=True) if python is not None and ids else []
        )
        echo_json({**_to_json(evidence, unmatched), **({"confirmed": confirmed} if confirm else {})})
    else:
        out = console()
        show_text(out, _report(evidence, unmatched, out.width, verbose=verbose))
        if python is not None:
            out.show()
            show_text(out, f"confirming {', '.join(ids)}" if ids else "nothing to confirm: no candidate.", "bold")
            if ids:
                run_candidates(read_catalogue(places), ids, python, quiet=False)
    return FOUND if found.candidates or any(hang.has_findings for hang in hangs) else NOT_FOUND


@dataclass(frozen=True)
class _Unmatched:
    """What a log says that shows no documented failure."""

    explanations: tuple[Explanation, ...] = ()
    near: tuple[NearFailure, ...] = ()
    script: Path | None = None
    """The file, if it is a Python script and no log."""

    def lines(self, width: int) -> Sequence[Text]:
        """Return it as lines of at most `width` columns; empty if it says nothing."""
        if self.script is not None:
            run = [f"repros watch -- python {self.script}", f"repros try {self.script}"]
            return [Text(f"{self.script} is a Python script, not a log; run it:", "bold"), *map(Text, run)]
        if not self.explanations:
            return ()
        from repros.diagnose.messages.text import unmatched_lines  # noqa: PLC0415 - a match needs none of it

        return [*unmatched_lines(self.explanations, self.near, width)]

    def to_json(self) -> dict[str, Any]:
        """Return it as keys of the report."""
        from repros.diagnose.messages.json_format import explanations_to_json  # noqa: PLC0415 - text needs none of it

        return explanations_to_json(self.explanations, self.near)


def _explain(
    evidence: EvidenceMatch, lines: log.LogLines | None, files: Sequence[Path], places: CatalogueLocations
) -> _Unmatched:
    """Explain a log without a documented failure by the words of its messages."""
    if evidence.match.candidates or lines is None:
        return _Unmatched()
    from repros.cli.shared.signatures import load_words  # noqa: PLC0415 - a match needs none of it
    from repros.diagnose.messages import explain  # noqa: PLC0415 - a match needs none of it

    explanations = explain(evidence.match.failures, lines)
    if len(files) == 1 and files[0].suffix == ".py" and not evidence.match.failures:
        return _Unmatched(script=files[0])
    if not explanations:
        return _Unmatched()
    ruled_out = {out.entry.repro.id for out in evidence.match.ruled_out}
    near = load_words(places).find(explanations[0].link.raised.message)
    return _Unmatched(explanations, tuple(failure for failure in near if failure.id not in ruled_out))


def _to_json(evidence: EvidenceMatch, unmatched: _Unmatched) -> dict[str, Any]:
    from repros.diagnose.match.hang.json_format import hang_to_json  # noqa: PLC0415 - text needs none of it
    from repros.diagnose.match.json_format import match_to_json  # noqa: PLC0415 - the same

    hangs = list(map(hang_to_json, evidence.hangs))
    return {**match_to_json(evidence.match), **unmatched.to_json(), "hangs": hangs}


def _report(evidence: EvidenceMatch, unmatched: _Unmatched, width: int, *, verbose: bool) -> Text:
    """Return the whole report: the hangs, then the documented failures, if there is a log or a candidate.

    After a hang, a log without an exception has nothing more to say.
    """
    parts = []
    if evidence.hangs:
        from repros.diagnose.match.hang.text import format_hang  # noqa: PLC0415 - few logs have a hang

        parts += [format_hang(hang, width) for hang in evidence.hangs]
    if (evidence.has_log and (evidence.match.failures or not evidence.hangs)) or evidence.match.candidates:
        from repros.diagnose.match.text import format_match  # noqa: PLC0415 - JSON needs none of it

        shown = unmatched.lines(width)
        parts.append(format_match(evidence.match, width, shown, show_ruled_out=verbose))
    return Text("\n\n").join(parts)


def _repros(places: CatalogueLocations) -> Iterator[Repro]:
    """Yield all repros, which are read only for a hang: it has no message by which the index finds them."""
    yield from read_catalogue(places)


def _log_name(file: Path) -> str:
    return str(file) if file != Path("-") else "the input"


def _read_log(file: Path) -> bytes:
    if file != Path("-"):
        return log.read_file(file)
    if sys.stdin.isatty():
        echo("reading a log from the terminal; end it with Ctrl-D", err=True)
    return log.read_stream(sys.stdin.buffer)
