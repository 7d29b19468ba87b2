"""pip's settings, in uv's words.

uv does not read pip's configuration. Who has set up a mirror, a folder of wheels or a certificate for pip
expects them to hold here too, so they are handed on, each unless uv's own setting is there already.

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
"""pip's option: the variable that uv has for it, then the older names that uv still reads."""

_SEPARATORS = {"find-links": ",", "extra-index-url": " "}
"""How uv separates the values of options that may have several; pip does it with white space."""


def uv_settings(environ: Mapping[str, str], files: Iterable[Path] | None = None) -> dict[str, str]:
    """Return the environment variables that make uv behave as pip is set up to.

    Args:
        environ: the environment; `PIP_*` variables win over the files, uv's own variables over both.
        files: pip's configuration files, later ones winning; None means where pip looks for them.
    """
    pip = _from_files(configuration_files(environ) if files is None else files)
    pip.update({option: value for option in _UV_NAMES if (value := environ.get(_variable(option)))})
    settings = {}
    for option, value in pip.items():
        name, *older = _UV_NAMES[option]
        if not any(known in environ for known in (name, *older)):
            settings[name] = _SEPARATORS[option].join(value.split()) if option in _SEPARATORS else value
    if "UV_INDEX" in settings and "UV_INDEX_STRATEGY" not in environ:
        # pip takes the best version of all indexes; uv by default stops at the first that has the name.
        settings["UV_INDEX_STRATEGY"] = "unsafe-best-match"
    return settings


def configuration_files(environ: Mapping[str, str]) -> list[Path]:
    """Return where pip looks for its configuration, global ones first."""
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
    found = {}
    for file in files:
        parser = configparser.RawConfigParser()
        try:
            parser.read(file, encoding="utf-8")
        except (configparser.Error, UnicodeDecodeError):
            continue  # pip itself will say what is wrong with it
        for section in ("global", "install"):
            options = parser.items(section) if parser.has_section(section) else ()
            found.update({option: value for option, value in options if option in _UV_NAMES})
    return found


def _variable(option: str) -> str:
    return "PIP_" + option.upper().replace("-", "_")
