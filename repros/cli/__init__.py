"""The `repros` command: a room with a file per group of commands."""

from __future__ import annotations

from repros.cli.main import main

__all__ = ["main"]
