"""Damage to an environment that this project made: files that are gone, cut or empty."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from pathlib import Path


def find_damage(root: Path) -> str | None:
    """Return the first file that does not have the size its wheel gave it, and what is wrong; None if all have.

    Each installed distribution lists its files in `RECORD`, with their sizes. A crash or a full disk leaves files short
    or empty, which the sizes show. Their hashes would show any other change, too, but reading all of torch takes
    minutes; the sizes of an environment's 20,000 files take 0.2 s. Compiled bytecode is left out: Python checks it.
    """
    for record in sorted(root.glob("lib/python*/site-packages/*.dist-info/RECORD")):
        for name, size in _listed_files(record):
            file = record.parents[1] / name
            try:
                found = file.stat().st_size
            except OSError as error:
                return f"{file} is missing ({error.strerror})"
            if found != size:
                return f"{file} has {found:,} bytes instead of {size:,}"
    return None


def _listed_files(record: Path) -> Iterator[tuple[str, int]]:
    """Yield the path, relative to the folder of packages, and the bytes of each file of a distribution."""
    with record.open(encoding="utf-8", errors="replace", newline="") as file:
        for row in csv.reader(file):
            # Files that the installer wrote, such as RECORD itself, have no size.
            if len(row) == 3 and row[2].isdecimal() and not row[0].endswith(".pyc"):  # noqa: PLR2004 - path, hash, size
                yield row[0], int(row[2])
