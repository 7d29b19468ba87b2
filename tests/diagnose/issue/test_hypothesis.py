"""What a reporter takes for the cause, and what would prove it."""

from __future__ import annotations

import shlex

import pytest

from repros.diagnose.issue import read_issue
from repros.diagnose.issue.hypothesis import find_hypothesis
from repros.diagnose.issue.proofs import ProofKind, Supposed, check_of_proof

BLOCK = "```\ntransformers==4.53.3\ntorch==2.6.0\n```\n"


@pytest.mark.parametrize(
    ("text", "proof", "place"),
    [
        (
            "I think transformers' masking_utils.py (line 70) turns the mask of `attention` into booleans.",
            ProofKind.VALUE,
            "masking_utils.py:70",
        ),
        ("The cause is utils/dist.py, which returns early (line 12).", ProofKind.NOT_REACHED, "utils/dist.py:12"),
        ("`Runner.load` does not take `weights_only`, so a user cannot set it.", ProofKind.NOT_GIVEN, ""),
        ("I found that `save_best` compares the metric before it is logged.", ProofKind.ORDER, ""),
        ("With `shard_size=1` the wrapper silently disables gradient synchronization.", ProofKind.NOT_SYNCHRONISED, ""),
        (
            "I suspect `scale_loss` in trainer.py. Removing the division there gave the expected norm.",
            ProofKind.UNDONE,
            "trainer.py",
        ),
        (
            "I suspect that the rows are dropped by `keep_all=False` in the collator of `batches`.",
            ProofKind.OPTION,
            "",
        ),
        (
            "I think the weights are not averaged because of `share_buckets=True` in the wrapper of `buckets`.",
            ProofKind.OPTION,
            "",
        ),
        ("It fails if some experts have no gradient on other ranks.", ProofKind.RANKS, ""),
        ("I suspect that the labels of the set are corrupted.", ProofKind.DATA, ""),
        (
            "It can be fixed by replacing the line `self.a_a = load(path)` in torch/optim/some.py.",
            ProofKind.QUOTED_LINE,
            "torch/optim/some.py",
        ),
        ("I am not sure, but I think `scale_loss` in trainer.py is wrong.", ProofKind.VALUE, "trainer.py"),
    ],
)
def test_a_supposed_cause_has_a_proof(text: str, proof: ProofKind, place: str) -> None:
    found = find_hypothesis(read_issue(f"# A question\n\n{text}\n"))
    assert found
    assert (found.proof, found.place) == (proof, place)
    assert found.sentence in text
    assert found.check


@pytest.mark.parametrize(
    "text",
    [
        "The loss of `Some-7B` is NaN.",
        "I found that `fit` does not update the weights.",
        "I traced it to line 4 of loop.py, where it hangs.",
        "I think the model is too small.",
        "Is `use_cache` the cause of it?",
        "I found little documentation of `fit`.",
        "The problem is the loss.",
        "I do not know what the cause is; it happens in trainer.py with num_workers=8.",
        "The reason is unknown to me: trainer.py is as before.",
        "原因未知, 在 trainer.py 里。",
    ],
)
def test_no_supposed_cause(text: str) -> None:
    assert find_hypothesis(read_issue(f"# A question\n\n{text}\n")) is None


def test_the_release_that_tells_whether_it_is_new() -> None:
    text = "I traced it to transformers/masking_utils.py:70, which turns the mask into booleans."
    found = find_hypothesis(read_issue(f"# A question\n\n{text}\n\n{BLOCK}"))
    assert found
    assert found.release.startswith("pip install 'transformers<4.53'")
    unknown = find_hypothesis(read_issue(f"# A question\n\n{text}\n"))
    assert unknown
    assert unknown.release == ""


def test_a_check_has_the_names_of_the_report() -> None:
    text = "I think `pack_rows` in data/rows.py makes wrong `row_ids`."
    found = find_hypothesis(read_issue(f"# A question\n\n{text}\n"))
    assert found
    assert "'row_ids': row_ids" in found.check
    assert "data/rows.py" in found.check


@pytest.mark.parametrize("line", ["total = sums['a'] / count", "-sums['a'] + other(1)"])
def test_the_search_for_a_quoted_line_can_be_pasted(line: str) -> None:
    check = check_of_proof(ProofKind.QUOTED_LINE, Supposed("", f"It is the line `{line}` in torch/a.py."))
    grep = shlex.split(check.partition(" $(")[0])
    assert grep == ["grep", "-rnF", "-e", line]
