"""The lines of which tracebacks are made, in each way that they are printed.

Every function looks at one line and costs no more than its length.
"""

from __future__ import annotations

import builtins
import re

HEADER = "Traceback (most recent call last)"
"""Python's, IPython's, pytest's for chains and rich's alike."""

_PYTHON = re.compile(r'[ |]*File "(?P<file>[^"]{1,4096})", line (?P<line>\d{1,9})(?:, in (?P<function>.+))?$')
_NOTEBOOK = (
    re.compile(r"(?:File )?(?P<file>[^\s:()][^:()]{0,4095}):(?P<line>\d{1,9})(?:, in (?P<function>[^\s(]{1,500}).*)?$"),
    re.compile(
        r"(?P<file>(?:Cell|Input) In ?\[\d{1,6}\])(?:, line (?P<line>\d{1,9}))?(?:, in (?P<function>[^\s(]{1,500}).*)?$"
    ),
    re.compile(r"(?P<file><ipython-input-[\w-]{1,80}>|[~/][^\s:()]{0,4095}) in (?P<function>[^\s(]{1,500})(?P<line>)"),
)
_PYTEST = re.compile(
    r"(?P<file>[^\s:]{1,4096}\.py):(?P<line>\d{1,9}): ?(?:in (?P<function>\S{1,500})|(?P<type>[A-Za-z_][\w.]*))?$"
)
_RICH = re.compile(r"[│|] ?(?P<file>[^\s:]{1,4096}):(?P<line>\d{1,9}) in (?P<function>\S{1,500})")
_NOTEBOOK_HEADER = re.compile(r"(?P<type>[A-Za-z_][\w.]{0,200}) +" + re.escape(HEADER) + "$")
_DEFINITION = re.compile(r"[> ] +(?:async )?def (?P<function>\w{1,500})\(")

_ENDINGS = ("Error", "Exception", "Interrupt", "Exit", "Iteration", "Timeout", "ExceptionGroup", "Failure", "Warning")
_LONGEST_TYPE = 200
_GLUED = re.compile(r"(?P<name>[\w.]{4,60}?)(?P=name){1,7}$")
_BARE = {"Error", "Warning"}
"""Words that a log puts before a colon without meaning a class."""

# Where the class of a traceback's last line is not one of Python's own: what a signature may name in its place.
# Sources: torch/csrc/Exceptions.cpp and torch/multiprocessing/spawn.py.
_FOREIGN_BASES = {
    "AcceleratorError": ("builtins.RuntimeError",),
    "DistBackendError": ("torch.distributed.DistError", "builtins.RuntimeError"),
    "DistError": ("builtins.RuntimeError",),
    "DistNetworkError": ("torch.distributed.DistError", "builtins.RuntimeError"),
    "DistStoreError": ("torch.distributed.DistError", "builtins.RuntimeError"),
    "LinAlgError": ("builtins.RuntimeError",),
    "OutOfMemoryError": ("builtins.RuntimeError",),
    "ProcessExitedException": ("torch.multiprocessing.spawn.ProcessException",),
    "ProcessRaisedException": ("torch.multiprocessing.spawn.ProcessException",),
    "UnpicklingError": ("_pickle.PickleError",),
}


def frame(text: str) -> str | None:
    """Return `file:line function` for a frame's line of Python's own, as the engine records frames."""
    found = _PYTHON.match(text) if 'File "' in text else None
    return _told(found) if found else None


def notebook_frame(text: str) -> str | None:
    """Return a frame of IPython's."""
    found = next((found for found in (pattern.match(text) for pattern in _NOTEBOOK) if found), None)
    return _told(found) if found else None


def rich_frame(text: str) -> str | None:
    """Return a frame of rich's."""
    found = _RICH.match(text)
    return _told(found) if found else None


def pytest_place(text: str) -> re.Match[str] | None:
    """Return a match with `file`, `line` and perhaps `function` or `type` for the line that ends a frame in pytest."""
    return _PYTEST.match(text) if ".py:" in text else None


def definition(text: str) -> str | None:
    """Return the function that a line of source in pytest's traceback begins."""
    found = _DEFINITION.match(text)
    return found["function"] if found else None


def _told(found: re.Match[str]) -> str:
    function = (found["function"] or "<module>").rpartition(".")[2].rstrip(",")
    return f"{found['file']}:{found['line'] or 0} {function}"


def notebook_type(text: str) -> str | None:
    """Return the class that IPython's header names."""
    found = _NOTEBOOK_HEADER.match(text)
    return found["type"] if found else None


def last(text: str) -> tuple[str, str | None] | None:
    """Return class and message if a line looks like the last of a traceback: `RuntimeError: no`, `a.b.OddError`.

    The message is None where there is none, and empty where it begins on the next line.
    """
    name, colon, message = text.partition(":")
    name = name.strip(" `*#-")
    if not name or len(name) > _LONGEST_TYPE or (colon and message and not message.startswith((" ", "\t"))):
        return None
    *modules, kind = name.split(".")
    if not all(part.isidentifier() for part in (*modules, kind)):
        return None
    named = kind.endswith(_ENDINGS) and (modules or kind not in _BARE)
    if not (named or (modules and colon and kind[0].isupper())):
        return None
    said = message.strip().rstrip("`*") if colon else None
    if glued := _GLUED.match(name):  # ranks that write the pieces of one line at the same time
        return glued["name"], said and said.lstrip(": ")
    return name, said


def bases(name: str) -> tuple[str, ...]:
    """Return the dotted names of a class's bases as far as they are known, nearest first."""
    kind = name.rpartition(".")[2]
    own = getattr(builtins, kind, None)
    if "." not in name and isinstance(own, type) and issubclass(own, BaseException):
        return tuple(f"builtins.{base.__name__}" for base in own.__mro__[1:-1])
    return (*_FOREIGN_BASES.get(kind, ()), "builtins.Exception")


def dotted(name: str) -> str:
    """Return a class's whole name: Python prints those of its own without their module."""
    own = getattr(builtins, name, None)
    return f"builtins.{name}" if isinstance(own, type) and issubclass(own, BaseException) else name
