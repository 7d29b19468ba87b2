"""A statement as one block of Markdown, under the headings that upstream's bug form asks for.

Everything observed stands in code, so that GitHub shows it as it is: no mention, no link, no tag comes out of it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from enum import StrEnum

from repros import __version__
from repros.issue.build import Held, Run, Statement, Way
from repros.model import Device, Verdict

_TIERS = {
    Device.CUDA: "a real GPU.",
    Device.SIM: "a simulated accelerator, **not a GPU**: a PyTorch device in host memory (`PrivateUse1`, collectives "
    "over Gloo) that checks devices as CUDA's operators do. It is evidence about the Python of the libraries; "
    "it says nothing about CUDA kernels, NCCL, streams, speed or memory.",
    Device.CPU: "host tensors, collectives over Gloo; no accelerator is involved.",
}
_SEEN = {
    Verdict.REPRODUCED: "reproduced: it failed as documented",
    Verdict.CLEAN: "clean: it ran to its end",
    Verdict.GONE: "gone: these versions are documented to fail, and it ran to its end",
    Verdict.REGRESSED: "regressed: it failed as documented, although these versions are documented as free of it",
    Verdict.UNFIXED: "unfixed: it failed as documented, although the variant is a fix",
    Verdict.DIFFERENT: "different: it failed otherwise than documented",
    Verdict.FLAKY: "flaky: it did not always end the same way",
    Verdict.UNAVAILABLE: "not run",
    Verdict.INFRA: "could not be judged",
}


class Form(StrEnum):
    """Whose bug form the headings are."""

    LIGHTNING = "lightning"
    """Lightning's `bug_report.yaml`; plain enough for any other project."""
    PYTORCH = "pytorch"
    """PyTorch's `bug-report.yml`."""


Section = Callable[[Statement], Iterator[str]]
"""Yields the paragraphs of one section."""


def markdown(statement: Statement, form: Form | None = None) -> str:
    """Return the block.

    Args:
        statement: what is to be said, redacted already.
        form: whose headings; by default those of the project that the failure is in.
    """
    if form is None:
        form = Form.PYTORCH if set(statement.failure.packages) == {"torch"} else Form.LIGHTNING
    parts = []
    for heading, sections in _FORMS[form]:
        parts += [f"### {heading}", *(part for section in sections for part in section(statement))]
    return "\n\n".join(parts) + "\n"


def _description(statement: Statement) -> Iterator[str]:
    failure = statement.failure
    yield f"**{failure.title}.**{' Silent: a wrong result, without an error.' if failure.silent else ''}"
    for label in ("Symptom", "Cause"):
        if text := failure.sections.get(label):
            yield text[0].upper() + text[1:]
    for held in statement.environments:
        failing = [run for run in statement.runs if run.variant == "failing" and run.environment == held.name]
        if failing:
            yield f"On {_called(held)}: {', '.join(dict.fromkeys(_headline(run) for run in failing))}."


def _headline(run: Run) -> str:
    verdict = Verdict(run.verdict)
    where = f"under {run.strategy} on {run.device}"
    if verdict is Verdict.REPRODUCED:
        return f"**reproduced** {where}"
    if verdict is Verdict.CLEAN and not run.affected:
        return f"**not affected**: outside the documented range, and clean {where}"
    if verdict is Verdict.UNAVAILABLE:
        return f"not run {where} ({_code(run.reason)})"
    return f"**{_SEEN[verdict]}** {where}"


def _versions_line(statement: Statement) -> Iterator[str]:
    for held in statement.environments:
        held_there = ", ".join(f"{name} {version}" for name, version in sorted(held.versions.items()))
        yield f"{_code(held_there or 'unknown')} on {_called(held)}"
    ranges = ", ".join(map(_code, statement.failure.affected))
    every = f"every release of {', '.join(statement.failure.packages)}"
    yield f"Documented as affected: {ranges or every}."


def _steps(statement: Statement) -> Iterator[str]:
    failure = statement.failure
    first = next((run for run in statement.runs if run.signature is not None), statement.runs[0])
    command = _code(_command(statement, first))
    name = f"{failure.id.lower().replace('-', '_')}.py"
    if first.device == Device.SIM:
        yield f"On a machine with a GPU: `uv run {name}`. Without one, on a simulated accelerator: {command}"
    else:
        yield f"`uv run {name}`, or with repros {__version__}: {command}"
    yield _folded(name, _fenced(failure.script.strip("\n"), "python"))


def _command(statement: Statement, run: Run) -> str:
    held = next(held for held in statement.environments if held.name == run.environment)
    where = f"--stack {held.name}" if held.stack else "--python PATH"
    return f"repros run {statement.failure.id} --strategy {run.strategy} --device {run.device} {where}"


def _errors(statement: Statement) -> Iterator[str]:
    several = len(statement.environments) > 1
    ran = [run for run in statement.runs if Verdict(run.verdict) is not Verdict.UNAVAILABLE]
    if ran:
        heads = ["variant", "strategy", "device", *(["on"] if several else []), "verdict", "seen"]
        rows = [heads, ["---"] * len(heads), *(_row(run, several=several) for run in ran)]
        yield "\n".join(f"| {' | '.join(row)} |" for row in rows)
    missing = [run for run in statement.runs if Verdict(run.verdict) is Verdict.UNAVAILABLE]
    reasons = dict.fromkeys((run.device, run.reason) for run in missing)
    for device, reason in reasons:
        yield f"Not run on {device}: {_code(reason)}"
    if statement.traceback:
        yield _fenced(statement.traceback)


def _row(run: Run, *, several: bool) -> list[str]:
    seen = run.signature or run.reason
    where = [run.environment] if several else []
    return [f"`{run.variant}`", run.strategy, run.device, *where, f"**{run.verdict}**", _cell(seen)]


def _environment(statement: Statement) -> Iterator[str]:
    for held in statement.environments:
        facts = {"python": held.python, **dict(sorted(held.versions.items())), "platform": held.platform}
        yield f"{_called(held).capitalize()}:"
        yield _fenced("\n".join(f"{name}: {value}" for name, value in facts.items()))
        if held.collected:
            yield _folded("torch.utils.collect_env", _fenced(held.collected))
        else:
            yield f"`torch.utils.collect_env`: nothing, since {_code(held.uncollected or 'it was not asked')}."


def _more(statement: Statement) -> Iterator[str]:
    devices = dict.fromkeys(run.device for run in statement.runs if Verdict(run.verdict) is not Verdict.UNAVAILABLE)
    if devices:
        yield "\n".join(["What it was run on:", *(f"- `{device}`: {_TIERS[Device(device)]}" for device in devices)])
    if fix := statement.failure.sections.get("Fix"):
        yield f"Fix: {fix}"
    works = [way for way in statement.failure.ways.values() if way.role == "works"]
    if works:
        yield "\n".join(["Workarounds:", *(_way(way, statement.runs) for way in works)])
    claims = [way for way in statement.failure.ways.values() if way.role == "does not fix"]
    if claims:
        yield "\n".join(["Documented elsewhere, and not working:", *(_way(way, statement.runs) for way in claims)])
    failure = statement.failure
    yield f"{failure.id} of repros {__version__}, `{failure.place}`. Known threads: {' '.join(failure.upstream)}"


def _way(way: Way, runs: Sequence[Run]) -> str:
    own = [run for run in runs if run.variant == way.name and Verdict(run.verdict) is not Verdict.UNAVAILABLE]
    source = f" ({way.source})" if way.source else ""
    claim = f' ("{way.claim}")' if way.claim else ""
    return f"- `{way.name}`{claim}: {way.about}{source}. {_verified(way, own)}"


def _verified(way: Way, runs: Sequence[Run]) -> str:
    """Say what was shown of a workaround here; that it passes where nothing fails shows nothing."""
    if not runs:
        return "Not run here."
    wanted = Verdict.CLEAN if way.role == "works" else Verdict.REPRODUCED
    where = ", ".join(dict.fromkeys(f"{run.strategy} on {run.device}, {run.environment}" for run in runs))
    others = [run for run in runs if Verdict(run.verdict) is not wanted]
    if others and not any(run.affected for run in others):
        others = [run for run in others if Verdict(run.verdict) is not Verdict.CLEAN]
    if others:
        return f"**Not so here**: {', '.join(dict.fromkeys(_SEEN[Verdict(run.verdict)] for run in others))} ({where})."
    if not any(run.affected for run in runs):
        return f"Ran clean here, which shows nothing: these versions are not affected ({where})."
    return f"**{'Verified' if way.role == 'works' else 'Seen'} here** ({where})."


def _called(held: Held) -> str:
    return f"stack {held.name} of repros" if held.stack else f"the reporter's {held.name}"


def _code(text: str) -> str:
    """Return text as code in a line, whatever it holds."""
    flat = " ".join(text.split())
    fence = "`" * (max((len(run) for run in re.findall(r"`+", flat)), default=0) + 1)
    edge = " " if "`" in flat else ""
    return f"{fence}{edge}{flat}{edge}{fence}"


def _cell(text: str) -> str:
    """Return text as code in a table's cell, where a bar would end the cell even within code."""
    return _code(text).replace("|", r"\|")


def _fenced(text: str, language: str = "") -> str:
    """Return text as a block of code, whatever fences it holds itself."""
    fence = "`" * max(3, 1 + max((len(run) for run in re.findall(r"`+", text)), default=0))
    return f"{fence}{language}\n{text}\n{fence}"


def _folded(title: str, body: str) -> str:
    return f"<details><summary>{title}</summary>\n\n{body}\n\n</details>"


_FORMS: Mapping[Form, Sequence[tuple[str, Sequence[Section]]]] = {
    Form.LIGHTNING: (
        ("Bug description", [_description]),
        ("What version are you seeing the problem on?", [_versions_line]),
        ("How to reproduce the bug", [_steps]),
        ("Error messages and logs", [_errors]),
        ("Environment", [_environment]),
        ("More info", [_more]),
    ),
    Form.PYTORCH: (
        ("🐛 Describe the bug", [_description, _steps, _errors, _more]),
        ("Versions", [_versions_line, _environment]),
    ),
}
