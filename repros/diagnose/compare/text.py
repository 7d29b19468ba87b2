"""The result of a comparison as text."""

from __future__ import annotations

from collections.abc import Iterator
from signal import Signals

from repros.diagnose.compare.recording import END, STEP
from repros.diagnose.compare.run import CompareResult
from repros.text.layout import entries, entry
from repros.text.styled import Text
from repros.text.wording import count, wrap


def format_result(result: CompareResult, width: int) -> Text:
    """Return the result in at most `width` columns; only names may be longer."""
    difference = result.difference
    lines = [Text(line, "bold red" if difference else "bold green") for line in wrap(headline(result), width)]
    if difference is not None:
        lines += entry("first", _value(difference.values[0], difference.rank), width)
        lines += entry("second", _value(difference.values[1], difference.rank), width)
        if difference.relative is not None and not result.exact:
            lines += entry("relative", f"difference {difference.relative:.1g}", width)
        lines += entry("equal", equal_before(result), width)
    if result.tolerance is not None and not result.exact:
        lines += entry("tolerance", str(result.tolerance), width)
    lines += entries("note", result.notes, width)
    return Text("\n").join(lines)


def headline(result: CompareResult) -> str:
    """Return the result in one sentence."""
    difference, at = result.difference, result.at
    if difference is not None and at is not None:
        where = at.where(result.offset)
        if result.offset and at.kind == STEP:
            where += f" ({at.where()} of the second run)"
        # The text about a batch has its values already.
        values = "" if difference.stage == "batch" else f": {' against '.join(difference.values)}"
        return f"first difference: {where}, {difference.text}{values}"
    if result.has_same_bits:
        return f"{_through(result)}: the same bits"
    largest = result.largest
    if largest is None:
        return _through(result)
    return (
        f"{_through(result)} (largest relative difference {largest.relative:.1g} in {largest.where} at step "
        f"{largest.step}, tolerance {largest.allowed:.1g})"
    )


def _through(result: CompareResult) -> str:
    """Return the range in which two runs are equal."""
    parts = []
    if result.steps:
        last = result.steps + result.offset
        parts.append(f"through step {last}" if not result.offset else f"in steps {result.offset + 1} to {last}")
    if result.evaluations:
        parts.append(f"in {count(result.evaluations, 'evaluation')}")
    if result.results and not parts:
        parts.append(f"in {count(result.results, 'result')}")
    return f"equal {' and '.join(parts) or 'at the end'}"


def equal_before(result: CompareResult) -> str:
    """Return what is equal before the first difference."""
    parts: list[str] = []
    if result.steps:
        bits = result.same_bits
        exact = "" if bits == 0 else " bit for bit" if bits == result.steps else f", {count(bits, 'step')} bit for bit"
        parts.append(f"{count(result.steps, 'step')}{exact}")
    if result.evaluations:
        parts.append(count(result.evaluations, "evaluation"))
    if result.results:
        parts.append(count(result.results, "result"))
    if result.equal:
        kind = "step" if result.at is None else result.at.kind
        parts.append(f"{'at the end' if kind == END else f'in this {kind}'} {', '.join(result.equal)}")
    return "; ".join(parts) or "nothing before it"


def _value(value: str, rank: str | None) -> str:
    return f"{value} ({rank})" if rank else value


def format_runs(names: tuple[str, str], codes: tuple[int, int]) -> Iterator[str]:
    """Yield a sentence for each run that failed; its recording is compared nevertheless."""
    for name, code in zip(names, codes, strict=True):
        if code:
            yield f"the {name} run {ending(code)}; its steps until then are compared"


def ending(code: int) -> str:
    """Return how a run ended, by its exit code: 128 plus the number of a signal, as shells have it."""
    number = code - 128
    known = {signal.value: signal.name for signal in Signals}
    return f"was ended by {known[number]}" if number in known else f"ended with exit code {code}"
