"""Run the bridges' cases for the installed libraries, each with its bridge and without it; print the outcomes as JSON.

Each case runs in a process of its own, forked from one that has loaded the backend and no library: a bridge is applied
when its library is imported, so a process is either with it or without it.
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
from tests.inside.sim.bridge_cases.cases import CASES


def main() -> None:
    """Print a list of bridge, whether it was applied, and outcome."""
    wanted = [
        (bridge.name, bridged)
        for bridge in bridges.all_bridges()
        for bridged in (True, False)
        if find_spec(bridge.library)
    ]
    load_without_bridges()
    with multiprocessing.get_context("fork").Pool(2, maxtasksperchild=1) as pool:
        json.dump(pool.starmap(run_case, wanted, chunksize=1), sys.stdout)


def load_without_bridges() -> None:
    """Load the backend without any bridge."""
    install, bridges.install = bridges.install, functools.partial(lambda: None)
    sim.load()
    bridges.install = install


def run_case(name: str, bridged: bool) -> Any:
    """Run one case and return its outcome."""
    bridges.install(without=None if bridged else name)
    try:
        return name, bridged, str(CASES[name].act())
    except Exception as error:  # noqa: BLE001 # any exception of the library is an outcome
        return name, bridged, f"{type(error).__name__}: {error}"


if __name__ == "__main__":
    main()
