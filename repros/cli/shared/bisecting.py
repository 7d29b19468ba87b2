"""Bisections as `repros bisect` and `repros check` run them: the cell, the question, and the record that is kept."""

from __future__ import annotations

import datetime as dt
import platform
from pathlib import Path
from typing import Any

from packaging.utils import canonicalize_name
from packaging.version import Version

from repros import evidence
from repros.bisect.bisection import Bisection, run_bisection
from repros.bisect.question import Question, build_question
from repros.bisect.record import bisection_record
from repros.bisect.releases import candidate_releases, fetch_files
from repros.bisect.text import describe_outcome
from repros.cli.shared.output import Page, show_text
from repros.engine.plan import CellSpec, Selection, select
from repros.errors import ReprosError
from repros.model import Device, Outcome, Repro
from repros.model.catalogue import Catalogue
from repros.settings import PACKAGE, Places
from repros.stacks import stack
from repros.text.control import dump_json

ANSWERS = Path(".repros/bisect")
"""Folder of the bisections' answers and logs, relative to the working directory."""


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
    if spec.variant.outcome is Outcome.PASSES:
        raise ReprosError(f"{repro.id} {spec.variant.name} is a fix; expected a variant that fails.")
    return spec


def ask(
    spec: CellSpec,
    package: str,
    stack_name: str | None = None,
    good: Version | None = None,
    bad: Version | None = None,
    oldest: Version | None = None,
    places: Places = PACKAGE,
) -> Question:
    """Return the question for the releases on the index; :func:`build_question` explains the arguments."""
    chosen = stack(stack_name or spec.repro.home, places)
    requirements = (*spec.repro.dependencies, *spec.variant.requires)
    keep = [version for version in (good, bad) if version]
    releases = candidate_releases(package, fetch_files(package), chosen.python, requirements, keep=keep)
    return build_question(spec, chosen, package, releases, good, bad, oldest)


def run(question: Question, out: Page, *, every: bool = False) -> Bisection:
    """Answer a question, showing each answer as it comes."""
    folder = ANSWERS / f"{question.spec.repro.id}-{question.package}"
    return run_bisection(question, folder, lambda line: show_text(out, line), every=every)


def record(bisection: Bisection) -> dict[str, Any]:
    """Return a bisection as a JSON object, with today's date and this platform."""
    today = str(dt.datetime.now().astimezone().date())
    return bisection_record(bisection, platform.platform(), today)


def keep(bisection: Bisection) -> Path:
    """Write a bisection into the evidence of its catalogue, and return the file."""
    repro, question = bisection.question.spec.repro, bisection.question
    file = bisections_folder(repro) / f"{repro.id}-{question.package}.json"
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f"{dump_json(record(bisection), indent=1)}\n", encoding="utf-8")
    except OSError as error:
        raise ReprosError(f"{file} cannot be written ({error.strerror}); keep the answer with --json.") from error
    return file


def keep_record(spec: CellSpec, package: str, out: Page, places: Places) -> str:
    """Bisect a package on the home stack, keep the record if the failure was found, and return the outcome."""
    bisection = run(ask(spec, package, places=places), out)
    if bisection.boundaries.begins is not None:
        keep(bisection)
    return describe_outcome(bisection)


def kept_record(repro: Repro, package: str) -> Path | None:
    """Return the file of a bisection of this package that was kept, if there is one."""
    return next(iter(sorted(bisections_folder(repro).glob(f"{repro.id}-{package}*.json"))), None)


def bisections_folder(repro: Repro) -> Path:
    """Return the folder for a repro's bisections: that of the package, or that of its private catalogue."""
    private = repro.origin.folder
    return (evidence.FOLDER if private is None else private / "evidence") / "bisections"


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
