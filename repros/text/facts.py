"""The catalogue and the stacks for machines: what the header says, as plain values."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from repros.model import Repro, Variant
from repros.model.requirements import format_requirement
from repros.model.stack import Size, Stack
from repros.text.describe import role


def brief(repro: Repro) -> dict[str, Any]:
    """Return what `repros list` says of a repro."""
    return {
        "id": repro.id,
        "slug": repro.slug,
        "family": repro.family,
        "title": repro.title,
        "silent": repro.silent,
        "packages": list(repro.packages),
        "affected": [format_requirement(requirement) for requirement in repro.affected],
        "strategies": list(repro.strategies),
        "devices": [device.value for device in repro.devices],
        "home": repro.home,
        "upstream": list(repro.upstream),
    }


def full(repro: Repro) -> dict[str, Any]:
    """Return what `repros show` says of a repro."""
    return {
        **brief(repro),
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


def stack(known: Stack, place: Path | None) -> dict[str, Any]:
    """Return what `repros stacks` says of a stack; the place is that of its environment, if that is there."""
    return {
        "name": known.name,
        "about": known.about,
        "python": known.python,
        "requirements": [str(requirement) for requirement in known.requirements],
        "until": known.until.isoformat(),
        "cuda": _size(known.cuda),
        "cpu": _size(known.cpu) if known.cpu else None,
        "ready": str(place) if place else None,
    }


def _variant(variant: Variant) -> dict[str, Any]:
    signature = variant.signature
    return {
        "name": variant.name,
        "role": role(variant),
        "outcome": variant.outcome.value,
        "about": variant.about,
        "claim": variant.claim,
        "source": variant.source,
        "strategies": list(variant.strategies),
        "devices": [device.value for device in variant.devices],
        "affected": [format_requirement(requirement) for requirement in variant.affected],
        "requires": [format_requirement(requirement) for requirement in variant.requires],
        "raises": signature.raises,
        "match": list(signature.match),
        "ends": str(signature.ends) if signature.ends else None,
    }


def _size(size: Size) -> dict[str, int]:
    return {"download": size.download, "unpacked": size.unpacked}
