"""The generated parts of `docs/watch.md`, which `python -m tools.measure.watch_table` writes into it.

The table of findings comes from the measurements in `tests/diagnose/watch/measured.jsonl`, those of reported errors and
of healthy programs from `reported.json` and `foreign.jsonl` in the same folder, the table of costs from the recorded
benchmark, the section of each family of checks from its module's docstring, and what older releases lack from
`since.toml`.
"""

from __future__ import annotations

import importlib
import inspect
import json
import re
import textwrap
import tomllib
from collections.abc import Collection, Iterable, Iterator, Mapping
from itertools import groupby
from pathlib import Path
from typing import Any

from repros.diagnose.watch.identify import checks_of
from repros.diagnose.watch.inside.check import Check
from repros.diagnose.watch.inside.checks import families
from repros.engine import catalogue
from repros.simulated_gpus.tools.page import fill_part
from repros.text.wording import count
from tools.bench.kept import read_kept as read_bench
from tools.bench.watched import watch_rows
from tools.docs.generator import run_generator
from tools.measure.foreign_programs.programs import read_programs
from tools.measure.foreign_programs.traincheck import is_found, read_errors, results_of
from tools.measure.foreign_programs.under_watch import KEPT as FOREIGN
from tools.measure.watch_catalogue import read_kept
from tools.measure.watch_reported import read_reported
from tools.measure.watch_since import table as since_table

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs/watch.md"

ELSEWHERE = ROOT / "tests/diagnose/watch/elsewhere.toml"
"""Findings in scripts of the catalogue that are right, and neither their own failure nor named after `Watch`."""


def read_elsewhere() -> set[tuple[str, str]]:
    """Return the findings of `elsewhere.toml`, by repro and check."""
    return {(repro, check) for repro, checks in tomllib.loads(ELSEWHERE.read_text("utf-8")).items() for check in checks}


_WIDTH = 120
_REPOSITORY = "https://github.com/OrderLab/TrainCheck-Evaluation-Workloads"
_SCRIPTS = f"{_REPOSITORY}/tree/main/silent-issue-detection/bug-reprod-scripts"


def table(lines: list[dict[str, Any]]) -> str:
    """Return the table of silent failures in Markdown: a row for each variant that was run, and the counts before."""
    lines = [line for line in lines if line["silent"]]
    rows = ["| Repro | Variant | Stack | Fails | Found | Named | Step |", "|---|---|---|---|---|---|---|"]
    for line in sorted(lines, key=lambda one: (one["repro"], one["stack"])):
        wanted = [finding for finding in line["found"] if finding["check"] in line["expected"]]
        others = [finding["check"] for finding in line["found"] if finding["check"] not in line["expected"]]
        found = ", ".join([*(finding["check"] for finding in wanted), *(f"({name})" for name in others)])
        ids = [finding["ids"][0] for finding in wanted if finding["ids"]]
        steps = [str(finding["step"]) for finding in wanted if finding["step"]]
        is_missed = line["fails"] and not wanted
        missed = "" if not is_missed else "**missed**" if line["expected"] else "not named"
        cells = [
            *(line["repro"], line["variant"], line["stack"], "yes" if line["fails"] else ""),
            *(" ".join(filter(None, [found, missed])), ", ".join(ids), ", ".join(steps)),
        ]
        rows.append(f"| {' | '.join(cells)} |")
    return f"{_counts(lines)}\n\n" + "\n".join(rows) + "\n"


def is_named(line: dict[str, Any]) -> bool:
    """Return whether an expected check has reported, with the right id first."""
    return any(
        finding["check"] in line["expected"] and finding["ids"][:1] == [line["repro"]] for finding in line["found"]
    )


def _counts(lines: list[dict[str, Any]]) -> str:
    failing, others = ([line for line in lines if line["fails"] is fails] for fails in (True, False))
    quiet = sum(all(finding["check"] in line["expected"] for finding in line["found"]) for line in others)
    return (
        f"{sum(map(is_named, failing))} of {len(failing)} runs of failing variants are named with the right id first;"
        f" {quiet} of {len(others)} other runs give no finding."
    )


def loud_table(lines: list[dict[str, Any]]) -> str:
    """Return the table of the failures that raise something: a row for each repro and stack where a variant fails."""
    lines = [line for line in lines if not line["silent"]]
    failing = [line for line in lines if line["fails"]]
    rows = ["| Repro | Stack | Named | Found by | Not named |", "|---|---|---|---|---|"]
    for repro, name in sorted({(line["repro"], line["stack"]) for line in failing}):
        its = [line for line in failing if (line["repro"], line["stack"]) == (repro, name)]
        checks = dict.fromkeys(
            finding["check"] for line in its for finding in line["found"] if finding["check"] in line["expected"]
        )
        missed = [line["variant"] for line in its if not is_named(line)]
        cells = [repro, name, f"{len(its) - len(missed)} of {len(its)}", ", ".join(checks), ", ".join(missed)]
        rows.append(f"| {' | '.join(cells)} |")
    elsewhere = [
        f"{line['repro']} `{line['variant']}` on {line['stack']} (`{finding['check']}`, {finding['ids'][0]})"
        for line in lines
        for finding in line["found"]
        if not line["fails"] and finding["check"] not in line["expected"]
    ]
    others = f" With one, of another failure that these versions have: {', '.join(elsewhere)}." if elsewhere else ""
    return f"{textwrap.fill(_counts(lines) + others, _WIDTH, break_on_hyphens=False)}\n\n" + "\n".join(rows) + "\n"


def unnamed() -> str:
    """Return what the scripts say of their failing variants that no check names: a row for each script."""
    repros = [repro for repro in catalogue.load().repros if "Watch" in repro.sections]
    rows = [f"| {repro.id} | {repro.sections['Watch'][:1].upper()}{repro.sections['Watch'][1:]} |" for repro in repros]
    return "\n".join(["| Repro | Why the watch does not name it |", "|---|---|", *rows]) + "\n"


HEADINGS = ("What it does", "Why is this bad?", "Example", "Known misses", "Cost")
"""The headings in the docstring of each family of checks, in this order."""


def sections() -> str:
    """Return the sections in Markdown: one for each folder of checks, with one for each family from its docstring."""
    found_by = {
        repro.id: {name for variant in repro.variants for name in checks_of(repro, variant)}
        for repro in catalogue.load().repros
    }
    lines: list[str] = []
    by_folder = groupby(families(), key=lambda family: family.__name__.rpartition(".")[0])
    for folder, its in by_folder:
        lines += [f"## {(inspect.getdoc(importlib.import_module(folder)) or '').rstrip('.')}", ""]
        for family in its:
            lines += _section(inspect.getdoc(family) or "", family.CHECKS, found_by)
    return "\n".join(lines)


def parts_of(docstring: str) -> dict[str, str]:
    """Return the texts of a family's docstring by their headings."""
    _, *parts = re.split(r"^## ", docstring, flags=re.MULTILINE)
    return {heading: text.strip() for heading, _, text in (part.partition("\n") for part in parts)}


def _section(docstring: str, checks: Iterable[Check], found_by: Mapping[str, Collection[str]]) -> Iterator[str]:
    """Yield the lines of a section; `found_by` has the names of the checks that find a repro's variants, by id."""
    title = docstring.partition("\n")[0]
    yield f"### {title.rstrip('.')}\n"
    yield "| Check | What has happened | Repros |\n|---|---|---|"
    for check in checks:
        ids = [id_ for id_, names in found_by.items() if check.name in names]
        yield f"| `{check.name}` | {check.about} | {', '.join(ids)} |"
    yield ""
    for heading, text in parts_of(docstring).items():
        item = f"* **{heading.rstrip('?')}{'?' if heading.endswith('?') else '.'}** {' '.join(text.split())}"
        yield textwrap.fill(item, _WIDTH, subsequent_indent="  ", break_on_hyphens=False, break_long_words=False)
    yield ""


def reported() -> str:
    """Return the table of errors that were reported in public, and how many are found."""
    rows = read_reported()
    lines = ["| Error | Found | Why not |", "|---|---|---|"]
    lines += [f"| [{row['error']}]({row['thread']}) | {', '.join(row['found'])} | {row['reason']} |" for row in rows]
    return f"{sum(bool(row['found']) for row in rows)} of {len(rows)} are found.\n\n" + "\n".join(lines) + "\n"


def foreign() -> str:
    """Return the table of the healthy programs that ended well and trained, and the findings in those that are not."""
    lines = [json.loads(line) for line in FOREIGN.read_text("utf-8").splitlines()]
    defects = {(program.source, program.name): program.defect for program in read_programs() if program.defect}
    ended = [line for line in lines if line["exit"] == 0 and line["trained"]]
    ran = [line for line in ended if (line["source"], line["program"]) not in defects]
    head = (
        f"{len(ran)} programs, {sum(line['trained'] > 1 for line in ran)} of them on several processes, gave"
        f" {sum(len(line['findings']) for line in ran)} findings.\n\n"
    )
    rows = ["| From | Version | Programs | Findings |", "|---|---|---|---|"]
    releases = {(line["source"], _release(line)) for line in ran}
    for source, version in sorted(releases, key=lambda one: (one[0].lower(), one[1])):
        its = [line for line in ran if (line["source"], _release(line)) == (source, version)]
        link = f"[{source}](https://github.com/{source})" if "/" in source else source
        names = ", ".join(sorted(line["program"] for line in its))
        rows.append(f"| {link} | {version} | {names} | {sum(len(line['findings']) for line in its)} |")
    named = [
        f"{line['source']} {line['program']}: `{'`, `'.join(line['findings'])}` is right; {defect}."
        for line in ended
        for defect in [defects.get((line["source"], line["program"]))]
        if defect
    ]
    tail = "\n".join(["", "Not healthy, and not counted:", "", *(f"* {words}" for words in named), ""]) if named else ""
    return head + "\n".join(rows) + "\n" + tail


def _release(line: dict[str, Any]) -> str:
    """Return the version of a program, and those of the libraries that it ran with where the result has them."""
    version = line["version"][:12] if "/" in line["source"] else line["version"].split()[-1]
    libraries = line.get("libraries")
    return f"{version} with {', '.join([*libraries, line['stack']])}" if libraries else version


def traincheck() -> str:
    """Return the table of the errors that TrainCheck's authors have published, and how many are found."""
    errors = read_errors()
    lines = ["| Error | What is wrong | Programs | With it | Without | Why not |", "|---|---|---|---|---|---|"]
    for error in errors:
        failing, fixed = results_of(error, "failing"), results_of(error, "fixed")
        programs = dict.fromkeys(f"{_short(line)} ({line['stack']})" for line in (*failing, *fixed))
        reported = dict.fromkeys(name for line in failing for name in line["findings"])
        in_fixed = "" if not fixed else ", ".join(name for line in fixed for name in line["findings"]) or "no finding"
        name = f"[{error.name}]({_SCRIPTS}/{error.name})"
        cells = [name, error.about, "; ".join(programs), ", ".join(reported), in_fixed, error.reason]
        lines.append(f"| {' | '.join(cells)} |")
    found = sum(map(is_found, errors))
    return (
        f"{found} of {len(errors)} are found, and their fixed programs give no finding.\n\n" + "\n".join(lines) + "\n"
    )


def _short(line: dict[str, Any]) -> str:
    if "/" in line["source"]:
        return f"`{line['program'].partition(' ')[2]}`"
    own = "" if line["source"] == "torch" else f" of {line['version']}"
    return f"`{line['program'].removesuffix(' failing').removesuffix(' fixed')}`{own}"


def cost(part: str) -> str:
    """Return the table of what the watch costs, or `--first-nan` with it (`first_nan`), from the kept benchmark."""
    kept = read_bench()[part]
    rounds = min(timing["rounds"] for timing in kept["networks"].values())
    where = f"{kept['machine']['processors']} processors, {count(rounds, 'round')}, {kept['at'][:10]}"
    busy = ", while other programs used the machine as well" if kept["machine"]["busy"] else ""
    head, *body = watch_rows(kept)
    lines = [head, ["---"] * len(head), *body]
    return f"Measured on {where}{busy}.\n\n" + "".join(f"| {' | '.join(line)} |\n" for line in lines)


def fill(page: str) -> str:
    """Return the page with each generated part between its marks."""
    parts = {
        "since": since_table(),
        "cost": cost("watch"),
        "first_nan_cost": cost("first_nan"),
    }
    for name, body in parts.items():
        page = fill_part(page, name, body)
    return page


def read_measured() -> list[dict[str, Any]]:
    """Return the measurements, each with the checks that its header says will find it (`expected`)."""
    repros = {repro.id: repro for repro in catalogue.load()}
    lines = list(read_kept().values())
    for line in lines:
        repro = repros[line["repro"]]
        variant = repro.variant(line["variant"])
        line["expected"] = list(checks_of(repro, variant)) if line["fails"] and variant is not None else []
    return lines


if __name__ == "__main__":
    about = "Write what the watch needs and costs into docs/watch.md."
    run_generator("tools.measure.watch_table", about, PAGE, fill)
