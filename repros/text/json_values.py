"""Repros and stacks as plain values for `--json`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from enum import Enum
from pathlib import Path
from typing import Any

from repros.model import Repro, Variant
from repros.model.packages import format_requirement
from repros.model.stack import Stack


def attributes(value: object, *names: str) -> dict[str, Any]:
    """Return attributes of a value as values of JSON; what JSON cannot express is text, such as a version."""
    return {name: _plain(getattr(value, name)) for name in names}


def _plain(value: object) -> Any:
    match value:
        case Enum():
            return value.value
        case tuple():
            return [*map(_plain, value)]
        case Mapping():
            return dict(value)
    return value if isinstance(value, str | float | int | None) else str(value)


def repro_summary(repro: Repro) -> dict[str, Any]:
    """Return a repro as `repros list --json` prints it."""
    names = ("id", "slug", "family", "title", "kind", "documented", "silent", "packages", "affected", "exists")
    more = ("exists_source", "strategies", "devices", "home")
    return {**attributes(repro, *names, *more), "upstream": upstream_links(repro)}


def upstream_links(repro: Repro) -> dict[str, list[str]]:
    """Return the upstream threads by their relation to the failure."""
    return {field: list(links) for field, links in asdict(repro.upstream).items()}


def repro_details(repro: Repro) -> dict[str, Any]:
    """Return a repro as `repros show --json` prints it."""
    return {
        **repro_summary(repro),
        "script": str(repro.path),
        "requires": [format_requirement(requirement) for requirement in repro.requires],
        "dependencies": [format_requirement(requirement) for requirement in repro.dependencies],
        **attributes(repro, "processes", "minimum", "deadline", "sections", "doc"),
        "variants": [_variant(variant) for variant in repro.variants],
    }


def stack_details(stack: Stack, environment: Path | None) -> dict[str, Any]:
    """Return a stack as `repros stacks --json` prints it.

    Args:
        stack: the stack.
        environment: the folder of its environment; None if it does not exist yet.
    """
    return {
        **attributes(stack, "name", "about", "python", "requirements", "until"),
        "cuda": asdict(stack.cuda) if stack.cuda else None,
        "cpu": asdict(stack.cpu) if stack.cpu else None,
        "ready": str(environment) if environment else None,
    }


def _variant(variant: Variant) -> dict[str, Any]:
    names = ("name", "role", "outcome", "about", "claim", "source", "finds", "strategies", "devices", "affected")
    return {
        **attributes(variant, *names),
        "requires": [format_requirement(requirement) for requirement in variant.requires],
        **attributes(variant.signature, "raises", "match", "ends"),
    }
