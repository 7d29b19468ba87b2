"""The programs of `programs.toml` and `documented.toml`."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

FILE = Path(__file__).parent / "programs.toml"
DOCUMENTED = FILE.with_name("documented.toml")
"""Programs that show a failure of the catalogue."""
TRAINCHECK = FILE.with_name("traincheck.toml")
"""Programs that show an error of TrainCheck's list, and the list."""


@dataclass(frozen=True)
class Program:
    """One way to run a program that nobody here wrote."""

    name: str
    source: str
    """`OWNER/NAME` of a public repository, `OWNER/NAME#NUMBER` of a thread, or a package of the registry."""
    command: str
    processes: int = 1
    folder: str = "."
    """Where in the repository it is run."""
    commit: str = ""
    """Which commit of the repository; what is checked out in the clone if not said."""
    code: str = ""
    """The digest of a thread's code block, which replaces `{code}` in `files`."""
    files: dict[str, str] = field(default_factory=dict)
    """Additional files of this project, by name: those that a code block leaves out."""
    ours: str = ""
    """A file of `tests/diagnose/watch/toys/` that is the program: an error with sources of our own."""
    companion: dict[str, str] = field(default_factory=dict)
    """A folder of another repository that is copied next to it: `repository`, `commit` and `folder`."""
    changes: dict[str, dict[str, str]] = field(default_factory=dict)
    """Words to replace in a file, by its name."""
    data: dict[str, str] = field(default_factory=dict)
    """What `data.py` writes where, relative to that folder."""
    first: str = ""
    """A command that the repository asks for before, such as one that prepares the data."""
    on_gpus: dict[str, str] = field(default_factory=dict)
    """What to replace in the command on GPUs: the options that ask for the CPU."""
    libraries: tuple[str, ...] = ()
    """Packages whose releases a result under the watch names, in addition to its own and torch's."""
    gpus: int = 0
    """How many GPUs it is given; one for each process if not said."""
    uses_gpu: bool = True
    """Whether it uses a GPU if there is one."""
    needs_gpu: bool = False
    """Whether it refuses to run without a GPU."""
    defect: str = ""
    """A defect of its own that the watch is right to name: it is not healthy."""
    tested: bool = False
    """Whether the tests run it under the watch: it is in a package of the stack `current`, and short."""
    tested_on_gpus: bool = False
    """Whether the tests run it on simulated GPUs."""
    error: str = ""
    """The error of TrainCheck's list that it shows."""
    repro: str = ""
    """The id of the failure that it shows."""
    variant: str = ""
    """The variant of that failure's script that does the same; of an error, whether it has it: `failing`, `fixed`."""
    stack: str = ""
    """The stack whose releases it needs."""
    says: str = ""
    """What its error says if it fails; without one, its ranks print the numbers that it is about."""

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
    def is_thread(self) -> bool:
        """Return whether it is a code block of a thread."""
        return "#" in self.source

    @property
    def is_package(self) -> bool:
        """Return whether it comes in a package of the registry."""
        return "/" not in self.source


def read_programs(file: Path = FILE) -> Iterator[Program]:
    """Yield all programs; one that runs on two processes too (`command_of_two`) gives two.

    What a source says holds for each of its programs that does not say otherwise; changes add up.
    """
    for source in tomllib.loads(file.read_text("utf-8"))["source"]:
        common = {name: value for name, value in source.items() if name not in {"from", "programs", "why"}}
        for program in source["programs"]:
            entry = common | program
            both = common.get("changes", {}), program.get("changes", {})
            entry["changes"] = {name: both[0].get(name, {}) | both[1].get(name, {}) for name in {**both[0], **both[1]}}
            both = entry.pop("command_of_two", None)
            yield Program(source=source["from"], **entry)
            if both is not None:
                name = f"{entry['name']} (2)"
                yield Program(source=source["from"], **entry | {"command": both, "processes": 2, "name": name})
