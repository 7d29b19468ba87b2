"""A warm server whose leaders go behind walls before they fork a rank.

The server (:mod:`repros.inside.warm`) imports libraries and runs no script, so it has no walls. What it forks builds
all of them, as :mod:`repros.scripts.try_.inside.sandbox` does before a script of `repros try`, from the request's
`confinement`.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import os
import sys
from typing import Any

from repros.inside import leader, warm
from repros.scripts.try_.inside import sandbox as confine


def main() -> None:
    """Serve as the warm server does; `MODULE:NAME` on the command line is a name that a module may load when asked."""
    for word in sys.argv[1:]:
        module, colon, name = word.partition(":")
        if colon:
            with contextlib.suppress(Exception):  # then the script meets it
                getattr(importlib.import_module(module), name)
    sys.argv[1:] = [word for word in sys.argv[1:] if ":" not in word]
    # The server looks its leader up by this name; a parameter there would make all measurements of the catalogue stale.
    warm.lead = _lead_behind_walls  # type: ignore[attr-defined]
    warm.main()


def _lead_behind_walls(request: dict[str, Any]) -> int:
    """Build the walls, then lead; nothing runs with less."""
    problems = confine.build(request["confinement"])
    if problems:
        log = os.open(request["log"], os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        os.write(log, f"repros: the script is not run, since a wall cannot be built: {json.dumps(problems)}\n".encode())
        return confine.REFUSED
    confine.limit(request["confinement"])
    sys.path[0] = request["cwd"]  # where Python puts the folder of a script
    return leader.lead(request)
