"""The files that request a recording: the process outside writes them, those of the program read them."""

from __future__ import annotations

import json
import os
from typing import NamedTuple

from repros.diagnose.watch.inside.install import LISTENER

REQUEST = "recording.json"
"""The file in the folder of events with the fields of `Request`."""


class Request(NamedTuple):
    """What to record."""

    steps: int | None = None
    """The most steps of each process; None for all."""
    seed: int | None = None
    """The seed of Python's, NumPy's and torch's generators as they are imported; a program may seed them again."""
    batch_factor: int = 1
    """By how much the batches of the program's loaders are larger than it asks for."""


def write_request(folder: str, request: Request) -> None:
    """Request a recording from the processes that write their events into a folder."""
    with open(os.path.join(folder, REQUEST), "w", encoding="ascii") as file:
        json.dump(request._asdict(), file)
    with open(os.path.join(folder, LISTENER), "w", encoding="ascii") as file:
        file.write(str(__package__))


def read_request(folder: str) -> Request:
    """Return the request in a folder of events.

    Raises:
        FileNotFoundError: there is none.
    """
    with open(os.path.join(folder, REQUEST), encoding="ascii") as file:
        return Request(**json.load(file))
