"""Live output of a run: a line per finished cell and, on a terminal, the cells that are running."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import BinaryIO, Self

from repros.cli.shared.live_line import LiveLine
from repros.cli.shared.output import PLAIN_TERMINALS, Page, show_text
from repros.engine import record
from repros.engine.record import begin_results
from repros.engine.run_options import Observer
from repros.model import Cell, CellResult, Unavailable, Verdict, cell_label
from repros.text import table
from repros.text.explain import explain
from repros.text.styled import Text
from repros.text.wording import count, relative_to_cwd, wrap


class LiveReporter(Observer):
    """Observer that prints a run on a page and collects its record lines for the table at the end."""

    def __init__(self, out: Page, results: Path, *, append: bool, verbose: bool, quiet: bool = False) -> None:
        """Report on `out`.

        Args:
            out: the page.
            results: results file; opened once the plan is known, so that a typo does not empty it.
            append: whether to append to the file.
            verbose: whether to print unavailable cells, and the message of failures that agree.
            quiet: whether to print only cells that disagree.
        """
        self._quiet = quiet
        self.lines: list[record.RecordLine] = []
        self.lost = 0
        """Number of results that could not be written to the file."""
        self._out = out
        self._results = results
        self._append = append
        self._verbose = verbose
        self._held: BinaryIO | None = None
        """The open results file, which locks it against other runs."""
        self._total = 0
        self._done = 0
        self._running: dict[str, None] = {}
        self._awaited: tuple[str, ...] = ()
        self._promised: set[str] = set()
        """Labels of the cells that the plan promised."""
        # `isatty` and not `has_colours`, which FORCE_COLOR makes true for logs.
        hidden = quiet or not out.stream.isatty() or os.environ.get("TERM") in PLAIN_TERMINALS
        self._line = LiveLine(out.stream, out.width, hidden=hidden)
        self._line.describe("probing the environment")

    def __enter__(self) -> Self:
        """Start the live line."""
        self._line.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Remove the live line, and release the results file."""
        self._line.__exit__(kind, error, trace)
        if self._held is not None:
            self._held.close()

    def report_progress(self, line: str) -> None:
        """Show a line of progress that does not belong to a cell."""
        if not self._quiet:
            show_text(self._out, line, "dim")

    def planned(self, cells: Sequence[Cell | Unavailable]) -> None:
        """Open the results file and print the number of cells, summed over the plans of a run."""
        held = begin_results(self._results, append=self._append)
        if self._held is None:
            self._held = held
        else:
            held.close()
        self._append = True
        runnable = sum(isinstance(item, Cell) for item in cells)
        self._total += runnable
        self._promised |= {_label(item) for item in cells if isinstance(item, Cell)}
        if self._quiet:
            return
        missing = len(cells) - runnable
        stacks = dict.fromkeys(table.short_environment_name(c.environment.name) for c in cells if isinstance(c, Cell))
        on_stacks = f" on {', '.join(stacks)}" if stacks else ""
        missing_note = f"; {missing} cannot be run here" if missing else ""
        show_text(self._out, f"{count(runnable, 'cell')} to run{on_stacks}{missing_note}")

    def awaited(self, stacks: Sequence[str]) -> None:
        """Show the stacks that are not prepared yet after the running cells."""
        self._awaited = tuple(stacks)
        self._update_live_line()

    def started(self, cell: Cell) -> None:
        """Add a cell to the live line."""
        self._running[_label(cell)] = None
        self._update_live_line()

    def finished(self, result: CellResult) -> None:
        """Print a result, with an explanation if it disagrees."""
        self.lines.append(record.line(result))
        if result.verdict is Verdict.UNAVAILABLE:
            self._total -= _label(result.cell) in self._promised
        if result.verdict is Verdict.UNAVAILABLE and not self._verbose:
            return
        if result.verdict is not Verdict.UNAVAILABLE:
            self._done += 1
            self._running.pop(_label(result.cell), None)
            self._update_live_line()
        if self._quiet and not result.verdict.disagrees:
            return
        show_text(self._out, self._result_line(result))
        if self._verbose and result.signature and not result.verdict.disagrees:
            show_text(self._out, "\n".join(wrap(result.signature, self._out.width, "    ")), "dim")
        if result.verdict.disagrees:
            show_text(self._out, f"\n{explain(result)}\n")

    def unrecorded(self, error: record.NotRecordedError) -> None:
        """Report a result that could not be written to the file; the table still includes it."""
        self.lost += 1
        show_text(self._out, str(error), "red")

    def close(self, *, interrupted: bool, summary: bool) -> None:
        """Print the end of the run: the table if `summary` is set, and the path of the results file."""
        if self.lines and self._quiet:
            show_text(self._out, table.counts_line(record.latest(self.lines)))
        elif self.lines and (summary or interrupted):
            show_text(self._out, "")
            show_text(self._out, table.summary_table(self.lines, self._out.width, verbose=self._verbose))
        if interrupted:
            show_text(self._out, f"interrupted after {self._done} of {count(self._total, 'cell')}", "yellow")
        if self.lost:
            show_text(self._out, f"{count(self.lost, 'result')} could not be recorded", "red")
        with contextlib.suppress(OSError):
            if self._results.stat().st_size:
                show_text(self._out, f"results: {relative_to_cwd(self._results)}", "dim")

    def _result_line(self, result: CellResult) -> Text:
        counter = f"[{self._done:>{len(str(self._total))}}/{self._total}] "
        if result.verdict is Verdict.UNAVAILABLE:
            counter = " " * len(counter)
        line = Text().append(counter, "dim")
        line.append(f"{result.verdict:<11} ", table.verdict_style(result.verdict))
        line.append(_label(result.cell))
        if result.observation is not None:
            line.append(f"  {result.repeats}" if result.repeats else "")
            # Rounded as in the record line, so that the table shows the same number.
            line.append(f"  {round(result.observation.seconds, 2):.1f} s", "dim")
        else:
            line.append(f"  {result.reason}", "dim")
        return line

    def _update_live_line(self) -> None:
        """Show the first running cell and the number of others, and the stacks that cells wait for."""
        first, *others = [*self._running, ""]
        more = f" and {len(others) - 1} more" if len(others) > 1 else ""
        waiting = f"waiting for {', '.join(self._awaited)}" if self._awaited else ""
        self._line.describe("; ".join(filter(None, [f"{first}{more}", waiting])))


def _label(cell: Cell) -> str:
    """Return the cell's label, with the name of the environment's folder instead of an interpreter's path."""
    environment = table.short_environment_name(cell.environment.name)
    return cell_label(cell.repro.id, cell.variant.name, cell.strategy, cell.device, environment)
