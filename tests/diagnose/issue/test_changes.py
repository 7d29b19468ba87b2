"""The change of release that a report states, in any wording, and what is known of it."""

from __future__ import annotations

import tomllib

import pytest
from packaging.version import Version

from repros.diagnose.issue import read_issue
from repros.diagnose.issue.changes import ReleaseChange, find_change
from repros.diagnose.issue.known_changes import find_known_changes, load_known_changes, stated_change
from repros.diagnose.messages.release_lists import (
    FILE,
    PACKAGES,
    first_release,
    is_listed,
    last_release,
    release_before,
    releases_between,
)

BOTH = (
    ("The grad norm doubles after moving accelerate from 1.3.0 to 1.4.0", "accelerate", "1.3.0", "1.4.0"),
    ("It worked with PyTorch 2.5.1 and broke: torch 2.5.1 -> 2.6.0", "torch", "2.5.1", "2.6.0"),
    ("Evaluation twice as slow: trl 0.15.0 vs 0.14.0", "trl", "0.14.0", "0.15.0"),
    ("peft 0.14.0 trains well. With 0.15.2 nothing is learned", "peft", "0.14.0", "0.15.2"),
    ("With transformers 4.49.0 all is fine, but 4.50.3 fails at the first step", "transformers", "4.49.0", "4.50.3"),
    ("Resume crashes in lightning 2.5.5; in 2.5.3 it still worked", "lightning", "2.5.3", "2.5.5"),
    ("It fails with torch2.9 and works with torch2.8", "torch", "2.8.0", "2.9.0"),
)
ONE = (
    ("Pinning transformers<4.50.x avoids it", "transformers", "4.49.0", ""),
    ("It used to work with trl 0.19.1", "trl", "0.19.1", ""),
    ("Downgrading to accelerate 1.3.0 fixes it.", "accelerate", "1.3.0", ""),
    ("Works on datasets 3.6.0, hangs on main", "datasets", "3.6.0", ""),
    ("Everything was fine until transformers 4.50.3", "transformers", "4.50.3", ""),
    ("Pinning transformers<4.50 helps", "transformers", "4.49.0", ""),
)
INFERRED = (
    ("It stopped working with trl 0.20.0", "trl", "0.19.1", "0.20.0"),
    ("Lightning 2.5.5 breaks my checkpoints", "lightning", "2.5.4", "2.5.5"),
    ("Since peft 0.15 the adapter is empty", "peft", "0.14.0", "0.15.0"),
    ("A regression in trl 0.20.0", "trl", "0.19.1", "0.20.0"),
)
NONE = (
    "I use torch 2.6.0 and python 3.11.4",
    "torch 2.6.0, transformers 4.48.0",
    "Python 3.12 works, 3.13 fails",
    "The loss is 0.84 with torch 2.8.0",
    "torch 2.5 and 2.6 both give the same NaN",
    "How do I make it work with transformers 5.0.0?",
    "It should work on trl 0.20.0",
    "Training is very slow when using torch2.9",
    "Training fails in trl 0.16.0",
    "trl 0.15.1, 0.16.0 and 0.17.0 all tried, it fails",
    "After moving to deepspeed 0.16.9 another error appears",
    "The loss went from 1.52 to 0.31 after the update",
)


@pytest.mark.parametrize(("text", "package", "old", "new"), [*BOTH, *ONE])
def test_the_ends_that_a_report_states(text: str, package: str, old: str, new: str) -> None:
    assert find_change(read_issue(f"# {text}\n\nThat is all.\n")) == ReleaseChange(package, old, new)
    assert find_change(read_issue(f"# A question\n\n{text}\n")) == ReleaseChange(package, old, new)


@pytest.mark.parametrize(("text", "package", "old", "new"), INFERRED)
def test_the_release_before_the_only_one_that_is_stated(text: str, package: str, old: str, new: str) -> None:
    change = find_change(read_issue(f"# {text}\n\nThat is all.\n"))
    assert change == ReleaseChange(package, old, new, is_inferred=True)


@pytest.mark.parametrize("text", NONE)
def test_releases_without_a_change(text: str) -> None:
    assert find_change(read_issue(f"# {text}\n\nThat is all.\n")) is None


def test_the_release_that_works_and_the_first_of_those_that_fail() -> None:
    issue = read_issue("# It works with torch 2.6.0 and fails with torch 2.7.0 / 2.7.1\n\nThat is all.\n")
    assert find_change(issue) == ReleaseChange("torch", "2.6.0", "2.7.0")


def test_the_environment_names_the_package_of_a_bare_version_and_the_newer_end() -> None:
    block = "```\ntransformers 4.52.1\ntorch 2.7.0\naccelerate 1.7.0\n```\n"
    bare = read_issue(f"# Version 4.52.1 breaks my collator\n\n{block}")
    assert find_change(bare) == ReleaseChange("transformers", "4.51.3", "4.52.1", is_inferred=True)
    older = read_issue(f"# The loss differs\n\nWith transformers 4.51.3 it works.\n\n{block}")
    assert find_change(older) == ReleaseChange("transformers", "4.51.3", "4.52.1")


def test_the_lists_know_which_release_precedes_another() -> None:
    assert release_before("torch", "2.9") == "2.8.0"
    assert release_before("torch", "99.0") == ""
    assert (first_release("torch", "2.9"), last_release("datasets", "4.8")) == ("2.9.0", "4.8.5")
    assert not releases_between("trl", "0.19.1", "0.20.0")
    assert is_listed("transformers", "4.48")
    assert not is_listed("transformers", "4.480")
    assert tomllib.loads(FILE.read_text("utf-8")).keys() == {*PACKAGES}


def test_known_changes_are_releases_with_a_source() -> None:
    known = [*load_known_changes()]
    assert known
    for one in known:
        assert is_listed(one.package, one.release.rpartition(".")[0])  # the first of a minor one may be withdrawn
        assert not one.until or Version(one.until) > Version(one.release)
        assert one.source
        assert not one.fix.endswith(".")


def test_a_known_change_needs_its_words_and_its_release() -> None:
    change = ReleaseChange("datasets", "3.6.0", "4.0.0")
    assert [one.release for one in find_known_changes(change, "the column has no sort")] == ["4.0.0"]
    assert find_known_changes(change, "the download is slow") == []
    assert find_known_changes(ReleaseChange("datasets", "4.0.0", "4.1.0"), "the column has no sort") == []


def test_a_release_that_alone_has_a_change_needs_no_other_one() -> None:
    text = "maybe_context_parallel finds no _cp_context"
    expected = ReleaseChange("accelerate", "1.11.0", "1.12.0", is_inferred=True)
    assert stated_change({"accelerate": ("1.12.0",)}, text) == expected
    assert stated_change({"accelerate": ("1.13.0",)}, text) is None
    assert stated_change({"accelerate": ("1.12.0",)}, "the loss is high") is None


@pytest.mark.parametrize(
    "text",
    [
        "trl 1.4.0 fails when I am fine-tuning with the default trainer.",
        "Downgraded verl to v0.3 and vllm is 0.8.3: it fails as well.",
        "Downgraded trl to 1.3.0, the same error.",
        "Seen after an upgrade: transformers 4.57.6 and 5.8.0 (both fail).",
        "`ipex` is deprecated, and will be removed in Accelerate v1.10. It fails.",
    ],
)
def test_no_change_is_read_from_other_words(text: str) -> None:
    assert find_change(read_issue(f"# A question\n\n{text}\n")) is None
