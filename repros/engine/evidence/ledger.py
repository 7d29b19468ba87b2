"""The ledger of a stack: inputs digest, date, machine and duration of each unit's measurement.

Each stack has one ledger file, so a repeated measurement with the same verdicts changes no other file. Each unit has
one line. Machines are named by a digest, so a further machine changes no existing line.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any, NamedTuple

from repros.engine.evidence.measurement import Measurement, Unit
from repros.engine.evidence.toml import inline_table, quoted

NAME = "ledger.toml"
_HEAD = "# When, where and from which inputs the evidence on {stack} was measured. Written by `repros matrix`.\n"

Key = tuple[str, str, str]
"""A unit within a stack: repro, device, strategy."""
Lines = dict[Key, dict[str, Any]]
"""The ledger fields of measurements, by unit."""


class _Machine(NamedTuple):
    platform: str
    python: str
    builds: tuple[tuple[str, str], ...]
    """Versions with a local build, such as `2.13.0+cpu`."""

    @property
    def name(self) -> str:
        """A digest of the machine, six hexadecimal digits."""
        return hashlib.sha256(repr(self).encode()).hexdigest()[:6]


def line_of(measurement: Measurement) -> dict[str, Any]:
    """Return the ledger fields of a measurement."""
    return {
        "inputs": measurement.inputs,
        "date": measurement.date,
        "launch": measurement.launch,
        "seconds": measurement.seconds,
        **({} if measurement.processor is None else {"processor": measurement.processor}),
        "platform": measurement.platform,
        "python": measurement.python,
        "builds": {name: number for name, number in measurement.versions.items() if "+" in number},
    }


def format_ledger(stack: str, lines: Lines) -> str:
    """Return the text of a ledger."""
    # One line per machine and per unit, so that git can merge the ledgers of two branches by lines.
    machines = [
        f"{machine.name} = {inline_table(_described(machine))}\n"
        for machine in sorted({_machine(line) for line in lines.values()})
    ]
    units = [f"{'.'.join(key)} = {inline_table(_fields(line))}\n" for key, line in sorted(lines.items())]
    return "".join([_HEAD.format(stack=stack), "\n[machines]\n", *machines, "\n[units]\n", *units])


def parse_ledger(data: Mapping[str, Any]) -> Lines:
    """Return the lines of a parsed ledger.

    Raises:
        KeyError, TypeError, AttributeError: it is not a ledger.
    """
    machines = data["machines"]
    return {
        (repro, device, strategy): _with_machine(line, machines)
        for repro, devices in data["units"].items()
        for device, strategies in devices.items()
        for strategy, line in strategies.items()
    }


def _with_machine(line: Mapping[str, Any], machines: Mapping[str, Any]) -> dict[str, Any]:
    own = {name: value for name, value in line.items() if name != "machine"}
    return {**own, **machines[line["machine"]]}


def _machine(line: Mapping[str, Any]) -> _Machine:
    return _Machine(line["platform"], line["python"], tuple(sorted(line["builds"].items())))


def _described(machine: _Machine) -> dict[str, str]:
    builds = inline_table({name: quoted(build) for name, build in machine.builds})
    return {"platform": quoted(machine.platform), "python": quoted(machine.python), "builds": builds}


def _fields(line: Mapping[str, Any]) -> dict[str, str]:
    return {
        "inputs": quoted(line["inputs"]),
        "date": str(line["date"]),
        "machine": quoted(_machine(line).name),
        "launch": quoted(line["launch"]),
        "seconds": str(line["seconds"]),
        **({"processor": str(line["processor"])} if "processor" in line else {}),
    }


def key_of(unit: Unit) -> Key:
    """Return the key of a unit in its stack's ledger."""
    return unit.repro, unit.device.value, unit.strategy
