"""Markdown tables of the failures, their reports, the stacks on which they occur, and what each stack costs."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from statistics import median

from repros.engine.evidence import Evidence, measured_devices, stack_status
from repros.model import Repro, Role, Stack, Upstream
from repros.model.affected import affected_text
from repros.text.threads import thread_groups

_GIGA = 1e9
_FREQUENT = {f"RPR-{number:04}" for number in (1, 3, 4, 5, 6, 11, 17, 22, 24, 33)}
"""Failures that many users report, a selection over libraries and kinds."""
_THREAD = re.compile(r"https://github\.com/[^/]+/(?P<repository>[^/]+)/(?:issues|pull|discussions)/(?P<number>\d+)")


def failures_table(repros: Iterable[Repro], up: str = "") -> str:
    """Return the table of failures, a row for each repro; `up` is the relative path to the checkout."""
    headings = ("Id", "Failure", "Kind", "Affected", "Runs as", "Documented fixes", "Upstream")
    return _markdown_table(headings, (_failure_row(repro, up) for repro in repros))


def frequent_table(repros: Iterable[Repro], up: str = "") -> str:
    """Return the table of the most frequent failures, with the first columns and the fixes."""
    rows = (_failure_row(repro, up) for repro in repros if repro.id in _FREQUENT)
    return _markdown_table(
        ("Id", "Failure", "Kind", "Affected", "Documented fixes"), ((*row[:4], row[5]) for row in rows)
    )


def stacks_table(repros: Iterable[Repro], stacks: Sequence[Stack], known: Evidence) -> str:
    """Return the table of measurements, a row for each repro and a column for each stack."""
    headings = ("Id", "Seen on", *(stack.name for stack in stacks))
    rows = (
        (
            repro.id,
            ", ".join(measured_devices(repro, known)) or "·",
            *(stack_status(repro, stack, known) or "·" for stack in stacks),
        )
        for repro in repros
    )
    return _markdown_table(headings, rows)


def costs_table(stacks: Sequence[Stack], known: Evidence) -> str:
    """Return the table of the matrix's costs, a row for each stack and one with the totals.

    Sizes are those with torch's CUDA build, followed in brackets by those with its CPU build if measured. Durations are
    not included, because each measurement would change the page (:mod:`repros.engine.evidence.ledger` has them).
    """
    headings = ("Stack", "torch", "Lightning", "Cells", "GB to download", "GB on disk")
    costs = [_costs(stack, known) for stack in stacks]
    totals = [sum(column) for column in zip(*costs, strict=True)]
    rows = [_cost_row(stack, amounts) for stack, amounts in zip(stacks, costs, strict=True)]
    return _markdown_table(headings, [*rows, ("all", "", "", *_format_costs(totals))])


def demand_table(repros: Iterable[Repro], up: str = "") -> str:
    """Return the table of public reports: the median number, and a row for each repro, most reports first."""
    reports = {repro: len(repro.upstream.reports) for repro in repros}
    ordered = sorted(reports, key=lambda repro: (-reports[repro], repro.id))
    rows = ((*_failure_row(repro, up)[:3], str(reports[repro])) for repro in ordered)
    middle = f"{median(reports.values()):g}"
    return f"The median of {len(reports)} failures is {middle}.\n\n" + _markdown_table(
        ("Id", "Failure", "Kind", "Reports"), rows
    )


def _markdown_table(headings: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [headings, ("---",) * len(headings), *rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def _failure_row(repro: Repro, up: str) -> tuple[str, ...]:
    roles = Counter(variant.role for variant in repro.variants)
    verbs = {Role.WORKS: ("works", "work"), Role.DOES_NOT_FIX: ("does not", "do not")}
    fixes = [f"{roles[role]} {verb[roles[role] > 1]}" for role, verb in verbs.items() if roles[role]]
    return (
        f"[{repro.id}]({up}repros/catalogue/{repro.family}/{repro.path.name})",
        repro.title.replace("|", r"\|") + (" (silent)" if repro.silent else ""),
        f"[{repro.kind}]({repro.documented})" if repro.documented else repro.kind.value,
        affected_text(repro.affected, repro.measurable, quote="`"),
        f"{', '.join(repro.strategies)} on {', '.join(repro.devices)}",
        ", ".join(fixes),
        "; ".join(_thread_links(repro.upstream)),
    )


def _thread_links(upstream: Upstream) -> Iterator[str]:
    """Yield the links of each group of threads; the repository is named only if it differs from the previous one."""
    previous = ""
    for label, urls in thread_groups(upstream):
        links = []
        for url in urls:
            thread = _THREAD.match(url)
            repository = thread["repository"] if thread else ""
            named = "" if repository == previous else f"{repository} "
            links.append(f"[{named}#{thread['number']}]({url})" if thread else f"<{url}>")
            previous = repository
        yield f"{label} {', '.join(links)}".removeprefix("reported in ").rstrip()


def _costs(stack: Stack, known: Evidence) -> tuple[int, ...]:
    """Return the number of cells, bytes to download and bytes on disk."""
    cells = sum(len(measurement.variants) for unit, measurement in known.items() if unit.stack == stack.name)
    return cells, stack.cuda.download if stack.cuda else 0, stack.cuda.unpacked if stack.cuda else 0


def _cost_row(stack: Stack, costs: Sequence[int]) -> tuple[str, ...]:
    cells, download, unpacked = _format_costs(costs)
    if stack.cpu:
        download += f" ({stack.cpu.download / _GIGA:.1f})"
        unpacked += f" ({stack.cpu.unpacked / _GIGA:.1f})"
    pins = (pinned_version(stack, package) or "·" for package in ("torch", "lightning"))
    return (stack.name, *pins, cells, download, unpacked)


def _format_costs(costs: Sequence[int]) -> list[str]:
    cells, download, unpacked = costs
    return [str(cells), f"{download / _GIGA:.1f}", f"{unpacked / _GIGA:.1f}"]


def pinned_version(stack: Stack, package: str) -> str | None:
    """Return the release, with further bounds, that a stack requires of a package; None if it names no such package."""
    named = (requirement for requirement in stack.requirements if requirement.name == package)
    return next((str(requirement.specifier).removeprefix("==") for requirement in named), None)
