"""The file that asks for a recording: the process outside writes it, those of the program read it."""

from __future__ import annotations

import json
import os
from typing import NamedTuple

REQUEST = "recording.json"
"""The file in the folder of events that asks for a recording, with the fields of `Request`."""


class Request(NamedTuple):
    """What is to be recorded."""

    steps: int | None = None
    """How many steps of each process; all for None."""
    seed: int | None = None
    """What seeds Python's, NumPy's and torch's random numbers as they are imported; a program may seed them anew."""


def write_request(folder: str, request: Request) -> None:
    """Ask the processes that write their events into a folder for a recording."""
    with open(os.path.join(folder, REQUEST), "w", encoding="ascii") as file:
        json.dump(request._asdict(), file)


def read_request(folder: str) -> Request | None:
    """Return what a folder of events asks for; None where it asks for no recording."""
    try:
        with open(os.path.join(folder, REQUEST), encoding="ascii") as file:
            return Request(**json.load(file))
    except FileNotFoundError:
        return None
