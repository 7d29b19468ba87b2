"""The results of a library's own tests: printed, and kept in `results/`, one file for each library.

`python -m repros.simulated_gpus.tools.library_tests.results` updates RESULTS.md from these files and `causes.py`.
"""

from __future__ import annotations

import importlib.metadata
import json
import re
import time
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from repros.simulated_gpus.tools.library_tests.causes import cause_of
from repros.simulated_gpus.tools.page import fill_part

Test = dict[str, Any]
"""One line of the plugin's report: `test`, `outcome`, `on_sim`, `message`; `bare_fails` if it was run without GPUs."""

HERE = Path(__file__).parent
FOLDER = HERE / "results"
PAGE = HERE / "RESULTS.md"
"""The page with all results."""
KINDS = ("passed on a simulated GPU", "passed elsewhere", "failed", "fails without GPUs, too", "skipped")
"""The kinds of results, in the order of the table."""
_NAMES = {
    "accelerate": "accelerate",
    "c10d": "torch's collectives",
    "fabric": "Fabric",
    "peft": "PEFT",
    "pytorch": "Lightning",
    "torchmetrics": "torchmetrics",
    "torch": "PyTorch",
    "transformers": "transformers",
}


def kind(test: Test) -> str:
    """Return the kind of a test's result; a file that did not finish counts as one failed test."""
    if test["outcome"] == "passed":
        return "passed on a simulated GPU" if test["on_sim"] else "passed elsewhere"
    if test["outcome"] == "skipped":
        return "skipped"
    return "fails without GPUs, too" if test.get("bare_fails") else "failed"


def count_kinds(tests: Iterable[Test]) -> Counter[str]:
    """Return the number of tests of each kind."""
    return Counter(map(kind, tests))


def is_skipped_for(reason: str, test: Test) -> bool:
    """Return whether a test was skipped for a reason that ends with this text."""
    return test["outcome"] == "skipped" and str(test["message"]).endswith(reason)


def make_results(
    library: str, version: str | None, tests: Sequence[Test], not_run: Sequence[str] = ()
) -> dict[str, Any]:
    """Return the results of a run.

    Args:
        library: its name in `LIBRARIES`.
        version: the version of the tests.
        tests: the tests' results.
        not_run: the files that were not run, and the tests `FILE::TEST` of files of which a part was run.
    """
    counts = count_kinds(tests)
    skipped = Counter(_normalise_message(test["message"]) for test in tests if kind(test) == "skipped")
    return {
        "library": library,
        "tests": version,
        "versions": _versions("torch", "lightning", "accelerate", "transformers", "peft", "torchmetrics"),
        "date": time.strftime("%Y-%m-%d", time.gmtime()),
        "not_run": list(not_run),
        "counts": {name: counts[name] for name in KINDS},
        "failed": [
            {"test": _test_name(test["test"]), "message": _normalise_message(test["message"])}
            for test in sorted(tests, key=lambda test: str(test["test"]))
            if kind(test) == "failed"
        ],
        "skipped": dict(skipped.most_common()),
    }


def _versions(*names: str) -> dict[str, str]:
    """Return the versions of those packages that are installed."""
    installed = {
        distribution.metadata["Name"]: distribution.version for distribution in importlib.metadata.distributions()
    }
    return {name: installed[name] for name in names if name in installed}


def _test_name(test: str) -> str:
    """Return a test's name without the folder of the run."""
    return re.sub(r"^.*?/(?=tests/)", "", test)


def _normalise_message(message: str) -> str:
    """Return a message without the parts that differ between runs."""
    return re.sub(r"(?<![\w/])/\w+/[\w/.-]+|0x[0-9a-f]+", "...", message)[:200]


def summary(made: Mapping[str, Any]) -> str:
    """Return the results as text: the counts, and the failures by message."""
    lines = [f"{made['library']}, {', '.join(f'{name} {version}' for name, version in made['versions'].items())}"]
    lines += [f"  {made['counts'][name]:5} {name}" for name in KINDS]
    by_message: dict[str, list[str]] = {}
    for test in made["failed"]:
        by_message.setdefault(test["message"], []).append(test["test"])
    for message, names in sorted(by_message.items(), key=lambda item: -len(item[1])):
        lines.append(f"  {len(names):5} {message}\n        {names[0]}")
    return "\n".join(lines)


def save(made: Mapping[str, Any]) -> None:
    """Save the results of a whole run in the repository, replacing those of this library."""
    FOLDER.mkdir(exist_ok=True)
    (FOLDER / f"{made['library']}.json").write_text(json.dumps(made, indent=2) + "\n", encoding="utf-8")


def load_all() -> list[dict[str, Any]]:
    """Return the repository's results, sorted by library."""
    return [json.loads(file.read_text(encoding="utf-8")) for file in sorted(FOLDER.glob("*.json"))]


def fill_page(text: str, results: Sequence[Mapping[str, Any]]) -> str:
    """Return a page with the current results between its markers: a table, and the causes of each failure."""
    lines = [f"| Tests of | run with | on | {' | '.join(KINDS)} |", f"|---|---|---|{'--:|' * len(KINDS)}"]
    lines += [_row(made) for made in results]
    for made in results:
        failed = [f"{made['counts']['failed']} failed,", "", *_causes(made), ""] if made["failed"] else ["none failed,"]
        lines += ["", f"**{_NAMES[made['library']]}**: {failed[0]}", *failed[1:]]
        lines.append(f"and {made['counts']['skipped']} were skipped: {_reasons(made)}.")
        if made["not_run"]:
            lines += ["", f"Not run: {', '.join(_name_not_run(made['not_run']))}."]
    return fill_part(text, "results", "".join(f"{line}\n" for line in lines))


def _row(made: Mapping[str, Any]) -> str:
    versions = ", ".join(f"{name} {version}" for name, version in made["versions"].items())
    counts = " | ".join(str(made["counts"][name]) for name in KINDS)
    return f"| {_NAMES[made['library']]} {made['tests']} | {versions} | {made['date']} | {counts} |"


def _causes(made: Mapping[str, Any]) -> Iterable[str]:
    causes = Counter(cause_of(made["library"], test["test"], test["message"]) for test in made["failed"])
    for cause, count in causes.most_common():
        yield f"* {count}: {cause.why if cause else 'not investigated.'}"


def _name_not_run(names: Sequence[str]) -> Iterable[str]:
    """Yield each file's name, with the number of its tests if only some of them were not run."""
    for file, count in Counter(name.partition("::")[0] for name in names).items():
        yield f"`{Path(file).name}`" + ("" if file in names else f" ({count} tests)")


def _reasons(made: Mapping[str, Any], most: int = 6) -> str:
    most_common = list(made["skipped"].items())[:most]
    reasons = [f"{message.removeprefix('Skipped: ')} ({count})" for message, count in most_common]
    others = sum(made["skipped"].values()) - sum(count for _, count in most_common)
    return "; ".join([*reasons, *([f"other reasons ({others})"] if others else [])])


def main() -> None:
    """Update the page with the kept results."""
    PAGE.write_text(fill_page(PAGE.read_text(encoding="utf-8"), load_all()), encoding="utf-8")


if __name__ == "__main__":
    main()
