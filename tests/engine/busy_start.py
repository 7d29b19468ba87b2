"""An environment that does something as Python starts, as a `.pth` file of a package may."""

from __future__ import annotations

import venv
from pathlib import Path
from textwrap import indent


def make_environment(folder: Path, code: str, *, only_in: str = "") -> Path:
    """Make an environment without packages; return its interpreter.

    Args:
        folder: where to make it.
        code: what each Python process runs as it starts.
        only_in: a variable without which a process leaves it out.
    """
    venv.create(folder, symlinks=True)
    (site,) = folder.glob("lib/python*/site-packages")
    (site / "theirs.pth").write_text("import theirs\n")
    condition = f"if {only_in!r} in os.environ" if only_in else "if True"
    head = "import atexit, os, signal, sys, time\n"
    (site / "theirs.py").write_text(f"{head}{condition}:\n{indent(code, '    ')}\n")
    return folder / "bin/python"
