"""What a check does in a checkout only, for scripts of the package: style, watch, documentation and tests.

A private catalogue has its own; there and in an installed package each of these says that there is nothing to do.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from importlib.util import find_spec
from typing import Any, NamedTuple

from repros.model import Repro
from repros.model.settings import CATALOGUE
from tools.pages import write_pages
from tools.script_tests import run_tests

ROOT = CATALOGUE.parents[1]
INSTALL = "python -m pip install --editable . --group tests"
"""What installs the tools of a contributor, from pip 25.1 on."""
_SHOWN_STACKS = ("--stack", "home", "--stack", "current")
"""Stacks whose findings `docs/watch.md` shows, as `tools.measure.watch_catalogue` names them."""

Found = tuple[Sequence[str], str]
"""What is left to do, and what to say if nothing is."""


class Tested(NamedTuple):
    """What the tests of some scripts found."""

    to_do: Sequence[str]
    fine: str
    output: str = ""


def has_checkout(repros: Sequence[Repro]) -> bool:
    """Return whether these are scripts of the package, in a checkout."""
    return (ROOT / "docs/failures.md").is_file() and all(repro.origin.folder is None for repro in repros)


def problems_of_style(repro: Repro) -> list[str]:
    """Repair the style of a script, and return a sentence for each rule of the linter that it still breaks."""
    if not has_checkout([repro]):
        return []
    if find_spec("ruff") is None:
        return [f"install ruff, which checks the style: {INSTALL}"]
    checked = _run("ruff", "check", "--fix", "--quiet", "--output-format", "concise", str(repro.path))
    _run("ruff", "format", "--quiet", str(repro.path))
    return [f"fix the style: {line}" for line in (checked.stdout + checked.stderr).splitlines()]


def _run(module: str, *words: str) -> subprocess.CompletedProcess[str]:
    """Run a module in the checkout."""
    return subprocess.run([sys.executable, "-m", module, *words], cwd=ROOT, capture_output=True, text=True, check=False)


def watch_runs(
    repros: Sequence[Repro], again: Sequence[Repro], ready: Sequence[str], report_progress: Callable[[str], None]
) -> Found:
    """Run the variants of scripts under the watch and keep what it finds, in `tests/diagnose/watch/measured.jsonl`.

    Args:
        repros: the scripts; variants that were run before are not run again.
        again: those of them whose variants are.
        ready: names of the stacks that can be used.
        report_progress: receives a line of progress.
    """
    if not has_checkout(repros):
        return [], "not run: there is no checkout to keep the findings in"
    if absent := {name for repro in repros for name in (repro.home, "current")} - {*ready}:
        chosen = " ".join(f"--stack {name}" for name in sorted({repro.home for repro in repros} | {"current"}))
        ids = " ".join(repro.id for repro in repros)
        return [f"run them under the watch on {', '.join(sorted(absent))} too: repros check {ids} {chosen}"], ""
    lines: list[dict[str, Any]] = []
    others = [repro.id for repro in repros if repro not in again]
    for words in ([repro.id for repro in again], ["--missing", *others] if others else []):
        if words:
            done = _run("tools.measure.watch_catalogue", *_SHOWN_STACKS, "--keep", "--jobs", "2", *words)
            lines += map(json.loads, done.stdout.splitlines())
            if done.returncode:
                report_progress(done.stderr)
                return [f"fix what stops the runs under the watch: {done.stderr.strip().rpartition(chr(10))[2]}"], ""
    fine = f"findings of {len(lines)} runs are kept" if lines else "the findings of all runs are kept"
    return [*problems_of_findings(repros, lines)], fine


def problems_of_findings(repros: Iterable[Repro], lines: Iterable[Mapping[str, Any]]) -> Iterator[str]:
    """Yield a sentence for each failing variant that the watch does not name, if its script does not say why.

    Args:
        repros: the scripts.
        lines: runs under the watch, as `tools.measure.watch_catalogue` writes them.
    """
    said = {repro.id: repro.sections.get("Watch", "") for repro in repros}
    found: dict[str, dict[str, None]] = {}
    for line in lines:
        if line["fails"] and all(finding["ids"][:1] != [line["repro"]] for finding in line["found"]):
            checks = found.setdefault(f"{line['repro']}/{line['variant']}", {})
            checks.update(dict.fromkeys(finding["check"] for finding in line["found"]))
    for name, checks in found.items():
        reason = said[name.partition("/")[0]]
        if reason and all(f"`{check}`" in reason for check in checks):
            continue
        spoke = f"the watch says {', '.join(checks)} of {name}" if checks else f"the watch says nothing of {name}"
        one = "name the one that only this failure brings about in finds, or " if checks else ""
        yield f"{spoke}: {one}say after 'Watch:' in the docstring why none names it"


def write_documents(repros: Sequence[Repro]) -> Found:
    """Write the generated parts of the pages."""
    if not has_checkout(repros):
        return [], "none to write: the script is not one of a checkout"
    changed, problems = write_pages(ROOT)
    return problems, f"written: {', '.join(changed)}" if changed else "the pages are up to date"


def run_script_tests(repros: Sequence[Repro]) -> Tested:
    """Run the checkout's tests that concern these scripts."""
    if not has_checkout(repros):
        ids = " ".join(f"--repro {repro.id}" for repro in repros)
        return Tested([], f"none here; as tests of your own: python -m pytest {repros[0].path.parent} {ids}")
    if find_spec("pytest") is None:
        return Tested([f"install what the tests need: {INSTALL}"], "")
    ran = run_tests(repros, ROOT)
    if ran.passed:
        return Tested([], ran.last_line)
    way_out = (
        f"install what they need: {INSTALL}" if "No module named" in ran.output else f"fix the tests: {ran.last_line}"
    )
    return Tested([way_out], "", ran.output)
