"""Golden logs: logs of runs by hand, with the failures that `repros match` must find in them."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import tomlkit

from repros.authoring.check.by_hand import run_script
from repros.model import Device, ExpectedOutcome, Repro
from repros.model.settings import CATALOGUE


@dataclass(frozen=True)
class Golden:
    """The golden log of a repro's failing variant on one stack."""

    repro: Repro
    stack: str
    folder: Path

    @property
    def arguments(self) -> list[str]:
        """Variant, strategy and the first device that needs no GPU."""
        failing = self.repro.failing
        device = next(device for device in failing.devices if device is not Device.CUDA)
        return [failing.name, failing.strategies[0], device.value]

    @property
    def name(self) -> str:
        """File stem, such as `rpr-0008-failing-ddp-hand-current`."""
        return f"{self.repro.id.lower()}-{'-'.join(self.arguments[:2])}-hand-{self.stack}"

    @property
    def log(self) -> Path:
        """Path of the log."""
        return self.folder / f"{self.name}.log"

    @property
    def index(self) -> Path:
        """Path of the entries of the repro's logs; `index.toml` has older logs and those without a script."""
        return self.folder / f"{self.repro.id.lower()}.toml"


def golden_folder(repro: Repro) -> Path | None:
    """Return the folder for a repro's golden logs: that of its catalogue, or that of the checkout's tests.

    None for a script of the package outside a checkout.
    """
    private = repro.origin.folder
    if private is not None:
        return private / "golden"
    tests = CATALOGUE.parents[1] / "tests/diagnose/match/golden"
    return tests if tests.is_dir() else None


def has_golden_log(repro: Repro) -> bool:
    """Return whether a run can leave a log that identifies the failure; one that only hangs or exits cannot."""
    failing = repro.failing
    needs_gpu = set(failing.devices) == {Device.CUDA}
    return failing.signature.ends is None and failing.outcome is ExpectedOutcome.FAILS and not needs_gpu


def capture(golden: Golden, python: Path) -> str:
    """Run the failing variant by hand, write its log and the log's entry, and return the log."""
    repro = golden.repro
    text = run_script(python, repro.path, golden.arguments, repro.processes)
    golden.folder.mkdir(parents=True, exist_ok=True)
    golden.log.write_text(text, encoding="utf-8")
    if not any(entry["name"] == golden.name for entry in read_entries(golden.folder)):
        # One file per repro: branches with new repros would conflict in a shared one.
        with golden.index.open("a", encoding="utf-8") as index:
            index.write(f"\n{_entry(golden)}" if index.tell() else _entry(golden))
    return text


def read_entries(folder: Path) -> Iterator[dict[str, Any]]:
    """Yield the entries of a folder's logs, file by file."""
    for file in sorted(folder.glob("*.toml")):
        yield from tomllib.loads(file.read_text(encoding="utf-8"))["log"]


def _entry(golden: Golden) -> str:
    """Return the log's entry as TOML."""
    entry = {
        "name": golden.name,
        "script": golden.repro.id,
        "arguments": golden.arguments,
        "how": "hand",
        "stack": golden.stack,
        "expected": [golden.repro.id],
    }
    return tomlkit.dumps({"log": [entry]})
