"""Documented training-framework failures that run, and a verdict with evidence for each."""

from __future__ import annotations

__version__ = "0.2.0"
