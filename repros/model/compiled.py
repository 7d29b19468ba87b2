"""What a command compiles while it starts, kept for the next command: regular expressions, and methods of dataclasses.

Python keeps the bytecode of modules, but compiles the expressions and the generated methods in them each time, which
takes half of a short command's time. The key of each is its whole source, so an edit or another pattern never meets the
result of an earlier one. Only the program `repros` keeps them: a process that imports this project is left as it is.
"""

from __future__ import annotations

import marshal
import os
import re._compiler  # type: ignore[import-not-found] # neither module has a public name for the step that takes long
import sys
import zlib
from contextlib import suppress
from threading import RLock
from types import CodeType, SimpleNamespace
from typing import Any

_FEWEST = 8
"""New results that are worth the rewriting of the file; a text of the user's may be in one or two of them."""
_MOST_BYTES = 2 * 2**20
"""Of the file; a larger one begins anew with what one command has used, as reading it takes time, too."""
_MOST = 4_000
"""New results of one process, which may run for days."""
_VERSION = f"{sys.implementation.cache_tag} {sys.version}".encode()
_CHECKSUM = 4
"""Bytes at the beginning of the file."""

_Key = tuple[str | bytes, int] | str
"""An expression and its flags, or the source of a method."""


class CompiledCode:
    """The results of compilations by their source, from a file that later commands read."""

    def __init__(self, name: str) -> None:
        """Read the file of this Python; if there is none yet, or it is damaged or another user's, begin without one.

        Args:
            name: of the file: commands that compile much the same share one.
        """
        self._kept: dict[_Key, bytes] = {}
        self._new: dict[_Key, bytes] = {}
        self._used: set[_Key] = set()
        self._lock = RLock()
        self._made: tuple[Any, ...] = ()
        self._file = ""
        with suppress(Exception):  # no cache folder, which commands that need one report; whatever damaged data raises
            self._file = f"{_folder()}/compiled-{name}-{zlib.crc32(_VERSION):08x}.repros-snapshot"
            self._kept = self._read()

    def _read(self) -> dict[_Key, bytes]:
        with open(self._file, "rb") as file:  # noqa: PTH123 - the import of `pathlib` takes longer
            if os.fstat(file.fileno()).st_uid != os.geteuid():
                return {}
            checksum, data = file.read(_CHECKSUM), file.read()
        if zlib.crc32(data) != int.from_bytes(checksum, "big"):
            return {}
        version, kept = marshal.loads(data)  # noqa: S302 - like bytecode, from the user's own cache
        return dict(kept) if version == _VERSION else {}

    def keep_expressions(self) -> None:
        """Let `re` use it in this process."""
        compiler = vars(re._compiler)  # noqa: SLF001 - see above
        compile_anew, make = compiler["compile"], compiler["_sre"].compile

        def record(pattern: str | bytes, *arguments: Any) -> Any:
            # The operations are integers of a class of their own, which need not be kept.
            self._made = tuple([*map(int, part)] if isinstance(part, list) else part for part in arguments)
            return make(pattern, *arguments)

        def compile_expression(pattern: str | bytes, flags: int = 0) -> Any:
            key = (pattern, int(flags))
            with suppress(Exception):  # a result of another format
                if arguments := self._find(key):
                    return make(pattern, *arguments)
            with self._lock:
                expression = compile_anew(pattern, flags)
                self._add(key, self._made)
            return expression

        compiler["_sre"] = SimpleNamespace(**{**vars(compiler["_sre"]), "compile": record})
        compiler["compile"] = compile_expression

    def keep_methods(self) -> None:
        """Let `dataclasses` use it in this process."""
        import dataclasses  # noqa: PLC0415 - the help needs none

        def execute(source: str, namespace: dict[str, Any], methods: dict[str, Any]) -> None:
            code = self._find(source)
            if not isinstance(code, CodeType):
                code = compile(source, "<string>", "exec", dont_inherit=True)
                self._add(source, code)
            exec(code, namespace, methods)  # noqa: S102 - as `dataclasses` does

        vars(dataclasses)["exec"] = execute

    def _find(self, key: _Key) -> Any:
        """Return a result, or None."""
        kept = self._kept.get(key) or self._new.get(key)
        self._used.add(key)
        return None if kept is None else marshal.loads(kept)  # noqa: S302 - see above

    def _add(self, key: _Key, result: Any) -> None:
        if len(self._new) < _MOST:
            with suppress(ValueError):  # an object that cannot be kept, such as a text of a class of its own
                marshal.dumps(key)
                self._new[key] = marshal.dumps(result)

    def save(self) -> None:
        """Write the file if it lacks many results; without a folder to write to, nothing is kept."""
        if len(self._new) < _FEWEST or not self._file:
            return
        data = marshal.dumps((_VERSION, self._kept | self._new))
        if len(data) > _MOST_BYTES:
            used = {key: kept for key, kept in self._kept.items() if key in self._used}
            data = marshal.dumps((_VERSION, used | self._new))
        from pathlib import Path  # noqa: PLC0415 - see above

        file = Path(self._file)
        temporary = file.with_name(f"{file.name}.{os.getpid()}")
        with suppress(OSError):
            file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            try:
                temporary.touch(0o600)
                temporary.write_bytes(zlib.crc32(data).to_bytes(_CHECKSUM, "big") + data)
                temporary.replace(file)
            except BaseException:  # including an interrupt
                temporary.unlink(missing_ok=True)
                raise


def _folder() -> str:
    """Return the folder of :mod:`repros.model.cache.snapshot`; on Linux without its imports, which the help lacks."""
    caches = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    if sys.platform == "linux" and not os.environ.get("REPROS_CACHE_DIR") and caches.startswith(("/", "~/")):
        return f"{os.path.expanduser(caches)}/repros/snapshots"  # noqa: PTH111 - see above
    from repros.model.cache import cache_folder  # noqa: PLC0415 - see above

    return str(cache_folder() / "snapshots")
