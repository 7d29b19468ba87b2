"""Reduce scripts on real stacks, and keep the figures: `python -m tests.reduce.measure [NAME]... [--public FILE]...`.

Without a name, all scripts of `scripts.toml`. The figures go into `reduced.toml`, and `python -m tests.reduce.table`
writes them into the page. A public script is the code block of an issue that is a file outside of this repository; its
thread is the first address in the file, or that of `--thread`.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
SCRIPTS, FIGURES = HERE / "scripts.toml", HERE / "reduced.toml"
_HEAD = "# What `repros reduce` made of scripts: written by `python -m tests.reduce.measure`.\n"


def measure(words: list[str], stack: str, ranks: int, minutes: float) -> dict[str, Any]:
    """Run `repros reduce` and return the figures of its report.

    Raises:
        SystemExit: it found no failure to keep.
    """
    with tempfile.TemporaryDirectory() as folder:
        output = Path(folder, "reduced.py")
        options = [
            "--stack",
            stack,
            "--ranks",
            str(ranks),
            "--timeout",
            "600",
            "--minutes",
            f"{minutes:g}",
            "--output",
            str(output),
            "--json",
        ]
        command = [sys.executable, "-m", "repros", "reduce", *words, *options]
        ended = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
        if ended.returncode:
            raise SystemExit(f"{words}: repros reduce ended with {ended.returncode}")
        report = json.loads(ended.stdout)
        print(output.read_text("utf-8"))
    return {
        "stack": stack,
        "ranks": ranks,
        "kept": report["text"] or report["signature"],
        "before": report["lines_before"],
        "after": report["lines_after"],
        "candidates": report["candidates"],
        "refused": report["refused"],
        "seconds": round(report["seconds"]),
        "complete": report["complete"],
        "at": datetime.now(UTC).date().isoformat(),
    }


def read_figures() -> dict[str, Any]:
    """Return the kept figures, by script."""
    return tomllib.loads(FIGURES.read_text("utf-8")) if FIGURES.exists() else {}


def write_figures(figures: Mapping[str, Mapping[str, Any]]) -> None:
    """Write the figures: JSON's strings, numbers and booleans are TOML's, too."""
    parts = [
        "\n".join([f"[{name}]", *(f"{key} = {json.dumps(value, ensure_ascii=False)}" for key, value in row.items())])
        for name, row in sorted(figures.items())
    ]
    FIGURES.write_text("\n".join([_HEAD, "\n\n".join(parts), ""]), encoding="utf-8")


def main() -> None:
    """Measure what the command line names."""
    parser = argparse.ArgumentParser(prog="python -m tests.reduce.measure")
    parser.add_argument("names", nargs="*", help="scripts of scripts.toml; all without a name")
    parser.add_argument("--public", type=Path, help="the text of an issue, outside of this repository")
    parser.add_argument("--thread", help="its address")
    parser.add_argument("--name", help="what the table calls it")
    parser.add_argument("--stack", default="current")
    parser.add_argument("--ranks", type=int, default=1)
    parser.add_argument("--minutes", type=float, default=10)
    given = parser.parse_args()
    if given.public:
        figures = measure(["--from-issue", str(given.public)], given.stack, given.ranks, given.minutes)
        write_figures({**read_figures(), given.name: {"thread": given.thread, "public": True, **figures}})
        return
    scripts = tomllib.loads(SCRIPTS.read_text("utf-8"))
    for name in given.names or scripts:
        script = scripts[name]
        words = [str(HERE / "toys" / f"{name}.py"), *(["--text", script["text"]] if "text" in script else [])]
        figures = measure(words, script["stack"], script.get("ranks", 1), given.minutes)
        write_figures({**read_figures(), name: {"thread": script["thread"], "public": False, **figures}})


if __name__ == "__main__":
    main()
