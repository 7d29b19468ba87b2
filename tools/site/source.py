"""The data of the pages, read once."""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from repros.advise.export.pins import ExportError, pins_of_stack
from repros.advise.export.script import export_for_report
from repros.authoring.check.golden import read_entries
from repros.engine import evidence
from repros.engine.catalogue import load
from repros.engine.evidence import Evidence, Measurement, Unit
from repros.engine.stacks import load_stacks
from repros.model import Repro, Stack
from repros.model.catalogue import Catalogue
from repros.model.settings import EVIDENCE

ROOT = Path(__file__).parents[2]
"""The checkout: prose, golden logs and the simulated accelerator's figures are not in the package."""


@dataclass(frozen=True)
class Source:
    """The data of one build."""

    catalogue: Catalogue
    stacks: tuple[Stack, ...]
    """The oldest first, `current` last."""
    evidence: Evidence
    gpus: Evidence
    """What real GPUs showed; a GPU's environment takes the place of a stack."""
    bisections: Mapping[str, tuple[Mapping[str, Any], ...]]
    """The kept bisections of each repro, by id."""
    logs: Mapping[str, str]
    """A log that each failure left in a real run, by id."""
    root: Path = ROOT

    def stack(self, name: str) -> Stack | None:
        """Return the stack of that name, or None."""
        return next((stack for stack in self.stacks if stack.name == name), None)

    @cached_property
    def measured(self) -> Mapping[str, Evidence]:
        """The evidence of each repro that has any, by id."""
        found: dict[str, dict[Unit, Measurement]] = {}
        for unit, measurement in self.evidence.items():
            found.setdefault(unit.repro, {})[unit] = measurement
        return found

    @cached_property
    def scripts(self) -> Mapping[str, str]:
        """Failing and fixed variant of each repro by id, pinned to its reference stack, for `uv run`.

        A script that cannot be exported is there as it is.
        """
        return {repro.id: self._standalone(repro) for repro in self.catalogue}

    def _standalone(self, repro: Repro) -> str:
        home = self.stack(repro.home)
        if home is not None:
            with suppress(ExportError):
                return export_for_report(repro, pins_of_stack(repro, home))
        return repro.path.read_text(encoding="utf-8")


def read_source(root: Path = ROOT) -> Source:
    """Read the catalogue, the stacks, the evidence, the bisections and the logs of a checkout."""
    catalogue = load()
    bisections: dict[str, tuple[Mapping[str, Any], ...]] = {}
    for file in sorted((EVIDENCE / "bisections").glob("*.json")):
        record = json.loads(file.read_text(encoding="utf-8"))
        bisections[record["repro"]] = (*bisections.get(record["repro"], ()), record)
    return Source(
        catalogue=catalogue,
        stacks=tuple(load_stacks().values()),
        evidence=evidence.read(EVIDENCE),
        gpus=evidence.read(EVIDENCE / "gpus"),
        bisections=bisections,
        logs=_read_logs(root / "tests/diagnose/match/golden", catalogue),
        root=root,
    )


def _read_logs(folder: Path, catalogue: Catalogue) -> dict[str, str]:
    """Return a log of each repro: of its failing variant, run by hand on its reference stack, if there is one."""
    kept: dict[str, list[Mapping[str, Any]]] = {}
    for entry in read_entries(folder):
        if entry.get("script", "").startswith("RPR-") and entry["expected"] == [entry["script"]]:
            kept.setdefault(entry["script"], []).append(entry)

    def rank(repro: Repro, entry: Mapping[str, Any]) -> tuple[bool, ...]:
        return (entry["arguments"][0] != "failing", entry["how"] != "hand", entry["stack"] != repro.home)

    chosen = {
        repro.id: min(kept[repro.id], key=lambda entry, repro=repro: rank(repro, entry))  # type: ignore[misc]
        for repro in catalogue
        if repro.id in kept
    }
    return {id_: (folder / f"{entry['name']}.log").read_text(encoding="utf-8") for id_, entry in chosen.items()}
