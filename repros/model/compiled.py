"""What a command compiles while it starts, kept for the next command: regular expressions, and methods of dataclasses.

Python keeps the bytecode of modules, but compiles the expressions and the generated methods in them each time, which
takes half of a short command's time. The key of each is its whole source, so an edit or another pattern never meets the
result of an earlier one. Only the program `repros` keeps them: a process that imports this project is left as it is.
Neither `re` nor `dataclasses` has a public name for the step that takes long; without its private name all is compiled.
"""

from __future__ import annotations

import marshal
import os
import sys
import zlib
from contextlib import suppress
from types import CodeType, FunctionType, SimpleNamespace
from typing import Any

_FEWEST = 8
"""New results that are worth the rewriting of the file; a text of the user's may be in one or two of them."""
_MOST_BYTES = 2 * 2**20
"""Of the file, as reading it takes time, too; one that would be larger begins anew with what one command has used."""
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
        self._file = ""
        with suppress(Exception):  # no cache folder, which commands that need one report; whatever damaged data raises
            if (folder := _folder()).startswith("/"):  # a user without a home has `~`
                self._file = f"{folder}/compiled-{name}-{zlib.crc32(_VERSION):08x}.repros-snapshot"
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
        with suppress(Exception):  # no such names
            from re import DEBUG, _compiler  # type: ignore[attr-defined] # noqa: PLC0415 - see above

            names, compile_anew = vars(_compiler), _compiler.compile
            code, make = compile_anew.__code__, names["_sre"].compile

            def compile_expression(pattern: Any, flags: int = 0) -> Any:
                if not isinstance(pattern, (str, bytes)) or flags & DEBUG:  # a part of a scanner; it is to be printed
                    return compile_anew(pattern, flags)
                key = (pattern, int(flags))
                with suppress(Exception):  # a result of another format
                    if arguments := self._find(key):
                        return make(pattern, *arguments)
                made: list[tuple[Any, ...]] = []

                def record(pattern: str | bytes, *arguments: Any) -> Any:
                    made.append(arguments)
                    return make(pattern, *arguments)

                with suppress(Exception):  # of the expression, which it raises again
                    # Names of this call's own: another thread, or a signal's handler, may compile meanwhile.
                    own = FunctionType(code, {**names, "_sre": SimpleNamespace(compile=record)})
                    expression = own(pattern, flags)
                    for arguments in made:
                        # Operations are integers of a class of their own, which need not be kept.
                        self._add(key, [[*map(int, part)] if isinstance(part, list) else part for part in arguments])
                    return expression
                return compile_anew(pattern, flags)

            names["compile"] = compile_expression

    def keep_methods(self) -> None:
        """Let `dataclasses` use it in this process."""
        import dataclasses  # noqa: PLC0415 - the help needs none

        def execute(source: Any, globals: Any = None, locals: Any = None, **rest: Any) -> None:  # noqa: A002 - as `exec`
            code = self._find(source) if isinstance(source, str) else source
            if code is None:
                code = compile(source, "<string>", "exec", dont_inherit=True)
                self._add(source, code)
            if globals is None:
                caller = sys._getframe(1)  # noqa: SLF001 - as `exec` does
                globals, locals = caller.f_globals, caller.f_locals if locals is None else locals  # noqa: A001
            exec(code, globals, locals, **rest)  # noqa: S102 - as `dataclasses` does

        vars(dataclasses)["exec"] = execute

    def _find(self, key: _Key) -> Any:
        """Return a result, or None."""
        if key in self._kept:
            self._used.add(key)
        kept = self._kept.get(key) or self._new.get(key)
        return None if kept is None else marshal.loads(kept)  # noqa: S302 - see above

    def _add(self, key: _Key, result: list[Any] | CodeType) -> None:
        if len(self._new) < _MOST:
            with suppress(ValueError):  # an object that cannot be kept, such as a text of a class of its own
                marshal.dumps(key)
                self._new[key] = marshal.dumps(result)

    def save(self) -> None:
        """Write the file if it lacks many results; if that fails, or is interrupted, the file stays as it was."""
        if len(self._new) < _FEWEST or not self._file:
            return
        with suppress(Exception, KeyboardInterrupt):
            data = marshal.dumps((_VERSION, self._kept | self._new))
            if len(data) > _MOST_BYTES:
                used = {key: kept for key, kept in self._kept.items() if key in self._used}
                data = marshal.dumps((_VERSION, used | self._new))
            if len(data) <= _MOST_BYTES:
                self._write(data)

    def _write(self, data: bytes) -> None:
        from pathlib import Path  # noqa: PLC0415 - its import takes longer than the help

        file = Path(self._file)
        temporary = file.with_name(f"{file.name}.{os.getpid()}")
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
    is_chosen = any(name.startswith("REPROS_") for name in os.environ)  # by a variable that the import names
    if sys.platform == "linux" and not is_chosen and caches.startswith(("/", "~/")):
        return f"{os.path.expanduser(caches)}/repros/snapshots"  # noqa: PTH111 - see above
    from repros.model.cache import cache_folder  # noqa: PLC0415 - see above

    return str(cache_folder() / "snapshots")
