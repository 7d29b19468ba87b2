"""The `repros` command: a room with a file per group of commands."""

from repros.cli.main import main

__all__ = ["main"]
