"""The PEP 723 metadata block of a script: its tables, and the line of each key."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from repros.model.errors import ReprosError

BLOCK = re.compile(r"^# /// script\s*$\n(?P<content>(?:^#(?:| .*)$\n)+?)^# ///\s*$", re.MULTILINE)
"""A script's metadata, by the reference expression of PEP 723."""


class HeaderError(ReprosError):
    """An invalid header; the message is `file:line: problem`."""

    def __init__(self, path: Path, line: int, problem: str) -> None:
        super().__init__(f"{path}:{line}: {problem}")
        self.path = path
        self.line = line


class HeaderBlock:
    """The PEP 723 metadata block of a script.

    Raises:
        HeaderError: the script has no block, or the block is not TOML.
    """

    def __init__(self, path: Path, source: str) -> None:
        self.path = path
        self.source = source
        block = BLOCK.search(source)
        if block is None:
            raise HeaderError(path, 1, "expected a PEP 723 block: '# /// script' ... '# ///'")
        self._first = source.count("\n", 0, block.start("content")) + 1
        self._lines = [line[2:] for line in block["content"].rstrip("\n").split("\n")]
        try:
            self.data: Mapping[str, Any] = tomllib.loads("\n".join(self._lines))
        except tomllib.TOMLDecodeError as error:
            at = re.search(r"at line (\d+)", str(error))
            offset = int(at[1]) - 1 if at else len(self._lines) - 1
            raise HeaderError(path, self._first + offset, f"not valid TOML: {error}") from error
        except (RecursionError, ValueError) as error:
            raise HeaderError(
                path, self._first, "not valid TOML: nested too deep, or a number of too many digits"
            ) from error

    def table(self, dotted: str) -> Mapping[str, Any]:
        """Return the table at a dotted path.

        Raises:
            HeaderError: there is no such table.
        """
        table: Any = self.data
        for part in dotted.split("."):
            table = table.get(part) if isinstance(table, Mapping) else None
        if not isinstance(table, Mapping):
            raise HeaderError(self.path, self._first, f"expected a table [{dotted}]")
        return table

    def line(self, table: str, key: str | None = None) -> int:
        """Return the line number of a key in a table, or of the table's heading."""
        current, heading = "", 0
        for number, text in enumerate(self._lines):
            if opened := re.match(r"\s*\[([^\[\]]+)\]", text):
                current = opened[1].strip()
                heading = number if current == table else heading
            elif current == table and key is not None and re.match(rf'\s*"?{re.escape(key)}"?\s*=', text):
                return self._first + number
        return self._first + heading

    def error(self, table: str, key: str | None, problem: str) -> HeaderError:
        """Return an error with the line number of a key."""
        return HeaderError(self.path, self.line(table, key), problem)
