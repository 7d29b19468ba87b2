"""One parser under Atheris, in a process of its own: `python -m tests.fuzz.guided PARSER [libFuzzer's options]`."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import atheris

with atheris.instrument_imports(include=["repros", "packaging", "pip_requirements_parser", "tomllib"]):
    from tests.fuzz.parsers import check


def main() -> None:
    """Fuzz the parser until libFuzzer's options end it; an input that breaks it ends the process with its traceback."""
    program, name, *options = sys.argv
    with tempfile.TemporaryDirectory(prefix="fuzz-") as folder:
        atheris.Setup([program, *options], lambda content: check(name, content, Path(folder)))
        atheris.Fuzz()


if __name__ == "__main__":
    main()
