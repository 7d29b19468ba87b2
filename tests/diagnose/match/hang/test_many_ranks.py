"""The rank that left a training of many ranks is found, also by what the others' dumps say of it."""

from __future__ import annotations

import pytest

from repros.diagnose.match.hang.find import find_hang
from tests.diagnose.match.hang.made import dumps_of
from tests.diagnose.match.hang.programs_of_groups import Program
from tools.measure.hang_kinds import KINDS, judge


@pytest.mark.parametrize("ranks", [8, 64, 256])
def test_the_rank_that_left_is_found_among_many(ranks: int) -> None:
    program = Program(ranks, steps=3)
    for culprit, stops in ((0, 5), (ranks - 1, 6), (ranks // 2 + 1, 7), (3, 8)):
        dumps = program.hang(culprit, stops)
        assert find_hang(dumps_of(dumps)).roots == (culprit,), (culprit, stops)
        del dumps[culprit]
        without = find_hang(dumps_of(dumps))
        assert (without.roots, without.suspects) == ((), (culprit,)), (culprit, stops)


@pytest.mark.parametrize("name", KINDS)
def test_each_kind_of_hang_names_its_rank_and_no_other(name: str) -> None:
    kind, is_last = KINDS[name]
    for ranks in (4, 64):
        culprits = (1, ranks - (1 if is_last else 2))
        assert [judge(kind, ranks, culprit) for culprit in culprits] == ["right"] * 2
