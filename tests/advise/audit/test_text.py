"""Audit reports as text, at the widths of terminals; `tests/cli/test_audit.py` has the whole text."""

from __future__ import annotations

from itertools import pairwise

import pytest

from repros.advise.audit.assessment import AuditStatus
from repros.advise.audit.formats.text import render_text
from tests.advise.audit.samples import EVERYTHING, make_report, report_on_the_catalogue


@pytest.mark.parametrize("verbose", [False, True])
def test_text_fits_a_narrow_terminal(verbose: bool) -> None:
    for report in (make_report(), make_report(EVERYTHING)):
        lines = render_text(report, width=60, verbose=verbose, show_all=True).plain.splitlines()
        assert max(map(len, lines)) <= 60


def test_a_wide_terminal_has_one_line_for_each_failure_and_a_narrow_one_breaks_it() -> None:
    done = report_on_the_catalogue()
    concerned = [assessment.repro.id for assessment in done.with_status(AuditStatus.AFFECTED)]
    for width in (80, 200):
        lines = render_text(done, width=width, show_all=True).plain.splitlines()
        assert max(map(len, lines)) <= width
        first = [line for line in lines if line.startswith("  RPR-")]
        assert sorted(line.split()[0] for line in first) == concerned
        if width == 200:
            following = [after for line, after in pairwise(lines) if line.startswith("  RPR-")]
            assert sum(line.startswith("   ") for line in following) == 0


def test_failures_that_are_not_reported_are_counted_and_all_are_listed_on_request() -> None:
    done = report_on_the_catalogue()
    reported = [assessment.repro.id for assessment in done.reported]
    assert all(assessment.fixed for assessment in done.reported)
    brief, everything = (render_text(done, width=500, show_all=every).plain for every in (False, True))
    assert sorted(line.split()[0] for line in brief.splitlines() if line.startswith("  RPR-")) == reported
    assert f"not reported: {len(done.others)} affected (" in brief
    assert "--all lists them" in brief
    assert "--all lists them" not in everything
    for assessment in done.others:
        assert assessment.repro.id in everything
