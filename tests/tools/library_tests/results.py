"""What a run of a library's own tests came to: told, and kept as one file for each library (`results/`).

`python -m tests.tools.library_tests.results` writes RESULTS.md anew from these files and from `causes.py`.
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

from tests.tools.library_tests.causes import cause_of

Test = dict[str, Any]
"""One line of the plugin's report: `test`, `outcome`, `on_sim`, `said`; `bare_fails` where it was run without sim."""

HERE = Path(__file__).parent
FOLDER = HERE / "results"
PAGE = HERE / "RESULTS.md"
"""The page that shows them."""
_PLACE = re.compile(r"(<!-- results: begin .*-->\n).*(<!-- results: end -->)", re.DOTALL)
KINDS = ("passed on sim", "passed elsewhere", "failed", "fails without sim, too", "skipped")
"""What can come of a test, in the order of the table."""
_NAMES = {
    "accelerate": "accelerate",
    "bitsandbytes": "bitsandbytes",
    "c10d": "torch's collectives",
    "fabric": "Fabric",
    "pytorch": "Lightning",
}


def kind(test: Test) -> str:
    """What came of it; a file that could not be run to its end is counted as one test that failed."""
    if test["outcome"] == "passed":
        return "passed on sim" if test["on_sim"] else "passed elsewhere"
    if test["outcome"] == "skipped":
        return "skipped"
    return "fails without sim, too" if test.get("bare_fails") else "failed"


def counted(tests: Iterable[Test]) -> Counter[str]:
    """How many tests of each kind."""
    return Counter(map(kind, tests))


def is_to_run_alone(test: Test) -> bool:
    """Whether it was skipped for no other reason than that Lightning runs it in a process of its own."""
    return test["outcome"] == "skipped" and "Requires: [Standalone execution]" in test["said"]


def make(library: str, version: str | None, tests: Sequence[Test], left: Sequence[str] = ()) -> dict[str, Any]:
    """The results of a run.

    Args:
        library: its name among `LIBRARIES`.
        version: that of the tests.
        tests: what came of them.
        left: the files that were not run.
    """
    counts = counted(tests)
    skipped = Counter(_shortened(test["said"]) for test in tests if kind(test) == "skipped")
    return {
        "library": library,
        "tests": version,
        "versions": _versions("torch", "lightning", "accelerate", "transformers", "bitsandbytes"),
        "date": time.strftime("%Y-%m-%d", time.gmtime()),
        "left": list(left),
        "counts": {name: counts[name] for name in KINDS},
        "failed": [
            {"test": _placed(test["test"]), "said": _shortened(test["said"])}
            for test in sorted(tests, key=lambda test: str(test["test"]))
            if kind(test) == "failed"
        ],
        "skipped": dict(skipped.most_common()),
    }


def _versions(*names: str) -> dict[str, str]:
    """Those of the packages that are installed."""
    installed = {one.metadata["Name"]: one.version for one in importlib.metadata.distributions()}
    return {name: installed[name] for name in names if name in installed}


def _placed(test: str) -> str:
    """A test's name, without the folder in which the tests were."""
    return re.sub(r"^.*?/(?=tests/)", "", test)


def _shortened(said: str) -> str:
    """What was said, without what differs from run to run."""
    return re.sub(r"(?<![\w/])/\w+/[\w/.-]+|0x[0-9a-f]+", "...", said)[:200]


def told(made: Mapping[str, Any]) -> str:
    """The results for a reader: the counts, and what failed, by what was said."""
    lines = [f"{made['library']}, {', '.join(f'{name} {version}' for name, version in made['versions'].items())}"]
    lines += [f"  {made['counts'][name]:5} {name}" for name in KINDS]
    said: dict[str, list[str]] = {}
    for test in made["failed"]:
        said.setdefault(test["said"], []).append(test["test"])
    for words, names in sorted(said.items(), key=lambda item: -len(item[1])):
        lines.append(f"  {len(names):5} {words}\n        {names[0]}")
    return "\n".join(lines)


def keep(made: Mapping[str, Any]) -> None:
    """Put the results of a whole run in the place of those that the repository has of this library."""
    FOLDER.mkdir(exist_ok=True)
    (FOLDER / f"{made['library']}.json").write_text(json.dumps(made, indent=2) + "\n", encoding="utf-8")


def kept() -> list[dict[str, Any]]:
    """The results that the repository has, by the library's name."""
    return [json.loads(file.read_text(encoding="utf-8")) for file in sorted(FOLDER.glob("*.json"))]


def fill(text: str, results: Sequence[Mapping[str, Any]]) -> str:
    """A page with the results between its marks: a table, and for each library the causes of what failed.

    Raises:
        ValueError: the page has no such marks.
    """
    lines = [f"| Tests of | run with | on | {' | '.join(KINDS)} |", f"|---|---|---|{'--:|' * len(KINDS)}"]
    lines += [_row(made) for made in results]
    for made in results:
        failed = [f"{made['counts']['failed']} failed,", "", *_causes(made), ""] if made["failed"] else ["none failed,"]
        lines += ["", f"**{_NAMES[made['library']]}**: {failed[0]}", *failed[1:]]
        lines.append(f"and {made['counts']['skipped']} were skipped: {_reasons(made)}.")
        if made["left"]:
            lines += ["", f"Not run: {', '.join(f'`{Path(name).name}`' for name in made['left'])}."]
    made_of = "".join(f"{line}\n" for line in lines)
    filled, places = _PLACE.subn(lambda place: f"{place[1]}{made_of}{place[2]}", text)
    if places != 1:
        msg = f"the marks for the results are there {places} times, not once"
        raise ValueError(msg)
    return filled


def _row(made: Mapping[str, Any]) -> str:
    versions = ", ".join(f"{name} {version}" for name, version in made["versions"].items())
    counts = " | ".join(str(made["counts"][name]) for name in KINDS)
    return f"| {_NAMES[made['library']]} {made['tests']} | {versions} | {made['date']} | {counts} |"


def _causes(made: Mapping[str, Any]) -> Iterable[str]:
    causes = Counter(cause_of(made["library"], test["test"], test["said"]) for test in made["failed"])
    for cause, count in causes.most_common():
        yield f"* {count}: {cause.why if cause else 'not looked into.'}"


def _reasons(made: Mapping[str, Any], most: int = 6) -> str:
    commonest = list(made["skipped"].items())[:most]
    told = [f"{said.removeprefix('Skipped: ')} ({count})" for said, count in commonest]
    others = sum(made["skipped"].values()) - sum(count for _, count in commonest)
    return "; ".join([*told, *([f"other reasons ({others})"] if others else [])])


def main() -> None:
    """Put the kept results on their page."""
    PAGE.write_text(fill(PAGE.read_text(encoding="utf-8"), kept()), encoding="utf-8")


if __name__ == "__main__":
    main()
