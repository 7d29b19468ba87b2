"""The pytest plugin in runs of pytest."""

from __future__ import annotations

import re
import sys
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

from repros.engine import record
from repros.engine.record import begin_results
from repros.model.errors import ReprosError
from repros.pytest_plugin.runner import Runner
from tests.pytest_plugin.subprocess_run import run_pytest
from tests.toy_cells import TOYS

pytest_plugins = ["pytester"]
pytestmark = pytest.mark.slow


@pytest.fixture
def project(bare_project: pytest.Pytester) -> pytest.Pytester:
    """A project with a test, and two toy repros that need no torch."""
    bare_project.makepyfile(test_own="def test_own(): pass")
    toys = bare_project.path / "toys"
    toys.mkdir()
    for slug in ("raises", "exits"):
        text = (TOYS / f"{slug}.py").read_text("utf-8").replace('dependencies = ["torch"]', 'dependencies = ["pytest"]')
        (toys / f"{slug}.py").write_text(text, encoding="utf-8")
    return bare_project


FAKE_TORCH = """__version__ = "2.13.0"

class backends:
    class cuda:
        is_built = staticmethod(lambda: False)
"""


@pytest.fixture
def fake_torch(project: pytest.Pytester) -> tuple[str, ...]:
    """Options that run cells on this interpreter, with a torch that can be imported and does nothing."""
    (project.path / "torch.py").write_text(FAKE_TORCH)
    fake = project.path / "torch-2.13.0.dist-info"
    fake.mkdir()
    (fake / "METADATA").write_text("Metadata-Version: 2.1\nName: torch\nVersion: 2.13.0\n")
    python = project.path / "python"
    python.write_text(f'#!/bin/sh\nPYTHONPATH="$PYTHONPATH:{project.path}" exec {sys.executable} "$@"\n')
    python.chmod(0o700)
    return ("--repro-python", str(python))


def ids(result: pytest.RunResult) -> list[str]:
    return [line.partition("::")[2] for line in result.outlines if "::" in line]


def test_repros_are_not_collected_unless_requested(project: pytest.Pytester) -> None:
    for arguments in ((), (".",), ("toys", "test_own.py")):
        result = run_pytest(project, "--collect-only", "-q", *arguments)
        assert ids(result) == ["test_own"], result.outlines


def test_loading_the_plugin_imports_nothing_of_the_project(project: pytest.Pytester) -> None:
    script = "import sys, repros.pytest_plugin; print([name for name in sys.modules if name.startswith('repros.')])"
    result = project.run(sys.executable, "-c", script)
    assert result.outlines == ["['repros.pytest_plugin']"]


def test_a_named_script_is_collected_without_an_import(project: pytest.Pytester) -> None:
    result = run_pytest(project, "--collect-only", "-q", "toys/exits.py")
    assert ids(result) == [
        "RPR-9003[failing-plain-cpu-current]",
        "RPR-9003[sys_exit-plain-cpu-current]",
        "RPR-9003[on_rank_1-plain-cpu-current]",
        "RPR-9003[undocumented-plain-cpu-current]",
    ]


def test_the_named_catalogue_is_collected(project: pytest.Pytester) -> None:
    catalogue = Path(__file__).parents[2] / "repros" / "catalogue"
    everything = ids(run_pytest(project, "--collect-only", "-q", str(catalogue)))
    assert "RPR-0005[failing-ddp-cpu-2023-12]" in everything
    assert "RPR-0005[failing-ddp-cpu-current]" in everything
    family = ids(run_pytest(project, "--collect-only", "-q", str(catalogue / "fabric")))
    assert set(family) < set(everything)


def test_an_option_alone_collects_the_catalogue(project: pytest.Pytester) -> None:
    found = ids(run_pytest(project, "--collect-only", "-q", "--repro", "RPR-0005", "--repro-variant", "failing"))
    assert found
    assert all(name.startswith("RPR-0005[failing-") for name in found)


def test_selections(project: pytest.Pytester) -> None:
    arguments = (
        "toys",
        "--repro",
        "raises",
        "--repro-variant",
        "fixed",
        "--repro-stack",
        "2023-05",
        "--repro-stack",
        "home",
    )
    assert ids(run_pytest(project, "--collect-only", "-q", *arguments)) == [
        "RPR-9001[fixed-plain-cpu-2023-05]",
        "RPR-9001[fixed-plain-cpu-current]",
    ]
    others = ("toys", "--repro-strategy", "plain", "--repro-device", "cpu", "-k", "fixed and not outside")
    assert ids(run_pytest(project, "--collect-only", "-q", *others)) == ["RPR-9001[fixed-plain-cpu-current]"]


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("--repro", "RPR-9011"), "ERROR: *'RPR-9011'*"),
        (("--repro", "RPR-9001", "--repro-variant", "fixt"), "ERROR: *'fixt'*'fixed'*"),
        (("--repro-strategy", "plane"), "ERROR: *'plane'*'plain'*"),
        (("--repro-stack", "curent"), "ERROR: *'curent'*'current'*"),
        (("--repro-device", "cuda"), "ERROR: *RPR-9001 *plain*cpu*"),
        (("--repro-python", "/nowhere"), "ERROR: --repro-python /nowhere: *"),
    ],
)
def test_a_selection_of_nothing_is_a_usage_error(
    project: pytest.Pytester, arguments: tuple[str, ...], sentence: str
) -> None:
    result = run_pytest(project, "toys", *arguments)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines([sentence])
    assert "Traceback" not in result.stderr.str() + result.stdout.str()


@pytest.mark.parametrize("asked", [(), ("--repro-stack", "home")])
def test_a_refused_header_is_a_collection_error(project: pytest.Pytester, asked: tuple[str, ...]) -> None:
    script = project.path / "toys" / "exits.py"
    script.write_text(script.read_text("utf-8").replace("# deadline", "# dedline"), encoding="utf-8")
    result = run_pytest(project, "toys/exits.py", *asked)
    assert result.ret == pytest.ExitCode.INTERRUPTED
    result.stdout.fnmatch_lines([f"{script}:13: *'dedline'*"])
    assert "Traceback" not in result.stdout.str()


def test_cells_run_agree_and_are_recorded(
    project: pytest.Pytester, fake_torch: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("PYTHONDONTWRITEBYTECODE", raising=False)
    chosen = (
        "--repro-variant",
        "failing",
        "--repro-variant",
        "fixed",
        "--repro-results",
        "out/results.jsonl",
    )
    result = run_pytest(project, "toys/raises.py", *fake_torch, *chosen, "-v", "--junitxml=junit.xml")
    result.assert_outcomes(passed=2)
    assert [*project.path.glob("__pycache__/torch*")] == [], "an environment of the user's does not change"
    lines = list(record.read(project.path / "out" / "results.jsonl"))
    assert [(line["variant"], line["verdict"]) for line in lines] == [
        ("failing", "reproduced"),
        ("fixed", "clean"),
    ]
    assert all(Path(line["logs"] or "").is_dir() for line in lines)
    cases = ET.parse(project.path / "junit.xml").iter("testcase")  # noqa: S314 - written a moment ago
    properties = [{item.get("name"): item.get("value") for item in case.iter("property")} for case in cases]
    assert [case["verdict"] for case in properties] == ["reproduced", "clean"]


def test_no_run_empties_the_results_while_pytest_adds_to_them(project: pytest.Pytester) -> None:
    file = project.path / "results.jsonl"
    runner = Runner(project.parseconfig("--repro-results", str(file)))
    try:
        with pytest.raises(ReprosError, match=re.escape(str(file))):
            begin_results(file, append=False)
        begin_results(file, append=True).close()
    finally:
        runner.close()
    begin_results(file, append=False).close()


def test_a_file_of_another_kind_is_left_alone(project: pytest.Pytester, fake_torch: tuple[str, ...]) -> None:
    (project.path / "notes.txt").write_text("mine")
    options = ("--repro-variant", "fixed", "--repro-results", "notes.txt")
    result = run_pytest(project, "toys/raises.py", *fake_torch, *options)
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["notes.txt *--repro-results*"])
    assert (project.path / "notes.txt").read_text() == "mine"


def test_a_disagreeing_cell_fails_with_its_explanation(project: pytest.Pytester, fake_torch: tuple[str, ...]) -> None:
    result = run_pytest(
        project, "toys/raises.py", *fake_torch, "--repro-variant", "gone", "--repro-variant", "another_message"
    )
    result.assert_outcomes(failed=2)
    result.stdout.fnmatch_lines(["*RPR-9001[[]gone-plain-cpu-python]*", "RPR-9001 gone plain cpu *: gone"])
    result.stdout.fnmatch_lines(["*ValueError: the documented failure on cuda:0*"])
    result.stdout.fnmatch_lines(["*ValueError: quite another failure*"])
    assert "repros/pytest_plugin/" not in result.stdout.str()
    assert result.ret == pytest.ExitCode.TESTS_FAILED


def test_an_unavailable_cell_is_skipped_with_its_reason(project: pytest.Pytester, fake_torch: tuple[str, ...]) -> None:
    script = project.path / "toys" / "raises.py"
    script.write_text(script.read_text("utf-8").replace('["pytest"]', '["nothing-of-that-name>=2"]'), encoding="utf-8")
    result = run_pytest(project, "toys/raises.py", *fake_torch, "--repro-variant", "fixed", "-rs")
    result.assert_outcomes(skipped=1)
    result.stdout.fnmatch_lines(["SKIPPED*nothing-of-that-name>=2*"])
    (line,) = record.read(project.path / ".repros" / "latest.jsonl")
    assert line["verdict"] == "unavailable"


def test_a_broken_interpreter_fails_with_a_sentence(project: pytest.Pytester) -> None:
    result = run_pytest(project, "toys/raises.py", "--repro-python", "/bin/false", "--repro-variant", "fixed")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["/bin/false: *"])
    assert "repros/engine/probe.py" not in result.stdout.str()


def test_two_workers_share_the_cells_and_the_file(project: pytest.Pytester, fake_torch: tuple[str, ...]) -> None:
    result = run_pytest(
        project,
        "toys",
        *fake_torch,
        "-n",
        "2",
        "-k",
        "not undocumented and not gone and not another and not not_a_fix "
        "and not undecodable and not no_disk and not (outside and not fine)",
    )
    result.assert_outcomes(passed=7)
    lines = list(record.read(project.path / ".repros" / "latest.jsonl"))
    assert len({(line["repro"], line["variant"]) for line in lines}) == len(lines) == 7
    assert len({line["logs"] for line in lines}) == 7


def test_the_first_failure_ends_the_run_and_the_last_failures_run_again(
    project: pytest.Pytester, fake_torch: tuple[str, ...]
) -> None:
    chosen = ("toys/raises.py", *fake_torch, "-k", "fixed or gone or another_type")
    run_pytest(project, *chosen, "-x").assert_outcomes(passed=1, failed=1)
    again = run_pytest(project, *chosen, "--lf", "-v")
    again.assert_outcomes(failed=1, deselected=10)
    assert "RPR-9001[gone" in again.stdout.str()


def test_one_cell_by_its_id(project: pytest.Pytester, fake_torch: tuple[str, ...]) -> None:
    result = run_pytest(project, "toys/raises.py::RPR-9001[fixed-plain-cpu-python]", *fake_torch)
    result.assert_outcomes(passed=1)


def test_pytests_help_has_the_options(project: pytest.Pytester) -> None:
    text = run_pytest(project, "--help").stdout.str()
    for option in (
        "--repro=ID",
        "--repro-variant=NAME",
        "--repro-stack=NAME",
        "--repro-python=PATH",
        "--repro-results=FILE",
    ):
        assert option in text


def test_a_test_file_that_is_named_imports_no_engine(project: pytest.Pytester) -> None:
    project.makepyfile(
        test_modules="""
            import sys

            def test_it():
                assert not {"repros.engine.cells", "repros.engine.environments", "repros.text"} & set(sys.modules)
        """
    )
    run_pytest(project, "test_modules.py").assert_outcomes(passed=1)
