"""One repro in full: what fails, why, what helps, what is said to help and does not, and how to see it."""

from __future__ import annotations

from collections.abc import Iterator

from rich.text import Text

from repros.model import Outcome, Repro, Variant
from repros.model.requirements import format_requirement
from repros.text.difference import difference
from repros.text.wording import count, relative_to_cwd, wrap

_MARGIN = 10
_DIFF = {"+": "green", "-": "red", "@": "cyan"}


def text(repro: Repro, width: int) -> Text:
    """Return the whole description.

    Args:
        repro: which one.
        width: columns that the reader has.
    """
    parts = [*_head(repro, width), *_sections(repro, width)]
    parts += [Text(), Text("Variants", "bold")]
    for variant in repro.variants:
        parts += _variant(repro, variant, width)
    parts += [Text(), Text("Upstream", "bold"), *(Text(f"  {link}") for link in repro.upstream)]
    if changed := difference(repro.path):
        parts += [Text(), Text("From failing to fixed", "bold")]
        parts += [Text(f"  {line}", _DIFF.get(line[:1], "")) for line in changed]
    return Text("\n").join([*parts, Text(), *_commands(repro)])


def role(variant: Variant) -> str:
    """Return what a variant is to a reader: `fails`, `works`, or `does not fix`."""
    if variant.outcome is Outcome.PASSES:
        return "works"
    return "does not fix" if variant.claim else "fails"


def _head(repro: Repro, width: int) -> Iterator[Text]:
    title = wrap(f"{repro.id} {repro.title}", width, hanging=" " * 9)
    yield from (Text(line, "bold") for line in title)
    failing = repro.variant("failing")
    assert failing is not None  # the header guarantees it
    ranges = ", ".join(map(format_requirement, repro.affected)) or f"every release of {', '.join(repro.packages)}"
    facts = {
        "affects": f"{ranges}; exact on stack {repro.home}",
        "runs": f"{', '.join(repro.strategies)} on {', '.join(repro.devices)}, {count(repro.processes, 'rank')}",
        "needs": ", ".join(dict.fromkeys(map(format_requirement, [*repro.dependencies, *repro.requires]))),
        "shows": f"{failing.signature}{' (silent: the script asserts on it)' if repro.silent else ''}",
    }
    for label, fact in facts.items():
        yield from _entry(label, fact, width)


def _sections(repro: Repro, width: int) -> Iterator[Text]:
    """Yield the docstring's labelled paragraphs, or the whole docstring if it has no labels."""
    sections = repro.sections
    if not sections:
        yield Text()
        yield Text(repro.doc)
    for label, section in sections.items():
        yield Text()
        yield from _entry(label.lower(), section, width)


def _variant(repro: Repro, variant: Variant, width: int) -> Iterator[Text]:
    """One way to run it; only what is not the repro's own is said again."""
    style = {"works": "green", "fails": "red", "does not fix": "magenta"}[role(variant)]
    head = Text(f"  {variant.name}: ")
    head.append(role(variant), style)
    yield head
    failing = repro.variant("failing")
    said = [variant.about]
    if variant.claim:
        said.append(f"claim: {variant.claim}")
    if failing and variant.signature != failing.signature:
        said.append(f"shows {variant.signature}")
    if variant.strategies != repro.strategies:
        said.append(f"only under {', '.join(variant.strategies)}")
    if own := [format_requirement(needed) for needed in variant.requires if needed not in repro.requires]:
        said.append(f"needs {', '.join(own)}")
    if variant.source:
        said.append(variant.source)
    indent = " " * 4
    for part in said:
        yield from map(Text, wrap(part, width, indent))


def _commands(repro: Repro) -> Iterator[Text]:
    yield Text("Run it", "bold")
    yield Text(f"  repros run {repro.id}")
    yield Text(f"  repros run {repro.id} --python PATH   # your environment, as it is")
    by_hand = f"python {relative_to_cwd(repro.path)} failing {repro.strategies[0]}"
    devices = [device for device in repro.devices if device != "sim"]
    if devices:
        yield Text(f"  {by_hand} {devices[0]}")


def _entry(label: str, body: str, width: int) -> Iterator[Text]:
    """Set a label in the margin of a wrapped paragraph."""
    indent = " " * _MARGIN
    for number, line in enumerate(wrap(body, width, indent)):
        shown = Text(f"{'' if number else label:<{_MARGIN}}{line[_MARGIN:]}")
        shown.stylize("dim", 0, _MARGIN)
        yield shown
