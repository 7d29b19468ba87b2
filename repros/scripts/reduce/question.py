"""What each candidate is asked: does it fail as the script does, and end clean where the script does?"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from repros.model.errors import ReprosError
from repros.scripts.reduce.failure import Failure
from repros.scripts.reduce.oracle import Oracle
from repros.scripts.try_.sight import Sight, Status


@dataclass(frozen=True)
class Question:
    """The script's failure, and where it is looked for."""

    failure: Failure
    sight: Sight
    """What was seen of the script."""
    seconds: float
    """The time that the script took."""
    oracle: Oracle
    clean: Oracle | None
    """Where the script ends clean; None if nobody asks."""

    def answer(self, source: str, ranks: int, *, warm: bool | None = None) -> Sight | None:
        """Return what was seen of a candidate; None if it does not fail alike, or ends otherwise where it should not.

        Args:
            source: the candidate.
            ranks: how many ranks run it.
            warm: whether it is forked; by default if the script can be.

        Raises:
            ReprosError: the engine could not do its work.
        """
        found, sight, _ = self.oracle.run(source, ranks, warm=warm)
        is_alike = found == self.failure and (self.clean is None or self.clean.is_clean(source, ranks, warm=warm))
        return sight if is_alike else None

    def stop(self) -> None:
        """End the candidates that run now."""
        for each in (self.oracle, self.clean):
            if each is not None:
                each.stop()


def ask(oracle: Oracle, clean: Oracle | None, report_progress: Callable[[str], None]) -> Question:
    """Run the script itself, and return what is to be asked of smaller ones.

    Args:
        oracle: where it should fail.
        clean: where it should end clean, if anywhere.
        report_progress: receives lines of progress.

    Raises:
        ReprosError: it does not.
    """
    report_progress(f"running {oracle.task.script.origin} on {oracle.stack}")
    failure, sight, seconds = oracle.begin()
    if failure is None:
        raise ReprosError(_why_no_failure(sight, oracle.stack, oracle.texts))
    if clean is not None:
        report_progress(f"running {clean.task.script.origin} on {clean.stack}")
        there, seen, _ = clean.begin()
        if there is not None or seen.status is not Status.CLEAN:
            raise ReprosError(_why_not_clean(there, seen, clean))
    return Question(failure, sight, seconds, oracle, clean)


def _why_no_failure(sight: Sight, stack: str, texts: Sequence[str]) -> str:
    if texts:
        expected = "expected texts that the script prints there"
        return f"the output on {stack} does not hold {' and '.join(map(repr, texts))}; {expected}."
    how = {
        Status.CLEAN: "it ends clean",
        Status.TIME_LIMIT: "it still runs at the limit of time, and nobody knows whether it hangs (--timeout sets it)",
        Status.INCOMPLETE: "fewer ranks took part than were asked for",
    }.get(sight.status, sight.note or sight.status.value)
    return (
        f"there is no failure to keep on {stack}: {how}; expected a script that fails there, another --stack, or "
        "--text with what it prints."
    )


def _why_not_clean(failure: Failure | None, sight: Sight, clean: Oracle) -> str:
    if failure is not None and clean.texts:
        how = "its output has the texts there, too"
    else:
        how = f"it shows {sight.signature}" if sight.signature else sight.note or sight.status.value
    return f"the script does not end clean on {clean.stack}: {how}; expected another stack for --clean-on, or none."
