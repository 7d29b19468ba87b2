"""Lookup of the catalogue and the interpreter that options name."""

from __future__ import annotations

import copyreg
from functools import cache, partial
from pathlib import Path

import packaging
from packaging.requirements import Requirement

from repros.cli.shared.output import console, show_text
from repros.engine.stacks import stack_clashes
from repros.model.cache.snapshot import files_below, remember
from repros.model.catalogue import Catalogue
from repros.model.errors import ReprosError
from repros.model.settings import CatalogueLocations

CHECKOUT = Path("repros/catalogue")
"""The catalogue in a checkout of the project, below the working directory."""
_PACKAGE = Path(__file__).parents[2]
_OWN = (*("engine/catalogue.py", "engine/header", "engine/signature.py", "engine/values.py", "model"),)
READERS = (*(_PACKAGE / name for name in _OWN), Path(packaging.__file__).parent)
"""Code that a cached catalogue depends on."""


def load_catalogue(places: CatalogueLocations) -> Catalogue:
    """Load catalogues, and report on stderr ignored scripts and stacks.

    Raises:
        ReprosError: there is no script.
        HeaderError: a script's header is refused.
    """
    catalogue = read_catalogue(places)
    for clash in (*catalogue.clashes, *stack_clashes(places)):
        show_text(console(stderr=True), f"ignored: {clash}", "yellow")
    if not catalogue.repros:
        below = ", ".join(map(str, places.scripts))
        raise ReprosError(f"no repro script below {below}; expected files with a [tool.repro] header.")
    return catalogue


def read_catalogue(places: CatalogueLocations) -> Catalogue:
    """Return catalogues, from the cache unless a script has changed.

    Raises:
        HeaderError: a script's header is refused.
    """
    files = [file for place in (*places.scripts, *READERS) for file in files_below(place, ".py")]
    return remember("catalogue", files, partial(_load, places), key=repr(places))


def _load(places: CatalogueLocations) -> Catalogue:
    from repros.engine.catalogue import load  # noqa: PLC0415 - only what has changed is read

    copyreg.pickle(Requirement, lambda requirement: (make_requirement, (str(requirement),)))
    return load(places.scripts, places)


@cache
def make_requirement(text: str) -> Requirement:
    """Return a requirement of a cached catalogue; equal ones share an object."""
    return Requirement(text)


def choose_interpreter(given: Path) -> Path:
    """Return the interpreter of the user's environment, into which nothing is written.

    Raises:
        ReprosError: a folder that is not an environment.
    """
    from repros.engine.environments.use import write_no_bytecode  # noqa: PLC0415 - most commands need no environment

    write_no_bytecode()
    return find_interpreter(given)


def find_interpreter(given: Path) -> Path:
    """Return the interpreter at a path, in an environment's folder, or of that name on the PATH.

    Raises:
        ReprosError: a folder that is not an environment.
    """
    import shutil  # noqa: PLC0415 - the same

    given = given.expanduser()
    if given.is_dir():
        # venv, uv and conda all have this path.
        if not (given / "bin" / "python").exists():
            problem = f"{given} is a folder without bin/python; name an environment's folder, or an interpreter."
            raise ReprosError(problem)
        given = given / "bin" / "python"
    elif not given.exists() and (found := shutil.which(given)):
        given = Path(found)
    # Not resolved: an environment's interpreter is a link, and finds its environment by its own path.
    return given.absolute()
