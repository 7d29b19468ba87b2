"""What was found for public threads: the table is theirs, and each answer says what it is."""

from __future__ import annotations

from urllib.parse import urlsplit

import pytest

from tests.tools.bisect_threads import TOYS, read_threads
from tests.tools.bisect_threads_table import PAGE, agrees, fill

THREADS = read_threads()


def test_the_table_is_that_of_the_kept_answers() -> None:
    page = PAGE.read_text("utf-8")
    assert fill(page) == page, "run: python -m tests.tools.bisect_threads_table"


def test_the_threads_are_of_several_packages_and_each_has_a_script_of_its_own() -> None:
    assert len({thread["package"] for thread in THREADS}) > 4
    assert sorted(thread["script"] for thread in THREADS) == sorted(path.name for path in TOYS.glob("*.py"))


@pytest.mark.parametrize("thread", THREADS, ids=lambda thread: thread["script"])
def test_what_was_found_lies_where_the_thread_says_or_the_entry_explains_why_not(thread: dict[str, object]) -> None:
    assert urlsplit(str(thread["address"])).path.count("/") == 4
    assert agrees(thread) is not ("why" in thread)
