"""Read a pickle of plain values, as PyTorch's flight recorder writes it, and refuse any other.

A pickle is a program, and `pickle.loads` runs it. The recorder's writer (`torch/csrc/jit/serialization/pickler.cpp`)
only uses the operations that build dicts, lists, tuples, strings, numbers, booleans and None. So all operations are
checked before any is executed; one that could name a class, a function or an object outside of the file is refused.
"""

from __future__ import annotations

import io
import pickle
import pickletools
import re
from collections.abc import Iterator
from typing import Any, NoReturn

from repros.model.errors import ReprosError

_ALLOWED = frozenset(
    (
        *("PROTO", "FRAME", "STOP", "MARK", "POP", "POP_MARK", "DUP", "MEMOIZE", "NONE", "NEWTRUE", "NEWFALSE"),
        *("INT", "BININT", "BININT1", "BININT2", "LONG", "LONG1", "LONG4", "FLOAT", "BINFLOAT"),
        *("UNICODE", "BINUNICODE", "SHORT_BINUNICODE", "BINUNICODE8", "STRING", "BINSTRING", "SHORT_BINSTRING"),
        *("BINBYTES", "SHORT_BINBYTES", "EMPTY_DICT", "DICT", "SETITEM", "SETITEMS"),
        *("EMPTY_LIST", "LIST", "APPEND", "APPENDS", "EMPTY_TUPLE", "TUPLE", "TUPLE1", "TUPLE2", "TUPLE3"),
        *("PUT", "BINPUT", "LONG_BINPUT", "GET", "BINGET", "LONG_BINGET"),
    )
)
_PUTS = frozenset(("PUT", "BINPUT", "LONG_BINPUT"))
_COMMON = re.compile(
    rb"(?:[(0N\x88\x89}\]u)s\x85\x86\x87teal]|[Kqh].|M..|[Jj]....|r..[\x00-\x0f]\x00|G........|\x8a\x08........)*+",
    re.DOTALL,
)
"""A run of allowed operations of fixed length: values, tuples, lists, dicts, and memo indices below 2 ** 20."""
_LONGEST = 80
"""Characters of a quote in a sentence."""
_BROKEN = (
    *(pickle.UnpicklingError, ValueError, TypeError, IndexError, KeyError, EOFError, AttributeError, OverflowError),
    *(MemoryError, RecursionError),
)
"""The exceptions of `pickletools` and `pickle` for bytes that are not a complete pickle."""


def read_plain(raw: bytes, name: str) -> Any:
    """Return the value of a pickle of plain values.

    Args:
        raw: the pickle.
        name: the file's name in an error.

    Raises:
        ReprosError: the pickle is truncated or damaged, or contains anything but plain values; none of it was executed.
    """
    try:
        for operation, argument, offset in _uncommon_operations(raw):
            if operation.name not in _ALLOWED:
                quoted = f"{operation.name} {argument}" if argument is not None else operation.name
                raise ReprosError(
                    f"{name} is refused: its pickle has more than plain values ({_shorten(quoted)} at byte {offset}), "
                    "unlike the dump of a flight recorder; none of it was executed."
                )
            if operation.name in _PUTS and isinstance(argument, int) and argument > len(raw):
                raise ValueError(argument)  # Python would allocate a memo of this length
        return _PlainUnpickler(io.BytesIO(raw)).load()
    except _BROKEN as error:
        raise ReprosError(
            f"{name} is a truncated or damaged pickle ({_shorten(str(error)) or type(error).__name__}); expected a "
            "complete flight recorder dump."
        ) from error


def _uncommon_operations(raw: bytes) -> Iterator[tuple[pickletools.OpcodeInfo, Any, int]]:
    """Yield the operations that `pickletools` has to read; a dump's common ones, all allowed, are passed over.

    `pickletools` takes longer for a dump than everything else together.
    """
    stream, at = io.BytesIO(raw), 0
    while True:
        at = end.end() if (end := _COMMON.match(raw, at)) else at
        if raw[at : at + 1] == pickle.BINUNICODE:
            at += 5 + int.from_bytes(raw[at + 1 : at + 5], "little")
            continue
        stream.seek(at)
        operation, argument, _ = next(pickletools.genops(stream))
        yield operation, argument, at
        if operation.name == "STOP":
            return
        at = stream.tell()


class _PlainUnpickler(pickle.Unpickler):
    """A second line of defence after the check of the operations: no name is ever resolved."""

    def find_class(self, module: str, name: str) -> NoReturn:
        """Refuse every class and function."""
        raise pickle.UnpicklingError(f"{module}.{name}")

    def persistent_load(self, pid: Any) -> NoReturn:
        """Refuse every reference to an object outside of the file."""
        raise pickle.UnpicklingError(f"the persistent id {pid}")


def _shorten(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _LONGEST else f"{line[:_LONGEST]}..."
