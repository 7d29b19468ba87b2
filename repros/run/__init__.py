"""Runs one cell and returns what was seen; nothing else in the project knows how a cell is run."""

from repros.run.cold import run

__all__ = ["run"]
