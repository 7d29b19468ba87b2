"""The words of `repros stacks --disk` and `--clean`."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Iterator
from typing import Any

from repros.engine.environments.disk import DiskUsage, Kind, Part
from repros.text.json_values import attributes
from repros.text.wording import count

_GIGA = 1e9
_NAMES = {
    Kind.ACCELERATOR: "accelerators, compiled",
    Kind.SNAPSHOTS: "snapshots of the catalogue, the evidence and the probes",
    Kind.OTHER: "locks and downloads",
    Kind.WHEELS: "uv's cache, wheels of these stacks that no environment has",
}


def disk_lines(usage: DiskUsage, days: int, today: dt.date) -> Iterator[str]:
    """Yield the lines of `repros stacks --disk`.

    Args:
        usage: the disk space of the cache.
        days: number of days without use after which a part may go.
        today: the date.
    """
    others = {kind: sum(part.own for part in usage.parts if part.kind is kind) for kind in _NAMES}
    environments = [part for part in usage.parts if part.kind is Kind.ENVIRONMENT]
    shared = usage.total - sum(others.values())
    yield f"{_size(shared)}  {count(len(environments), 'environment')}, with files in common, also with uv's cache"
    for part in environments:
        yield f"  {_size(part.size)}  {part.path.name}: {_size(part.own).strip()} alone{_used(part)}"
    for kind, size in others.items():
        if size:
            yield f"{_size(size)}  {_NAMES[kind]}"
    yield f"{_size(usage.total)}  in all, where a file with several names counts once"
    unused = [part for part in usage.parts if part.is_unused(days, today)]
    what = f"{_size(sum(part.own for part in unused)).strip()} of {_parts(unused)}" if unused else "nothing"
    yield f"not used for {count(days, 'day')}: {what}{', which repros stacks --clean removes' if unused else ''}"


def removed_lines(removed: Iterable[Part], days: int) -> Iterator[str]:
    """Yield the lines of `repros stacks --clean`: one for each part, as soon as it is removed."""
    none = True
    for part in removed:
        none = False
        yield f"removed {part.kind} {part.path.name}{_used(part)}: {_size(part.own).strip()}"
    if none:
        yield f"everything was used in the last {count(days, 'day')}; nothing is removed"


def part_values(part: Part) -> dict[str, Any]:
    """Return a part as `repros stacks --disk --json` and `--clean --json` print it."""
    return {**attributes(part, "kind", "path", "size", "own"), "used": part.last_used and part.last_used.isoformat()}


def _parts(parts: list[Part]) -> str:
    kinds = [part.kind for part in parts]
    return " and ".join(
        count(number, kind.value) for kind in (Kind.ENVIRONMENT, Kind.ACCELERATOR) if (number := kinds.count(kind))
    )


def _used(part: Part) -> str:
    return f", last used {part.last_used}" if part.last_used else ""


def _size(size: int) -> str:
    return f"{size / _GIGA:5.1f} GB"
