"""Fuzzing of every parser of foreign input: any text gives a value or a sentence, within time and memory.

Briefly with the other tests; `nox -s fuzz` goes on for as long as `FUZZ_MINUTES` says, and then as long again guided by
coverage (`guided.py`). What was found is in `corpus/`.
"""

from __future__ import annotations

import os
import resource
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.fuzz.parsers import CORPUS, MEGABYTES, PARSERS, SEEDS, WORDS, check

MINUTES = float(os.environ.get("FUZZ_MINUTES", "0"))
"""Time for all parsers together; 0 for one short round of each."""
EXAMPLES = 1_000 if MINUTES else 60
"""Inputs of a round."""


def contents(name: str) -> st.SearchStrategy[bytes]:
    """Return a strategy for files: the format's own words in any order, any of them many times, or any bytes."""
    word = st.sampled_from(WORDS[name]) | st.text(max_size=5)
    repeated = st.builds(lambda one, times: one * times, word, st.sampled_from([1, 1, 1, 2, 50, 1_000]))
    words = st.lists(repeated, max_size=30).map(lambda parts: "".join(parts)[:20_000].encode("utf-8", "surrogatepass"))
    return words | st.binary(max_size=200)


@pytest.mark.slow
@pytest.mark.parametrize("name", PARSERS)
def test_any_content_gives_a_value_or_a_sentence(
    name: str, tmp_path_factory: pytest.TempPathFactory, record_property: Callable[[str, object], None]
) -> None:
    folder = tmp_path_factory.mktemp("fuzz")
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss

    @settings(max_examples=EXAMPLES, suppress_health_check=list(HealthCheck), print_blob=True)
    @given(contents(name))
    def fuzz(content: bytes) -> None:
        check(name, content, folder)

    end = time.monotonic() + 60 * MINUTES / len(PARSERS)
    rounds = 0
    while rounds == 0 or time.monotonic() < end:
        fuzz()  # begins with another seed each time
        rounds += 1
    record_property("figure", f"{name}: {rounds * EXAMPLES:,} inputs")
    grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
    assert grown < MEGABYTES


@pytest.mark.parametrize("name", PARSERS)
def test_the_guided_fuzzer_begins_with_a_valid_file(name: str, tmp_path: Path) -> None:
    file = tmp_path / name
    file.write_text(SEEDS[name], encoding="utf-8")
    PARSERS[name](file)


@pytest.mark.parametrize("file", sorted(CORPUS.glob("*")), ids=lambda file: file.name)
def test_what_was_found_stays_mended(file: Path, tmp_path: Path) -> None:
    name = next(name for name in PARSERS if file.name.endswith(f"-{name}"))
    check(name, file.read_bytes(), tmp_path)
