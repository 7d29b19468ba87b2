"""The calls on the stack of a failure, looked up by function."""

from __future__ import annotations

from functools import cached_property

from repros.diagnose.match.failures import Failure


class Stack:
    """The frames of all exceptions of a failure, split when they are first needed."""

    def __init__(self, failure: Failure) -> None:
        """Keep the failure."""
        self._failure = failure

    @cached_property
    def _frames(self) -> dict[str, dict[str, str]]:
        """The frames of each function by their files, with a slash before them and for a Windows path's backslashes."""
        frames: dict[str, dict[str, str]] = {}
        for frame in self._failure.frames:
            location, _, function = frame.rpartition(" ")
            file = "/" + location.rpartition(":")[0].replace("\\", "/")
            frames.setdefault(function, {}).setdefault(file, frame)
        return frames

    def find_name(self, name: str) -> str:
        """Return the frame of the function `new_forward`, or `accelerate/hooks.py:new_forward`; empty: it has none."""
        file, _, function = name.rpartition(":")
        found = (
            frame for path, frame in self._frames.get(function, {}).items() if not file or path.endswith(f"/{file}")
        )
        return next(found, "")

    def find_script(self, name: str) -> str:
        """Return the frame of a function of the file with this name; empty: it has none."""
        files = (item for files in self._frames.values() for item in files.items())
        return next((frame for path, frame in files if path.endswith(f"/{name}")), "")

    def find_call(self, call: str) -> str:
        """Return the frame of the call `part of a file's path`, or that with `:` and how the function begins."""
        part, _, function = call.partition(":")
        functions = (files for name, files in self._frames.items() if name.startswith(function))
        return next((frame for files in functions for path, frame in files.items() if part in path), "")
