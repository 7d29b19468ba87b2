"""What a pass makes of a source: with each reduction alone, and with all."""

from __future__ import annotations

from textwrap import dedent
from typing import Any

from repros.scripts.reduce.code import Code


def each(pass_: Any, source: str) -> list[str]:
    """Return the source with each reduction alone."""
    code = Code(dedent(source))
    return [pass_.render(code, [reduction]) for reduction in pass_.reductions(code)]


def whole(pass_: Any, source: str) -> str:
    """Return the source with all reductions."""
    code = Code(dedent(source))
    rendered: str = pass_.render(code, pass_.reductions(code))
    return rendered


def changed(pass_: Any, *sources: str) -> list[str]:
    """Return those of the sources that a pass changes."""
    return [source for source in sources if whole(pass_, source) != dedent(source)]
