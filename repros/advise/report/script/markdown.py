"""The report about a script as a Markdown block, with the headings of the upstream bug form."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Iterator, Mapping, Sequence

from repros import __version__
from repros.advise.report.markdown import DEVICES, Form, code, code_block, describe_environment, fill_form, table_code
from repros.advise.report.script import ScriptReport, ScriptRunSummary

_LONGEST = 200
"""Characters of a signature."""


def script_markdown(report: ScriptReport, form: Form | None = None) -> str:
    """Return the block with the headings of a bug form: PyTorch's if torch is the script's only dependency."""
    if form is None:
        form = Form.PYTORCH if set(report.packages) <= {"torch"} else Form.LIGHTNING
    return fill_form(_FORMS[form], report)


def _description(report: ScriptReport) -> Iterator[str]:
    failed = report.failed
    if failed is None:
        yield "The script below exits cleanly on every stack."
    else:
        at = f", in {code(failed.places[-1])}" if failed.places else ""
        yield f"The script below ends with {code(_short(failed.signature or ''))}{at}."


def _steps(report: ScriptReport) -> Iterator[str]:
    yield f"{code(report.command)}, where `{report.name}` is:"
    yield code_block(report.source.strip("\n"), "python")


def _endings(report: ScriptReport) -> Iterator[str]:
    rows = [("with", "ends", "seen"), ("---", "---", "---")]
    rows += [(table_code(_versions(run)), f"**{run.ending}**", _seen(run)) for run in report.runs]
    yield "\n".join(f"| {' | '.join(row)} |" for row in rows)
    failed = report.failed
    if failed is not None and failed.traceback:
        yield f"With {code(_versions(failed))}:"
        yield code_block(failed.traceback)
    elif failed is not None and failed.places:
        yield code_block("\n".join(failed.places))


def _seen(run: ScriptRunSummary) -> str:
    """Return the failure, or the last line that was printed."""
    seen = _short(run.signature) if run.signature else next(reversed(run.printed), "")
    return table_code(seen) if seen else ""


def _environments(report: ScriptReport) -> Iterator[str]:
    for run in report.runs:
        yield from describe_environment(f"Stack {run.stack} of repros {__version__}", run)


def _device(report: ScriptReport) -> Iterator[str]:
    yield f"It was run on `{report.device}`: {DEVICES[report.device]}"


def _versions_lines(report: ScriptReport) -> Iterator[str]:
    yield "\n".join(f"- {code(_versions(run))}: {run.ending}" for run in report.runs)


def _short(signature: str) -> str:
    """Return the start of a signature; the traceback has the complete message."""
    return textwrap.shorten(signature, _LONGEST, placeholder=" ...")


def _versions(run: ScriptRunSummary) -> str:
    return ", ".join(f"{name} {version}" for name, version in run.versions.items())


_FORMS: Mapping[Form, Sequence[tuple[str, Sequence[Callable[[ScriptReport], Iterator[str]]]]]] = {
    Form.LIGHTNING: (
        ("Bug description", [_description]),
        ("What version are you seeing the problem on?", [_versions_lines]),
        ("How to reproduce the bug", [_steps]),
        ("Error messages and logs", [_endings]),
        ("Environment", [_environments]),
        ("More info", [_device]),
    ),
    Form.PYTORCH: (
        ("🐛 Describe the bug", [_description, _steps, _endings, _device]),
        ("Versions", [_environments]),
    ),
}
