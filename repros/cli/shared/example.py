"""The example at the end of a command's help."""

from __future__ import annotations


def example(*lines: str) -> str:
    r"""Return the example at the end of a command's help; click keeps the line breaks after `\b`."""
    return "\b\n" + "\n".join(["Example:", *(f"  {line}" for line in lines)])
