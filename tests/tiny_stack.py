"""A stack so small that its environment is made without a network, from wheels written here."""

from __future__ import annotations

import zipfile
from collections.abc import Callable, Sequence
from pathlib import Path

from repros.model import Stack

MakeStack = Callable[..., Stack]
"""Writes a stack of the named distributions: the fixture `make_stack`."""


def write_wheel(folder: Path, name: str, source: str = "", version: str = "1.0", requires: Sequence[str] = ()) -> None:
    """Write a wheel with one module and nothing else."""
    info = f"{name}-{version}.dist-info"
    members = {
        f"{name}.py": source,
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n"
        + "".join(f"Requires-Dist: {requirement}\n" for requirement in requires),
        f"{info}/WHEEL": "Wheel-Version: 1.0\nGenerator: tests\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    record = "".join(f"{member},,{len(text.encode())}\n" for member, text in members.items()) + f"{info}/RECORD,,\n"
    with zipfile.ZipFile(folder / f"{name}-{version}-py3-none-any.whl", "w") as wheel:
        for member, text in {**members, f"{info}/RECORD": record}.items():
            wheel.writestr(member, text)
