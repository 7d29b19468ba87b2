"""The rules for a finished script, each with a sentence on how to follow it; `repros check` and tests apply them.

The format of the header is checked by :mod:`repros.engine.header`.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from repros.authoring.families import FAMILIES
from repros.engine.header import restated_keys
from repros.engine.signature import normalise
from repros.engine.stacks import load_stacks
from repros.engine.variant_diff import variant_diff
from repros.model import ExpectedOutcome, Repro
from repros.model.affected import AnyOf, Overlap, Term, packages_of
from repros.model.catalogue import Catalogue
from repros.model.settings import PACKAGE, CatalogueLocations
from repros.model.unmeasured import own_packages

MOST_LINES = 78
"""Lines below the docstring, without blank lines and without the table of variants.

The formatter gives each entry of a long table its own line, which adds nothing to understand.
"""
MOST_CHANGED_LINES = 10
"""Changed lines between the definitions of `failing` and `fixed`."""
LONGEST_TITLE = 100
SHORTEST_SECTION = 20

PLACEHOLDERS = (
    "What the user does, in one sentence",
    "What the user sees, with the text of the error",
    "Which call does what, and since which release",
    "What to do instead, and since which release",
    "what this variant does, in one line",
    "what it does differently",
    "ORGANISATION/REPOSITORY",
    "raise NotImplementedError",
)
"""Texts of the templates that the author replaces."""
MEASURED = re.compile(r"(got|still has) (\[?-?\d|None|nan\b)")
"""Matches the part of a message that quotes the wrong value."""

_SLUG = re.compile(r"[a-z][a-z0-9_]+")
_THREAD = re.compile(r"https://github\.com/[\w.-]+/[\w.-]+/(issues|pull|discussions)/\d+")


@dataclass(frozen=True)
class CheckedScript:
    """A script under check."""

    repro: Repro
    places: CatalogueLocations = PACKAGE
    """The catalogues in use, whose stacks can be its reference stack."""

    @property
    def path(self) -> Path:
        """The file."""
        return self.repro.path

    @property
    def is_own(self) -> bool:
        """Whether it is in the package's catalogue, which has further rules."""
        return self.repro.origin.folder is None

    @cached_property
    def source(self) -> str:
        """Its text."""
        return self.path.read_text(encoding="utf-8")

    @cached_property
    def tree(self) -> ast.Module:
        """Its syntax tree; a header is read from valid Python only."""
        return ast.parse(self.source)


Rule = Callable[[CheckedScript], Iterator[str]]
"""Yields a sentence per violation."""


def has_valid_names(script: CheckedScript) -> Iterator[str]:
    """Check the file name, the title and the folder, which is a family."""
    repro = script.repro
    if not _SLUG.fullmatch(repro.slug):
        yield f"rename {repro.path.name}: expected lower case and underscores, such as resume_loses_momentum.py"
    if script.is_own and repro.family not in FAMILIES:
        yield f"move the script out of {repro.family}/ into the folder of a family: {', '.join(FAMILIES)}"
    if repro.title.endswith(".") or len(repro.title) > LONGEST_TITLE:
        yield f"shorten title to one sentence of at most {LONGEST_TITLE} characters, without the full stop"


def has_no_placeholder(script: CheckedScript) -> Iterator[str]:
    """Check that no text of the template is left."""
    for line, text in enumerate(script.source.splitlines(), 1):
        for placeholder in PLACEHOLDERS:
            if placeholder in text:
                yield f"line {line}: replace the template's text {placeholder!r}"


def links_to_threads(script: CheckedScript) -> Iterator[str]:
    """Check that links exist and are unique, and that the package's lead to threads on GitHub."""
    upstream = script.repro.upstream
    every = [*upstream.reports, *upstream.introduced_by, *upstream.fixed_by, *upstream.unreleased_fix]
    every += upstream.related
    if not every:
        yield "name an issue, a discussion or a pull request under upstream: reports, or related where reports is empty"
    for link in dict.fromkeys(every):
        if every.count(link) > 1:
            yield f"name {link} once under upstream"
        if script.is_own and not _THREAD.fullmatch(link):
            yield f"replace {link}: expected the address of an issue, a discussion or a pull request on GitHub"


def explains_itself(script: CheckedScript) -> Iterator[str]:
    """Check that the docstring has the paragraphs Symptom, Cause and Fix, with a sentence each."""
    sections = script.repro.sections
    if list(sections)[:3] != ["Symptom", "Cause", "Fix"]:
        yield "begin three paragraphs of the docstring with 'Symptom:', 'Cause:' and 'Fix:', in this order"
    for label, text in sections.items():
        if len(text) <= SHORTEST_SECTION:
            yield f"write a sentence after '{label}:' in the docstring"


def has_small_difference(script: CheckedScript) -> Iterator[str]:
    """Check that a fixed variant exists and differs from the failing one by few lines."""
    fixed = script.repro.variant("fixed")
    if fixed is None or fixed.outcome is not ExpectedOutcome.PASSES:
        yield "add a variant named fixed with outcome = 'passes'"
        return
    changed = [line for line in variant_diff(script.path) if re.match(r"[+-](?![+-])", line)]
    if not changed:
        yield "define the failing and the fixed code under these names, so that their difference can be shown"
    elif len(changed) > MOST_CHANGED_LINES:
        yield f"change at most {MOST_CHANGED_LINES} lines from failing to fixed, not {len(changed)}; share the rest"


def is_short(script: CheckedScript) -> Iterator[str]:
    """Check the number of lines of code."""
    lines = {number for number, line in enumerate(script.source.splitlines(), 1) if line.strip()}
    docstring, *code = script.tree.body
    tables = [node for node in code if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "VARIANTS"]
    for first, last in [(1, docstring.end_lineno), *((node.lineno, node.end_lineno) for node in tables)]:
        lines -= {*range(first, (last or 0) + 1)}
    if len(lines) > MOST_LINES:
        yield f"shorten the code below the docstring from {len(lines)} to at most {MOST_LINES} lines, besides VARIANTS"


def quotes_wrong_value(script: CheckedScript) -> Iterator[str]:
    """Check that a silent failure is an assertion whose message quotes the wrong value."""
    if not script.repro.silent:
        return
    signature = script.repro.failing.signature
    if signature.raises != "AssertionError":
        yield "let the silent failure end in an assert: raises = 'AssertionError'"
    for text in signature.match:
        if not MEASURED.search(text):
            example = "'expected 4.0, got 3.0' from assert result == 4.0, f'expected 4.0, got {result}'"
            yield f"match = {text!r}: quote the wrong value after 'got', such as {example}"


def has_one_line_descriptions(script: CheckedScript) -> Iterator[str]:
    """Check that each variant's description is one line without a full stop."""
    for variant in script.repro.variants:
        if "\n" in variant.about or variant.about.endswith("."):
            yield f"write about of variant {variant.name} as one line without a full stop"


def has_source_for_claims(script: CheckedScript) -> Iterator[str]:
    """Check that every fix that does not work has a documented source."""
    for variant in script.repro.variants:
        if variant.claim and not variant.source:
            yield f"add source to variant {variant.name}: the address of its claim"


def has_reference_stack(script: CheckedScript) -> Iterator[str]:
    """Check that the reference stack exists, can run the script and is affected."""
    repro, stacks = script.repro, load_stacks(script.places)
    if repro.home not in stacks:
        yield f"home = {repro.home!r}: expected one of {', '.join(stacks)}"
        return
    pinned = _pins(stacks[repro.home].requirements)

    def compare(term: Term) -> Overlap:
        if term.package not in pinned:  # an unpinned package satisfies any condition
            return Overlap.NONE if term.negated else Overlap.ALL
        holds = term.requirement.specifier.contains(pinned[term.package], prereleases=True)
        return Overlap.ALL if holds else Overlap.NONE

    needed = [AnyOf((Term(requirement),)) for requirement in (*repro.dependencies, *repro.failing.requires)]
    for condition in (*needed, *repro.failing.affected, *repro.exists):
        if condition.evaluate(compare) is Overlap.NONE:
            names = sorted({term.package for term in condition.terms} & pinned.keys())
            has = f"stack {repro.home} has {', '.join(f'{name} {pinned[name]}' for name in names) or 'no such package'}"
            yield f"choose another home: {condition} does not hold: {has}"


def lists_dependencies(script: CheckedScript) -> Iterator[str]:
    """Check that every package of the ranges is a dependency of the script."""
    repro = script.repro
    needed = (*repro.dependencies, *repro.requires, *(r for variant in repro.variants for r in variant.requires))
    known = {canonicalize_name(requirement.name) for requirement in needed} | {"python"}
    conditions = (*repro.affected, *(condition for variant in repro.variants for condition in variant.affected))
    # A package that must be absent is not a dependency.
    named = [term.package for condition in conditions for term in condition.terms if not term.negated]
    for name in dict.fromkeys((*named, *repro.packages)):
        if canonicalize_name(name) not in known:
            yield f"add {name} to dependencies, or remove it from packages and affected"


def restricts_exists_to_packages(script: CheckedScript) -> Iterator[str]:
    """Check that `exists` names only packages with the failure: no other can lack the failing code."""
    repro = script.repro
    own = own_packages(repro, repro.failing)
    for name in packages_of(repro.exists):
        if name not in own:
            yield f"remove {name} from exists, or add it to packages: the failure is not in it"
    for condition in repro.exists:
        if any(term.negated for term in condition.terms):
            yield f"write exists = {str(condition)!r} without 'no': it names the releases with the failing code"


def fails_without_arguments(script: CheckedScript) -> Iterator[str]:
    """Check that the script fails as documented without arguments."""
    repro = script.repro
    mains = [node for node in script.tree.body if isinstance(node, ast.FunctionDef) and node.name == "main"]
    if len(mains) != 1 or [argument.arg for argument in mains[0].args.args] != ["variant", "strategy", "accelerator"]:
        yield "define main(variant=..., strategy=..., accelerator=...) once"
        return
    defaults = [value.value if isinstance(value, ast.Constant) else None for value in mains[0].args.defaults]
    allowed: tuple[Sequence[object], ...] = (("failing",), repro.strategies, repro.devices)
    if len(defaults) != len(allowed) or any(
        default not in some for default, some in zip(defaults, allowed, strict=True)
    ):
        yield (
            "give main these defaults: variant='failing', a strategy out of "
            f"{', '.join(repro.strategies)}, an accelerator out of {', '.join(repro.devices)}"
        )
    last = script.tree.body[-1]
    if not isinstance(last, ast.If) or ast.unparse(last.test) != "__name__ == '__main__'":
        yield "end the script with: if __name__ == '__main__': main(*sys.argv[1:])"


def omits_defaults(script: CheckedScript) -> Iterator[str]:
    """Check that the header repeats no default and no inherited value."""
    for table, key in restated_keys(script.path):
        yield f"remove {key} from [{table}]: it is the default"


def dispatches_every_variant(script: CheckedScript) -> Iterator[str]:
    """Check that the code mentions every variant of the header."""
    code = script.source.partition("# ///\n")[2]
    for variant in script.repro.variants:
        if not re.search(rf"\b{variant.name}\b|\b{variant.name.title().replace('_', '')}\b", code):
            yield f"let main run variant {variant.name}, which the header defines and the code does not mention"


RULES: tuple[Rule, ...] = (
    has_no_placeholder,
    has_valid_names,
    links_to_threads,
    explains_itself,
    has_small_difference,
    is_short,
    quotes_wrong_value,
    has_one_line_descriptions,
    has_source_for_claims,
    has_reference_stack,
    lists_dependencies,
    restricts_exists_to_packages,
    fails_without_arguments,
    omits_defaults,
    dispatches_every_variant,
)
"""All rules for a single script."""


def find_unnamed_alternatives(repro: Repro, catalogue: Catalogue) -> Iterator[str]:
    """Yield a sentence per repro with the same message, unless one of the docstrings distinguishes them."""
    for other in catalogue:
        if other.id == repro.id or repro.silent or other.silent or not _same_message(repro, other):
            continue
        if other.id not in repro.sections.get("Apart", "") and repro.id not in other.sections.get("Apart", ""):
            to_do = "after 'Fix:' add a paragraph 'Apart:' that names it and the difference"
            yield f"{other.id} has the same message: {to_do}"


def _same_message(one: Repro, other: Repro) -> bool:
    """Return whether a message can match both signatures, judged by their texts."""
    first, second = ({normalise(text) for text in repro.failing.signature.match} for repro in (one, other))
    return any(text in longer or longer in text for text in first for longer in second)


def _pins(requirements: Sequence[Requirement]) -> dict[str, str]:
    """Return the versions that a stack pins, by canonical name."""
    pins = [(requirement, pin) for requirement in requirements for pin in requirement.specifier]
    return {canonicalize_name(requirement.name): pin.version for requirement, pin in pins if pin.operator == "=="}
