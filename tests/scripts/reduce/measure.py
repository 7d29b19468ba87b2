"""Reduce scripts on stacks and record figures: `python -m tests.scripts.reduce.measure [NAME]... [--issues FOLDER]`.

Without a name, all scripts of `scripts.toml`. The figures go into `reduced.toml`, and `python -m
tests.scripts.reduce.table`
writes them into the page. A public script is the code block of an issue, whose text is a file of FOLDER, outside of
this repository: NAME.md. The results go into FOLDER, too, to be read.
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
_HEAD = "# What `repros reduce` made of scripts: written by `python -m tests.scripts.reduce.measure`.\n"


def measure(words: list[str], script: Mapping[str, Any], output: Path, minutes: float) -> dict[str, Any]:
    """Run `repros reduce` and return the figures of its report.

    Args:
        words: what names the script.
        script: its table of `scripts.toml`.
        output: the file for what is left of it.
        minutes: the time for it.

    Raises:
        SystemExit: it found no failure to keep.
    """
    options = ["--stack", script["stack"], "--timeout", "600", "--minutes", f"{minutes:g}", "--output", str(output)]
    options += ["--clean-on", script["clean_on"]] if "clean_on" in script else []
    options += [word for requirement in script.get("clean_with", ()) for word in ("--clean-with", requirement)]
    options += [*script.get("options", ()), *(word for text in script.get("texts", ()) for word in ("--text", text))]
    command = [sys.executable, "-m", "repros", "reduce", *words, *options, "--force", "--json"]
    ended = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
    if ended.returncode:
        raise SystemExit(f"{words}: repros reduce ended with {ended.returncode}")
    report = json.loads(ended.stdout)
    print(output.read_text("utf-8"), flush=True)
    return {
        "thread": script["thread"],
        "public": script.get("public", False),
        "stack": report["stack"],
        "clean_on": report["clean_on"] or "",
        "lost": script.get("lost", ""),
        "ranks": report["ranks"],
        "kept": " and ".join(report["texts"]) or report["signature"],
        "lines": [report["lines_before"], report["lines_after"]],
        "tokens": [report["tokens_before"], report["tokens_after"]],
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
    parser = argparse.ArgumentParser(prog="python -m tests.scripts.reduce.measure")
    parser.add_argument("names", nargs="*", help="scripts of scripts.toml; all without a name")
    parser.add_argument("--issues", type=Path, help="a folder outside of this repository, with the texts of issues")
    parser.add_argument("--minutes", type=float, default=10)
    given = parser.parse_args()
    scripts = tomllib.loads(SCRIPTS.read_text("utf-8"))
    with tempfile.TemporaryDirectory() as folder:
        for name in given.names or scripts:
            script, toy = scripts[name], HERE / "toys" / f"{name}.py"
            if script.get("public") and given.issues is None:
                print(f"{name} is left out: its text is in no folder that --issues names")
                continue
            words = ["--from-issue", str(given.issues / f"{name}.md")] if script.get("public") else [str(toy)]
            figures = measure(words, script, Path(given.issues or folder, f"{name}.reduced.py"), given.minutes)
            # Read anew: another run may have written meanwhile.
            write_figures({**read_figures(), name: figures})


if __name__ == "__main__":
    main()
