"""`--repro-watch` and tests that train nothing; `tests/diagnose/watch/test_incode.py` has those that do."""

from __future__ import annotations

import pytest

from tests.pytest_plugin.subprocess_run import run_pytest

pytest_plugins = ["pytester"]
pytestmark = pytest.mark.slow


def test_tests_without_findings_keep_their_outcomes(bare_project: pytest.Pytester) -> None:
    bare_project.makepyfile(
        """
        import pytest

        def test_passes(repro_watch):
            assert repro_watch == []

        def test_fails():
            assert 1 == 2

        @pytest.mark.xfail
        def test_is_expected_to_fail():
            raise KeyError(3)

        def test_skips():
            pytest.skip("a reason")
        """
    )
    result = run_pytest(bare_project, "--repro-watch")
    result.assert_outcomes(passed=1, failed=1, xfailed=1, skipped=1)
    result.stdout.fnmatch_lines(["*assert 1 == 2*"])


def test_a_documented_exception_is_named_in_the_report(bare_project: pytest.Pytester) -> None:
    # The message and a frame of RPR-0024.
    strategies = bare_project.mkpydir("strategies")
    message = "Expected to have finished reduction in the prior iteration before starting a new one."
    (strategies / "ddp.py").write_text(f"def training_step():\n    raise RuntimeError({message!r})\n", "utf-8")
    bare_project.makepyfile("from strategies import ddp\n\ndef test_trains():\n    ddp.training_step()\n")
    result = run_pytest(bare_project, "--repro-watch")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(
        ["E *RuntimeError: Expected to have finished reduction*", "*repros watch*", "*RPR-0024*"]
    )
