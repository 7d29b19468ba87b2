"""Repros and stacks as plain values for `--json`."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any

from repros.model import Repro, Variant
from repros.model.packages import format_requirement
from repros.model.stack import Stack


def repro_summary(repro: Repro) -> dict[str, Any]:
    """Return a repro as `repros list --json` prints it."""
    return {
        "id": repro.id,
        "slug": repro.slug,
        "family": repro.family,
        "title": repro.title,
        "kind": repro.kind.value,
        "documented": repro.documented,
        "silent": repro.silent,
        "packages": list(repro.packages),
        "affected": list(map(str, repro.affected)),
        "exists": list(map(str, repro.exists)),
        "exists_source": repro.exists_source,
        "strategies": list(repro.strategies),
        "devices": [device.value for device in repro.devices],
        "home": repro.home,
        "upstream": upstream_links(repro),
    }


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
        "processes": repro.processes,
        "minimum": repro.minimum,
        "deadline": repro.deadline,
        "sections": dict(repro.sections),
        "doc": repro.doc,
        "variants": [_variant(variant) for variant in repro.variants],
    }


def stack_details(stack: Stack, environment: Path | None) -> dict[str, Any]:
    """Return a stack as `repros stacks --json` prints it.

    Args:
        stack: the stack.
        environment: the folder of its environment; None if it does not exist yet.
    """
    return {
        "name": stack.name,
        "about": stack.about,
        "python": stack.python,
        "requirements": [str(requirement) for requirement in stack.requirements],
        "until": stack.until.isoformat(),
        "cuda": asdict(stack.cuda) if stack.cuda else None,
        "cpu": asdict(stack.cpu) if stack.cpu else None,
        "ready": str(environment) if environment else None,
    }


def _variant(variant: Variant) -> dict[str, Any]:
    signature = variant.signature
    return {
        "name": variant.name,
        "role": variant.role.value,
        "outcome": variant.outcome.value,
        "about": variant.about,
        "claim": variant.claim,
        "source": variant.source,
        "finds": list(variant.finds),
        "strategies": list(variant.strategies),
        "devices": [device.value for device in variant.devices],
        "affected": list(map(str, variant.affected)),
        "requires": [format_requirement(requirement) for requirement in variant.requires],
        "raises": signature.raises,
        "match": list(signature.match),
        "ends": str(signature.ends) if signature.ends else None,
    }
