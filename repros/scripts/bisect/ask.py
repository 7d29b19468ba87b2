"""A question of the releases that the index has: the cell to run, and the candidates to run it on."""

from __future__ import annotations

from packaging.utils import canonicalize_name
from packaging.version import Version

from repros.engine.environments.releases import candidate_releases, fetch_files
from repros.engine.plan import CellSpec, Selection, select
from repros.engine.stacks import stack
from repros.model import Device, ExpectedOutcome, Repro
from repros.model.catalogue import Catalogue
from repros.model.errors import ReprosError
from repros.model.settings import PACKAGE, CatalogueLocations
from repros.scripts.bisect.question import Question, build_question


def choose_cell(
    catalogue: Catalogue,
    repro: Repro,
    variant: str = "failing",
    strategy: str | None = None,
    device: str | None = None,
) -> CellSpec:
    """Return the spec of the cell to run, preferably one that needs no GPU.

    Raises:
        ReprosError: the variant is a fix, or nothing fits.
    """
    devices = (Device(device),) if device else ()
    strategies = (strategy,) if strategy else ()
    specs = select(catalogue, Selection((repro.id,), (variant,), strategies, devices))
    spec = min(specs, key=lambda spec: spec.device is Device.CUDA)
    if spec.variant.outcome is ExpectedOutcome.PASSES:
        raise ReprosError(f"{repro.id} {spec.variant.name} is a fix; expected a variant that fails.")
    return spec


def ask(
    spec: CellSpec,
    package: str,
    stack_name: str | None = None,
    good: Version | None = None,
    bad: Version | None = None,
    oldest: Version | None = None,
    newest: Version | None = None,
    places: CatalogueLocations = PACKAGE,
) -> Question:
    """Return the question for the releases on the index; :func:`build_question` explains the arguments."""
    chosen = stack(stack_name or spec.repro.home, places)
    requirements = (*spec.repro.dependencies, *spec.variant.requires)
    keep = [version for version in (good, bad) if version]
    releases = candidate_releases(package, fetch_files(package), chosen.python, requirements, keep=keep)
    return build_question(spec, chosen, package, releases, good, bad, oldest, newest)


def claimed_packages(repro: Repro) -> list[str]:
    """Return the packages whose affected range has an end that is not merely what the script needs to run."""
    needed = (*repro.dependencies, *repro.requires)
    claimed = []
    for requirement in (term.requirement for condition in repro.failing.affected for term in condition.terms):
        name = str(canonicalize_name(requirement.name))
        bounds = {
            str(specifier) for other in needed if canonicalize_name(other.name) == name for specifier in other.specifier
        }
        if {str(specifier) for specifier in requirement.specifier} - bounds and name != "python":
            claimed.append(name)
    return list(dict.fromkeys(claimed))
