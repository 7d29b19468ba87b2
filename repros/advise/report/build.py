"""Build an issue report from the catalogue's description of a failure and the observations on this machine.

The catalogue's text is public. Every observation is redacted, field by field.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from repros.advise.export import pins, script
from repros.advise.report.redact import MachineIdentity, Redactor
from repros.advise.report.tracebacks import ScriptVersions, last_traceback
from repros.engine.record import RecordLine, is_own_environment
from repros.engine.stacks import load_stacks
from repros.model import ExpectedOutcome, FailureKind, Repro, Role, Stack, Upstream, Variant, Verdict
from repros.model.settings import CATALOGUE, PACKAGE, CatalogueLocations

Collect = Callable[[RecordLine], tuple[str, str | None]]
"""Takes a record line; returns the output of `torch.utils.collect_env` in its environment, and the reason if empty."""


@dataclass(frozen=True)
class VariantSummary:
    """A variant, as the catalogue describes it."""

    name: str
    role: Role
    about: str
    claim: str | None
    source: str | None


@dataclass(frozen=True)
class ReportedFailure:
    """A failure, as the catalogue describes it."""

    id: str
    title: str
    silent: bool
    path: str
    """The script's path in this repository; for a user's own script, its file name."""
    packages: tuple[str, ...]
    affected: tuple[str, ...]
    """Version ranges; empty if no release is known to be unaffected."""
    measurable: tuple[str, ...]
    """The packages, each with the releases on which the script runs: `torch>=2.4`."""
    kind: FailureKind
    documented: str | None
    """The address that documents the behaviour, if it is no bug."""
    upstream: Upstream
    sections: Mapping[str, str]
    """The docstring's paragraphs: `Symptom`, `Cause`, `Fix`."""
    variants: Mapping[str, VariantSummary]
    script: str
    """The script's text, pinned to the versions of the run."""


@dataclass(frozen=True)
class RunSummary:
    """A cell's result."""

    variant: str
    strategy: str
    device: str
    environment: str
    """The name of one of the report's environments."""
    processes: int | None
    launch: str | None
    expected: str
    """`fails` or `passes`, for these versions."""
    affected: bool
    """Whether these versions are in the documented range."""
    verdict: str
    signature: str | None
    """The normalised failure; None if there is none."""
    reason: str


@dataclass(frozen=True)
class ProbedEnvironment:
    """What a report says of an environment."""

    python: str
    platform: str
    versions: Mapping[str, str]
    collect_env: str
    """The output of `torch.utils.collect_env`."""
    collect_env_problem: str | None
    """The reason if that output is empty."""


@dataclass(frozen=True)
class EnvironmentSummary(ProbedEnvironment):
    """A probed environment with its name."""

    name: str
    """A stack's name, or `own environment`."""
    stack: bool


@dataclass(frozen=True)
class IssueReport:
    """The report about one repro."""

    failure: ReportedFailure
    environments: tuple[EnvironmentSummary, ...]
    runs: tuple[RunSummary, ...]
    traceback: str
    """The end of a failing rank's log; empty if nothing failed or the logs are deleted."""


def build(
    repro: Repro,
    lines: Iterable[RecordLine],
    collect: Collect,
    identity: MachineIdentity,
    places: CatalogueLocations = PACKAGE,
) -> IssueReport:
    """Build the redacted report of a repro from its record lines.

    Args:
        repro: the repro.
        lines: its lines of a results file, the last line of each cell.
        collect: describes the environment of a line.
        identity: facts about this machine that must not appear.
        places: the catalogues in use, with the stacks that the lines may name.
    """
    order = [variant.name for variant in repro.variants]
    known = [line for line in lines if line["variant"] in order]
    # In the order of the variants: cells that run at the same time end in any order.
    ordered = sorted(known, key=lambda line: order.index(line["variant"]))
    names = _environment_names(ordered)
    first_lines = {line["stack"]["name"]: line for line in reversed(ordered)}
    environments = tuple(_summarise_environment(names[name], first_lines[name], collect) for name in names)
    failure = _describe_failure(repro, ordered, load_stacks(places))
    public = repro.path.is_relative_to(CATALOGUE)
    redactor = Redactor(identity, failure.script if public else "")
    shown = failure if public else redactor.redact_value(failure)
    failed = sorted(filter(shows_failure, ordered), key=lambda line: line["variant"] != "failing")
    scripts = ScriptVersions.of(repro, failure.path, shown.script)
    return IssueReport(
        shown,
        redactor.redact_value(environments),
        redactor.redact_value(tuple(_summarise_run(line, names) for line in ordered)),
        last_traceback((Path(line["logs"] or "") for line in failed), scripts, redactor),
    )


def shows_failure(line: RecordLine) -> bool:
    """Return whether a failure was observed in a line's cell."""
    return line.get("signature") is not None and Verdict(line["verdict"]) is not Verdict.INFRA


def _describe_failure(repro: Repro, lines: Sequence[RecordLine], stacks: Mapping[str, Stack]) -> ReportedFailure:
    return ReportedFailure(
        id=repro.id,
        title=repro.title,
        silent=repro.silent,
        path=_public_path(repro),
        packages=repro.packages,
        affected=tuple(map(str, repro.affected)),
        measurable=repro.measurable,
        kind=repro.kind,
        documented=repro.documented,
        upstream=repro.upstream,
        sections=repro.sections or {"Symptom": " ".join(repro.doc.split())},
        variants={variant.name: _summarise_variant(variant) for variant in repro.variants},
        script=_pinned_script(repro, lines, stacks),
    )


def _public_path(repro: Repro) -> str:
    if repro.path.is_relative_to(CATALOGUE):
        return f"repros/catalogue/{repro.path.relative_to(CATALOGUE)}"
    return repro.path.name


def _pinned_script(repro: Repro, lines: Sequence[RecordLine], stacks: Mapping[str, Stack]) -> str:
    """Return a script with `failing`, `fixed` and the variants of the lines, pinned to versions on which it failed."""
    environment = next(filter(shows_failure, lines), lines[0])["stack"]
    stack = stacks.get(environment["name"])
    try:
        pinned = (
            pins.pins_of_stack(repro, stack, measured=True)
            if stack
            else pins.pins_of_versions(repro, environment["versions"], environment["python"])
        )
        return script.export_for_report(repro, pinned, (line["variant"] for line in lines))
    except pins.ExportError:  # a user's script in a form that cannot be exported
        return repro.path.read_text(encoding="utf-8")


def _summarise_variant(variant: Variant) -> VariantSummary:
    return VariantSummary(variant.name, variant.role, variant.about, variant.claim, variant.source)


def _environment_names(lines: Iterable[RecordLine]) -> dict[str, str]:
    """Return the public name of each environment: a stack's name, or `own environment` for the user's."""
    is_own = {line["stack"]["name"]: is_own_environment(line) for line in lines}
    own = [name for name in is_own if is_own[name]]
    public = {name: f"own environment{f' {own.index(name) + 1}' if len(own) > 1 else ''}" for name in own}
    return {name: public.get(name, name) for name in is_own}


def _summarise_environment(name: str, line: RecordLine, collect: Collect) -> EnvironmentSummary:
    environment = line["stack"]
    output, problem = collect(line)
    return EnvironmentSummary(
        name=name,
        stack=not is_own_environment(line),
        python=environment["python"],
        platform=line.get("platform", ""),
        versions=environment["versions"],
        collect_env=output,
        collect_env_problem=problem,
    )


def _summarise_run(line: RecordLine, names: Mapping[str, str]) -> RunSummary:
    expected: Mapping[str, object] = line.get("expected", {})
    return RunSummary(
        variant=line["variant"],
        strategy=line["strategy"],
        device=line["device"],
        environment=names[line["stack"]["name"]],
        processes=line.get("processes"),
        launch=line.get("launch"),
        expected=str(expected.get("outcome", ExpectedOutcome.FAILS.value)),
        affected=bool(expected.get("affected", True)),
        verdict=line["verdict"],
        signature=line.get("signature"),
        reason=line["reason"],
    )
