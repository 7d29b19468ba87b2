from __future__ import annotations

import pytest

from repros.model import Category, Verdict

TABLE = {
    # verdict: category, shows the failure, ran clean, disagrees
    Verdict.REPRODUCED: (Category.AGREES, True, False, False),
    Verdict.CLEAN: (Category.AGREES, False, True, False),
    Verdict.GONE: (Category.NEWS, False, True, True),
    Verdict.REGRESSED: (Category.NEWS, True, False, True),
    Verdict.UNFIXED: (Category.TROUBLE, True, False, True),
    Verdict.DIFFERENT: (Category.TROUBLE, False, False, True),
    Verdict.FLAKY: (Category.TROUBLE, False, False, True),
    Verdict.UNAVAILABLE: (Category.SKIPPED, False, False, False),
    Verdict.INFRA: (Category.NOT_JUDGED, False, False, True),
}


@pytest.mark.parametrize("verdict", Verdict)
def test_a_verdict_has_these_properties(verdict: Verdict) -> None:
    assert (verdict.category, verdict.shows_failure, verdict.ran_clean, verdict.disagrees) == TABLE[verdict]
