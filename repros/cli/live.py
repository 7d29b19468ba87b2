"""What is seen of a run while it goes on: a line per finished cell; on a terminal, what runs now."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

from rich.console import Console
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.text import Text

from repros.cli.output import show_text
from repros.engine import record
from repros.engine.pipeline import Observer
from repros.errors import ReprosError
from repros.model import Category, Cell, Result, Unavailable, Verdict
from repros.text import explain, table
from repros.text.wording import count, relative_to_cwd

_OPENING = b'{"schema"'
"""How every results file begins."""


class ResultsFileError(ReprosError):
    """A results file that cannot be begun."""


class LiveReporter(Observer):
    """Shows a journey on a console and keeps its record lines for the table at the end."""

    def __init__(self, out: Console, results: Path, *, append: bool, verbose: bool, quiet: bool = False) -> None:
        """Show on `out`; `results` is begun when the plan is there, so that a typo does not empty it."""
        self._quiet = quiet
        self.lines: list[record.RecordLine] = []
        self.lost = 0
        """Results that could not be recorded."""
        self._out = out
        self._results = results
        self._append = append
        self._verbose = verbose
        self._total = 0
        self._done = 0
        self._running: dict[str, None] = {}
        # Not `is_terminal`, which FORCE_COLOR makes true for logs.
        columns = (SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
        self._progress = Progress(*columns, console=out, transient=True, disable=quiet or not out.file.isatty())
        self._task = self._progress.add_task("looking at the environment")

    def __enter__(self) -> Self:
        """Begin to show what runs now."""
        self._progress.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Take the line of what runs now away."""
        self._progress.stop()

    def say(self, line: str) -> None:
        """Show progress that concerns no cell."""
        if not self._quiet:
            show_text(self._out, line, "dim")

    def planned(self, cells: Sequence[Cell | Unavailable]) -> None:
        """Begin the results file and say how much there is to do; a further plan is added to the first."""
        _begin(self._results, append=self._append)
        self._append = True
        runnable = sum(isinstance(item, Cell) for item in cells)
        self._total += runnable
        if self._quiet:
            return
        missing = len(cells) - runnable
        stacks = dict.fromkeys(table.short_name(c.environment.name) for c in cells if isinstance(c, Cell))
        where = f" on {', '.join(stacks)}" if stacks else ""
        also = f"; {missing} cannot be run here" if missing else ""
        show_text(self._out, f"{count(runnable, 'cell')} to run{where}{also}")

    def started(self, cell: Cell) -> None:
        """Show a cell among those that run now."""
        self._running[_label(cell)] = None
        self._now()

    def finished(self, result: Result) -> None:
        """Show a result, explained when it does not agree."""
        self.lines.append(record.line(result))
        if result.verdict is Verdict.UNAVAILABLE and not self._verbose:
            return
        if result.verdict is not Verdict.UNAVAILABLE:
            self._done += 1
            self._running.pop(_label(result.cell), None)
            self._now()
        if (
            self._quiet
            and result.verdict.category in {Category.AGREES, Category.SKIPPED}
            and result.verdict is not Verdict.INFRA
        ):
            return
        show_text(self._out, self._line(result))
        if result.verdict is not Verdict.UNAVAILABLE and result.verdict.category is not Category.AGREES:
            show_text(self._out, f"\n{explain.text(result)}\n")

    def unrecorded(self, result: Result, error: OSError) -> None:
        """Say that a result is in no file; the table still has it."""
        self.lost += 1
        why = error.strerror or str(error)
        problem = f"{relative_to_cwd(self._results)} does not take the result of {_label(result.cell)}: {why}"
        show_text(self._out, problem, "red")

    def close(self, *, interrupted: bool, summary: bool) -> None:
        """Show the table, if it is wanted, and where everything lies."""
        if self.lines and self._quiet:
            show_text(self._out, table.closing(table.latest(self.lines)))
        elif self.lines and (summary or interrupted):
            self._out.print()
            show_text(self._out, table.table(self.lines, self._out.width, verbose=self._verbose))
        if interrupted:
            show_text(self._out, f"interrupted after {self._done} of {count(self._total, 'cell')}", "yellow")
        if self.lost:
            show_text(self._out, f"{count(self.lost, 'result')} could not be recorded", "red")
        with contextlib.suppress(OSError):
            if self._results.stat().st_size:
                show_text(self._out, f"results: {relative_to_cwd(self._results)}", "dim")

    def _line(self, result: Result) -> Text:
        counter = f"[{self._done:>{len(str(self._total))}}/{self._total}] "
        if result.verdict is Verdict.UNAVAILABLE:
            counter = " " * len(counter)
        line = Text().append(counter, "dim")
        line.append(f"{result.verdict:<11} ", table.style(result.verdict))
        line.append(_label(result.cell))
        if result.observation is not None:
            line.append(f"  {result.repeats}" if result.repeats else "")
            # Rounded as it is recorded, so that the table says the same.
            line.append(f"  {round(result.observation.seconds, 2):.1f} s", "dim")
        else:
            line.append(f"  {result.reason}", "dim")
        return line

    def _now(self) -> None:
        """Put what runs now on the live line."""
        first, *others = [*self._running, ""]
        more = f" and {len(others) - 1} more" if len(others) > 1 else ""
        self._progress.reset(self._task, description=f"{first}{more}" if first else "")


def _label(cell: Cell) -> str:
    """Return the cell's label with an interpreter's path cut to its environment's name."""
    stack = table.short_name(cell.environment.name)
    return f"{cell.repro.id} {cell.variant.name} {cell.strategy} {cell.device} {stack}"


def _begin(path: Path, *, append: bool) -> None:
    """Make the results file, empty unless it is to be added to; other people's files are left alone."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("ab+") as file:
            file.seek(0)
            if file.read(len(_OPENING)) not in {b"", _OPENING}:
                raise ResultsFileError(f"{path} is not a results file; name another with --results.")
            if not append:
                file.truncate(0)
    except FileExistsError as error:
        raise ResultsFileError(f"{path.parent} is not a folder; name another file with --results.") from error
    except OSError as error:
        problem = f"{path} cannot be written ({error.strerror}); name another file with --results."
        raise ResultsFileError(problem) from error
