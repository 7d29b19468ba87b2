"""`repros doctor`: what a script in the sandbox can reach on this machine."""

from __future__ import annotations

import click

from repros.cli.shared.example import example
from repros.cli.shared.exit_codes import AGREES, DISAGREES
from repros.cli.shared.options import json_option
from repros.cli.shared.output import console, show_text
from repros.cli.shared.signals import interrupt_on_signals
from repros.cli.shared.streams import echo_json
from repros.scripts.doctor.examination import examine
from repros.scripts.doctor.text import examination_to_json, format_examination
from repros.scripts.try_.sandbox import find_sandbox


@click.command(
    epilog=example("repros doctor", "repros doctor --json"),
)
@json_option
def doctor(*, as_json: bool) -> int:
    """Test on this machine, as this user, what the sandbox of `repros try` keeps out, by harmless attempts.

    A script runs in the sandbox as any untrusted script does. It reaches for things outside that this command has made
    for it: a file, a socket, a process, shared memory, a terminal. Each line says `stands` or `open`, what was
    tried, and how the system answered.

    Exit code: 0 if no attempt succeeded, 1 if one did, 2 if the attempts could not be run.
    """
    with interrupt_on_signals():
        examination = examine(find_sandbox(network=False))
    if as_json:
        echo_json(examination_to_json(examination))
    else:
        out = console()
        for line in format_examination(examination, out.width):
            show_text(out, line)
    return DISAGREES if examination.open else AGREES
