"""Every script of the catalogue has the form of a repro."""

from __future__ import annotations

import ast
import re
from functools import cache
from itertools import combinations
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from repros.engine import header
from repros.engine.catalogue import CATALOGUE, load
from repros.engine.signature import normalise
from repros.model import Outcome, Repro
from repros.stacks import load_stacks
from repros.text.difference import difference

SCRIPTS = sorted(CATALOGUE.rglob("*.py"))
THREAD = re.compile(r"https://github\.com/[\w.-]+/[\w.-]+/(issues|pull|discussions)/\d+")
FAMILIES = {"accelerate", "amp", "bitsandbytes", "ddp", "fabric", "lightning", "optimizers"}

MOST_LINES = 80
"""Lines of a script below its docstring, without blank lines."""
MOST_CHANGED_LINES = 10
"""Lines that differ between the definitions of `failing` and `fixed`."""
MEASURED = re.compile(r"(got|still has) (\[?-?\d|None)")
"""The part of a message that quotes the wrong number."""

read = cache(header.read)
every_script = pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: path.stem)


def test_ids_are_unique_and_slugs_are_too() -> None:
    catalogue = load()
    assert len(list(catalogue)) == len(SCRIPTS) == len({repro.slug for repro in catalogue})


@every_script
def test_it_is_named_and_placed_for_what_it_shows(path: Path) -> None:
    repro = read(path)
    assert re.fullmatch(r"[a-z][a-z0-9_]+", repro.slug)
    assert repro.family in FAMILIES
    assert not repro.title.endswith(".")
    assert len(repro.title) <= 100


@every_script
def test_its_links_lead_to_upstream_threads(path: Path) -> None:
    repro = read(path)
    upstream = repro.upstream
    every = [*upstream.reports, *upstream.introduced_by, *upstream.fixed_by, *upstream.unreleased_fix]
    every += upstream.related
    assert every
    for link in every:
        assert THREAD.fullmatch(link), link
    assert len(set(every)) == len(every)


@every_script
def test_its_docstring_has_symptom_cause_and_fix(path: Path) -> None:
    repro = read(path)
    assert list(repro.sections)[:3] == ["Symptom", "Cause", "Fix"]
    assert all(len(text) > 20 for text in repro.sections.values())


@every_script
def test_failing_and_fixed_stand_side_by_side(path: Path) -> None:
    repro = read(path)
    fixed = repro.variant("fixed")
    assert fixed is not None
    assert (repro.failing.outcome, fixed.outcome) == (Outcome.FAILS, Outcome.PASSES)
    changed = [line for line in difference(path) if re.match(r"[+-](?![+-])", line)]
    assert 1 <= len(changed) <= MOST_CHANGED_LINES, changed


@every_script
def test_its_code_is_short(path: Path) -> None:
    source = path.read_text("utf-8")
    docstring, *_ = ast.parse(source).body
    code = [line for line in source.splitlines()[docstring.end_lineno :] if line.strip()]
    assert len(code) <= MOST_LINES


@every_script
def test_the_message_of_a_silent_failure_quotes_the_wrong_number(path: Path) -> None:
    repro = read(path)
    if repro.silent:
        signature = repro.failing.signature
        assert signature.raises == "AssertionError"
        assert all(MEASURED.search(text) for text in signature.match), signature.match


def test_repros_with_the_same_message_name_each_other() -> None:
    for one, other in combinations(load(), 2):
        if not one.silent and not other.silent and _same_message(one, other):
            named = one.id in other.sections.get("Apart", "") or other.id in one.sections.get("Apart", "")
            assert named, (
                f"{one.id} and {other.id} have the same message; neither has a paragraph `Apart:` that names the other"
            )


def _same_message(one: Repro, other: Repro) -> bool:
    """Return whether a message can match both failures' signatures, judged by the texts of the signatures."""
    first, second = ({normalise(text) for text in repro.failing.signature.match} for repro in (one, other))
    return any(text in longer or longer in text for text in first for longer in second)


@every_script
def test_every_variant_is_described_in_one_line(path: Path) -> None:
    for variant in read(path).variants:
        assert "\n" not in variant.about
        assert not variant.about.endswith(".")


@every_script
def test_its_home_is_a_stack_that_can_run_it_and_is_affected(path: Path) -> None:
    repro = read(path)
    home = load_stacks()[repro.home]
    pins = [(r, pin) for r in home.requirements for pin in r.specifier if pin.operator == "=="]
    pinned = {canonicalize_name(requirement.name): pin.version for requirement, pin in pins}

    def holds(requirement: Requirement) -> bool:
        name = canonicalize_name(requirement.name)
        return name not in pinned or requirement.specifier.contains(pinned[name], prereleases=True)

    for requirement in (*repro.dependencies, *repro.failing.requires, *repro.failing.affected):
        assert holds(requirement), f"{requirement} does not hold on {home.name}"


@every_script
def test_its_ranges_name_its_dependencies(path: Path) -> None:
    repro = read(path)
    known = {canonicalize_name(r.name) for r in (*repro.dependencies, *repro.requires)} | {"python"}
    for variant in repro.variants:
        known |= {canonicalize_name(r.name) for r in variant.requires}
    ranges = [*repro.affected, *(r for variant in repro.variants for r in variant.affected)]
    assert {canonicalize_name(r.name) for r in ranges} <= known
    assert set(map(canonicalize_name, repro.packages)) <= known


@every_script
def test_it_runs_bare_as_documented(path: Path) -> None:
    tree = ast.parse(path.read_text("utf-8"))
    (main,) = [node for node in tree.body if isinstance(node, ast.FunctionDef) and node.name == "main"]
    assert [argument.arg for argument in main.args.args] == ["variant", "strategy", "accelerator"]
    defaults = [ast.literal_eval(value) for value in main.args.defaults]
    repro = read(path)
    assert defaults[0] == "failing"
    assert defaults[1] in repro.strategies
    assert defaults[2] in repro.devices
    assert ast.unparse(tree.body[-1].test) == "__name__ == '__main__'"  # type: ignore[attr-defined]


@every_script
def test_every_variant_is_named_in_the_script_and_dispatched(path: Path) -> None:
    repro: Repro = read(path)
    code = path.read_text("utf-8").partition("# ///\n")[2]
    for variant in repro.variants:
        assert re.search(rf"\b{variant.name}\b|\b{variant.name.title().replace('_', '')}\b", code), variant.name
