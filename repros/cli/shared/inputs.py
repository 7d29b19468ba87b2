"""Lookup of the catalogue and the interpreter that options name."""

from __future__ import annotations

import copyreg
from collections.abc import Callable, Iterable
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import packaging

from repros.cli.shared.output import console, show_text
from repros.model.cache.snapshot import files_below, remember
from repros.model.errors import ReprosError
from repros.model.settings import CatalogueLocations

if TYPE_CHECKING:
    from packaging.requirements import Requirement

    from repros.model.catalogue import Catalogue

T = TypeVar("T")

CHECKOUT = Path("repros/catalogue")
"""The catalogue in a checkout of the project, below the working directory."""
_PACKAGE = Path(__file__).parents[2]
_OWN = (*("engine/catalogue.py", "engine/header", "engine/signature.py", "engine/values.py", "model"),)
READERS = tuple(_PACKAGE / name for name in _OWN)
"""Code that a cached catalogue depends on, besides `packaging`, of which the version decides."""


def load_catalogue(places: CatalogueLocations) -> Catalogue:
    """Load catalogues, and report on stderr ignored scripts and stacks.

    Raises:
        ReprosError: there is no script.
        HeaderError: a script's header is refused.
    """
    catalogue = read_catalogue(places)
    name_omissions(places, catalogue.clashes, is_empty=not catalogue.repros)
    return catalogue


def name_omissions(places: CatalogueLocations, clashes: Iterable[str], *, is_empty: bool) -> None:
    """Report on stderr the scripts and stacks that are ignored because their id or name is taken.

    Raises:
        ReprosError: there is no script.
    """
    for clash in (*clashes, *_stack_clashes(places)):
        show_text(console(stderr=True), f"ignored: {clash}", "yellow")
    if is_empty:
        below = ", ".join(map(str, places.scripts))
        raise ReprosError(f"no repro script below {below}; expected files with a [tool.repro] header.")


def _stack_clashes(places: CatalogueLocations) -> list[str]:
    if not any((folder / "stacks").is_dir() for folder in places.private_folders):
        return []
    from repros.engine.stacks import stack_clashes  # noqa: PLC0415 - few catalogues have stacks of their own

    return stack_clashes(places)


def read_catalogue(places: CatalogueLocations) -> Catalogue:
    """Return catalogues, from the cache unless a script has changed.

    Raises:
        HeaderError: a script's header is refused.
    """
    return keep("catalogue", places, partial(_load, places))


def keep(name: str, places: CatalogueLocations, read: Callable[[], T], readers: Iterable[Path] = ()) -> T:
    """Return a value made of catalogues, from the cache unless a script or the code that makes it has changed.

    Args:
        name: the kind of value, one word.
        places: the catalogues.
        read: makes the value, which must be picklable.
        readers: files and folders of code that it depends on in addition to that of the catalogue.
    """
    files = [file for place in (*places.scripts, *READERS, *readers) for file in files_below(place, ".py")]
    return remember(name, files, read, key=f"{packaging.__version__} {places!r}")


def _load(places: CatalogueLocations) -> Catalogue:
    from packaging.requirements import Requirement  # noqa: PLC0415 - only what has changed is read

    from repros.engine.catalogue import load  # noqa: PLC0415 - the same

    copyreg.pickle(Requirement, lambda requirement: (make_requirement, (str(requirement),)))
    return load(places.scripts, places)


@cache
def make_requirement(text: str) -> Requirement:
    """Return a requirement of a cached catalogue; equal ones share an object."""
    from packaging.requirements import Requirement  # noqa: PLC0415 - delays every command, and few compare versions

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
