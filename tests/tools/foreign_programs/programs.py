"""The programs of `programs.toml`."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

FILE = Path(__file__).parent / "programs.toml"


@dataclass(frozen=True)
class Program:
    """One way to run a program that nobody here wrote."""

    name: str
    source: str
    """`OWNER/NAME` of a public repository, or the name of a package of the registry."""
    command: str
    processes: int = 1
    folder: str = "."
    """Where in the repository it is run."""
    data: dict[str, str] = field(default_factory=dict)
    """What `data.py` writes where, relative to that folder."""
    first: str = ""
    """A command that the repository asks for before, such as one that prepares the data."""
    on_gpus: dict[str, str] = field(default_factory=dict)
    """What to replace in the command on GPUs: the options that ask for the CPU."""
    gpus: int = 0
    """How many GPUs it is given; one for each process if not said."""
    uses_gpu: bool = True
    """Whether it uses a GPU if there is one."""
    needs_gpu: bool = False
    """Whether it refuses to run without a GPU."""
    tested: bool = False
    """Whether the tests run it under the watch: it is in a package of the stack `current`, and short."""
    tested_on_gpus: bool = False
    """Whether the tests run it on simulated GPUs."""

    def __post_init__(self) -> None:
        if not self.gpus:
            object.__setattr__(self, "gpus", self.processes)

    @property
    def gpu_command(self) -> str:
        """Return the command on GPUs."""
        command = self.command
        for words, others in self.on_gpus.items():
            command = command.replace(words, others)
        return command

    @property
    def is_package(self) -> bool:
        """Return whether it comes in a package of the registry."""
        return "/" not in self.source


def read_programs() -> Iterator[Program]:
    """Yield all programs; one that runs on two processes too (`command_of_two`) gives two."""
    for source in tomllib.loads(FILE.read_text("utf-8"))["source"]:
        common = {name: source[name] for name in ("folder", "data", "first", "on_gpus") if name in source}
        for one in source["programs"]:
            entry = common | one
            both = entry.pop("command_of_two", None)
            yield Program(source=source["from"], **entry)
            if both is not None:
                name = f"{entry['name']} (2)"
                yield Program(source=source["from"], **entry | {"command": both, "processes": 2, "name": name})
