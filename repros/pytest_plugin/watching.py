"""Tests of other projects under the watch: the option `--repro-watch`, and the fixture `repro_watch`."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import pytest

from repros.diagnose.watch.incode import ignore_finding, watching
from repros.diagnose.watch.report import Found
from repros.diagnose.watch.text import format_finding

_WIDTH = 100


@contextlib.contextmanager
def failing_on_findings(item: pytest.Item, when: str) -> Iterator[list[Found]]:
    """Watch the block, and fail the test on a finding.

    A test that fails anyway keeps its error; the findings become a section of its report.

    Args:
        item: the test.
        when: the phase whose report gets the section: `call` or `teardown`.
    """
    findings: list[Found] = []
    try:
        with watching(ignore_finding, skip=item.config.getoption("repro_watch_skip")) as findings:
            yield findings
    except Exception:
        if findings:
            item.add_report_section(when, "repros watch", _text(findings))
        raise
    if findings:
        pytest.fail(_text(findings), pytrace=False)


def _text(findings: list[Found]) -> str:
    return "\n".join(format_finding(finding, ids, _WIDTH) for finding, ids in findings)
