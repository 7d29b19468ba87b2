"""The golden logs: the repros found in each, and precision and recall over all."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from functools import cache

import pytest

from repros.diagnose.match import Confidence, LogMatch, SignatureIndex, match_log
from repros.diagnose.match.log import decode_lines
from repros.model import ExpectedOutcome, Raised
from tests.diagnose.match.golden_logs import GOLDEN, GoldenLog, read_golden_logs
from tests.package_catalogue import load, load_index

LOGS = tuple(read_golden_logs())
CATALOGUE = load()
FEWEST_POSITIVE, FEWEST_NEGATIVE = 60, 40
PRECISION, RECALL = 1.0, 0.95


@cache
def found(log: GoldenLog) -> LogMatch:
    return match_log(decode_lines(log.text.encode()), load_index())


def ids(result: LogMatch) -> set[str]:
    return {candidate.repro.id for candidate in result.candidates}


@pytest.mark.of_each_script
@pytest.mark.parametrize("log", LOGS, ids=lambda log: log.name)
def test_the_repros_found(log: GoldenLog) -> None:
    assert ids(found(log)) == set(log.expected)


@pytest.mark.of_all_scripts
def test_precision_and_recall(record_property: Callable[[str, object], None]) -> None:
    right = wrong = missed = 0
    for log in LOGS:
        here, expected = ids(found(log)), set(log.expected)
        right, wrong, missed = right + len(here & expected), wrong + len(here - expected), missed + len(expected - here)
    precision, recall = right / (right + wrong), right / (right + missed)
    positive = sum(bool(log.expected) for log in LOGS)
    negative = len(LOGS) - positive
    over = f"{positive} logs of {len({id_ for log in LOGS for id_ in log.expected})} repros and {negative} logs of none"
    record_property("figure", f"repros match: precision {precision:.3f}, recall {recall:.3f} over {over}")
    assert positive >= FEWEST_POSITIVE
    assert negative >= FEWEST_NEGATIVE
    assert precision >= PRECISION
    assert recall >= RECALL
    for page in ("docs/usage.md", "docs/matching.md"):
        text = " ".join((GOLDEN.parents[3] / page).read_text(encoding="utf-8").split())
        assert f"precision and recall are {min(precision, recall):.3f}" in text, page


@pytest.mark.of_all_scripts
def test_every_log_has_one_entry_and_one_origin() -> None:
    assert len({log.name for log in LOGS}) == len(LOGS)
    assert {log.path for log in LOGS} == set(GOLDEN.glob("*.log"))
    for log in LOGS:
        assert sum(map(bool, (log.script, log.base, log.written))) == 1, log.name


def test_stacks_strategies_and_wrappers_are_spread() -> None:
    """The logs were captured on several stacks and with every launcher."""
    captured = [log for log in LOGS if log.script.startswith("RPR-")]
    assert {"2023-05", "2023-12", "2026-07"} <= {log.stack for log in captured}
    assert {"ddp", "ddp_spawn", "fused_adamw", "auto"} <= {log.arguments[1] for log in captured}
    launchers = Counter(log.how for log in captured)
    assert {"hand", "torchrun", "torchrun-tee", "pytest", "pytest-short", "ipython", "jupyter"} <= launchers.keys()


@pytest.mark.of_each_script
@pytest.mark.parametrize(
    "log", [log for log in LOGS if log.script.startswith("RPR-") and log.expected], ids=lambda log: log.name
)
def test_a_script_of_the_catalogue_is_certain(log: GoldenLog) -> None:
    assert [candidate.confidence for candidate in found(log).candidates] == [Confidence.CERTAIN]


@pytest.mark.of_each_script
@pytest.mark.parametrize("log", [log for log in LOGS if len(log.expected) > 1], ids=lambda log: log.name)
def test_alternatives_are_at_most_possible(log: GoldenLog) -> None:
    for candidate in found(log).candidates:
        assert candidate.confidence is Confidence.POSSIBLE
        assert set(candidate.alternatives) == set(log.expected) - {candidate.repro.id}


@pytest.mark.of_all_scripts
def test_documented_frames_were_seen_in_a_real_run() -> None:
    """If a captured log shows a signature with `frames`, one of them is on its stack."""
    seen: dict[str, set[str]] = {}
    wanted: dict[str, set[str]] = {}
    for log in LOGS:
        for candidate in found(log).candidates if log.script and log.expected else ():
            for occurrence in candidate.occurrences:
                seen.setdefault(candidate.repro.id, set()).update(occurrence.frames)
                wanted.setdefault(candidate.repro.id, set()).update(occurrence.match.entry.signature.frames)
    assert {id_ for id_, names in wanted.items() if names and not seen[id_]} == set()


@pytest.mark.of_all_scripts
def test_the_index_has_the_whole_catalogue() -> None:
    """Every documented exception is found by its own text, whatever word it is filed under."""
    index = SignatureIndex(CATALOGUE)
    for repro in CATALOGUE:
        for variant in repro.variants:
            signature = variant.signature
            if variant.outcome is ExpectedOutcome.FAILS and signature.raises:
                for text in signature.match:
                    raised = Raised(signature.raises, (), f"x {text} x", ())
                    assert repro.id in [match.entry.repro.id for match in index.find_matches(raised)]
