"""The `repros` command: a module per command, and `shared` for what several of them use."""

from __future__ import annotations

from repros.cli.main import main

__all__ = ["main"]
