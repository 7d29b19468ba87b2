"""Give scripts with a provisional id their final one: `python -m tools.number`, at the merge.

The id is in the header, evidence, logs, docstrings and further files. It is therefore replaced in the names and
contents of all files, and the generated parts of the pages are updated. An id below 5000 is final.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path

from repros.authoring.new.ids import is_provisional, next_id
from repros.engine import evidence
from repros.engine.catalogue import load
from repros.engine.digest.inputs import inputs
from repros.engine.evidence import Measurement
from repros.engine.stacks import load_stacks
from repros.model.catalogue import Catalogue
from repros.model.errors import ReprosError
from repros.model.settings import CATALOGUE, EVIDENCE
from tools.pages import write_pages

ROOT = CATALOGUE.parents[1]


def choose_ids(ids: Iterable[str]) -> dict[str, str]:
    """Return the final id of each provisional one, counted on from the highest final id."""
    taken = [*ids]
    chosen: dict[str, str] = {}
    for id_ in sorted(filter(is_provisional, taken)):
        chosen[id_] = next_id([*taken, *chosen.values()])
    return chosen


def number(root: Path = ROOT) -> dict[str, str]:
    """Replace every provisional id with a final one, and return the final ids by provisional id.

    Fresh evidence stays fresh: of the inputs of a measurement only the id has changed.

    Raises:
        ReprosError: two scripts share an id, or the checkout is not a Git repository.
    """
    catalogue = load()
    if catalogue.clashes:
        raise ReprosError("; ".join(map(str, catalogue.clashes)))
    chosen = choose_ids(repro.id for repro in catalogue)
    fresh = [measured for measured in evidence.read(EVIDENCE).values() if _is_fresh(measured, catalogue, chosen)]
    for file in list_files(root):
        _replace_ids(file, chosen)
    _keep_fresh(fresh, chosen)
    return chosen


def _is_fresh(measured: Measurement, catalogue: Catalogue, chosen: Mapping[str, str]) -> bool:
    """Return whether a measurement has one of these ids and the current inputs."""
    unit, stacks = measured.unit, load_stacks()
    if unit.repro not in chosen or unit.stack not in stacks:
        return False
    return measured.inputs == inputs(catalogue.find(unit.repro), stacks[unit.stack], unit.device)


def _keep_fresh(fresh: Iterable[Measurement], chosen: Mapping[str, str]) -> None:
    """Write the measurements with the new inputs of the scripts."""
    catalogue, stacks = load(), load_stacks()
    renamed = []
    for measured in fresh:
        repro = catalogue.find(chosen[measured.unit.repro])
        unit = replace(measured.unit, repro=repro.id)
        renamed.append(replace(measured, unit=unit, inputs=inputs(repro, stacks[unit.stack], unit.device)))
    evidence.write(renamed)


def list_files(root: Path) -> list[Path]:
    """Return the tracked files of a checkout and those that Git would add.

    Raises:
        ReprosError: it is not a Git repository.
    """
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    done = subprocess.run(command, cwd=root, capture_output=True, text=True, check=False)
    if done.returncode:
        raise ReprosError(f"{root} is not a Git repository; expected a checkout.")
    return [root / name for name in done.stdout.split("\0") if name and (root / name).is_file()]


def _replace_ids(file: Path, chosen: Mapping[str, str]) -> None:
    """Replace ids in the name and text of a file, in upper and lower case; binary files are skipped."""
    both = {**chosen, **{old.lower(): new.lower() for old, new in chosen.items()}}

    def rename(text: str) -> str:
        for old, new in both.items():
            text = re.sub(rf"(?<![\w-]){old}(?!\d)", new, text)
        return text

    try:
        before = file.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        return
    if (after := rename(before)) != before:
        file.write_text(after, encoding="utf-8")
    if (name := rename(file.name)) != file.name:
        file.rename(file.with_name(name))


def main() -> None:
    """Replace provisional ids in this checkout, write the pages, and print the changes."""
    argparse.ArgumentParser(description=main.__doc__).parse_args()
    try:
        chosen = number()
    except ReprosError as error:
        sys.exit(str(error))
    changed, problems = write_pages(ROOT)
    lines = [f"{old} is {new}" for old, new in chosen.items()] or ["no id is provisional"]
    lines += [f"written: {', '.join(changed)}"] if changed else []
    sys.stdout.write("".join(f"{line}\n" for line in [*lines, *problems]))
    sys.exit(bool(problems))


if __name__ == "__main__":
    main()
