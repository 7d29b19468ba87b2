"""pip's settings as environment variables for uv.

uv does not read pip's configuration. pip's index, find-links and certificate settings are translated, each unless uv's
own variable is set.

Standard library only and any Python from 3.9 on: the noxfile runs this file before anything is installed.
"""

from __future__ import annotations

import configparser
import os
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path

_UV_NAMES = {
    "find-links": ("UV_FIND_LINKS",),
    "index-url": ("UV_DEFAULT_INDEX", "UV_INDEX_URL"),
    "extra-index-url": ("UV_INDEX", "UV_EXTRA_INDEX_URL"),
    "cert": ("SSL_CERT_FILE",),
}
"""uv's variable for each of pip's options, followed by deprecated names that uv still reads."""

_SEPARATORS = {"find-links": ",", "extra-index-url": " "}
"""Separators that uv expects in variables with several values; pip separates them by white space."""


def uv_settings(environ: Mapping[str, str], files: Iterable[Path] | None = None) -> dict[str, str]:
    """Return environment variables that configure uv like pip.

    Args:
        environ: environment variables; `PIP_*` override the files, uv's own variables override both.
        files: pip's configuration files, later ones taking precedence; None: those that pip reads.
    """
    pip = _from_files(configuration_files(environ) if files is None else files)
    pip.update({option: value for option in _UV_NAMES if (value := environ.get(_variable(option)))})
    settings = {}
    for option, value in pip.items():
        name, *older = _UV_NAMES[option]
        if not any(known in environ for known in (name, *older)):
            settings[name] = _SEPARATORS[option].join(value.split()) if option in _SEPARATORS else value
    if "UV_INDEX" in settings and "UV_INDEX_STRATEGY" not in environ:
        # pip takes the best version of all indexes; uv by default stops at the first index that has the package.
        settings["UV_INDEX_STRATEGY"] = "unsafe-best-match"
    return settings


def configuration_files(environ: Mapping[str, str]) -> list[Path]:
    """Return the paths of the configuration files that pip reads, global ones first."""
    chosen = environ.get("PIP_CONFIG_FILE")
    if chosen == os.devnull:
        return []
    home = Path(environ.get("HOME", "/"))
    shared = environ.get("XDG_CONFIG_DIRS", "/etc/xdg").split(":")
    return [
        *(Path(folder, "pip", "pip.conf") for folder in reversed(shared)),
        Path("/etc/pip.conf"),
        home / ".pip" / "pip.conf",
        Path(environ.get("XDG_CONFIG_HOME", home / ".config")) / "pip" / "pip.conf",
        Path(sys.prefix, "pip.conf"),
        *([Path(chosen)] if chosen else []),
    ]


def _from_files(files: Iterable[Path]) -> dict[str, str]:
    settings = {}
    for file in files:
        parser = configparser.RawConfigParser()
        try:
            parser.read(file, encoding="utf-8")
        except (configparser.Error, UnicodeDecodeError):
            continue  # pip itself reports the error
        for section in ("global", "install"):
            options = parser.items(section) if parser.has_section(section) else ()
            settings.update({option: value for option, value in options if option in _UV_NAMES})
    return settings


def _variable(option: str) -> str:
    return "PIP_" + option.upper().replace("-", "_")
