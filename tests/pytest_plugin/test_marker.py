"""`@pytest.mark.repro`: another project's test tied to a documented failure."""

from __future__ import annotations

import xml.etree.ElementTree as ET

import pytest

from tests.pytest_plugin.subprocess_run import run_pytest

pytest_plugins = ["pytester"]

MARKED = """
import pytest

pytestmark = pytest.mark.repro("rpr-0001")


def test_plain():
    pass


class TestBoth:
    @pytest.mark.repro("RPR-0005", "fit_inside_init_module")
    def test_more(self):
        pass
"""


@pytest.fixture
def project(bare_project: pytest.Pytester) -> pytest.Pytester:
    """A project with marked tests and strict markers."""
    bare_project.makeini("[pytest]\naddopts = --strict-markers\n")
    bare_project.makepyfile(test_own=MARKED)
    return bare_project


@pytest.mark.slow
@pytest.mark.parametrize("workers", [(), pytest.param(("-n", "2"), marks=pytest.mark.slow)], ids=["alone", "xdist"])
def test_ids_go_into_the_junit_report(project: pytest.Pytester, workers: tuple[str, ...]) -> None:
    result = run_pytest(project, "--junitxml=junit.xml", *workers)
    result.assert_outcomes(passed=2)
    found = {
        case.get("name"): [item.get("value") for item in case.iter("property") if item.get("name") == "repro"]
        for case in ET.parse(project.path / "junit.xml").iter("testcase")  # noqa: S314 - written a moment ago
    }
    assert found == {"test_plain": ["RPR-0001"], "test_more": ["RPR-0001", "RPR-0005", "RPR-0003"]}
    assert 'name="repro-title" value="The LR finder leaves logged results on the CPU"' in (
        project.path / "junit.xml"
    ).read_text(encoding="utf-8")


@pytest.mark.slow
def test_an_unknown_id_is_an_error_at_collection(project: pytest.Pytester) -> None:
    sentences = {
        '"RPR-9005"': "*'RPR-9005'*",
        '"fit_inside_init"': "*'fit_inside_init'*'fit_inside_init_module'?",
        "": '@pytest.mark.repro *"RPR-0001".',
        "5": '@pytest.mark.repro *"RPR-0001".',
        'id="RPR-0001"': '@pytest.mark.repro *"RPR-0001".',
    }
    for number, mark in enumerate(sentences):
        text = f"import pytest\n\n@pytest.mark.repro({mark})\ndef test_it(): pass\n"
        project.makepyfile(**{f"test_wrong_{number}": text})
    result = run_pytest(project)
    assert result.ret == pytest.ExitCode.INTERRUPTED
    for number, sentence in enumerate(sentences.values()):
        file = f"test_wrong_{number}.py"
        result.stdout.fnmatch_lines([f"*ERROR collecting {file}*", f"{file}::test_it: {sentence}"])
    assert "Traceback" not in result.stdout.str()
    run_pytest(project, "--continue-on-collection-errors").assert_outcomes(passed=2, errors=len(sentences))


@pytest.mark.slow
def test_pytest_lists_the_marker(project: pytest.Pytester) -> None:
    run_pytest(project, "--markers").stdout.fnmatch_lines(["@pytest.mark.repro(id, ...): *"])


@pytest.mark.slow
def test_marked_tests_can_be_selected(project: pytest.Pytester) -> None:
    project.makepyfile(test_unmarked="def test_it(): pass\n")
    run_pytest(project, "-m", "repro").assert_outcomes(passed=2, deselected=1)
