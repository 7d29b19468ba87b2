"""What changed between two stacks: each kind of change, and every sentence about the evidence that there is."""

from __future__ import annotations

import datetime as dt
import re
import tomllib
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest
from syrupy.assertion import SnapshotAssertion

from repros.engine import evidence, header
from repros.engine.evidence import Evidence, Measurement, Unit, VariantVerdict
from repros.engine.matrix.changes import ChangeKind, describe_changes, find_changes
from repros.engine.stacks import load_stacks
from repros.model import Device, Verdict
from repros.model.catalogue import Catalogue
from repros.model.settings import EVIDENCE
from tests.package_catalogue import load
from tests.toy_cells import TOYS

RAISES = header.read(TOYS / "raises.py")
OLD, NEW = {"torch": "2.13.0+cpu", "lightning": "2.6.6"}, {"torch": "2.15.0", "lightning": "2.6.6"}
SEEN = VariantVerdict(Verdict.REPRODUCED, "ValueError: the documented failure on {device}")
CLEAN = VariantVerdict(Verdict.CLEAN)


def measured(stack: str, versions: dict[str, str], device: Device = Device.CPU, **seen: VariantVerdict) -> Evidence:
    unit = Unit(stack, RAISES.id, device, "plain")
    facts = {"inputs": "x", "date": dt.date(2026, 11, 24), "launch": "warm", "platform": "Linux", "python": "3.11.7"}
    return {unit: Measurement(unit, **facts, versions=versions, processes=1, seconds=1.0, variants=seen)}  # type: ignore[arg-type]


def lines(*parts: Evidence) -> list[str]:
    known = {unit: found for part in parts for unit, found in part.items()}
    return list(describe_changes(Catalogue((RAISES,)), known, "old", "new"))


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (SEEN, VariantVerdict(Verdict.GONE)),
        (CLEAN, SEEN),
        (CLEAN, VariantVerdict(Verdict.REGRESSED, "x")),
        (SEEN, VariantVerdict(Verdict.DIFFERENT, "KeyError: `a`")),
        (CLEAN, VariantVerdict(Verdict.FLAKY)),
        (SEEN, replace(SEEN, signature=f"{'a' * 200}b")),
    ],
)
def test_each_kind_of_change(before: VariantVerdict, after: VariantVerdict, sentences: SnapshotAssertion) -> None:
    assert lines(measured("old", OLD, failing=before), measured("new", NEW, failing=after)) == sentences


def test_what_did_not_change_is_counted_and_what_was_not_measured_is_named(sentences: SnapshotAssertion) -> None:
    alone = measured("new", NEW, Device.SIM, failing=SEEN)
    both = measured("old", OLD, failing=SEEN, fixed=CLEAN), measured("new", NEW, failing=SEEN)
    assert lines(*both, alone) == sentences


def test_a_change_on_one_device_names_it(sentences: SnapshotAssertion) -> None:
    cpu = measured("old", OLD, failing=SEEN), measured("new", NEW, failing=CLEAN)
    sim = [measured(name, OLD, Device.SIM, failing=SEEN) for name in ("old", "new")]
    assert lines(*cpu, *sim)[0] == sentences


def test_a_variant_that_changed_alone_and_several_together(sentences: SnapshotAssertion) -> None:
    old = measured("old", OLD, failing=SEEN, fixed=CLEAN, gone=SEEN)
    bad = VariantVerdict(Verdict.UNFIXED, "x")
    assert lines(old, measured("new", NEW, failing=SEEN, fixed=bad, gone=SEEN))[0] == sentences
    assert lines(old, measured("new", NEW, failing=CLEAN, fixed=CLEAN, gone=CLEAN))[0] == sentences


@pytest.mark.parametrize(
    "versions",
    [
        {"torch": "2.15.0", "lightning": "2.7.0"},
        {"torch": "2.15.0"},
        {"torch": "2.13.0+cu128", "lightning": "2.6.6"},
    ],
)
def test_all_packages_that_differ_are_named_where_no_range_decides(
    versions: dict[str, str], sentences: SnapshotAssertion
) -> None:
    found = lines(measured("old", OLD, failing=SEEN), measured("new", versions, failing=CLEAN))
    assert found[0] == sentences


def test_the_sentences_of_two_stacks(sentences: SnapshotAssertion) -> None:
    # A later one may have changed there, too.
    catalogue = Catalogue(tuple(repro for repro in load() if repro.id <= "RPR-0052"))
    *found, last = describe_changes(catalogue, evidence.read(EVIDENCE), "2025-11", "2026-01")
    same, of = map(int, re.findall(r"\d+", last.partition(" failures")[0]))
    assert of - same == 4
    assert found == sentences


def read_raw(stack: str) -> dict[tuple[str, str, str, str], str]:
    """Return the verdicts of a stack's evidence as its files have them, by repro, device, strategy and variant."""
    found = {}
    for file in sorted((EVIDENCE / stack).glob("*-[0-9][0-9][0-9][0-9].toml")):
        for device, strategies in tomllib.loads(file.read_text("utf-8")).items():
            for strategy, table in strategies.items():
                for variant, seen in table["seen"].items():
                    found[file.stem, device, strategy, variant] = seen["verdict"]
    return found


@pytest.mark.parametrize(("old", "new"), [*pairwise(load_stacks())], ids=lambda name: name)
def test_every_change_is_in_the_files_and_no_other(old: str, new: str) -> None:
    """Recounted from the files, for all neighbours among the stacks."""
    before, after = read_raw(old), read_raw(new)
    fails, clean = {"reproduced", "regressed", "unfixed"}, {"clean", "gone"}
    wanted = {
        (kind, key[0], key[3])
        for key in before.keys() & after.keys()
        for kind, was, is_now in ((ChangeKind.GONE, fails, clean), (ChangeKind.NEW, clean, fails))
        if before[key] in was and after[key] in is_now
    }
    changes = find_changes(load(), evidence.read(EVIDENCE), old, new)
    told = {
        (change.kind, change.repro.id, name)
        for change in changes
        if change.kind in {ChangeKind.GONE, ChangeKind.NEW}
        for name in change.variants
    }
    assert told == wanted
    pins = load_stacks()[new].pins
    for change in changes:
        named = re.findall(r"([\w-]+) (\d[\w.]*)", str(change).partition(":")[0].partition(" with ")[2])
        assert named
        for package, version in named:
            assert pins[package].version == version
            assert load_stacks()[old].pins[package].version != version
        assert Path(change.repro.path).is_file()
