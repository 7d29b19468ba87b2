"""Documented training-framework failures that run, and a verdict with evidence for each."""

__version__ = "0.1.0"
