"""Formats of an audit report: one module each, without side effects."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from functools import partial
from typing import Protocol

from rich.text import Text

from repros.audit.formats.json_format import render_json
from repros.audit.formats.sarif import render_sarif
from repros.audit.formats.text import render_text
from repros.audit.report import AuditReport


class FormatName(StrEnum):
    """The formats that the user can choose."""

    TEXT = "text"
    JSON = "json"
    SARIF = "sarif"


class AuditFormat(Protocol):
    """Renderer of an audit report."""

    def __call__(self, report: AuditReport, /) -> str | Text:
        """Return the whole report: styled text for a console, or a string for a program."""


def choose_format(name: FormatName, *, width: int, verbose: bool) -> AuditFormat:
    """Return the renderer of this name.

    Args:
        name: the format.
        width: columns, for text.
        verbose: whether the text lists unaffected and unknown failures one by one.
    """
    formats: Mapping[FormatName, AuditFormat] = {
        FormatName.TEXT: partial(render_text, width=width, verbose=verbose),
        FormatName.JSON: render_json,
        FormatName.SARIF: render_sarif,
    }
    return formats[name]
