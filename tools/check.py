"""This checkout's steps of `repros check`, configured in pyproject.toml: `python -m tools.check STEP ID ...`.

Each prints what is left to do, one sentence per line, and exits with 1; or prints one line and exits with 0.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from repros.authoring.check.project_steps import MEASURED, Ran
from repros.engine import environments
from repros.engine.catalogue import load
from repros.engine.stacks import stack
from repros.model import Repro
from tools.pages import write_pages
from tools.script_tests import run_tests

ROOT = Path(__file__).parents[1]
INSTALL = "python -m pip install --editable . --group tests"
"""Installs a contributor's tools, from pip 25.1 on."""
_SHOWN_STACKS = ("--stack", "home", "--stack", "current")
"""Options of `tools.measure.watch_catalogue`: the stacks whose findings `docs/watch.md` shows."""


def check_style(repros: Sequence[Repro]) -> Ran:
    """Fix the style of scripts, and report each rule of the linter that they still break."""
    if find_spec("ruff") is None:
        return Ran([f"install ruff, which checks the style: {INSTALL}"])
    paths = [str(repro.path) for repro in repros]
    checked = _run("ruff", "check", "--fix", "--quiet", "--output-format", "concise", *paths)
    _run("ruff", "format", "--quiet", *paths)
    problems = (checked.stdout + checked.stderr).splitlines()
    return Ran([f"fix the style: {line}" for line in problems], "ruff finds nothing")


def _run(module: str, *words: str) -> subprocess.CompletedProcess[str]:
    """Run a module in the checkout."""
    return subprocess.run([sys.executable, "-m", module, *words], cwd=ROOT, capture_output=True, text=True, check=False)


def check_watch(repros: Sequence[Repro]) -> Ran:
    """Run the variants under the watch and record its findings in `tests/diagnose/watch/measured.jsonl`.

    A variant with recorded findings is run again only if the check has measured its script again.
    """
    names = sorted({repro.home for repro in repros} | {"current"})
    if missing := [name for name in names if not environments.ready(stack(name))]:
        return Ran([ask_for_stacks(repros, names, missing)])
    measured = os.environ.get(MEASURED, "").split()
    again = [repro.id for repro in repros if repro.id in measured]
    others = [repro.id for repro in repros if repro.id not in measured]
    lines: list[dict[str, Any]] = []
    for words in (again, ["--missing", *others] if others else []):
        if words:
            done = _run("tools.measure.watch_catalogue", *_SHOWN_STACKS, "--keep", "--jobs", "2", *words)
            lines += map(json.loads, done.stdout.splitlines())
            if done.returncode:
                last_line = done.stderr.strip().rpartition("\n")[2]
                return Ran([f"fix the runs under the watch: {last_line}"], "", done.stderr)
    fine = f"findings of {len(lines)} runs recorded" if lines else "the findings of all runs are recorded"
    return Ran([*explain_missed_failures(repros, lines)], fine)


def ask_for_stacks(repros: Sequence[Repro], names: Sequence[str], missing: Sequence[str]) -> str:
    """Return a sentence with the command that makes the missing stacks."""
    ids = " ".join(repro.id for repro in repros)
    chosen = " ".join(f"--stack {name}" for name in names)
    return f"run them under the watch on {', '.join(missing)} too: repros check {ids} {chosen}"


def explain_missed_failures(repros: Iterable[Repro], lines: Iterable[Mapping[str, Any]]) -> Iterator[str]:
    """Yield a sentence for each failing variant that the watch does not identify, unless its script explains why.

    Args:
        repros: the scripts.
        lines: runs under the watch, as `tools.measure.watch_catalogue` writes them.
    """
    reasons = {repro.id: repro.sections.get("Watch", "") for repro in repros}
    reported: dict[str, dict[str, None]] = {}
    for line in lines:
        if line["fails"] and all(finding["ids"][:1] != [line["repro"]] for finding in line["found"]):
            checks = reported.setdefault(f"{line['repro']}/{line['variant']}", {})
            checks.update(dict.fromkeys(finding["check"] for finding in line["found"]))
    for name, checks in reported.items():
        reason = reasons[name.partition("/")[0]]
        if reason and all(f"`{check}`" in reason for check in checks):
            continue
        report = f"the watch reports {', '.join(checks) or 'nothing'} for {name}"
        specific = "name in finds the check that only this failure triggers, or " if checks else ""
        yield f"{report}: {specific}explain after 'Watch:' in the docstring why no check identifies it"


def check_pages(_repros: Sequence[Repro]) -> Ran:
    """Write the generated parts of the pages."""
    changed, problems = write_pages(ROOT)
    return Ran(problems, f"written: {', '.join(changed)}" if changed else "the pages are up to date")


def check_tests(repros: Sequence[Repro]) -> Ran:
    """Run the tests that concern the scripts."""
    if find_spec("pytest") is None:
        return Ran([f"install what the tests need: {INSTALL}"])
    ran = run_tests(repros, ROOT)
    if ran.passed:
        return Ran([], ran.last_line)
    is_missing = "No module named" in ran.output
    sentence = f"install what they need: {INSTALL}" if is_missing else f"fix the tests: {ran.last_line}"
    return Ran([sentence], "", ran.output)


def name_files(_repros: Sequence[Repro]) -> Ran:
    """Name the files that have changed since the last commit: the script, and what the steps have written."""
    done = subprocess.run(("git", "status", "--short"), cwd=ROOT, capture_output=True, text=True, check=False)  # noqa: S607
    if done.returncode:
        return Ran([], "not listed: this is no git checkout")
    names = [line[3:] for line in done.stdout.splitlines()]
    return Ran([], f"commit these: {', '.join(names)}" if names else "all is committed")


STEPS: Mapping[str, Callable[[Sequence[Repro]], Ran]] = {
    "style": check_style,
    "watch": check_watch,
    "pages": check_pages,
    "tests": check_tests,
    "files": name_files,
}


def main() -> None:
    """Run one step for the scripts with these ids."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("step", choices=STEPS)
    parser.add_argument("ids", nargs="+", metavar="ID")
    options = parser.parse_args()
    catalogue = load()
    report = STEPS[options.step]([catalogue.find(id_) for id_ in options.ids])
    sys.stderr.write(report.output)
    sys.stdout.write("".join(f"{line}\n" for line in report.to_do or [report.fine]))
    sys.exit(bool(report.to_do))


if __name__ == "__main__":
    main()
