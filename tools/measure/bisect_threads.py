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
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import tomlkit

FILE = Path(__file__).parents[2] / "tests/scripts/bisect/threads.toml"
TOYS = FILE.with_name("toys")


def read_threads(file: Path = FILE) -> list[dict[str, Any]]:
    """Return the threads with recorded results."""
    found: list[dict[str, Any]] = tomllib.loads(file.read_text("utf-8"))["thread"]
    return found


def write_found(script: str, found: Mapping[str, Any], file: Path = FILE) -> None:
    """Write what was found for a script; all else in the file stays, with what another run has written meanwhile."""
    document = tomlkit.parse(file.read_text("utf-8"))
    thread = next(thread for thread in document["thread"] if thread["script"] == script)
    thread.pop("found", None)
    for name, value in found.items():
        thread.append(tomlkit.key(["found", name]), value)
    file.write_text(tomlkit.dumps(document), "utf-8")


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
            write_found(thread["script"], bisect(thread))


if __name__ == "__main__":
    main()
