"""A test of the project's own that is about one of its documented failures."""

from __future__ import annotations

import pytest


@pytest.mark.repro("ACME-0001")
def test_all_samples_are_seen():
    assert sum([2, 2, 1]) == 5
