"""The sections of an answer about a documented failure: cause, fixes with a diff, versions, commands."""

from __future__ import annotations

import ast
import contextlib
import re
import shlex
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from repros.diagnose.match.hints import Hints
from repros.diagnose.match.user_frames import UserFrame
from repros.engine.seen_releases import seen_releases
from repros.engine.source import parse
from repros.model import Repro, Role, Variant
from repros.model.affected import affected_text
from repros.scripts.triage.answer import Answer, Certainty, Section
from repros.scripts.triage.kind import InputKind

NO_HINTS = Hints()
_LONGEST_CODE = 68
"""Characters of a line of a diff: longer ones do not fit next to a label in 80 columns."""
_MOST_CODE = 4
_MOST_OTHERS = 3
_HEAD = re.compile(r"^[+-](?:def|class) \w+(?P<rest>.*)$")


def describe_failure(repro: Repro) -> Answer:
    """Return the answer to an id: the fix with its diff first, then the cause and the affected releases."""
    works = [variant for variant in repro.variants if variant.role is Role.WORKS]
    sections = (
        *fix_sections(repro, works),
        cause_section(repro),
        Section("shows", (str(repro.failing.signature),), most_lines=2),
        Section("affects", (affected_text(repro.affected, () if repro.affected else repro.measurable),), most_lines=2),
        *measured_section(repro),
    )
    return Answer(InputKind.ID, repro.title, Certainty.CERTAIN, repro.id, sections, next_commands(repro))


def cause_section(repro: Repro) -> Section:
    """Return why a failure happens."""
    return Section("because", tuple(filter(None, [repro.sections.get("Cause", "")])), most_lines=3)


def measured_section(repro: Repro) -> Iterator[Section]:
    """Yield the releases with which the failure was measured."""
    package, failing, clean = seen_releases(repro)
    fails = f"fails with {package} {', '.join(failing)}" if failing else ""
    returns = f"not with {'' if failing else f'{package} '}{', '.join(clean)}" if clean else ""
    if fails or returns:
        yield Section("measured", ("; ".join(filter(None, [fails, returns])),), most_lines=2)


def where_section(frame: UserFrame | None) -> Iterator[Section]:
    """Yield `model.py:54 self.pos(torch.arange(n))`, the user's own code, or its function if the log lacks the code."""
    if frame:
        at = f"{frame.file}:{frame.line}" if frame.line else frame.file
        yield Section("where", (f"{at} {frame.code.strip() or f'in {frame.function}'}",), most_lines=2)


def fix_sections(
    repro: Repro, variants: Sequence[Variant], hints: Hints = NO_HINTS, message: str = ""
) -> Iterator[Section]:
    """Yield the recommended fix as a diff if it is short, and the other fixes.

    Args:
        repro: the failure.
        variants: its variants that work.
        hints: those of the failure, with the fixes that have words of the message.
        message: the text of the error.
    """
    if not variants:
        return
    filled = dict(_filled_fixes(hints, message))
    first, *others = sorted(variants, key=lambda variant: (variant.name != "fixed", variant.name not in filled))
    lines = [filled[first.name]] if first.name in filled else _diff_lines(repro, first)
    if message and _names_constant(repro, lines):  # a user with a log has other values
        lines = []
    if lines:
        yield Section("fix", tuple(lines), is_code=True, most_lines=_MOST_CODE)
    else:
        yield Section("fix", (_about(repro, first),), most_lines=2)
    if others:
        texts = [filled.get(variant.name) or _about(repro, variant) for variant in others]
        yield Section("or", tuple(texts), most_lines=_MOST_OTHERS)


def words_of(hints: Hints, message: str) -> dict[str, str]:
    """Return the words of a message that the fixes of a failure name, by their names."""
    found = (re.search(pattern, message) for pattern in hints.reads)
    return {name: value for match in found if match for name, value in match.groupdict().items() if value}


def _filled_fixes(hints: Hints, message: str) -> Iterator[tuple[str, str]]:
    """Yield the variants whose line of code in the hints can be filled with words of the message, with that line."""
    words = words_of(hints, message)
    for variant, template in hints.fixes:
        with contextlib.suppress(KeyError):
            yield variant, template.format_map(words)


def _about(repro: Repro, variant: Variant) -> str:
    needs = ", ".join(map(str, repro.own_requirements(variant)))
    return f"{variant.about} (needs {needs})" if needs else variant.about


def _diff_lines(repro: Repro, variant: Variant) -> list[str]:
    """Return the changed lines between the failing and another variant; empty if they are long or many."""
    from repros.engine.variant_diff import variant_diff  # noqa: PLC0415 - few failures have a short change

    changed = [line for line in variant_diff(repro.path, after=variant.name) if line[:1] in {"-", "+"}]
    heads = [head["rest"] for line in changed if (head := _HEAD.match(line))]
    if len(set(heads)) == 1:  # only the name differs, which is the variant's
        changed = [line for line in changed if not _HEAD.match(line)]
    body = _dedented(changed)
    if not body or len(body) > _MOST_CODE or max(map(len, body)) > _LONGEST_CODE:
        return []
    needs = ", ".join(map(str, repro.own_requirements(variant)))
    note = f"   # {needs}"
    if needs and len(body[-1]) + len(note) <= _LONGEST_CODE:
        body[-1] += note
    return body


def _names_constant(repro: Repro, lines: Iterable[str]) -> bool:
    """Return whether lines of a failure's script name a value that the script has defined at its top level."""
    words = set(re.findall(r"\w+", "\n".join(lines)))
    return bool(words) and not words.isdisjoint(_constants(repro.path))


def _constants(script: Path) -> Iterator[str]:
    for node in parse(script.read_text("utf-8")).body:
        if isinstance(node, ast.Assign):
            yield from (name.id for target in node.targets for name in ast.walk(target) if isinstance(name, ast.Name))


def _dedented(lines: Iterable[str]) -> list[str]:
    """Return lines of a diff without the blanks that all of them have behind their sign."""
    lines = [line for line in lines if line[1:].strip()]
    indent = min((len(line) - 1 - len(line[1:].lstrip()) for line in lines), default=0)
    return [f"{line[0]} {line[1 + indent :]}" for line in lines]


def next_commands(repro: Repro, first: str = "") -> tuple[str, ...]:
    """Return commands about a failure that work as they stand; `python` is the one of the caller's environment."""
    catalogue = "".join(f" {shlex.quote(word)}" for word in repro.origin.words)
    own = [f"repros show {repro.id}{catalogue}", f"repros run {repro.id} --python python{catalogue}"]
    return (*([first] if first else []), *own)
