"""What a run found, in numbers: told, and kept as one file for each version of torch (`figures/`).

`python -m tests.tools.conformance.figures repros/inside/sim/README.md` puts them on that page as a table.
"""

from __future__ import annotations

import json
import platform
import re
import sys
import time
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.tools.json_rows import dumps_by_row

from .known import of_version, uncovered
from .run import Found

if TYPE_CHECKING:
    from collections.abc import Iterable

FOLDER = Path(__file__).parent / "figures"
PREFIXES = {"cpu": "torch", "cuda": "cuda-of-torch"}
"""Of the files' names, by the reference."""
_PLACE = re.compile(r"(<!-- conformance: begin .*-->\n).*(<!-- conformance: end -->)", re.DOTALL)


def make(version: str, found: Iterable[Found], against: str = "cpu") -> dict[str, Any]:
    """The figures of a run.

    Args:
        version: torch's.
        found: what the run found.
        against: the reference's name.
    """
    found = [one for one in found if one.samples]
    samples: Counter[str] = Counter()
    passed: Counter[str] = Counter()
    for one in found:
        key = f"{one.form} {one.dtype}"
        samples[key] += one.samples
        passed[key] += one.samples - one.wrong
    return {
        "torch": version,
        "python": platform.python_version(),
        "platform": f"{platform.system()} {platform.machine()}",
        "date": time.strftime("%Y-%m-%d", time.gmtime()),
        "operators": len({one.operator for one in found}),
        "samples": {key: {against: samples[key], "sim": passed[key]} for key in sorted(samples)},
        "different": [one._asdict() for one in sorted(found) if one.wrong],
    }


def total(figures: dict[str, Any]) -> tuple[int, int]:
    """Samples that the reference passes, and those of them that the device passes."""
    counts = figures["samples"].values()
    return sum(of[against(figures)] for of in counts), sum(of["sim"] for of in counts)


def against(figures: dict[str, Any]) -> str:
    """The reference's name."""
    return str(next(iter(next(iter(figures["samples"].values())))))


def differences(figures: dict[str, Any]) -> list[Found]:
    """What differed."""
    return [Found(**one) for one in figures["different"]]


def told(figures: dict[str, Any]) -> str:
    """The figures for a reader."""
    reference = against(figures)
    lines = [f"torch {figures['torch']}: {figures['operators']} operators"]
    for key, of in figures["samples"].items():
        lines.append(f"  {key:<20} {of['sim']:>6} of {of[reference]:>6} samples that {reference} passes")
    passed, sim = total(figures)
    lines.append(f"  {'together':<20} {sim:>6} of {passed:>6}")
    known = len(figures["different"]) - len(uncovered(differences(figures), of_version(figures["torch"], reference)))
    lines.append(f"  {known} of {len(figures['different'])} differences are known")
    return "\n".join(lines)


def keep(figures: dict[str, Any]) -> None:
    """Put the figures of a whole run in the place of those that the repository has for this torch."""
    file = FOLDER / f"{PREFIXES[against(figures)]}-{figures['torch'].partition('+')[0]}.json"
    file.parent.mkdir(exist_ok=True)
    file.write_text(dumps_by_row(figures), encoding="utf-8")


def kept(reference: str = "cpu") -> list[dict[str, Any]]:
    """The figures that the repository has against a reference, the oldest torch first."""
    found = [json.loads(file.read_text(encoding="utf-8")) for file in FOLDER.glob(f"{PREFIXES[reference]}-*.json")]
    return sorted(found, key=lambda figures: [int(part) for part in figures["torch"].partition("+")[0].split(".")])


def table() -> str:
    """The kept figures as Markdown."""
    lines = [
        "| torch | operators | samples that the CPU passes | equal on `sim` | known to differ | laid out as on CUDA |",
        "|---|--:|--:|--:|---|--:|",
    ]
    laid_out = {figures["torch"].partition("+")[0]: total(figures) for figures in kept("cuda")}
    for figures in kept():
        cpu, sim = total(figures)
        names = ", ".join(f"`{name}`" for name in sorted({one["operator"] for one in figures["different"]}))
        version = figures["torch"].partition("+")[0]
        layout = "{1:,} of {0:,}".format(*laid_out[version]) if version in laid_out else "not run"
        lines.append(f"| {version} | {figures['operators']} | {cpu:,} | {sim:,} | {names} | {layout} |")
    return "\n".join(lines) + "\n"


def fill(text: str) -> str:
    """A page with the table between its marks.

    Raises:
        ValueError: the page has no such marks.
    """
    filled, places = _PLACE.subn(lambda place: f"{place[1]}{table()}{place[2]}", text)
    if places != 1:
        msg = f"the marks for the table are there {places} times, not once"
        raise ValueError(msg)
    return filled


def main() -> None:
    """Put the table of the kept figures on a page."""
    page = Path(sys.argv[1])
    page.write_text(fill(page.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    main()
