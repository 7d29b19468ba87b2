"""Formats of an audit report, one module each, without side effects."""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum
from functools import partial
from importlib import import_module

from repros.advise.audit.report import AuditReport
from repros.text.styled import Text


class FormatName(StrEnum):
    """The formats to choose from."""

    TEXT = "text"
    JSON = "json"
    MARKDOWN = "markdown"
    SARIF = "sarif"


_MODULES = {
    FormatName.TEXT: "text",
    FormatName.JSON: "json_format",
    FormatName.MARKDOWN: "markdown",
    FormatName.SARIF: "sarif",
}


AuditFormat = Callable[[AuditReport], str | Text]
"""Renders a whole report: styled text for a console, or a string for a program."""


def choose_format(name: FormatName, *, width: int, verbose: bool, show_all: bool) -> AuditFormat:
    """Return the renderer of this name.

    Args:
        name: the format.
        width: columns, for text.
        verbose: whether the text has all details of each failure.
        show_all: whether the text lists the failures that are only counted otherwise.
    """
    # Imports only the requested module, to keep the start-up time of `repros audit` low.
    module = import_module(f"{__name__}.{_MODULES[name]}")
    options = {"width": width, "verbose": verbose, "show_all": show_all} if name is FormatName.TEXT else {}
    return partial(getattr(module, f"render_{name}"), **options)
