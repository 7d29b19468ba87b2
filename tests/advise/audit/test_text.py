"""Audit reports as text, as whole outputs."""

from __future__ import annotations

from itertools import pairwise

import pytest

from repros.advise.audit.assessment import AuditStatus
from repros.advise.audit.formats.text import render_text
from tests.advise.audit.samples import make_report, report_on_the_catalogue

TEXT = """\
requirements.txt: 10 documented failures: 5 affected (3 fixed in a newer release), 1 possible, 1 unknown, 2 not
  affected, 1 ignored

Bugs, fixed in a newer release (2)
  RPR-0001 The LR finder leaves results behind: fixed in lightning>=2.4
  RPR-0002 A toy (silent): fixed in lightning>=2.6

Bugs, fixed in no release yet (1)
  RPR-0008 A toy

Limitations (1)
  RPR-0010 A toy: fixed in lightning>=2.3,<2.4 or lightning>=2.5

Misuse (1)
  RPR-0009 A toy

Bugs, fixed in a newer release; possible, depending on the release that is installed (1)
  RPR-0003 A toy: fixed in accelerate>=1

Unknown
  bitsandbytes is not listed: RPR-0004
  not parsed: requirements.txt:9: 'x y' (not a requirement)
  to find out, audit the installed environment: repros audit --python PATH

ignored RPR-0006 until 2027-01-31: we know
expired ignore RPR-0008: ended on 2026-01-31 (we knew); renew it, or upgrade
unused ignore RPR-0005: not affected

reasons, workarounds and evidence: --verbose
one failure in full: repros show RPR-0001"""
VERBOSE = """\
requirements.txt: 10 documented failures: 5 affected (3 fixed in a newer release), 1 possible, 1 unknown, 2 not
  affected, 1 ignored

Bugs, fixed in a newer release (2)

RPR-0001 The LR finder leaves results behind
  because     lightning 2.2 (requirements.txt:1) is in lightning>=2.1,<2.4
  fixed in    lightning>=2.4
  unaffected  lightning<2.1
  workaround  a fresh Trainer (variant fixed) https://example.org/2
  evidence    measured with these versions on cpu (stack 2023-12)
  more        repros show RPR-0001

RPR-0002 A toy (silent)
  because     lightning 2.2 (requirements.txt:1) is in lightning<2.6
  fixed in    lightning>=2.6
  workaround  a fresh Trainer (variant fixed) https://example.org/2
  evidence    documented, not measured
  more        repros show RPR-0002

Bugs, fixed in no release yet (1)

RPR-0008 A toy
  because     torch 2.7 (requirements.txt:2): every release
  fixed in    no release yet
  workaround  a fresh Trainer (variant fixed) https://example.org/2
  evidence    documented, not measured
  more        repros show RPR-0008

Limitations (1)

RPR-0010 A toy
  because     lightning 2.2 (requirements.txt:1) is in lightning>=2.1,<2.3
  fixed in    lightning>=2.3,<2.4 or lightning>=2.5
  unaffected  lightning<2.0 or lightning>=2.0.8,<2.1
  workaround  a fresh Trainer (variant fixed) https://example.org/2
  evidence    documented, not measured
  more        repros show RPR-0010

Misuse (1)

RPR-0009 A toy
  because     torch 2.7 (requirements.txt:2): every release
  workaround  a fresh Trainer (variant fixed) https://example.org/2
  evidence    documented, not measured
  more        repros show RPR-0009

Bugs, fixed in a newer release; possible, depending on the release that is installed (1)

RPR-0003 A toy
  because     accelerate >=0.20 (requirements.txt:3) may be in accelerate<1
  fixed in    accelerate>=1
  workaround  a fresh Trainer (variant fixed) https://example.org/2
  evidence    documented, not measured
  more        repros show RPR-0003

Unknown
  RPR-0004: bitsandbytes is not listed

  not parsed: requirements.txt:9: 'x y' (not a requirement)
  to find out, audit the installed environment: repros audit --python PATH

Not affected
  RPR-0005: lightning 2.2 (requirements.txt:1) is not in lightning<2
  RPR-0007: torch 2.7 (requirements.txt:2) is not in torch<2

ignored RPR-0006 until 2027-01-31: we know
expired ignore RPR-0008: ended on 2026-01-31 (we knew); renew it, or upgrade
unused ignore RPR-0005: not affected"""


def test_text() -> None:
    assert render_text(make_report(), width=120).plain == TEXT


def test_verbose_text() -> None:
    assert render_text(make_report(), width=120, verbose=True).plain == VERBOSE


@pytest.mark.parametrize("verbose", [False, True])
def test_text_fits_a_narrow_terminal(verbose: bool) -> None:
    lines = render_text(make_report(), width=60, verbose=verbose).plain.splitlines()
    assert max(map(len, lines)) <= 60


def test_a_wide_terminal_has_one_line_for_each_failure_and_a_narrow_one_breaks_it() -> None:
    done = report_on_the_catalogue()
    concerned = [assessment.repro.id for assessment in done.with_status(AuditStatus.AFFECTED)]
    for width in (80, 200):
        lines = render_text(done, width=width).plain.splitlines()
        assert max(map(len, lines)) <= width
        first = [line for line in lines if line.startswith("  RPR-")]
        assert sorted(line.split()[0] for line in first) == concerned
        if width == 200:
            following = [after for line, after in pairwise(lines) if line.startswith("  RPR-")]
            assert sum(line.startswith("   ") for line in following) == 0
