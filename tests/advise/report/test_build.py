"""The report of a failure: the catalogue's description whole, the observations redacted."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from repros.advise.report.build import IssueReport, build, shows_failure
from repros.advise.report.redact import MachineIdentity
from repros.engine import header
from repros.engine.record import line
from repros.model import CellResult, Ending, ExpectedOutcome, Verdict
from tests import factories
from tests.advise.report.test_redact import ADDRESSES, SECRETS
from tests.package_catalogue import load

OWN = Path(__file__).parents[2] / "toys" / "raises.py"
LOG = """\
starting
[rank0]: Traceback (most recent call last):
[rank0]:   File "/x/repros/inside/warm.py", line 235, in _run_and_leave
[rank0]:     code = act()
[rank0]:            ^^^^^
[rank0]:   File "{script}", line 20, in main
[rank0]:     trainer.fit(model)
[rank0]:   File "/opt/mallory/lib/python3.11/site-packages/lightning/trainer.py", line 31, in fit
[rank0]:     raise RuntimeError
[rank0]: RuntimeError: the documented failure
"""


@pytest.fixture
def logs(tmp_path: Path) -> Path:
    (tmp_path / "main.log").write_text(LOG.format(script=OWN.resolve()))
    return tmp_path


def results(logs: Path, name: str = "current") -> Iterator[CellResult]:
    repro = header.read(OWN)
    environment = factories.environment(name)
    for variant, verdict, outcome in (
        ("failing", Verdict.REPRODUCED, ExpectedOutcome.FAILS),
        ("fixed", Verdict.CLEAN, ExpectedOutcome.PASSES),
    ):
        cell = factories.cell(repro=repro, variant=repro.variant(variant), environment=environment, processes=1)
        assert cell.expectation.outcome is outcome
        signature = "RuntimeError: the documented failure" if verdict is Verdict.REPRODUCED else None
        ended = Ending.RAISED if signature else Ending.RETURNED
        seen = factories.observation(factories.process(0, ended), folder=logs)
        yield CellResult(cell, verdict, "why", signature, seen)


def built(logs: Path, identity: MachineIdentity | None = None, **changes: Any) -> IssueReport:
    lines: list[Any] = [{**line(result), **changes} for result in results(logs)]
    return build(header.read(OWN), lines, lambda _: ("PyTorch version: 2.13.0", None), identity or MachineIdentity())


def test_the_traceback_has_no_frames_of_the_launcher(logs: Path) -> None:
    assert (
        built(logs).traceback
        == """\
[rank0]: Traceback (most recent call last):
[rank0]:   File "raises.py", line 20, in main
[rank0]:     trainer.fit(model)
[rank0]:   File "lightning/trainer.py", line 31, in fit
[rank0]:     raise RuntimeError
[rank0]: RuntimeError: the documented failure"""
    )


def test_a_long_traceback_loses_its_middle(logs: Path) -> None:
    (logs / "main.log").write_text("Traceback (most recent call last):\n" + "".join(f"  line {n}\n" for n in range(99)))
    text = built(logs).traceback.splitlines()
    first = ["Traceback (most recent call last):", *(f"  line {n}" for n in range(6))]
    assert text[:9] == [*first, "[... 40 lines ...]", "  line 46"]
    assert (len(text), text[-1]) == (61, "  line 98")


def test_the_whole_log_is_redacted_before_anything_is_cut(logs: Path) -> None:
    """A cut may take a key's first line, the beginning of a secret, or what a colour code splits."""
    phrase = "correct-horse-battery-staple-correct-horse-1234"
    identity = MachineIdentity(values={"MY_DB_PASSWORD": phrase})
    key = "".join(f"b3BlbnNzaC1rZXktdjEAAAAABG5vbmUAAAAEbm9uZQAAAAAAAAABAAABlwAAAAdz{n:02}\n" for n in range(68))
    texts = {
        "b3BlbnNzaC1": f"-----BEGIN OPENSSH PRIVATE KEY-----\n{key}-----END OPENSSH PRIVATE KEY-----\n",
        "correct-horse": "x" * 975 + f" {phrase}\n",
        "battery": f"correct-horse\x1b[0m-battery{phrase.partition('battery')[2]}\n",
        "staple": f"\x1b]0;{'y' * 150_000}\n{phrase}\n",
    }
    for hidden, text in texts.items():
        log = f"{text}Traceback (most recent call last):\n{text}RuntimeError: {text}"
        (logs / "main.log").write_text(log, encoding="utf-8")
        report = built(logs, identity)
        assert "Traceback" in report.traceback
        assert hidden not in json.dumps(dataclasses.asdict(report))


def test_without_logs_the_signature_is_left(logs: Path) -> None:
    (logs / "main.log").unlink()
    report = built(logs)
    assert report.traceback == ""
    assert [run.signature for run in report.runs] == ["RuntimeError: the documented failure", None]


def test_an_interpreters_path_is_not_in_the_report(logs: Path) -> None:
    lines = [
        line(result) for name in ("/a/x/bin/python", "2023-12", "/b/x/bin/python") for result in results(logs, name)
    ]
    report = build(header.read(OWN), lines, lambda _: ("", "it failed"), MachineIdentity())
    assert [(environment.name, environment.stack) for environment in report.environments] == [
        ("own environment 1", False),
        ("2023-12", True),
        ("own environment 2", False),
    ]
    assert "/a/x" not in json.dumps(dataclasses.asdict(report))


def test_the_catalogues_description_is_not_redacted(logs: Path) -> None:
    repro = load().find("RPR-0005")
    identity = MachineIdentity(values={"X": "gradient"}, users=("fabric",))
    cell = factories.cell(
        repro=repro,
        variant=repro.variants[0],
        environment=factories.environment(versions={"torch": "2.1.2", "lightning": "2.1.3"}),
    )
    lines = [line(CellResult(cell, Verdict.CLEAN, "why"))]
    report = build(repro, lines, lambda _: ("", "no"), identity)
    assert report.failure.title == repro.title
    assert "from lightning.fabric import Fabric" in report.failure.script


def test_the_script_is_pinned_to_the_versions_it_was_run_with(logs: Path) -> None:
    stack = {"name": "/a/x/bin/python", "python": "3.12.1", "versions": {"torch": "2.13.0+cpu", "lightning": "2.1.3"}}
    lines: list[Any] = [{**line(result), "stack": stack} for result in results(logs)]
    repro = load().find("RPR-0005")
    script = build(repro, lines, lambda _: ("", "no"), MachineIdentity()).failure.script
    pins = ['"torch==2.13.0"', '"lightning==2.1.3"']
    head = ['requires-python = "==3.12.*"', "dependencies = [", *(f"    {pin}," for pin in pins), "]", "///"]
    assert "".join(f"# {row}\n" for row in head) in script


@pytest.mark.parametrize(
    ("verdict", "signature", "shown"),
    [("reproduced", "X", True), ("different", "X", True), ("infra", "X", False), ("clean", None, False)],
)
def test_what_shows_a_failure(verdict: str, signature: str | None, shown: bool) -> None:
    read: Any = {"verdict": verdict, "signature": signature}
    assert shows_failure(read) is shown


@pytest.mark.slow
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(private=st.one_of(SECRETS, ADDRESSES))
def test_a_secret_in_any_field_is_redacted(private: str, tmp_path: Path) -> None:
    """In any field of the record, the logs, torch's own description, and a user's own script."""
    log = f"Traceback (most recent call last):\nRuntimeError: {private}\n{private}\n"
    (tmp_path / "main.log").write_text(log, encoding="utf-8")
    script = tmp_path / "own.py"
    script.write_text(OWN.read_text("utf-8") + f"\n# {private}\n", encoding="utf-8")

    def planted(value: Any, key: str = "") -> Any:
        if isinstance(value, dict):
            return {name: planted(item, name) for name, item in value.items()}
        fixed = key in {"verdict", "logs", "variant", "repro"}
        return f"{value} {private}" if isinstance(value, str) and not fixed else value

    lines: list[Any] = [planted(line(result)) for result in results(tmp_path)]
    report = build(header.read(script), lines, lambda _: (f"PyTorch version: {private}", private), MachineIdentity())
    assert private not in json.dumps(dataclasses.asdict(report), ensure_ascii=False)
    assert "the documented failure" in report.runs[0].signature  # type: ignore[operator] # else the test checks nothing
