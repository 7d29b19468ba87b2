"""Temporary changes of this process's environment variables."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Mapping


@contextlib.contextmanager
def changed_environ(changes: Mapping[str, str]) -> Iterator[None]:
    """Set environment variables of this process while the block runs, and restore them after it."""
    before = {name: os.environ.get(name) for name in changes}
    os.environ.update(changes)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value
