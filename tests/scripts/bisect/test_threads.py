"""What was found for public threads: the table is theirs, and each answer says what it is."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from tools.measure.bisect_threads import FILE, TOYS, read_threads, write_found
from tools.measure.bisect_threads_table import agrees, says

THREADS = read_threads()


def test_the_threads_are_of_several_packages_and_each_has_a_script_of_its_own() -> None:
    assert len({thread["package"] for thread in THREADS}) > 4
    assert sorted(thread["script"] for thread in THREADS) == sorted(path.name for path in TOYS.glob("*.py"))


@pytest.mark.parametrize("thread", THREADS, ids=lambda thread: thread["script"])
def test_what_was_found_lies_where_the_thread_says_or_the_entry_explains_why_not(thread: dict[str, Any]) -> None:
    assert urlsplit(str(thread["address"])).path.count("/") == 4
    assert agrees(thread) is not ("why" in thread)
    assert thread.get("posted", [thread["found"]["until"], thread["found"]["since"]]) == [
        thread["found"]["until"],
        thread["found"]["since"],
    ]


@pytest.mark.parametrize("thread", THREADS, ids=lambda thread: thread["script"])
def test_a_script_fails_on_the_side_on_which_the_thread_says_it_does(thread: dict[str, Any]) -> None:
    failing, working = ("before", "after") if thread.get("repaired") else ("after", "before")
    shown = thread["found"][failing], thread["found"][working]
    ends_well = [text == "clean" or text.startswith("good ") for text in shown]
    assert ends_well == [False, True] or (ends_well == [False, False] and thread["found"]["unknown"])


def test_threads_are_written_as_they_were_read(tmp_path: Path) -> None:
    copy = tmp_path / "threads.toml"
    copy.write_text(FILE.read_text("utf-8"), "utf-8")
    for thread in THREADS:
        write_found(thread["script"], thread["found"], copy)
    assert copy.read_text("utf-8") == FILE.read_text("utf-8")


def test_a_repair_names_the_release_that_fails_first() -> None:
    thread = {"says": ["1.0.0", "1.0.1"], "repaired": True, "changelog": "1.0.1"}
    assert says(thread) == "1.0.0 fails, 1.0.1 does not (1.0.1 by the changelog)"
    assert says({"says": ["", "1.1.0"]}) == "1.1.0 fails"
