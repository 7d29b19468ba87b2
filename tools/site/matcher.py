"""`repros match` for the browser: Pyodide, this project's wheel and `packaging`, served with the site.

Pyodide comes from the npm registry, in the release that is pinned here with its digest. Nothing is loaded from anybody
else's server, when the site is built or when it is used.
"""

from __future__ import annotations

import zipfile
from collections.abc import Iterable
from pathlib import Path

import packaging

from tools.site import npm

PYODIDE = npm.Package(
    "pyodide",
    "314.0.7",
    "sha512-0YvXxEhfEdpLfb/XkM2BFAeMROq0iMUX2bzzH9pOttyMcWkwq+HbE5uyuGD82LN7y2q+SNvi/6V5JEsOlD2R1A==",
)
FILES = ("pyodide.mjs", "pyodide.asm.mjs", "pyodide.asm.wasm", "python_stdlib.zip", "pyodide-lock.json")
"""What a page needs of Pyodide to run Python without further packages."""
NEEDED = ("__init__.py", "catalogue", "diagnose/__init__.py", "diagnose/match", "diagnose/messages", "engine", "model")
"""Files and folders of this package that the matcher imports or reads."""


def add_matcher(folder: Path, package: Path) -> None:
    """Write Pyodide to `folder/pyodide` and the Python code to `folder/python.zip`.

    Args:
        folder: the site.
        package: the folder `repros`.

    Raises:
        NpmError: Pyodide cannot be downloaded.
    """
    npm.extract(PYODIDE, {name: folder / "pyodide" / name for name in FILES})
    write_python(folder / "python.zip", package)


def write_python(file: Path, package: Path) -> None:
    """Write the code that the matcher imports, unmodified and in a fixed order: equal code gives equal bytes."""
    own = [path for name in NEEDED for path in _sources(package / name)]
    other = Path(str(packaging.__file__)).parent
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for base, paths in ((package.parent, own), (other.parent, _sources(other))):
            for path in sorted(paths):
                entry = zipfile.ZipInfo(path.relative_to(base).as_posix())
                entry.compress_type = zipfile.ZIP_DEFLATED
                archive.writestr(entry, path.read_bytes())


def _sources(place: Path) -> Iterable[Path]:
    patterns = ("*.py", "match.toml", "families/*.toml")
    return [place] if place.is_file() else [path for pattern in patterns for path in place.rglob(pattern)]
