"""Bisect public threads that name a release, and record the results: `python -m tools.measure.bisect_threads`.

`tests/scripts/bisect/threads.toml` has the threads, each with a script in `tests/scripts/bisect/toys`. Each costs
minutes and the wheels of some ten releases. Cached answers of `.repros/bisect` are used again; the seconds then mean
little.
"""

from __future__ import annotations

import argparse
import datetime as dt
import json
import subprocess
import sys
import time
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from repros.engine.evidence.toml import quoted

FILE = Path(__file__).parents[2] / "tests/scripts/bisect/threads.toml"
TOYS = FILE.with_name("toys")


def read_threads(file: Path = FILE) -> list[dict[str, Any]]:
    """Return the threads with recorded results."""
    found: list[dict[str, Any]] = tomllib.loads(file.read_text("utf-8"))["thread"]
    return found


def write_threads(threads: Sequence[Mapping[str, Any]], file: Path = FILE) -> None:
    """Write the threads, below the comment that the file begins with."""
    head = file.read_text("utf-8").partition("\n[[thread]]")[0]
    file.write_text(head + "".join(f"\n[[thread]]\n{_table(thread)}" for thread in threads), "utf-8")


def _table(thread: Mapping[str, Any]) -> str:
    lines = [f"{name} = {_value(value)}\n" for name, value in thread.items() if name != "found"]
    found = [f"found.{name} = {_value(value)}\n" for name, value in thread.get("found", {}).items()]
    return "".join((*lines, *found))


def _value(value: Any) -> str:
    if isinstance(value, list):
        return f"[{', '.join(map(_value, value))}]"
    if isinstance(value, bool):
        return str(value).lower()
    return quoted(value) if isinstance(value, str) else str(value)


def bisect(thread: Mapping[str, Any]) -> dict[str, Any]:
    """Bisect a thread's script, and return what was found, with the seconds that it took.

    Raises:
        SystemExit: it found no change.
    """
    command = [sys.executable, "-m", "repros", "bisect", str(TOYS / thread["script"]), "--package", thread["package"]]
    begun = time.monotonic()
    done = subprocess.run([*command, *thread["options"], "--json"], stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode:
        sys.exit(f"{thread['script']}: no change was found\n{done.stdout}")
    report = json.loads(done.stdout)
    shows = {release["version"]: release["shows"] for release in report["releases"]}
    change = report["change"]
    return {
        **change,
        "before": shows[change["until"]],
        "after": shows[change["since"]],
        "asked": len(shows),
        "candidates": len(report["candidates"]),
        "seconds": round(time.monotonic() - begun),
        "at": str(dt.datetime.now().astimezone().date()),
    }


def main() -> None:
    """Bisect the threads of the scripts that are named, or all."""
    parser = argparse.ArgumentParser(prog="python -m tools.measure.bisect_threads", description=main.__doc__)
    parser.add_argument("scripts", nargs="*", help="names of files in tests/scripts/bisect/toys")
    scripts = parser.parse_args().scripts
    for thread in read_threads():
        if not scripts or thread["script"] in scripts:
            found = bisect(thread)
            # Read again: another run may have written in the meantime.
            write_threads([{**other, "found": found} if other == thread else other for other in read_threads()])


if __name__ == "__main__":
    main()
