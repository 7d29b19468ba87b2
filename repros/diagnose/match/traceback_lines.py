"""Parse single lines of tracebacks as Python, IPython, pytest and rich print them.

Each function reads one line, in time linear in the line's length.
"""

from __future__ import annotations

import builtins
import re

HEADER = "Traceback (most recent call last)"
"""Python, IPython, rich, and pytest for exception chains all print this."""

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

_CLASS_ENDINGS = (
    "Error",
    "Exception",
    "Interrupt",
    "Exit",
    "Iteration",
    "Timeout",
    "ExceptionGroup",
    "Failure",
    "Warning",
)
_LONGEST_NAME = 200
_REPEATED_NAME = re.compile(r"(?P<name>[\w.]{4,60}?)(?P=name){1,7}$")
_PLAIN_WORDS = {"Error", "Warning"}
"""Log levels and headings that end like a class name but do not name one."""

# The base classes that a signature may name for an exception class that is not a builtin.
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


def parse_python_frame(text: str) -> str | None:
    """Return `file:line function` for a frame's line in Python's format, as the engine records frames."""
    found = _PYTHON.match(text) if 'File "' in text else None
    return _format_frame(found) if found else None


def parse_notebook_frame(text: str) -> str | None:
    """Return the frame in a line of IPython's format."""
    found = next((found for found in (pattern.match(text) for pattern in _NOTEBOOK) if found), None)
    return _format_frame(found) if found else None


def parse_rich_frame(text: str) -> str | None:
    """Return the frame in a line of rich's format."""
    found = _RICH.match(text)
    return _format_frame(found) if found else None


def match_pytest_location(text: str) -> re.Match[str] | None:
    """Match the line that ends a frame in pytest: groups `file` and `line`, and `function` or `type` if it has them."""
    return _PYTEST.match(text) if ".py:" in text else None


def parse_definition(text: str) -> str | None:
    """Return the function whose `def` a source line in pytest's traceback shows."""
    found = _DEFINITION.match(text)
    return found["function"] if found else None


def _format_frame(found: re.Match[str]) -> str:
    function = (found["function"] or "<module>").rpartition(".")[2].rstrip(",")
    return f"{found['file']}:{found['line'] or 0} {function}"


def parse_notebook_header(text: str) -> str | None:
    """Return the exception class in the header line of IPython's traceback."""
    found = _NOTEBOOK_HEADER.match(text)
    return found["type"] if found else None


def parse_exception(text: str) -> tuple[str, str | None] | None:
    """Return class and message if a line can be the last of a traceback: `RuntimeError: no`, `a.b.OddError`.

    The message is None for a class without a colon, and empty if the message begins on the next line.
    """
    name, colon, message = text.partition(":")
    name = name.strip(" `*#-")
    if not name or len(name) > _LONGEST_NAME or (colon and message and not message.startswith((" ", "\t"))):
        return None
    *modules, kind = name.split(".")
    if not all(part.isidentifier() for part in (*modules, kind)):
        return None
    is_class_name = kind.endswith(_CLASS_ENDINGS) and (modules or kind not in _PLAIN_WORDS)
    if not (is_class_name or (modules and colon and kind[0].isupper())):
        return None
    first_line = message.strip().rstrip("`*") if colon else None
    if repeated := _REPEATED_NAME.match(name):  # several ranks wrote parts of the same line at the same time
        return repeated["name"], first_line and first_line.lstrip(": ")
    return name, first_line


def base_names(name: str) -> tuple[str, ...]:
    """Return the qualified names of an exception's base classes as far as they are known, nearest first."""
    kind = name.rpartition(".")[2]
    builtin = getattr(builtins, kind, None)
    if "." not in name and isinstance(builtin, type) and issubclass(builtin, BaseException):
        return tuple(f"builtins.{base.__name__}" for base in builtin.__mro__[1:-1])
    return (*_FOREIGN_BASES.get(kind, ()), "builtins.Exception")


def qualified_name(name: str) -> str:
    """Return an exception's name with its module: Python prints builtin classes without it."""
    builtin = getattr(builtins, name, None)
    return f"builtins.{name}" if isinstance(builtin, type) and issubclass(builtin, BaseException) else name
