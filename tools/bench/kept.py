"""The kept figures, from which the tables and plots of the pages are made."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

KEPT = Path(__file__).with_name("kept.json")


def read_kept(file: Path = KEPT) -> dict[str, Any]:
    """Return the figures by the part of the benchmark; none if there is no file."""
    found: dict[str, Any] = json.loads(file.read_text("utf-8")) if file.exists() else {}
    return found


def keep(measured: Mapping[str, Any], file: Path = KEPT) -> None:
    """Put figures in the place of those of the same parts, and leave the other parts as they are."""
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(read_kept(file) | dict(measured), indent=2) + "\n", "utf-8")
