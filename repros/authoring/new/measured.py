"""Header values and symptom of a new repro, derived from runs of a script."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator, Mapping, Sequence

from packaging.utils import canonicalize_name
from packaging.version import Version

from repros.authoring.new.form import FAILING_TABLE, REPRO_TABLE, FilledForm, HeaderKey, Value
from repros.authoring.new.split import split_script
from repros.engine.signature import normalise
from repros.model.errors import ReprosError
from repros.scripts.try_.needs import Needs
from repros.scripts.try_.outcome import Status
from repros.scripts.try_.run import ScriptRun
from repros.scripts.try_.task import TaskOptions

_FAILED = {Status.EXCEPTION, Status.EXIT, Status.SIGNAL, Status.HANG}
_FRAME = re.compile(r"(?P<file>.+):\d+ (?P<function>.+)")
_CONTROL = re.compile(r"\x1b\[[0-9;]*[A-Za-z]|[\x00-\x08\x0b-\x1f\x7f]")
_LONGEST_MATCH, _LONGEST_SIGNATURE = 160, 200
_TORCH = "torch>=2.0"


def form_of(
    source: str,
    name: str,
    needs: Needs,
    options: TaskOptions,
    runs: Sequence[ScriptRun],
    thread: str | None,
    title: str,
) -> FilledForm:
    """Return a form filled from a script and the outcomes of its runs.

    Symptom, cause and fix in an author's words keep the texts of the template, which `repros check` reports.

    Args:
        source: source of the script.
        name: file name of the script, as in frames.
        needs: dependencies of the script.
        options: options of the runs.
        runs: the runs; the first failure is the documented one.
        thread: address of the report.
        title: title of the failure.

    Raises:
        ReprosError: no run failed.
    """
    home = next((run for run in runs if run.outcome.status in _FAILED), None)
    if home is None:
        ran = ", ".join(run.stack for run in runs) or "no stack"
        raise ReprosError(f"the script fails on none of the stacks ({ran}); name one on which it does with --stack.")
    alike = {run.stack: _is_alike(run, home) for run in runs}
    package = _package(home, name, needs)
    affected = _affected(package, home, runs, alike)
    repro: dict[str, Value] = {
        "title": title,
        "upstream.reports": [thread] if thread else [],
        "packages": [package],
        "affected": affected,
        "home": home.stack,
        "strategies": ["ddp" if options.ranks > 1 and not options.own else "auto"],
        "devices": ["cpu" if options.gpus is None else "sim"],
        "processes": options.ranks,
        **({"cold": ["auto"]} if options.own else {}),
        "silent": _is_silent(home, name),
    }
    if not thread:
        del repro["upstream.reports"]
    values = {HeaderKey(REPRO_TABLE, key): value for key, value in repro.items()}
    values[HeaderKey("", "dependencies")] = [
        _TORCH if package == "torch" else package for package in needs.packages or ("torch",)
    ]
    values |= {HeaderKey(FAILING_TABLE, key): value for key, value in _signature(home, name)}
    parts = split_script(source, several_ranks=options.ranks > 1 and not options.own)
    sections = {"Symptom": _symptom(home, runs, alike)}
    return FilledForm(None, title, values, sections, {"failing": parts.body}, parts.definitions)


def _is_alike(run: ScriptRun, home: ScriptRun) -> bool | None:
    """Return whether a run failed like the documented one; None if its failure is unrelated.

    In another release the rest of a message may differ; the part that the header takes must match.
    """
    if run.outcome.status is Status.CLEAN:
        return False
    if run.outcome.signature == home.outcome.signature:
        return True
    if not run.outcome.chain or not home.outcome.chain:
        return None
    raised, documented = run.outcome.chain[0], home.outcome.chain[0]
    text = normalise(_match(documented.message))
    return True if raised.type == documented.type and text and text in normalise(raised.message) else None


def _signature(home: ScriptRun, name: str) -> Iterator[tuple[str, Value]]:
    """Yield the keys of the header for the outcome."""
    outcome = home.outcome
    if outcome.status is not Status.EXCEPTION:
        yield "ends", outcome.signature or ""
        return
    raised = outcome.chain[0]
    yield "raises", raised.type
    yield "match", _match(raised.message) or raised.type
    found = _FRAME.fullmatch(raised.frames[-1]) if raised.frames else None
    if found and found["file"] != name and re.fullmatch(r"[A-Za-z_]\w*", found["function"]):
        yield "frames", [found["function"]]


def _match(message: str) -> str:
    """Return the first line of a message, up to a control sequence."""
    parts = (part.strip() for line in message.splitlines() for part in _CONTROL.split(line))
    return next((part for part in parts if part), "")[:_LONGEST_MATCH]


def _package(home: ScriptRun, name: str, needs: Needs) -> str:
    """Return the package of the innermost call if the script depends on it, else its first dependency."""
    frames = [frame for link in home.outcome.chain[:1] for frame in link.frames if not frame.startswith(f"{name}:")]
    known = {canonicalize_name(package): package for package in needs.packages}
    for frame in reversed(frames):
        top = canonicalize_name(frame.partition("/")[0])
        if top in known:
            return known[top]
    return next(iter(needs.packages), "torch")


def _affected(package: str, home: ScriptRun, runs: Sequence[ScriptRun], alike: Mapping[str, bool | None]) -> list[str]:
    """Return the affected range between clean releases of the package, or else of another one."""
    for name in dict.fromkeys((package, *home.versions)):
        shown = {
            Version(run.versions[name]): is_alike
            for run in runs
            if (is_alike := alike[run.stack]) is not None and name in run.versions
        }
        releases = measured_range(shown)
        if releases is not None:
            return [f"{name}{releases}"] if releases else []
    return []


def measured_range(shown: Mapping[Version, bool]) -> str | None:
    """Return the affected releases as a specifier, from the first failing one to the next clean one.

    Args:
        shown: whether each release fails.

    Returns:
        An empty text if all fail; None if a clean release lies between failing ones.
    """
    failing = [release for release, fails in shown.items() if fails]
    clean = sorted(release for release, fails in shown.items() if not fails)
    if not failing or any(min(failing) <= release <= max(failing) for release in clean):
        return None
    begin = f">={min(failing).base_version}" if any(release < min(failing) for release in clean) else ""
    after = next((release for release in clean if release > max(failing)), None)
    return ",".join(filter(None, [begin, f"<{after.base_version}" if after else ""]))


def _is_silent(home: ScriptRun, name: str) -> bool:
    """Return whether the script itself asserts on a result."""
    raised = home.outcome.chain[0] if home.outcome.chain else None
    return raised is not None and raised.type == "AssertionError" and raised.frames[-1].startswith(f"{name}:")


def _symptom(home: ScriptRun, runs: Sequence[ScriptRun], alike: Mapping[str, bool | None]) -> str:
    """Return a sentence with the signature and the releases with and without it."""
    where = {True: list[str](), False: list[str]()}
    for run in runs:
        if (is_alike := alike[run.stack]) is not None:
            packages = ", ".join(f"{name} {version}" for name, version in run.versions.items())
            where[is_alike].append(f"{packages} ({run.stack})")
    text = textwrap.shorten(_CONTROL.sub("", home.outcome.signature or ""), _LONGEST_SIGNATURE, placeholder=" ...")
    clean = f"; clean with {'; '.join(where[False])}" if where[False] else ""
    return f"`{text}` with {'; '.join(where[True])}{clean}."
