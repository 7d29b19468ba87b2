"""A warm server whose leaders enter a sandbox before they fork a rank.

The server (:mod:`repros.inside.warm`) imports libraries and runs no script, so it is not in a sandbox itself. A process
that it forks enters the sandbox as :mod:`repros.scripts.try_.inside.sandbox` does before a script of `repros try`, with
the settings `sandbox` of the request.
"""

from __future__ import annotations

import contextlib
import importlib
import os
import signal
import sys
from typing import Any

from repros.inside import leader, warm
from repros.inside.processes import die_with_parent
from repros.scripts.try_.inside import init, sandbox


def main() -> None:
    """Serve as the warm server does; an argument `MODULE:NAME` is a name that its module may import lazily."""
    for word in sys.argv[1:]:
        module, colon, name = word.partition(":")
        if colon:
            with contextlib.suppress(Exception):  # the script then raises it itself
                getattr(importlib.import_module(module), name)
    sys.argv[1:] = [word for word in sys.argv[1:] if ":" not in word]
    warm.main(_lead_in_sandbox)


def _lead_in_sandbox(request: dict[str, Any]) -> int:
    """Enter the sandbox, then lead; nothing runs with less isolation."""
    settings = request["sandbox"]
    die_with_parent()
    signal.set_wakeup_fd(-1)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    problems = sandbox.isolate(settings)
    if problems:
        log = os.open(request["log"], os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        os.write(log, sandbox.refusal(problems).encode())
        return init.REFUSED
    sandbox.limit(settings)
    sys.path[0] = request["cwd"]  # where Python puts the folder of a script
    return leader.lead(request)
