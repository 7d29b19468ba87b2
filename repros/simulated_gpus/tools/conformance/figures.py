"""The figures of a run: printed, and kept in `figures/`, one file for each version of torch.

`python -m repros.simulated_gpus.tools.conformance.figures repros/simulated_gpus/README.md` updates the table on that
page.
"""

from __future__ import annotations

import json
import platform
import sys
import time
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

from repros.simulated_gpus.tools.json_rows import dumps_by_row
from repros.simulated_gpus.tools.page import fill_part

from .known import entries_for, uncovered
from .run import Found

if TYPE_CHECKING:
    from collections.abc import Iterable

FOLDER = Path(__file__).parent / "figures"
PREFIXES = {"cpu": "torch", "cuda": "cuda-of-torch", "types": "types-of-torch"}
"""Prefixes of the files' names by reference."""
DENIED, ONLY_CUDA = FORMS_OF_TYPES = ("denied", "only CUDA has")
"""The questions about types, which replace a form: what the list denies CUDA, and what only CUDA has."""


def make_figures(version: str, found: Iterable[Found], against: str = "cpu") -> dict[str, Any]:
    """Return the figures of a run.

    Args:
        version: torch's version.
        found: the run's results.
        against: the reference's name.
    """
    found = [combination for combination in found if combination.samples]
    samples: Counter[str] = Counter()
    passed: Counter[str] = Counter()
    for combination in found:
        key = f"{combination.form} {combination.dtype}"
        samples[key] += combination.samples
        passed[key] += combination.samples - combination.wrong
    return {
        "torch": version,
        "python": platform.python_version(),
        "platform": f"{platform.system()} {platform.machine()}",
        "date": time.strftime("%Y-%m-%d", time.gmtime()),
        "operators": len({combination.operator for combination in found}),
        "samples": {key: {against: samples[key], "sim": passed[key]} for key in sorted(samples)},
        "different": [_row(combination) for combination in sorted(found) if combination.wrong],
    }


def _row(one: Found) -> dict[str, Any]:
    """Return a difference as kept; the layouts of all samples would be too much."""
    return {name: value for name, value in one._asdict().items() if name != "layouts"}


def total(figures: dict[str, Any]) -> tuple[int, int]:
    """Return the number of samples that the reference passes, and of those that the device passes too."""
    counts = figures["samples"].values()
    return sum(count[reference_name(figures)] for count in counts), sum(count["sim"] for count in counts)


def reference_name(figures: dict[str, Any]) -> str:
    """Return the reference's name."""
    return next((str(name) for count in figures["samples"].values() for name in count), "cpu")


def differences(figures: dict[str, Any]) -> list[Found]:
    """Return the combinations that differed."""
    return [Found(**combination) for combination in figures["different"]]


def summary(figures: dict[str, Any]) -> str:
    """Return the figures as text."""
    reference = reference_name(figures)
    lines = [f"torch {figures['torch']}: {figures['operators']} operators"]
    what = "pairs as PyTorch's list has them" if reference == "types" else f"samples that {reference} passes"
    for key, count in figures["samples"].items():
        lines.append(f"  {key:<20} {count['sim']:>6} of {count[reference]:>6} {what}")
    passed, sim = total(figures)
    lines.append(f"  {'total':<20} {sim:>6} of {passed:>6}")
    known = len(figures["different"]) - len(uncovered(differences(figures), entries_for(figures["torch"], reference)))
    lines.append(f"  {known} of {len(figures['different'])} differences are known")
    if reference == "types":
        lines.append(f"  of the denied {of_form(figures, DENIED)} run, of CUDA's own {of_form(figures, ONLY_CUDA)}")
    return "\n".join(lines)


def of_form(figures: dict[str, Any], form: str) -> str:
    """Return how many pairs of a question about types run, as text."""
    counts = [count for key, count in figures["samples"].items() if key.startswith(form)]
    pairs, as_listed = (sum(count[name] for count in counts) for name in ("types", "sim"))
    return f"{pairs - as_listed if form == DENIED else as_listed} of {pairs}"


def save(figures: dict[str, Any]) -> None:
    """Save the figures of a whole run in the repository, replacing those of this torch."""
    file = FOLDER / f"{PREFIXES[reference_name(figures)]}-{figures['torch'].partition('+')[0]}.json"
    file.parent.mkdir(exist_ok=True)
    file.write_text(dumps_by_row(figures), encoding="utf-8")


def load_all(reference: str = "cpu") -> list[dict[str, Any]]:
    """Return the repository's figures for a reference, the oldest torch first."""
    found = [json.loads(file.read_text(encoding="utf-8")) for file in FOLDER.glob(f"{PREFIXES[reference]}-*.json")]
    return sorted(found, key=lambda figures: [int(part) for part in figures["torch"].partition("+")[0].split(".")])


def table() -> str:
    """Return the kept figures as a Markdown table."""
    heads: tuple[str, ...] = (
        "torch",
        "on",
        "operators",
        "samples that the CPU passes",
        "equal on the simulated GPU",
        "known to differ",
    )
    heads += ("laid out as on CUDA", "denied types that run", "CUDA's own types that run")
    lines = [f"| {' | '.join(heads)} |", "|---|---|--:|--:|--:|---|--:|--:|--:|"]
    laid_out = {figures["torch"].partition("+")[0]: total(figures) for figures in load_all("cuda")}
    types = {figures["torch"].partition("+")[0]: figures for figures in load_all("types")}
    for figures in load_all():
        cpu, sim = total(figures)
        names = ", ".join(
            f"`{name}`" for name in sorted({combination["operator"] for combination in figures["different"]})
        )
        version = figures["torch"].partition("+")[0]
        layout = "{1:,} of {0:,}".format(*laid_out[version]) if version in laid_out else "not run"
        asked = [of_form(types[version], form) if version in types else "not run" for form in FORMS_OF_TYPES]
        row = (version, figures["date"], figures["operators"], f"{cpu:,}", f"{sim:,}", names, layout, *asked)
        lines.append(f"| {' | '.join(map(str, row))} |")
    return "\n".join(lines) + "\n"


def fill_page(text: str) -> str:
    """Return a page with the current table between its markers."""
    return fill_part(text, "conformance", table())


def main() -> None:
    """Update the table on a page."""
    page = Path(sys.argv[1])
    page.write_text(fill_page(page.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    main()
