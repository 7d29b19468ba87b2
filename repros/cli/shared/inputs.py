"""Lookup of the catalogue and the interpreter that options name."""

from __future__ import annotations

import copyreg
import os
from collections.abc import Callable, Iterable
from functools import cache, cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, cast

import packaging

from repros.cli.shared.output import console, show_text
from repros.model.cache.snapshot import files_below, remember
from repros.model.errors import ReprosError
from repros.model.packages import canonical_name
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


def keep(
    name: str, places: CatalogueLocations, read: Callable[[], T], readers: Iterable[Path] = (), sibling: str = ""
) -> T:
    """Return a value made of catalogues, from the cache unless a script or the code that makes it has changed.

    Args:
        name: the kind of value, one word.
        places: the catalogues.
        read: makes the value, which must be picklable.
        readers: files and folders of code that it depends on in addition to that of the catalogue.
        sibling: name of a file that it depends on, in the folder of each script and in the one above.
    """
    scripts = [file for place in places.scripts for file in files_below(place, ".py")]
    code = [file for place in (*READERS, *readers) for file in files_below(place, ".py")]
    folders = {os.path.dirname(script) for script in scripts if sibling}  # noqa: PTH120 - hundreds
    others = [os.path.join(folder, *up, sibling) for folder in folders for up in ((), ("..",))]  # noqa: PTH118 - hundreds
    return remember(name, [*scripts, *code, *others], read, key=f"{packaging.__version__} {places!r}")


def _load(places: CatalogueLocations) -> Catalogue:
    from packaging.requirements import Requirement  # noqa: PLC0415 - only what has changed is read

    from repros.engine.catalogue import load  # noqa: PLC0415 - the same

    copyreg.pickle(Requirement, _reduced)
    return load(places.scripts, places)


class _KeptRequirement:
    """A requirement of a cached catalogue: the name and the text, and what `packaging` makes of it where that is used.

    The import of `packaging` takes as long as a whole short command.
    """

    def __init__(self, text: str, name: str, key: str) -> None:
        self.name = name
        self._text, self._key = text, key

    @cached_property
    def _whole(self) -> Requirement:
        from packaging.requirements import Requirement  # noqa: PLC0415 - see above

        return Requirement(self._text)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):  # what copying and pickling ask for
            raise AttributeError(name)
        return getattr(self._whole, name)

    def __str__(self) -> str:
        return self._text

    def __repr__(self) -> str:
        return repr(self._whole)

    def __eq__(self, other: object) -> bool:
        return self._key == other._key if isinstance(other, _KeptRequirement) else self._whole == other

    def __hash__(self) -> int:
        return hash(self._whole)

    def __reduce__(self) -> tuple[Any, ...]:
        return make_requirement, (self._text, self.name, self._key)


def _reduced(requirement: Requirement) -> tuple[Any, ...]:
    """Return how a requirement is pickled: with a key that is the same for those that are equal."""
    from packaging.utils import canonicalize_version  # noqa: PLC0415 - only what has changed is read

    bounds = sorted(
        bound.operator + canonicalize_version(bound.version, strip_trailing_zero=bound.operator != "~=")
        for bound in requirement.specifier
    )
    parts = (canonical_name(requirement.name), sorted(requirement.extras), bounds, requirement.url, requirement.marker)
    return make_requirement, (str(requirement), requirement.name, " ".join(map(str, parts)))


@cache
def make_requirement(text: str, name: str, key: str) -> Requirement:
    """Return a requirement of a cached catalogue; equal ones share an object."""
    return cast("Requirement", _KeptRequirement(text, name, key))


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
