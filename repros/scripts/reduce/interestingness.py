"""The interestingness test: whether a candidate fails as the original does, and has a clean exit where that has."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from repros.model.errors import ReprosError
from repros.scripts.reduce.candidates import CandidateRunner
from repros.scripts.reduce.failure import Failure
from repros.scripts.try_.outcome import ScriptOutcome, Status


@dataclass(frozen=True)
class InterestingnessTest:
    """The original's failure, and where candidates must show it."""

    failure: Failure
    outcome: ScriptOutcome
    """Outcome of the original."""
    seconds: float
    """Run time of the original."""
    runner: CandidateRunner
    clean: CandidateRunner | None
    """Runs candidates where the original has a clean exit; None if there is no such condition."""

    def run(self, source: str, ranks: int, *, warm: bool | None = None) -> ScriptOutcome | None:
        """Return the outcome of an interesting candidate; None for another one.

        Args:
            source: the candidate.
            ranks: number of ranks.
            warm: whether it is forked from a server; by default if the original can be.

        Raises:
            ReprosError: the engine could not do its work.
        """
        failure, outcome, _ = self.runner.run(source, ranks, warm=warm)
        is_alike = failure == self.failure and (self.clean is None or self.clean.is_clean(source, ranks, warm=warm))
        return outcome if is_alike else None

    def stop(self) -> None:
        """End the candidates that run now."""
        for runner in (self.runner, self.clean):
            if runner is not None:
                runner.stop()


def build_test(
    runner: CandidateRunner, clean: CandidateRunner | None, report_progress: Callable[[str], None]
) -> InterestingnessTest:
    """Run the original, and return the test that candidates must pass.

    Args:
        runner: runs the original where it should fail.
        clean: runs it where it should have a clean exit, if there is such a condition.
        report_progress: receives lines of progress.

    Raises:
        ReprosError: the original does not fail, or does not have a clean exit, where it should.
    """
    report_progress(f"running {runner.task.script.origin} on {runner.stack}")
    failure, outcome, seconds = runner.run_original()
    if failure is None:
        raise ReprosError(_why_no_failure(outcome, runner.stack, runner.texts))
    if clean is not None:
        report_progress(f"running {clean.task.script.origin} on {clean.stack}")
        clean_failure, clean_outcome, _ = clean.run_original()
        if clean_failure is not None or clean_outcome.status is not Status.CLEAN:
            raise ReprosError(_why_not_clean(clean_failure, clean_outcome, clean))
    return InterestingnessTest(failure, outcome, seconds, runner, clean)


def _why_no_failure(outcome: ScriptOutcome, stack: str, texts: Sequence[str]) -> str:
    if texts:
        expected = "expected texts that the script prints there"
        return f"the output on {stack} does not contain {' and '.join(map(repr, texts))}; {expected}."
    reason = {
        Status.CLEAN: "it has a clean exit",
        Status.TIME_LIMIT: "it timed out, so a hang cannot be ruled out (--timeout sets the limit)",
        Status.INCOMPLETE: "fewer ranks took part than expected",
    }.get(outcome.status, outcome.note or outcome.status.value)
    return (
        f"there is no failure to keep on {stack}: {reason}; expected a script that fails there, another --stack, or "
        "--text with a part of its output."
    )


def _why_not_clean(failure: Failure | None, outcome: ScriptOutcome, clean: CandidateRunner) -> str:
    if failure is not None and clean.texts:
        reason = "its output contains the texts there, too"
    else:
        reason = f"it shows {outcome.signature}" if outcome.signature else outcome.note or outcome.status.value
    return (
        f"the script does not have a clean exit on {clean.stack}: {reason}; expected another stack for --clean-on, or "
        "none."
    )
