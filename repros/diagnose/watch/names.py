"""The names of the checks: what `--only` and `--skip` may choose, and what a header's `finds` may name."""

from __future__ import annotations

import inspect
from collections import Counter
from collections.abc import Iterable

from repros.diagnose.watch.identify import CRASH
from repros.diagnose.watch.inside.check import Check, first_words
from repros.diagnose.watch.inside.checks import families
from repros.model.errors import refuse_unknown

FIRST_NAN = ("nan",)
"""The first words of the checks that `--first-nan` asks for."""

_CRASH = Check(CRASH, "an exception that is a documented failure ended the program")


def declared_checks() -> tuple[Check, ...]:
    """Return every check, in the order of the documentation."""
    return (*(check for family in families() for check in family.CHECKS), _CRASH)


def fix_of(name: str) -> str:
    """Return what to do about the finding of a check; empty if only documented failures say so."""
    return next((check.fix for check in declared_checks() if check.name == name), "")


def explain(name: str) -> str:
    """Return the documentation of a check, which is that of its family, in Markdown.

    Raises:
        UnknownNameError: there is no such check; it offers the nearest name.
    """
    for family in families():
        for check in family.CHECKS:
            if check.name == name:
                fix = f"\n\n## Fix\n{check.fix}" if check.fix else ""
                return f"# {check.name}: {check.about}\n\n{inspect.getdoc(family) or ''}{fix}"
    refuse_unknown("check", [name], [check.name for family in families() for check in family.CHECKS])
    raise AssertionError("unreachable")


def refuse_unknown_checks(names: Iterable[str]) -> None:
    """Refuse a name that is neither a check's nor the first words of one: it would choose nothing.

    Raises:
        UnknownNameError: for the first of them; it offers the nearest name.
    """
    names, checks = list(names), [check.name for check in declared_checks()]
    beginnings = Counter(beginning for check in checks for beginning in first_words(check))
    # The first words of a single check choose it, too, but its whole name is the better hint.
    families_of_checks = [beginning for beginning, count in beginnings.items() if count > 1]
    refuse_unknown("check", (name for name in names if name not in beginnings), [*checks, *sorted(families_of_checks)])
