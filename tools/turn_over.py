"""Rename a measured stack to `current`: `python -m tools.turn_over NAME`.

Run `repros stacks new NAME` and `repros matrix --stack NAME` first. The former `current` gets its own name if it has
another torch, a failure with another outcome, or cells that can no longer be measured; the name is then updated in all
recorded data. Otherwise the new releases replace it. Nothing is measured again, since the inputs of a measurement are
the pins of a stack, not its name.
"""

from __future__ import annotations

import argparse
import re
import shutil
import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from repros.engine import evidence
from repros.engine.catalogue import load
from repros.engine.environments.releases import fetch_files
from repros.engine.evidence import Evidence
from repros.engine.matrix.changes import find_changes, find_unmeasured
from repros.engine.stacks import is_private, load_stacks, pick
from repros.engine.stacks.write import remove_stack, write_stack
from repros.model import Stack
from repros.model.catalogue import Catalogue
from repros.model.errors import ReprosError
from repros.model.settings import EVIDENCE
from tools.number import ROOT, list_files
from tools.pages import write_pages

NEWEST = "current"
_SEEN = (
    "repros/catalogue/",
    "repros/evidence/bisections/",
    "tools/bench/kept.json",
    "tests/diagnose/match/golden/",
    "tests/diagnose/watch/measured.jsonl",
)
"""Files and folders with recorded data that name a stack."""


def turn_over(name: str, root: Path = ROOT) -> Iterator[str]:
    """Make `current` of a measured stack, and yield a sentence for each step.

    Raises:
        ReprosError: the stack is unknown, `current`, private or not measured, or the checkout is not a Git repository.
    """
    stacks, known, catalogue = load_stacks(), evidence.read(EVIDENCE), load()
    new, former = pick(stacks, name), pick(stacks, NEWEST)
    if new is former or is_private(new):
        raise ReprosError(f"{name} cannot become {NEWEST!r}; expected another stack of the package.")
    if not any(unit.stack == name for unit in known):
        raise ReprosError(f"nothing is measured on {name}; run: repros matrix --stack {name}")
    if reason := find_loss(former, new, catalogue, known):
        kept = choose_name(former, tuple(stacks))
        about = f"the newest releases of {former.until}, with torch {_torch(former)}"
        rename(former, replace(former, name=kept, about=about), known)
        changed = [file for file in list_files(root) if rename_in(file, root, kept)]
        yield f"what {NEWEST} was is {kept}: {reason} (files that named it: {len(changed)})"
    else:
        remove(former)
        yield f"{NEWEST} keeps its torch, and every failure ends as before: what it was is not kept"
    rename(new, replace(new, name=NEWEST, about=former.about), known)
    yield f"{name} is {NEWEST}"


def find_loss(former: Stack, new: Stack, catalogue: Catalogue, known: Evidence) -> str | None:
    """Return why what `current` was must be kept; None if the new stack shows all of it."""
    if _torch(former) != _torch(new):
        return f"it has torch {_torch(former)}, and not {_torch(new)}"
    if changes := find_changes(catalogue, known, former.name, new.name):
        return f"{', '.join(dict.fromkeys(change.repro.id for change in changes))} ended differently there"
    if gaps := find_unmeasured(catalogue, known, former.name, new.name):
        return f"{gaps[0]} was measured there alone"
    return None


def choose_name(former: Stack, taken: tuple[str, ...]) -> str:
    """Return the month of a stack's torch, or if another stack has that name, its last day.

    Raises:
        ReprosError: both are taken, or the index does not answer, or gives no dates.
    """
    version = _torch(former)
    days = [file.uploaded for file in fetch_files("torch") if file.name.startswith(f"torch-{version}-")]
    month = f"{min(days):%Y-%m}" if days else None
    for name in (month, former.until.isoformat()):
        if name is not None and name not in taken:
            return name
    raise ReprosError(f"{month} and {former.until} are stacks already; rename one of them.")


def rename(old: Stack, new: Stack, known: Evidence) -> None:
    """Move a stack's files and its evidence to another name."""
    moved = replace(new, lock=old.lock.with_name(f"{new.name}.lock.txt"))
    text = old.lock.read_text(encoding="utf-8").replace(f"of stack {old.name} on", f"of stack {new.name} on", 1)
    measured = [found for unit, found in known.items() if unit.stack == old.name]
    write_stack(moved, text)
    evidence.write([replace(found, unit=replace(found.unit, stack=new.name)) for found in measured])
    remove(old)


def rename_in(file: Path, root: Path, name: str) -> bool:
    """Replace `current` with a stack's name in a file of recorded data; return whether it was there."""
    place = str(file.relative_to(root))
    if not place.startswith(_SEEN):
        return False
    if file.suffix == ".log":
        after, before = "", ""  # what a program printed
    else:
        before = file.read_text(encoding="utf-8")
        pattern = rf'^(# home = "){NEWEST}(")$' if file.suffix == ".py" else rf'(["\s-]){NEWEST}(")'
        after = re.sub(pattern, rf"\g<1>{name}\g<2>", before, flags=re.MULTILINE)
    if after != before:
        file.write_text(after, encoding="utf-8")
    if moved := file.name.endswith((f"-{NEWEST}.log", f"-{NEWEST}.json")):
        file.rename(file.with_name(f"{file.stem.removesuffix(NEWEST)}{name}{file.suffix}"))
    return moved or after != before


def remove(stack: Stack) -> None:
    """Remove a stack's files and its evidence."""
    shutil.rmtree(EVIDENCE / stack.name, ignore_errors=True)
    remove_stack(stack)


def _torch(stack: Stack) -> str:
    return stack.pins["torch"].version


def main(arguments: Sequence[str]) -> None:
    """Rename a measured stack to `current`, write the pages, and print the changes."""
    parser = argparse.ArgumentParser(prog="python -m tools.turn_over", description=main.__doc__)
    parser.add_argument("name", metavar="NAME", help="a stack of `repros stacks new`, measured by `repros matrix`")
    name = parser.parse_args(arguments).name
    try:
        for line in turn_over(name):
            sys.stdout.write(f"{line}\n")
    except ReprosError as error:
        parser.error(str(error))
    changed, problems = write_pages(ROOT)
    sys.stdout.write(f"written: {', '.join(changed)}\n" if changed else "")
    if problems:
        sys.exit("\n".join(problems))


if __name__ == "__main__":
    main(sys.argv[1:])
