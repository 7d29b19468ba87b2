"""Read a pickle that holds plain values alone, as PyTorch's flight recorder writes it.

A pickle is a program, and `pickle.loads` runs it. The recorder's writer (`torch/csrc/jit/serialization/pickler.cpp`)
uses the operations that build dicts, lists, tuples, text, numbers, booleans and None, and no other. So every operation
is looked at before one is carried out, and the first that could name a class, a function or an object outside of the
file ends the reading.
"""

from __future__ import annotations

import io
import pickle
import pickletools
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
_LONGEST = 80
"""Characters of a quote in a sentence."""
_BROKEN = (
    *(pickle.UnpicklingError, ValueError, TypeError, IndexError, KeyError, EOFError, AttributeError, OverflowError),
    *(MemoryError, RecursionError),
)
"""What `pickletools` and `pickle` raise for bytes that are no whole pickle."""


def read_plain(raw: bytes, name: str) -> Any:
    """Return the value of a pickle of plain values.

    Args:
        raw: the pickle.
        name: the file's name in an error.

    Raises:
        ReprosError: the pickle is cut off or damaged, or holds anything but plain values; nothing of it was run.
    """
    try:
        for operation, argument, place in pickletools.genops(raw):
            if operation.name not in _ALLOWED:
                what = f"{operation.name} {argument}" if argument is not None else operation.name
                raise ReprosError(
                    f"{name} is refused: its pickle holds more than plain values ({_shorten(what)} at byte {place}), "
                    "and a flight recorder's dump holds nothing else; nothing of it was run."
                )
            if operation.name in _PUTS and isinstance(argument, int) and argument > len(raw):
                raise ValueError(argument)  # a place in a memo that Python would make as long as the number says
        return _PlainUnpickler(io.BytesIO(raw)).load()
    except _BROKEN as error:
        raise ReprosError(
            f"{name} is a pickle that is cut off or damaged ({_shorten(str(error)) or type(error).__name__}); expected "
            "the dump of a flight recorder, whole."
        ) from error


class _PlainUnpickler(pickle.Unpickler):
    """A second wall behind the look at the operations: no name is ever looked up."""

    def find_class(self, module: str, name: str) -> NoReturn:
        """Refuse every class and function."""
        raise pickle.UnpicklingError(f"{module}.{name}")

    def persistent_load(self, pid: Any) -> NoReturn:
        """Refuse every reference to an object outside of the file."""
        raise pickle.UnpicklingError(f"the persistent id {pid}")


def _shorten(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _LONGEST else f"{line[:_LONGEST]}..."
