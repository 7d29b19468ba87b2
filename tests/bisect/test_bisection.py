"""Whole bisections: wheels of a few bytes, real environments, real cells."""

from __future__ import annotations

import datetime as dt
import json
import sys
from pathlib import Path
from textwrap import dedent

import pytest
from packaging.requirements import Requirement
from packaging.version import Version

from repros import environments
from repros.bisect.bisection import BisectionError, Probe, Question, bisect, question, remembered
from repros.bisect.releases import Release
from repros.bisect.search import Answer, Boundary, scan
from repros.bisect.swap import Swap, requirements
from repros.bisect.text import paragraph, record, steps
from repros.engine import catalogue
from repros.engine.plan import CellSpec, Selection, select
from repros.environments.uv import run_uv
from repros.model import Stack
from repros.model.stack import Size
from tests.matrix.test_measure import TORCH
from tests.tiny_stack import write_wheel

SCRIPT = dedent('''\
    # /// script
    # requires-python = ">=3.9"
    # dependencies = ["torch", "tinylib>=1.1"]
    #
    # [tool.repro]
    # id = "RPR-9201"
    # title = "A tiny library fails"
    # upstream = ["https://example.org/1"]
    # packages = ["tinylib"]
    # affected = ["tinylib<9"]
    # home = "current"
    # strategies = ["plain"]
    # devices = ["cpu"]
    # processes = 1
    #
    # [tool.repro.variants.failing]
    # outcome = "fails"
    # about = "fails"
    # raises = "ValueError"
    # match = "as documented"
    #
    # [tool.repro.variants.fixed]
    # outcome = "passes"
    # about = "passes"
    # ///
    """Symptom: it fails."""
    import tinylib

    tinylib.run()
    ''')

FINE = "def run(): pass\n"
FAILS = "def run(): raise ValueError('as documented')\n"
OTHERWISE = "def run(): raise KeyError('another failure')\n"
LIBRARY = {"1.1": FINE, "1.2": OTHERWISE, "1.3": FAILS, "1.4": FAILS, "1.6": FINE, "1.7": FINE}
"""1.5 is on the index and cannot be installed."""

RELEASES = [Release(Version(f"1.{minor}"), dt.date(2026, minor, 1), 1_200_000) for minor in range(1, 8)]


@pytest.fixture
def tiny(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Stack:
    monkeypatch.setenv("REPROS_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setenv("UV_CACHE_DIR", str(tmp_path / "uv"))
    monkeypatch.setenv("UV_FIND_LINKS", str(tmp_path))
    monkeypatch.setenv("UV_NO_INDEX", "1")
    monkeypatch.delenv("UV_TORCH_BACKEND", raising=False)
    write_wheel(tmp_path, "torch", TORCH)
    for version, source in LIBRARY.items():
        write_wheel(tmp_path, "tinylib", source, version)
    lock = tmp_path / "tiny.lock.txt"
    lock.write_text("# a lock\ntinylib==1.4    # via the stack itself\ntorch==1.0    # via the stack itself\n")
    python = f"{sys.version_info.major}.{sys.version_info.minor}"
    wanted = (Requirement("torch==1.0"), Requirement("tinylib==1.4"))
    return Stack("tiny", "for tests", python, wanted, dt.date(2026, 1, 1), lock, Size(2, 2))


@pytest.fixture
def spec(tmp_path: Path) -> CellSpec:
    script = tmp_path / "tiny_script.py"
    script.write_text(SCRIPT)
    (spec,) = select(catalogue.load([script]), Selection(variants=("failing",)))
    return spec


@pytest.fixture
def asked(spec: CellSpec, tiny: Stack) -> Question:
    return question(spec, tiny, "tinylib", RELEASES, None, None)


WHOLE = """\
RPR-9201 (A tiny library fails), failing, plain on cpu, with the versions of stack tiny (torch==1.0) but for tinylib: \
It begins with 1.3 (2026-03-01); 1.1 (2026-01-01) is free of it, and of those between (1.2) nothing is known. \
It is gone in 1.6 (2026-06-01); 1.4 (2026-04-01) is the last that shows it, \
and of those between (1.5) nothing is known. \
6 of 7 releases tried, each decided by 2 of up to 3 runs: 1.1 no, 1.2 unknown, 1.3 yes, 1.4 yes, 1.5 unknown, 1.6 no. \
Unknown: 1.2 (2 x different: rank 0 ended otherwise: KeyError: 'another failure'). Unknown: 1.5 (WHY)."""


@pytest.mark.slow
@pytest.mark.parametrize("every", [False, True], ids=["search", "scan"])
def test_both_ends_are_found_and_the_unknown_are_named(asked: Question, tmp_path: Path, *, every: bool) -> None:
    said = list[str]()
    finding, probes = bisect(asked, tmp_path / "memory", said.append, every=every)
    assert finding.begins == Boundary(affected=2, free=0, unknown=(1,))
    assert finding.ends == Boundary(affected=3, free=5, unknown=(4,))
    assert not list((tmp_path / "cache" / "environments").glob("*-copy")), "the copy is gone"
    text = paragraph(asked, finding, probes)
    why = probes[4].why
    assert why.startswith("cannot be installed: uv pip compile: No solution found")
    if every:
        assert "7 of 7 releases tried" in text
        assert len(probes) == 7
    else:
        assert text == WHOLE.replace("WHY", why)
        assert "tinylib 1.4 (2026-04-01): yes: 2 x ValueError: as documented" in said


@pytest.mark.slow
def test_answers_are_kept_and_an_interrupted_bisection_goes_on(asked: Question, tmp_path: Path) -> None:
    memory = tmp_path / "memory"

    def interrupt(line: str) -> None:
        if ": no: " in line:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        bisect(asked, memory, interrupt)
    kept = {probe.version for probe in remembered(memory / "answers.jsonl")}
    assert "1.4" in kept
    assert not list((tmp_path / "cache" / "environments").glob("*-copy"))
    with (memory / "answers.jsonl").open("a") as file:
        file.write('{"version": "1.')
    finding, _ = bisect(asked, memory, lambda _: None)
    assert finding.begins == Boundary(affected=2, free=0, unknown=(1,))
    # A third time nothing is run, but for what could not be installed: the network may be back.
    runs = len(list((memory / "runs").glob("*/1.*/1")))
    again, probes = bisect(asked, memory, lambda _: None)
    assert again == finding
    assert len(list((memory / "runs").glob("*/1.*/1"))) == runs
    json.dumps(record(asked, again, probes, "Linux", "2026-11-21"))


@pytest.mark.slow
def test_a_start_that_does_not_show_the_failure_is_said(spec: CellSpec, tiny: Stack, tmp_path: Path) -> None:
    asked = question(spec, tiny, "tinylib", RELEASES, None, Version("1.6"))
    finding, probes = bisect(asked, tmp_path / "memory", lambda _: None)
    assert finding.begins is None
    assert paragraph(asked, finding, probes).endswith(
        " 1.6 (2026-06-01) does not show the failure (2 x ran to its end); name one that does with --bad."
    )


@pytest.mark.parametrize(
    ("answers", "said"),
    [
        ("++++", "It is there from 1.1 (2026-01-01) on; the oldest that can be tried. It is still there in 1.4 "),
        ("++++", " It is still there in 1.4 (2026-04-01); the newest that can be tried. 4 of 4 releases tried, "),
        ("??++", "It is there from 1.3 (2026-03-01) on; the older ones have no answer. "),
    ],
)
def test_an_end_that_is_open_is_said_to_be(spec: CellSpec, tiny: Stack, answers: str, said: str) -> None:
    asked = question(spec, tiny, "tinylib", RELEASES[:4], None, None)
    known = [{"+": Answer.YES, "?": Answer.UNKNOWN}[letter] for letter in answers]
    probes = {at: Probe(f"1.{at + 1}", answer, "because", {}, "") for at, answer in enumerate(known)}
    finding = scan(range(3), 3, [], known.__getitem__)
    assert said in paragraph(asked, finding, probes)


def test_a_good_release_bounds_the_search_to_its_side(spec: CellSpec, tiny: Stack) -> None:
    after = question(spec, tiny, "tinylib", RELEASES, Version("1.6"), None)
    assert [str(r.version) for r in after.releases] == ["1.4", "1.5", "1.6"]
    before = question(spec, tiny, "tinylib", RELEASES, Version("1.1"), Version("1.3"))
    assert [str(r.version) for r in before.releases] == ["1.1", "1.2", "1.3"]


def test_the_steps_say_what_it_costs(asked: Question) -> None:
    *plan, cost = steps(asked)
    assert plan == [
        "7 releases of tinylib to choose from: 1.1, 1.2, 1.3, 1.4, 1.5, 1.6, 1.7",
        "1. 1.4: it must show the failure",
        "2. where it begins, among 1.1 to 1.3: 1.2 first, up to 2 releases",
        "3. where it ends, among 1.5 to 1.7: 1.6 first, up to 2 releases",
    ]
    assert cost == (
        "at most 5 releases, 1 MB to download for each at most; 2 to 3 runs of each on stack tiny; "
        "those without an answer come on top"
    )


@pytest.mark.parametrize(
    ("package", "good", "problem"),
    [
        ("lightning", None, "stack tiny does not have lightning; name another with --on."),
        ("tinylib", "0.9", "tinylib 0.9 is no release that can be tried here; there are 1.1 to 1.7."),
    ],
)
def test_a_question_that_cannot_be_asked(
    spec: CellSpec, tiny: Stack, package: str, good: str | None, problem: str
) -> None:
    with pytest.raises(BisectionError) as refused:
        question(spec, tiny, package, RELEASES, Version(good) if good else None, None)
    assert str(refused.value) == problem


@pytest.mark.slow
def test_a_swap_leaves_what_the_lock_holds_whatever_came_before(tiny: Stack, tmp_path: Path) -> None:
    write_wheel(tmp_path, "torch", TORCH, "1.1")  # newer than the lock's, and never asked for
    write_wheel(tmp_path, "stray", "")
    with environments.copy(tiny, lambda _: None) as python:
        swap = Swap(tiny, "tinylib", python)
        run_uv("pip", "install", "--python", python, "stray", "torch==1.1", folder=tmp_path)
        site = next((python.parents[1] / "lib").glob("python*/site-packages"))
        assert len(list(site.glob("*.dist-info"))) == 3
        swap.install(Version("1.1"))
        assert sorted(found.name for found in site.glob("*.dist-info")) == [
            "tinylib-1.1.dist-info",
            "torch-1.0.dist-info",
        ]


def test_what_is_released_together_is_exchanged_together(tiny: Stack) -> None:
    stack = tiny
    object.__setattr__(stack, "requirements", (Requirement("torch==2.1.2"), Requirement("lightning==2.1.3")))
    assert [str(r) for r in requirements(stack, "lightning", Version("2.5.0.post0"))] == [
        "lightning==2.5.0.post0",
        "pytorch-lightning==2.5.0.*",
        "torch==2.1.2",
    ]
