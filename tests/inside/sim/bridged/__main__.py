"""Acts each case of the libraries that are here, with all bridges and without its own; prints what happened as JSON.

Each is acted in a process of its own, forked from one that has loaded the backend and no library: a bridge is built
when its library is imported, so it can be there or not be there only once.
"""

from __future__ import annotations

import functools
import json
import multiprocessing
import sys
from importlib.util import find_spec
from typing import Any

from repros.inside import sim
from repros.inside.sim import bridges
from tests.inside.sim.bridged.cases import CASES


def main() -> None:
    """Print a list of bridge, whether it was there, and what happened."""
    wanted = [
        (bridge.name, there) for bridge in bridges.all_bridges() for there in (True, False) if find_spec(bridge.library)
    ]
    load_without_bridges()
    with multiprocessing.get_context("fork").Pool(2, maxtasksperchild=1) as pool:
        json.dump(pool.starmap(act, wanted, chunksize=1), sys.stdout)


def load_without_bridges() -> None:
    """Load the backend alone."""
    install, bridges.install = bridges.install, functools.partial(lambda: None)
    sim.load()
    bridges.install = install


def act(name: str, there: bool) -> Any:
    """Act one case."""
    bridges.install(without=None if there else name)
    try:
        return name, there, str(CASES[name].act())
    except Exception as error:  # noqa: BLE001 # whatever the library raises is what is asked for
        return name, there, f"{type(error).__name__}: {error}"


if __name__ == "__main__":
    main()
