"""What a comparison gave, for the terminal."""

from __future__ import annotations

from collections.abc import Iterator

from repros.diagnose.compare.recording import END, STEP
from repros.diagnose.compare.run import Result
from repros.text.layout import entries, entry
from repros.text.styled import Text
from repros.text.wording import count, wrap


def format_result(result: Result, width: int) -> Text:
    """Return what was found, in at most `width` columns; only names may be longer."""
    style = "bold green" if result.difference is None else "bold red"
    lines = [Text(line, style) for line in wrap(headline(result), width)]
    found = result.difference
    if found is not None:
        lines += entry("first", _value(found.values[0], found.rank), width)
        lines += entry("second", _value(found.values[1], found.rank), width)
        if found.relative is not None and not result.exact:
            lines += entry("apart", f"relative difference {found.relative:.1g}", width)
        lines += entry("equal", equal_before(result), width)
    if result.tolerance is not None and not result.exact:
        lines += entry("tolerance", str(result.tolerance), width)
    lines += entries("note", result.notes, width)
    return Text("\n").join(lines)


def headline(result: Result) -> str:
    """Return the answer in one sentence."""
    found, at = result.difference, result.at
    if found is not None and at is not None:
        where = at.where(result.offset)
        if result.offset and at.kind == STEP:
            where += f" ({at.where()} of the second run)"
        # What differs of a batch is a sentence already.
        values = "" if found.stage == "batch" else f": {' against '.join(found.values)}"
        return f"first difference: {where}, {found.text}{values}"
    if result.has_same_bits:
        return f"{_through(result)}: the same bits"
    worst = result.worst
    if worst is None:
        return _through(result)
    return (
        f"{_through(result)} (largest relative difference {worst.relative:.1g} in {worst.where} at step {worst.step}, "
        f"tolerance {worst.allowed:.1g})"
    )


def _through(result: Result) -> str:
    """Return how far two runs are equal."""
    parts = []
    if result.steps:
        last = result.steps + result.offset
        parts.append(f"through step {last}" if not result.offset else f"in steps {result.offset + 1} to {last}")
    if result.evaluations:
        parts.append(f"in {count(result.evaluations, 'evaluation')}")
    if result.results and not parts:
        parts.append(f"in {count(result.results, 'result')}")
    return f"equal {' and '.join(parts) or 'at the end'}"


def equal_before(result: Result) -> str:
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
        what = "step" if result.at is None else result.at.kind
        parts.append(f"{'at the end' if what == END else f'in this {what}'} {', '.join(result.equal)}")
    return "; ".join(parts) or "nothing before it"


def _value(value: str, rank: str | None) -> str:
    return f"{value} ({rank})" if rank else value


def format_runs(names: tuple[str, str], codes: tuple[int, int]) -> Iterator[str]:
    """Yield what is to be said of runs that failed: their numbers count nevertheless."""
    for name, code in zip(names, codes, strict=True):
        if code:
            yield f"the {name} run ended with exit code {code}; what it had trained by then is compared"
