"""Fuzz every parser of foreign input, guided by coverage: `python -m tests.fuzz [--minutes N] [--only PARSER]`.

Atheris (libFuzzer) runs each parser in a process of its own and prefers inputs that reach new code. It begins with a
valid file, what was found before, and the words of the format. Inputs that break a parser are kept in `build/fuzz/`.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
import tempfile
from importlib.util import find_spec
from pathlib import Path

from tests.fuzz.parsers import CORPUS, MEGABYTES, PARSERS, SECONDS, SEEDS, WORDS

FOUND = Path("build/fuzz")
_BASE_MEGABYTES = 300
"""Memory of the process before its first input, generously."""


def main() -> int:
    """Fuzz the parsers one after another, print a line for each, and return 1 if an input broke one."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=10, help="for all parsers together")
    parser.add_argument("--only", choices=[*PARSERS], help="fuzz this parser only")
    given = parser.parse_args()
    if find_spec("atheris") is None:
        print("not guided by coverage: Atheris is not installed; it has wheels for Linux and Python 3.11 to 3.13")
        return 0
    names = [given.only] if given.only else [*PARSERS]
    FOUND.mkdir(parents=True, exist_ok=True)
    return max([_fuzz(name, round(60 * given.minutes / len(names))) for name in names])


def _fuzz(name: str, seconds: int) -> int:
    """Fuzz one parser for a time, and return whether an input broke it."""
    with tempfile.TemporaryDirectory(prefix="fuzz-corpus-") as folder:
        for file in CORPUS.glob(f"*-{name}"):
            Path(folder, file.name).write_bytes(file.read_bytes())
        Path(folder, "valid").write_bytes(SEEDS[name].encode())
        dictionary = Path(folder).with_suffix(".dict")
        dictionary.write_text("".join(f'"{_escape(word)}"\n' for word in WORDS[name]))
        options = [
            *(f"-max_total_time={seconds}", f"-timeout={SECONDS * 6}", f"-rss_limit_mb={_BASE_MEGABYTES + MEGABYTES}"),
            *("-max_len=20000", "-print_final_stats=1", f"-dict={dictionary}", f"-artifact_prefix={FOUND}/{name}-"),
        ]
        command = [sys.executable, "-m", "tests.fuzz.guided", name, *options, folder]
        done = subprocess.run(command, check=False, capture_output=True, text=True, errors="replace")
        dictionary.unlink()
    executed = re.search(r"number_of_executed_units: (\d+)", done.stderr)
    covered = re.findall(r"cov: (\d+)", done.stderr)
    print(f"{name}: {int(executed[1]) if executed else 0:,} inputs, {covered[-1] if covered else 0} places reached")
    if done.returncode:
        print(done.stdout[-3000:], done.stderr[-3000:], sep="\n")
    sys.stdout.flush()
    return int(done.returncode != 0)


def _escape(word: str) -> str:
    return "".join(f"\\x{byte:02x}" for byte in word.encode())


if __name__ == "__main__":
    sys.exit(main())
