"""The files of a recording: each is written to a temporary name first, so that none is ever half a file."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from repros.simulated_gpus.tools.json_rows import dumps_by_row


class RefusedError(Exception):
    """A recording that must not become evidence."""


def out_option(**more: str) -> argparse.Namespace:
    """Parse a part's options: `--out`, and further options with their default values."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--out", type=Path, required=True)
    for name, default in more.items():
        parser.add_argument(f"--{name}", default=default)
    return parser.parse_args()


def write(path: Path, data: dict[str, Any]) -> None:
    """Write a part's record as JSON with one line for each entry."""
    temporary = path.with_suffix(".tmp")
    temporary.write_text(dumps_by_row(data), encoding="utf-8")
    temporary.replace(path)


def read(path: Path) -> dict[str, Any]:
    """Return a part's record."""
    return dict(json.loads(path.read_text(encoding="utf-8")))
