"""Whole measurement runs: real environments of a few bytes, real cells, evidence on disk."""

from __future__ import annotations

import datetime as dt
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from repros.engine import catalogue, environments
from repros.engine.environments.use import hold
from repros.engine.evidence import Measurement, Unit, read, write
from repros.engine.matrix.measure import measure
from repros.engine.matrix.worklist import Worklist, build_worklist
from repros.engine.plan import Selection, select
from repros.engine.run_options import Observer, RunOptions
from repros.model import CellResult, Device, Stack, Verdict
from repros.model.stack import Size
from tests.tiny_stack import write_wheel
from tests.toy_cells import TOYS

TORCH = """\
__version__ = "1.0"
class backends:
    class cuda:
        is_built = staticmethod(lambda: False)
"""
"""As much of torch as the probe reads; the toy itself does not import it."""

UNIT = Unit("tiny", "RPR-9001", Device.CPU, "plain")


@pytest.fixture
def tiny(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Stack:
    """A stack that the engine finds by its name, as it does the packaged ones."""
    monkeypatch.setenv("REPROS_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setenv("UV_CACHE_DIR", str(tmp_path / "uv"))
    monkeypatch.delenv("UV_TORCH_BACKEND", raising=False)
    write_wheel(tmp_path, "torch", TORCH)
    lock = tmp_path / "tiny.lock.txt"
    lock.write_text(f"--no-index\n--find-links {tmp_path}\ntorch==1.0\n")
    python = f"{sys.version_info.major}.{sys.version_info.minor}"
    return Stack("tiny", "for tests", python, (), dt.date(2026, 1, 1), lock, Size(2, 2))


Plan = Callable[[], Worklist]


@pytest.fixture
def plan(tiny: Stack, tmp_path: Path) -> Plan:
    """Build the toy's worklist from the evidence written so far."""
    specs = select(catalogue.load([TOYS / "raises.py"]), Selection(variants=("failing", "fixed", "not_a_fix")))
    return lambda: build_worklist(specs, [tiny], read(tmp_path / "evidence"))


def today() -> dt.date:
    return dt.datetime.now().astimezone().date()


def run(worklist: Worklist, tmp_path: Path, *, include_fresh: bool = False, keep: bool = False) -> list[CellResult]:
    def store(measurement: Measurement) -> None:
        write([measurement], tmp_path / "evidence")

    options = RunOptions(jobs=1, keep_environments=keep)
    out = tmp_path / "matrix.jsonl"
    return list(measure(worklist, out, Observer(), store, include_fresh=include_fresh, options=options))


def test_it_makes_an_environment_measures_writes_and_drops(plan: Plan, tiny: Stack, tmp_path: Path) -> None:
    before = today()
    results = run(plan(), tmp_path)
    assert [result.verdict for result in results] == [Verdict.REPRODUCED, Verdict.CLEAN, Verdict.UNFIXED]
    assert not environments.environment_folder(tiny).exists()
    (found,) = read(tmp_path / "evidence").values()
    assert found.unit == UNIT
    assert before <= found.date <= today()  # midnight may lie between
    assert found.versions == {"torch": "1.0"}
    assert {name: variant.verdict for name, variant in found.variants.items()} == {
        "failing": Verdict.REPRODUCED,
        "fixed": Verdict.CLEAN,
        "not_a_fix": Verdict.UNFIXED,
    }
    assert found.variants["failing"].signature == "ValueError: the documented failure on {device}"
    assert found.variants["fixed"].signature is None


@pytest.mark.slow
def test_fresh_evidence_is_not_measured_again_unless_asked(plan: Plan, tiny: Stack, tmp_path: Path) -> None:
    run(plan(), tmp_path)
    assert [entry.fresh for entry in plan().entries] == [True]
    assert run(plan(), tmp_path) == []
    assert not environments.environment_folder(tiny).exists()
    assert len(run(plan(), tmp_path, include_fresh=True)) == 3


@pytest.mark.slow
def test_an_environment_of_the_user_stays_and_one_kept_by_a_run_is_dropped_by_the_next(
    plan: Plan, tiny: Stack, tmp_path: Path
) -> None:
    run(plan(), tmp_path, keep=True)
    assert environments.ready(tiny)
    run(plan(), tmp_path, include_fresh=True)
    assert not environments.environment_folder(tiny).exists()
    environments.ensure(tiny, lambda _: None)
    run(plan(), tmp_path, include_fresh=True)
    assert environments.ready(tiny)


@pytest.mark.slow
@pytest.mark.parametrize(
    "changed",
    [
        lambda known: replace(known, inputs="digest of another engine"),
        lambda known: replace(known, variants={"failing": known.variants["failing"]}),
    ],
    ids=["other inputs", "a variant is missing"],
)
def test_stale_or_incomplete_evidence_is_measured_again(
    plan: Plan, tmp_path: Path, changed: Callable[[Measurement], Measurement]
) -> None:
    run(plan(), tmp_path)
    (known,) = read(tmp_path / "evidence").values()
    write([changed(known)], tmp_path / "evidence")
    (entry,) = plan().entries
    assert not entry.fresh
    assert len(run(plan(), tmp_path)) == 3
    (again,) = read(tmp_path / "evidence").values()
    assert again.inputs == known.inputs
    assert set(again.variants) == set(known.variants)


@pytest.mark.slow
def test_an_interrupted_run_drops_its_environment_and_can_be_continued(plan: Plan, tiny: Stack, tmp_path: Path) -> None:
    worklist = plan()
    running = measure(worklist, tmp_path / "matrix.jsonl", Observer(), lambda _: None)
    next(running)
    with pytest.raises(KeyboardInterrupt):
        running.throw(KeyboardInterrupt())  # type: ignore[attr-defined]
    assert not environments.environment_folder(tiny).exists()
    assert read(tmp_path / "evidence") == {}
    assert len(run(plan(), tmp_path)) == 3


@pytest.mark.slow
def test_an_environment_that_goes_while_its_cells_run_gives_no_evidence(tiny: Stack, tmp_path: Path) -> None:
    script = tmp_path / "raises.py"
    gone = "import shutil\nshutil.rmtree(sys.prefix)\nimport a_module_that_is_gone\n"
    script.write_text((TOYS / "raises.py").read_text("utf-8").replace("import sys\n", f"import sys\n{gone}"), "utf-8")
    specs = select(catalogue.load([script]), Selection(variants=("failing",)))
    (result,) = run(build_worklist(specs, [tiny], {}), tmp_path)
    assert result.verdict is Verdict.INFRA
    assert str(environments.environment_folder(tiny).parent) in result.reason
    assert read(tmp_path / "evidence") == {}


@pytest.mark.slow
def test_an_environment_that_another_process_uses_is_kept(
    plan: Plan, tiny: Stack, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    said: list[str] = []
    monkeypatch.setattr(Observer, "report_progress", lambda _, line: said.append(line))
    with hold([tiny]):
        run(plan(), tmp_path)
    assert environments.ready(tiny)
    assert "stack tiny" in said[-1]


def test_a_stack_that_cannot_be_made_gives_no_evidence(plan: Plan, tiny: Stack, tmp_path: Path) -> None:
    worklist = plan()
    object.__setattr__(tiny, "cuda", Size(10**18, 10**18))
    object.__setattr__(tiny, "cpu", Size(10**18, 10**18))
    results = run(worklist, tmp_path)
    assert {result.verdict for result in results} == {Verdict.UNAVAILABLE}
    assert "1000000000.0 GB" in results[0].reason
    assert not environments.environment_folder(tiny).exists()
    assert read(tmp_path / "evidence") == {}


def test_cells_that_a_stack_cannot_run_are_counted_as_unavailable(tiny: Stack) -> None:
    tiny.lock.write_text("torchvision==1.0\n")
    specs = select(catalogue.load([TOYS / "raises.py"]), Selection())
    worklist = build_worklist(specs, [tiny], {})
    assert (worklist.entries, worklist.unavailable) == ((), len(specs))
