"""A run of pytest in a process of its own."""

from __future__ import annotations

import pytest


def run_pytest(project: pytest.Pytester, *arguments: str) -> pytest.RunResult:
    # Loading Hypothesis takes longer than the rest of such a run.
    return project.runpytest_subprocess("-p", "no:hypothesispytest", *arguments, timeout=120)
