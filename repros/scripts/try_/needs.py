"""The packages that a script needs, by its PEP 723 block or its imports, and those that a stack lacks."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name

from repros.engine.header.block import HeaderBlock, HeaderError
from repros.model import Environment
from repros.model.errors import ReprosError
from repros.model.packages import format_requirement

_PACKAGES = {
    "attr": "attrs",
    "bs4": "beautifulsoup4",
    "cv2": "opencv-python",
    "dateutil": "python-dateutil",
    "dotenv": "python-dotenv",
    "faiss": "faiss-cpu",
    "git": "gitpython",
    "google.protobuf": "protobuf",
    "hydra": "hydra-core",
    "jwt": "pyjwt",
    "lightning_fabric": "lightning-fabric",
    "lightning_utilities": "lightning-utilities",
    "mpl_toolkits": "matplotlib",
    "OpenSSL": "pyopenssl",
    "PIL": "pillow",
    "pkg_resources": "setuptools",
    "pl_bolts": "lightning-bolts",
    "pytorch_lightning": "pytorch-lightning",
    "serial": "pyserial",
    "skimage": "scikit-image",
    "sklearn": "scikit-learn",
    "sentence_transformers": "sentence-transformers",
    "tensorboardX": "tensorboardx",
    "torch_geometric": "torch-geometric",
    "torchgen": "torch",
    "functorch": "torch",
    "umap": "umap-learn",
    "yaml": "pyyaml",
}
"""The packages of modules that have another name than their package."""
_MISSING = re.compile(r"^No module named '(?P<module>[\w.]+)'|Requirement '(?P<requirement>[^'\n]+)' not met")
"""Python's own message, and that of lightning-utilities (`core/imports.py`), which Lightning uses."""


@dataclass(frozen=True)
class Needs:
    """The packages that a script needs."""

    modules: tuple[str, ...]
    """The modules outside the standard library that it imports at its top level."""
    requirements: tuple[Requirement, ...] = ()
    """The dependencies in its PEP 723 block, and the Python that the block requires."""

    @property
    def listed(self) -> tuple[Requirement, ...]:
        """The packages of its block without their versions, with which somebody once ran it."""
        packages = (package for package in self.requirements if package.name != "python")
        return tuple(
            Requirement(f"{package.name} ; {package.marker}" if package.marker else package.name)
            for package in packages
        )

    @property
    def packages(self) -> tuple[str, ...]:
        """Canonical names of the packages, in the order of the script."""
        listed = (requirement.name for requirement in self.listed)
        return tuple(dict.fromkeys(map(canonicalize_name, (*listed, *map(package_of, self.modules)))))


def read_needs(source: str, origin: str, modules: tuple[str, ...]) -> Needs:
    """Return the packages that a script needs.

    Args:
        source: the script.
        origin: its name in messages.
        modules: the modules outside the standard library that it imports.

    Raises:
        ReprosError: its PEP 723 block is invalid.
    """
    return Needs(modules, tuple(_listed(source, origin)))


def package_of(module: str) -> str:
    """Return the name of the package that contains a module."""
    top = module.partition(".")[0]
    return next((_PACKAGES[name] for name in (".".join(module.split(".")[:2]), top) if name in _PACKAGES), top)


def find_lacking(needs: Needs, environment: Environment) -> Mapping[str, str]:
    """Return the requirements that the script cannot start without and the environment lacks, each with a description.

    A package that is installed in another release is not lacking: see `find_other_releases`.
    """
    names = {canonicalize_name(package.name) for package in needs.listed if not environment.holds(package)}
    listed = [package for package in needs.requirements if canonicalize_name(package.name) in names]
    lacking = {_without_marker(package): str(canonicalize_name(package.name)) for package in listed}
    if environment.python == Path():  # not made, since it lacks a listed package
        return lacking
    top_levels = _top_levels(environment.python)
    for module in needs.modules:
        top, package = module.partition(".")[0], canonicalize_name(package_of(module))
        if top not in top_levels and package not in {*environment.versions, *names}:
            lacking[package] = package if package == canonicalize_name(top) else f"{package} (imported as {top})"
    return lacking


def find_missing(chain: Iterable[tuple[str, str]], environment: Environment) -> str | None:
    """Return the requirement of a missing package that made an import fail; None if no import failed so.

    Args:
        chain: the types and messages of exceptions.
        environment: where they were raised. A package that it contains may have the module in another release.
    """
    for kind, message in chain:
        match = _MISSING.search(message) if kind.endswith(("ModuleNotFoundError", "ImportError")) else None
        text = (match["requirement"] or package_of(match["module"])) if match else ""
        with contextlib.suppress(InvalidRequirement):
            if text and not (wanted := Requirement(text)).url and not environment.holds(wanted):
                return text
    return None


def find_other_releases(needs: Needs, environment: Environment) -> tuple[str, ...]:
    """Return descriptions of the requirements whose packages are installed in another release."""
    versions = {"python": environment.python_version, **environment.versions}
    installed = ((package, versions.get(canonicalize_name(package.name))) for package in needs.requirements)
    return tuple(
        f"{format_requirement(package)} (here {version})"
        for package, version in installed
        if version is not None and not environment.holds(package)
    )


def _listed(source: str, origin: str) -> Iterator[Requirement]:
    try:
        data = HeaderBlock(Path(origin), source).data
    except HeaderError as error:
        if "# /// script" not in source.splitlines():
            return
        raise ReprosError(str(error)) from error
    dependencies, python = data.get("dependencies", []), data.get("requires-python")
    if not isinstance(dependencies, list) or not isinstance(python, str | None):
        raise ReprosError(f"{origin}: expected 'dependencies' as a list in its PEP 723 block.")
    for text in [*dependencies, *([f"python{python}"] if python else [])]:
        try:
            yield Requirement(text)
        except (InvalidRequirement, TypeError) as error:
            raise ReprosError(f"{origin}: {text!r} in its PEP 723 block is not a valid requirement.") from error


def _without_marker(requirement: Requirement) -> str:
    extras = f"[{','.join(sorted(requirement.extras))}]" if requirement.extras else ""
    if requirement.url:  # a package of its name in the index may be another one
        return f"{requirement.name}{extras} @ {requirement.url}"
    bounds = sorted(map(str, requirement.specifier), reverse=True)  # the lower bound first
    return f"{requirement.name}{extras}{','.join(bounds)}"


def _top_levels(python: Path) -> set[str]:
    """Return the names that can be imported from an environment's folder of packages."""
    folders = python.parents[1].glob("lib/python*/site-packages")
    return {entry.name.partition(".")[0] for folder in folders for entry in folder.iterdir()}
