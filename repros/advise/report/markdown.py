"""An issue report as a Markdown block, with the headings of the upstream bug form.

Everything observed is formatted as code, so that GitHub does not turn it into mentions, links or tags.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from enum import StrEnum
from typing import TypeVar

from repros import __version__
from repros.advise.report.build import (
    EnvironmentSummary,
    IssueReport,
    ProbedEnvironment,
    RunSummary,
    VariantSummary,
)
from repros.model import Device, Role, Verdict
from repros.model.affected import affected_text
from repros.text.threads import kind_text, thread_groups

DEVICES = {
    Device.CUDA: "a real GPU.",
    Device.SIM: "a simulated accelerator, **not a GPU**: host memory instead of `cuda` (collectives "
    "over Gloo) that checks devices as CUDA's operators do. It is evidence about the Python code of the libraries, "
    "not about CUDA kernels, NCCL, streams, speed or memory.",
    Device.CPU: "host tensors, collectives over Gloo; no accelerator is involved.",
}
_VERDICTS = {
    Verdict.REPRODUCED: "reproduced: it failed as documented",
    Verdict.CLEAN: "clean: it completed",
    Verdict.GONE: "gone: it completed, although these versions are documented to fail",
    Verdict.REGRESSED: "regressed: it failed as documented, although these versions are documented as unaffected",
    Verdict.UNFIXED: "unfixed: it failed as documented, although the variant is a fix",
    Verdict.DIFFERENT: "different: it failed in another way than documented",
    Verdict.FLAKY: "flaky: repeated runs ended differently",
    Verdict.UNAVAILABLE: "not run",
    Verdict.INFRA: "could not be judged",
}


class Form(StrEnum):
    """The bug form with the headings."""

    LIGHTNING = "lightning"
    """Lightning's `bug_report.yaml`; its headings suit any other project too."""
    PYTORCH = "pytorch"
    """PyTorch's `bug-report.yml`."""


R = TypeVar("R")
Section = Callable[[IssueReport], Iterator[str]]
"""Yields the paragraphs of one section."""


def markdown(report: IssueReport, form: Form | None = None) -> str:
    """Return the block.

    Args:
        report: the report, already redacted.
        form: the bug form; the default depends on the packages of the failure.
    """
    if form is None:
        form = Form.PYTORCH if set(report.failure.packages) == {"torch"} else Form.LIGHTNING
    return fill_form(_FORMS[form], report)


def short_markdown(report: IssueReport) -> str:
    """Return a comment for a thread: what failed where, the runs, and the command; neither form nor environments."""
    failure = report.failure
    first = next((run for run in report.runs if run.signature is not None), report.runs[0])
    runs = [part for part in _errors(report) if part != code_block(report.traceback)]
    fix = [failure.sections["Fix"]] if "Fix" in failure.sections else []
    parts = [f"**{failure.title}** ({failure.id} of repros {__version__})", *runs, *fix, code(_command(report, first))]
    return "\n\n".join(parts) + "\n"


def fill_form(headings: Iterable[tuple[str, Sequence[Callable[[R], Iterator[str]]]]], report: R) -> str:
    """Return the block of a report: below each heading the paragraphs of its sections."""
    parts = []
    for heading, sections in headings:
        parts += [f"### {heading}", *(part for section in sections for part in section(report))]
    return "\n\n".join(parts) + "\n"


def _description(report: IssueReport) -> Iterator[str]:
    failure = report.failure
    yield f"**{failure.title}.**{' Silent: a wrong result, without an error.' if failure.silent else ''}"
    for label in ("Symptom", "Cause"):
        if paragraph := failure.sections.get(label):
            yield paragraph[0].upper() + paragraph[1:]
    for environment in report.environments:
        failing = [run for run in report.runs if run.variant == "failing" and run.environment == environment.name]
        if failing:
            yield f"On {_environment_name(environment)}: {', '.join(dict.fromkeys(_headline(run) for run in failing))}."


def _headline(run: RunSummary) -> str:
    verdict = Verdict(run.verdict)
    where = f"under {run.strategy} on {run.device}"
    if verdict is Verdict.REPRODUCED:
        return f"**reproduced** {where}"
    if verdict is Verdict.CLEAN and not run.affected:
        return f"**not affected**: outside the documented range, and clean {where}"
    if verdict is Verdict.UNAVAILABLE:
        return f"not run {where} ({code(run.reason)})"
    return f"**{_VERDICTS[verdict]}** {where}"


def _versions_line(report: IssueReport) -> Iterator[str]:
    for environment in report.environments:
        versions = ", ".join(f"{name} {version}" for name, version in sorted(environment.versions.items()))
        yield f"{code(versions or 'unknown')} on {_environment_name(environment)}"
    ranges = affected_text(report.failure.affected, report.failure.measurable, quote="`")
    yield f"Documented as affected: {ranges}."


def _steps(report: IssueReport) -> Iterator[str]:
    failure = report.failure
    first = next((run for run in report.runs if run.signature is not None), report.runs[0])
    command = code(_command(report, first))
    name = f"{failure.id.lower().replace('-', '_')}.py"
    if first.device == Device.SIM:
        yield f"On a machine with a GPU: `uv run {name}`. Without one, on a simulated accelerator: {command}"
    else:
        yield f"`uv run {name}`, or with repros {__version__}: {command}"
    yield details(name, code_block(failure.script.strip("\n"), "python"))


def _command(report: IssueReport, run: RunSummary) -> str:
    environment = next(environment for environment in report.environments if environment.name == run.environment)
    where = f"--stack {environment.name}" if environment.stack else "--python PATH"
    return f"repros run {report.failure.id} --strategy {run.strategy} --device {run.device} {where}"


def _errors(report: IssueReport) -> Iterator[str]:
    several = len(report.environments) > 1
    ran = [run for run in report.runs if Verdict(run.verdict) is not Verdict.UNAVAILABLE]
    if ran:
        heads = ["variant", "strategy", "device", *(["on"] if several else []), "verdict", "seen"]
        rows = [heads, ["---"] * len(heads), *(_row(run, several=several) for run in ran)]
        yield "\n".join(f"| {' | '.join(row)} |" for row in rows)
    missing = [run for run in report.runs if Verdict(run.verdict) is Verdict.UNAVAILABLE]
    reasons = dict.fromkeys((run.device, run.reason) for run in missing)
    for device, reason in reasons:
        yield f"Not run on {device}: {code(reason)}"
    if report.traceback:
        yield code_block(report.traceback)


def _row(run: RunSummary, *, several: bool) -> list[str]:
    observed = run.signature or run.reason
    where = [run.environment] if several else []
    return [f"`{run.variant}`", run.strategy, run.device, *where, f"**{run.verdict}**", table_code(observed)]


def _environments(report: IssueReport) -> Iterator[str]:
    for environment in report.environments:
        yield from describe_environment(_environment_name(environment).capitalize(), environment)


def describe_environment(name: str, environment: ProbedEnvironment) -> Iterator[str]:
    """Yield the paragraphs about an environment, below its name."""
    values = {
        "python": environment.python,
        **dict(sorted(environment.versions.items())),
        "platform": environment.platform,
    }
    yield f"{name}:"
    yield code_block("\n".join(f"{name}: {value}" for name, value in values.items()))
    if environment.collect_env:
        yield details("torch.utils.collect_env", code_block(environment.collect_env))
    elif environment.collect_env_problem:
        yield f"`torch.utils.collect_env`: no output, because {code(environment.collect_env_problem)}."


def _more(report: IssueReport) -> Iterator[str]:
    devices = dict.fromkeys(run.device for run in report.runs if Verdict(run.verdict) is not Verdict.UNAVAILABLE)
    if devices:
        yield "\n".join(["Devices it was run on:", *(f"- `{device}`: {DEVICES[Device(device)]}" for device in devices)])
    if fix := report.failure.sections.get("Fix"):
        yield f"Fix: {fix}"
    works = [variant for variant in report.failure.variants.values() if variant.role == Role.WORKS]
    if works:
        yield "\n".join(["Workarounds:", *(_variant_line(variant, report.runs) for variant in works)])
    claims = [variant for variant in report.failure.variants.values() if variant.role == Role.DOES_NOT_FIX]
    if claims:
        yield "\n".join(
            ["Documented elsewhere, but does not work:", *(_variant_line(variant, report.runs) for variant in claims)]
        )
    failure = report.failure
    threads = "; ".join(" ".join([label, *links]) for label, links in thread_groups(failure.upstream))
    kind = kind_text(failure.kind, failure.documented)
    yield f"{failure.id} of repros {__version__}, `{failure.path}`. Kind: {kind}. Known threads: {threads}"


def _variant_line(variant: VariantSummary, runs: Sequence[RunSummary]) -> str:
    own = [run for run in runs if run.variant == variant.name and Verdict(run.verdict) is not Verdict.UNAVAILABLE]
    source = f" ({variant.source})" if variant.source else ""
    claim = f' ("{variant.claim}")' if variant.claim else ""
    return f"- `{variant.name}`{claim}: {variant.about}{source}. {_observation(variant, own)}"


def _observation(variant: VariantSummary, runs: Sequence[RunSummary]) -> str:
    """Return the evidence of the runs for a variant; a fix on unaffected versions is no evidence."""
    if not runs:
        return "Not run here."
    expected = Verdict.CLEAN if variant.role == Role.WORKS else Verdict.REPRODUCED
    where = ", ".join(dict.fromkeys(f"{run.strategy} on {run.device}, {run.environment}" for run in runs))
    others = [run for run in runs if Verdict(run.verdict) is not expected]
    if others and not any(run.affected for run in others):
        others = [run for run in others if Verdict(run.verdict) is not Verdict.CLEAN]
    if others:
        verdicts = dict.fromkeys(_VERDICTS[Verdict(run.verdict)] for run in others)
        return f"**Not confirmed here**: {', '.join(verdicts)} ({where})."
    if not any(run.affected for run in runs):
        return f"Completed here, which is no evidence: these versions are not affected ({where})."
    return f"**{'Verified' if variant.role == Role.WORKS else 'Confirmed'} here** ({where})."


def _environment_name(environment: EnvironmentSummary) -> str:
    return f"stack {environment.name} of repros" if environment.stack else f"the reporter's {environment.name}"


def code(text: str) -> str:
    """Return text as inline code, even if it has backticks."""
    flat = " ".join(text.split())
    fence = "`" * (max((len(run) for run in re.findall(r"`+", flat)), default=0) + 1)
    edge = " " if "`" in flat else ""
    return f"{fence}{edge}{flat}{edge}{fence}"


def table_code(text: str) -> str:
    """Return text as code in a table's cell, in which bars must be escaped even in code."""
    return code(text).replace("|", r"\|")


def code_block(text: str, language: str = "") -> str:
    """Return text as a code block, even if it has fences."""
    fence = "`" * max(3, 1 + max((len(run) for run in re.findall(r"`+", text)), default=0))
    return f"{fence}{language}\n{text}\n{fence}"


def details(title: str, body: str) -> str:
    """Return a collapsed section."""
    return f"<details><summary>{title}</summary>\n\n{body}\n\n</details>"


_FORMS: Mapping[Form, Sequence[tuple[str, Sequence[Section]]]] = {
    Form.LIGHTNING: (
        ("Bug description", [_description]),
        ("What version are you seeing the problem on?", [_versions_line]),
        ("How to reproduce the bug", [_steps]),
        ("Error messages and logs", [_errors]),
        ("Environment", [_environments]),
        ("More info", [_more]),
    ),
    Form.PYTORCH: (
        ("🐛 Describe the bug", [_description, _steps, _errors, _more]),
        ("Versions", [_versions_line, _environments]),
    ),
}
