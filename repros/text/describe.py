"""The complete description of a repro: symptom, cause, fixes, claims that do not hold, and commands."""

from __future__ import annotations

import shlex
from collections.abc import Iterator

from repros.engine.variant_diff import variant_diff
from repros.model import Repro, Role, Variant
from repros.model.affected import affected_text
from repros.model.packages import format_requirement
from repros.text.layout import entry, heading
from repros.text.styled import Text
from repros.text.threads import kind_text, thread_groups
from repros.text.wording import count, own_requirements, relative_to_cwd, wrap

_ROLES = {Role.WORKS: "green", Role.FAILS: "red", Role.DOES_NOT_FIX: "magenta", Role.CONTRAST: "yellow"}
_DIFF = {"+": "green", "-": "red", "@": "cyan"}


def describe(repro: Repro, width: int) -> Text:
    """Return the description that `repros show` prints, in at most `width` columns except for long words."""
    parts = [*_heading_lines(repro, width), *_section_lines(repro, width)]
    parts += [Text(), Text("Variants", "bold")]
    for variant in repro.variants:
        parts += _variant_lines(repro, variant, width)
    parts += [Text(), Text("Upstream", "bold")]
    for label, links in thread_groups(repro.upstream):
        parts += [Text(f"  {label}"), *(Text(f"    {link}") for link in links)]
    if diff := variant_diff(repro.path):
        parts += [Text(), Text("From failing to fixed", "bold")]
        parts += [Text(f"  {line}", _DIFF.get(line[:1], "")) for line in diff]
    return Text("\n").join([*parts, Text(), *_command_lines(repro)])


def _heading_lines(repro: Repro, width: int) -> Iterator[Text]:
    yield from heading(repro.id, repro.title, width)
    entries = {
        "kind": kind_text(repro.kind, repro.documented),
        "affects": f"{affected_text(repro.affected, repro.measurable)}; exact on stack {repro.home}",
        **({"exists": f"in {affected_text(repro.exists)}, see {repro.exists_source}"} if repro.exists else {}),
        "runs": f"{', '.join(repro.strategies)} on {', '.join(repro.devices)}, {count(repro.processes, 'rank')}",
        "needs": ", ".join(dict.fromkeys(map(format_requirement, [*repro.dependencies, *repro.requires]))),
        "shows": f"{repro.failing.signature}{' (silent: the script asserts on it)' if repro.silent else ''}",
    }
    for label, body in entries.items():
        yield from entry(label, body, width)


def _section_lines(repro: Repro, width: int) -> Iterator[Text]:
    """Yield the docstring's labelled paragraphs, or the whole docstring if it has no labels."""
    sections = repro.sections
    if not sections:
        yield Text()
        yield Text(repro.doc)
    for label, section in sections.items():
        yield Text()
        yield from entry(label.lower(), section, width)


def _variant_lines(repro: Repro, variant: Variant, width: int) -> Iterator[Text]:
    """Yield a variant's name, role and description, and the values that differ from the repro's."""
    head = Text(f"  {variant.name}: ")
    head.append(variant.role, _ROLES[variant.role])
    yield head
    parts = [variant.about]
    if variant.claim:
        parts.append(f"claim: {variant.claim}")
    if variant.signature != repro.failing.signature:
        parts.append(f"shows {variant.signature}")
    if variant.strategies != repro.strategies:
        parts.append(f"only under {', '.join(variant.strategies)}")
    if own := own_requirements(repro, variant):
        parts.append(f"needs {', '.join(own)}")
    if variant.source:
        parts.append(variant.source)
    indent = " " * 4
    for part in parts:
        yield from map(Text, wrap(part, width, indent))


def _command_lines(repro: Repro) -> Iterator[Text]:
    where = "".join(f" {shlex.quote(word)}" for word in repro.origin.words)
    yield Text("Run it", "bold")
    yield Text(f"  repros run {repro.id}{where}")
    yield Text(f"  repros run {repro.id}{where} --python PATH   # in your environment")
    by_hand = f"python {relative_to_cwd(repro.path)} failing {repro.strategies[0]}"
    devices = [device for device in repro.devices if device != "sim"]
    if devices:
        yield Text(f"  {by_hand} {devices[0]}")
