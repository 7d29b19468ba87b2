"""The causes of a symptom that a report leaves and excludes: what it states decides on its own cause alone."""

from __future__ import annotations

import ast
from collections.abc import Sequence

import pytest

from repros.diagnose.issue import read_issue
from repros.diagnose.issue.facts import fact_reader, weigh
from repros.diagnose.issue.symptoms import check_of, find_symptom, load_symptoms
from repros.diagnose.messages.family import Cause

LOGGED = "```\nEpoch 2, global step 90: 'val_f1' was not in top 1\n```\n"


def causes_of(symptom: str, text: str) -> tuple[Sequence[Cause], Sequence[str]]:
    """Return the causes that a report leaves, and the texts of those that it excludes."""
    report = f"# A question\n\n{text}\n"
    causes = next(one.causes for one in load_symptoms() if one.name == symptom)
    weighed = weigh(causes, fact_reader(read_issue(report), report, frozenset))
    return weighed.possible, [cause.text for cause, _ in weighed.excluded]


@pytest.mark.parametrize(
    ("symptom", "text", "first", "excluded"),
    [
        ("not-saved", LOGGED, "direction", "name is not what is logged"),
        ("memory-kept", "memory_allocated() is 0. I tried empty_cache() without success.", "context", "cache, not"),
        ("not-saved", f"monitor='val_loss', on 2 ranks\n{LOGGED}", "the ranks compare", "direction"),
        ("memory-kept", "`torch.cuda.memory_allocated()` returns 0.", "context", "points at the tensors"),
    ],
)
def test_a_fact_excludes_its_own_cause_alone(symptom: str, text: str, first: str, excluded: str) -> None:
    possible, against = causes_of(symptom, text)
    assert first in possible[0].text
    assert any(excluded in one for one in against)
    assert not any(first in one for one in against)


@pytest.mark.parametrize(
    ("symptom", "text", "cause"),
    [
        ("not-saved", LOGGED, "a later save deletes it"),
        ("hang", "Training waits. Switching P2P off changes nothing.", "at the start"),
        ("memory-kept", "It keeps 40 GB.", "points at the tensors"),
    ],
)
def test_a_fact_leaves_other_causes(symptom: str, text: str, cause: str) -> None:
    possible, _ = causes_of(symptom, text)
    assert any(cause in one.text for one in possible)


@pytest.mark.parametrize("title", ["The loss is 0 from the start in DPO", "DPOTrainer: loss is 0.0"])
def test_a_check_of_dpo_has_no_groups(title: str) -> None:
    issue = read_issue(f"# {title}\n\nNothing else.\n")
    found = find_symptom(issue)
    assert found
    check = check_of(found.symptom, found.symptom.causes, issue)
    assert "num_generations" not in check
    ast.parse(check)


def test_a_check_of_preferences_can_be_pasted() -> None:
    check = next(one.check for one in load_symptoms() if one.name == "preference-reward-falls")
    ast.parse(check.partition(", and answers")[0])
    assert "rewards/margins," not in check
