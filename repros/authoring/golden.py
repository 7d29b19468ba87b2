"""Golden logs: the log of a run by hand, kept beside the catalogue with the failures that must be found in it."""

from __future__ import annotations

import json
import tomllib
from dataclasses import dataclass
from pathlib import Path

from repros.authoring.by_hand import run_script
from repros.model import Device, Outcome, Repro
from repros.settings import CATALOGUE

INDEX = "index.toml"


@dataclass(frozen=True)
class Golden:
    """The golden log of a repro's failing variant on one stack."""

    repro: Repro
    stack: str
    folder: Path

    @property
    def arguments(self) -> list[str]:
        """Variant, strategy and device, the first that needs no GPU."""
        failing = self.repro.failing
        device = next(device for device in failing.devices if device is not Device.CUDA)
        return [failing.name, failing.strategies[0], device.value]

    @property
    def name(self) -> str:
        """`rpr-0008-failing-ddp-hand-current`."""
        return f"{self.repro.id.lower()}-{'-'.join(self.arguments[:2])}-hand-{self.stack}"

    @property
    def log(self) -> Path:
        """The file."""
        return self.folder / f"{self.name}.log"


def golden_folder(repro: Repro) -> Path | None:
    """Return the folder for a repro's golden logs: that of its catalogue, or that of the checkout's tests.

    None for a script of the package outside a checkout.
    """
    private = repro.origin.folder
    if private is not None:
        return private / "golden"
    tests = CATALOGUE.parents[1] / "tests/match/golden"
    return tests if tests.is_dir() else None


def has_golden_log(repro: Repro) -> bool:
    """Return whether a run of this repro can leave a log that names the failure: not where it only hangs or exits."""
    failing = repro.failing
    needs_gpu = set(failing.devices) == {Device.CUDA}
    return failing.signature.ends is None and failing.outcome is Outcome.FAILS and not needs_gpu


def capture(golden: Golden, python: Path) -> str:
    """Run the failing variant by hand, write its log and the log's entry in the index, and return the log."""
    repro = golden.repro
    text = run_script(python, repro.path, golden.arguments, repro.processes)
    golden.folder.mkdir(parents=True, exist_ok=True)
    golden.log.write_text(text, encoding="utf-8")
    index = golden.folder / INDEX
    known = index.read_text(encoding="utf-8") if index.exists() else ""
    entries = tomllib.loads(known).get("log", [])
    if not any(entry["name"] == golden.name for entry in entries):
        index.write_text(_with_entry(known, golden), encoding="utf-8")
    return text


def _with_entry(known: str, golden: Golden) -> str:
    """Return an index with the log's entry, behind the last of the repros before it, else at the end."""
    id_ = json.dumps(golden.repro.id)
    entry = (
        f"[[log]]\nname = {json.dumps(golden.name)}\nscript = {id_}\narguments = {json.dumps(golden.arguments)}\n"
        f'how = "hand"\nstack = {json.dumps(golden.stack)}\nexpected = [{id_}]\n'
    )
    return f"{known.rstrip()}\n\n{entry}".lstrip()
