"""The calls on the stack of a failure, looked up by function."""

from __future__ import annotations

from functools import cached_property

from repros.match.failures import Failure


class Stack:
    """The frames of all exceptions of a failure, split when they are first needed."""

    def __init__(self, failure: Failure) -> None:
        """Keep the failure."""
        self._failure = failure

    @cached_property
    def _files(self) -> dict[str, dict[str, None]]:
        """The files of each function, with a slash before them, and slashes for a Windows path's backslashes."""
        files: dict[str, dict[str, None]] = {}
        for frame in self._failure.frames:
            location, _, function = frame.rpartition(" ")
            file = "/" + location.rpartition(":")[0].replace("\\", "/")
            files.setdefault(function, {})[file] = None
        return files

    def has_name(self, name: str) -> bool:
        """Whether the function `new_forward`, or `accelerate/hooks.py:new_forward`, is on it."""
        file, _, function = name.rpartition(":")
        return any(not file or path.endswith(f"/{file}") for path in self._files.get(function, ()))

    def has_script(self, name: str) -> bool:
        """Whether a function of the file with this name is on it."""
        return any(path.endswith(f"/{name}") for files in self._files.values() for path in files)

    def has_call(self, call: str) -> bool:
        """Whether it has the call `part of a file's path`, or that with `:` and how the function begins."""
        part, _, function = call.partition(":")
        return any(name.startswith(function) and part in file for name, files in self._files.items() for file in files)
