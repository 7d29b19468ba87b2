"""Train with silent errors that were reported in public, under `repros watch`.

    python -m tests.tools.watch_reported --python PATH [--keep] [NAME ...]

`tests/watch/reported.json` lists them, with the thread, the program in `tests/watch/toys/reported.py`, the checks that
spoke, and for those that none can find the reason. `--keep` writes there what was found.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
LIST = ROOT / "tests/watch/reported.json"
PROGRAMS = ROOT / "tests/watch/toys/reported.py"
DEADLINE = 240


def find(name: str, python: Path) -> list[str]:
    """Run a program under the watch; return the checks that spoke."""
    with tempfile.TemporaryDirectory() as folder:
        findings = Path(folder) / "findings.jsonl"
        # This checkout, whatever is installed; not by PYTHONPATH, which the program would inherit.
        start = f"import sys; sys.path.insert(0, {str(ROOT)!r}); from repros.cli import main; sys.exit(main())"
        command = [
            sys.executable,
            "-c",
            start,
            "watch",
            "--json",
            str(findings),
            "--",
            str(python),
            str(PROGRAMS),
            name,
        ]
        environ = os.environ | {"OMP_NUM_THREADS": "1", "CUDA_VISIBLE_DEVICES": ""}
        done = subprocess.run(command, check=True, capture_output=True, text=True, env=environ, timeout=DEADLINE)
        assert "the watch itself failed" not in done.stderr, done.stderr
        return [json.loads(line)["check"] for line in findings.read_text("utf-8").splitlines()]


def read_reported() -> list[dict[str, Any]]:
    """Return the reported errors."""
    return list(json.loads(LIST.read_text("utf-8")))


def main() -> None:
    """Run what the command line names."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--python", type=Path, required=True)
    parser.add_argument("--keep", action="store_true")
    parser.add_argument("names", nargs="*")
    asked = parser.parse_args()
    rows = read_reported()
    for row in rows:
        if not asked.names or row["program"] in asked.names:
            found = find(row["program"], asked.python)
            print(row["program"], found, flush=True)
            row["found"] = found if asked.keep else row["found"]
    LIST.write_text(json.dumps(rows, indent=2) + "\n", "utf-8")


if __name__ == "__main__":
    main()
