"""The files that a script may read and change, by Landlock: a second restriction behind the file system of its own."""

from __future__ import annotations

import os
import struct
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from repros.scripts.try_.inside import kernel

# The same numbers on every processor.
_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446
_VERSION, _PATH_BENEATH = 1, 1  # linux/landlock.h
_READ = 0b1101  # execute, read a file, read a folder
_WRITE = 0b1111111110010  # write, remove and make entries of every kind
_REFER, _TRUNCATE = 1 << 13, 1 << 14
_OF_FILES = 0b111 | _TRUNCATE
"""The rights that a rule for a file may give, unlike one for a folder."""
_ABSTRACT_SOCKETS, _SIGNALS = 1, 2
_SINCE_REFER, _SINCE_TRUNCATE, _SINCE_SCOPES = 2, 3, 6
"""Versions of Landlock."""


def isolate_files(settings: dict[str, Any]) -> None:
    """Restrict the file system to the folders that may be read, and those that may be changed.

    Raises:
        OSError: the system lacks Landlock, or it is switched off.
    """
    kernel.refuse_other_systems()
    libc = kernel.libc()
    version = kernel.check(libc.syscall(_CREATE_RULESET, None, 0, _VERSION))
    handled = _READ | _WRITE
    handled |= _REFER if version >= _SINCE_REFER else 0
    handled |= _TRUNCATE if version >= _SINCE_TRUNCATE else 0
    scopes = _ABSTRACT_SOCKETS | _SIGNALS if version >= _SINCE_SCOPES else 0
    attributes = struct.pack("QQQ", handled, 0, scopes)[: 24 if scopes else 8]
    rules = kernel.check(libc.syscall(_CREATE_RULESET, attributes, len(attributes), 0))
    _allow(rules, settings["readable"], handled & _READ)
    _allow(rules, settings["writable"], handled)
    kernel.check(libc.prctl(kernel.SET_NO_NEW_PRIVS, 1, 0, 0, 0))
    kernel.check(libc.syscall(_RESTRICT_SELF, rules, 0))
    os.close(rules)


def _allow(rules: int, paths: Iterable[str], rights: int) -> None:
    for path in paths:
        try:
            opened = os.open(path, os.O_PATH | os.O_CLOEXEC)
        except OSError:  # not on this system
            continue
        allowed = rights if Path(path).is_dir() else rights & _OF_FILES
        beneath = struct.pack("=Qi", allowed, opened)
        kernel.check(kernel.libc().syscall(_ADD_RULE, rules, _PATH_BENEATH, beneath, 0))
        os.close(opened)
