"""A question about a library of a few bytes, of which one release cannot be installed and one fails otherwise."""

from __future__ import annotations

import datetime as dt
import sys
from pathlib import Path
from textwrap import dedent

from packaging.requirements import Requirement
from packaging.version import Version

from repros.engine import catalogue
from repros.engine.environments.releases import PackageRelease
from repros.engine.plan import CellSpec, Selection, select
from repros.model import Stack
from repros.model.stack import Size
from tests.engine.matrix.test_measure import TORCH
from tests.tiny_stack import write_wheel

SCRIPT = dedent('''\
    # /// script
    # dependencies = ["torch", "tinylib>=1.1"]
    #
    # [tool.repro]
    # id = "RPR-9201"
    # title = "A tiny library fails"
    # kind = "bug"
    # upstream.reports = ["https://example.org/1"]
    # packages = ["tinylib"]
    # affected = ["tinylib<9"]
    # home = "current"
    # strategies = ["plain"]
    #
    # [tool.repro.variants.failing]
    # about = "fails"
    # raises = "ValueError"
    # match = "as documented"
    #
    # [tool.repro.variants.fixed]
    # about = "passes"
    # ///
    """Symptom: it fails."""
    import tinylib

    tinylib.run()
    ''')

FINE = "def run(): pass\n"
FAILS = "def run(): raise ValueError('as documented')\n"
OTHERWISE = "def run(): raise KeyError('another failure')\n"
LIBRARY = {"1.1": FINE, "1.2": OTHERWISE, "1.3": FAILS, "1.4": FAILS, "1.6": FINE, "1.7": FINE}
"""1.5 is on the index and cannot be installed."""

RELEASES = [PackageRelease(Version(f"1.{minor}"), dt.date(2026, minor, 1), 1_200_000) for minor in range(1, 8)]


def surroundings(folder: Path) -> dict[str, str]:
    """Return the variables by which environments are made below a folder, from its wheels, without a network."""
    caches = {"REPROS_CACHE_DIR": str(folder / "cache"), "UV_CACHE_DIR": str(folder / "uv")}
    return caches | {"UV_FIND_LINKS": str(folder), "UV_NO_INDEX": "1"}


def write_stack(folder: Path) -> Stack:
    """Write the wheels and the lock of a stack that has the library, and return it."""
    write_wheel(folder, "torch", TORCH)
    for version, source in LIBRARY.items():
        write_wheel(folder, "tinylib", source, version)
    lock = folder / "tiny.lock.txt"
    lock.write_text("# a lock\ntinylib==1.4    # via the stack itself\ntorch==1.0    # via the stack itself\n")
    python = f"{sys.version_info.major}.{sys.version_info.minor}"
    wanted = (Requirement("torch==1.0"), Requirement("tinylib==1.4"))
    return Stack("tiny", "for tests", python, wanted, dt.date(2026, 1, 1), lock, Size(2, 2))


def write_spec(folder: Path) -> CellSpec:
    """Write the script, and return its failing cell."""
    script = folder / "tiny_script.py"
    script.write_text(SCRIPT)
    (spec,) = select(catalogue.load([script]), Selection(variants=("failing",)))
    return spec


def copies(folder: Path) -> list[Path]:
    """Return the copies of environments that are there."""
    return [found for found in (folder / "cache" / "environments").glob("*-copy*") if found.is_dir()]
