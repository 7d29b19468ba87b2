"""Write the script of a new repro from a template with a valid header."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable
from pathlib import Path
from string import Template

from packaging.requirements import Requirement

from repros.authoring.families import FAMILIES
from repros.authoring.new.ids import new_id
from repros.authoring.new.skeleton import Skeleton
from repros.authoring.new.skeletons import SKELETONS
from repros.engine.header import has_header, read
from repros.engine.header.keys import REPRO
from repros.model.errors import ReprosError
from repros.model.settings import OWN_PREFIX

_NAME = re.compile(r"[a-z][a-z0-9_]*")


def script_path(catalogue: Path, family: str, slug: str) -> Path:
    """Return the path of a new script.

    Raises:
        ReprosError: an invalid name, an existing script, or a path that is not a folder.
    """
    for kind, name in (("slug", slug), *([("family", family)] if family else [])):
        if not _NAME.fullmatch(name):
            raise ReprosError(f"{kind} {name!r} is not a name in lower case, such as 'resume_loses_momentum'.")
    if not catalogue.is_dir():
        raise ReprosError(f"{catalogue} is not a folder; go to a checkout, or name a folder with --catalogue.")
    path = catalogue / family / f"{slug}.py"
    if path.exists():
        raise ReprosError(f"{path} already exists; choose another name, or edit that file.")
    return path


def write_script(
    catalogue: Path,
    family: str,
    slug: str,
    other_catalogues: Iterable[Path] = (),
    fill: Callable[[str], str] = str,
    prefix: str = OWN_PREFIX,
    template: str | None = None,
) -> Path:
    """Write the script and return its path.

    Args:
        catalogue: folder of the families.
        family: folder in it, created if it does not exist; empty for the catalogue's own folder.
        slug: the file's stem, named after the failure in lower case.
        other_catalogues: further catalogues whose ids are taken.
        fill: returns the filled text of the template.
        prefix: prefix of the id: `RPR`, or that of a private catalogue.
        template: name of the template, one of :data:`SKELETONS`; None for that of the family.

    Raises:
        ReprosError: an invalid name, an existing script, or a path that is not a folder.
    """
    path = script_path(catalogue, family, slug)
    title = slug.replace("_", " ").capitalize()
    id_ = new_id(slug, taken_ids([catalogue, *other_catalogues]), prefix)
    text = fill(_compose(id_, title, SKELETONS[_choose(template, family)]))
    try:
        path.parent.mkdir(exist_ok=True)
        with path.open("x", encoding="utf-8") as file:
            file.write(text)
    except OSError as error:
        raise ReprosError(
            f"{path} cannot be written ({error.strerror}); choose another folder with --catalogue."
        ) from error
    return path


def _choose(template: str | None, family: str) -> str:
    return template or (FAMILIES[family].template if family in FAMILIES else "plain")


def _compose(id_: str, title: str, skeleton: Skeleton) -> str:
    """Return the text of a script from a template."""
    return _TEMPLATE.substitute(
        id=id_,
        title=title,
        dependencies=json.dumps(skeleton.dependencies),
        package=Requirement(skeleton.dependencies[-1]).name,
        home=skeleton.home,
        differing=_differing_lines(skeleton),
        match=json.dumps(skeleton.match),
        code=skeleton.code,
        defaults=_DEFAULTS,
        remark=_REMARK,
    )


def _differing_lines(skeleton: Skeleton) -> str:
    """Return the header's lines for values of the template that are not defaults."""
    values = {"strategies": (skeleton.strategy,), "processes": skeleton.processes}
    differing = {key: value for key, value in values.items() if value != REPRO[key].default}
    return "".join(f"# {key} = {json.dumps(value)}\n" for key, value in differing.items())


def remove_comments(script: Path) -> bool:
    """Remove the template's comments from a header; return whether there were any."""
    comments = {found["comment"] for found in _COMMENT.finditer(_TEMPLATE.template)}
    before = script.read_text(encoding="utf-8")
    after = _COMMENT.sub(lambda found: found["key"] if found["comment"] in comments else found[0], before)
    after = after.replace(_DEFAULTS, "").replace(_REMARK, "")
    if after != before:
        script.write_text(after, encoding="utf-8")
    return after != before


def taken_ids(catalogues: Iterable[Path]) -> set[str]:
    """Return the ids of all scripts below these folders."""
    scripts = {path.resolve() for catalogue in catalogues for path in catalogue.rglob("*.py") if has_header(path)}
    return {read(path).id for path in scripts}


_COMMENT = re.compile(r"^(?P<key># [\w.]+ = .*?\S) {2,}(?P<comment># .*)$", re.MULTILINE)
_DEFAULTS = """\
# # Defaults of further keys; add a key above to change its value:
# #   upstream.fixed_by = []   also introduced_by, unreleased_fix (merged), related
# #   affected = []            releases measured to fail, such as ["lightning>=2.1,<2.4"]; [] for all
# #   requires = []            releases that the script needs to run; others are unknown
# #   strategies = ["auto"]    or ddp, ddp_spawn, fused_adamw, ...: those that affect the failure
# #   devices = ["cpu"]        or cuda, sim; two ranks on sim need requires = ["torch>=2.1"]
# #   processes = 1            ranks; minimum: the fewest devices with the failure, by default one per rank
# #   deadline = 120           seconds; cold = ["ddp"]: strategies whose launcher affects the failure
"""
_REMARK = """\
# # Further variants may have their own strategies, devices, affected and requires. A documented fix that does not
# # work is a variant with outcome = "fails" and a `claim`. `frames` names functions of the call stack.
# # `failing` has the outcome "fails" and `fixed` "passes"; every other variant states its outcome.
# # Only releases in `exists = ["torch>=2.4"]` have the failing code; `exists_source` is the address of the evidence.
# # A variant that passes but is no fix, such as one on a single rank, has `contrast = true`.
"""

# The comments are for the author; `repros check` removes them.
_TEMPLATE = Template('''\
# /// script
# dependencies = $dependencies              # packages that the script imports
#
# [tool.repro]
# id = "$id"                            # final; from 5000 on provisional until the merge
# title = "$title"  # the failure, in one sentence
# kind = "bug"                               # "by design", "misuse", "limitation" need `documented`, an address
# upstream.reports = ["https://github.com/ORGANISATION/REPOSITORY/issues/NUMBER"]  # reports by users; [] if none
# packages = ["$package"]                       # packages with the failure
# home = "$home"                           # reference stack with the documented failure: see `repros stacks`
# silent = true                              # a wrong result without an error, on which the script asserts
$differing$defaults#
# [tool.repro.variants.failing]
# about = "what this variant does, in one line"
# raises = "AssertionError"                  # or ends = "hang", "exit 3", "signal SIGSEGV"
# match = $match            # part of the message of a real run; `repros check` shows it
#
# [tool.repro.variants.fixed]
# about = "what it does differently"
# source = "https://github.com/ORGANISATION/REPOSITORY/issues/NUMBER"      # address that documents this fix
#
$remark# ///
"""What the user does, in one sentence.

Symptom: What the user sees, with the text of the error.

Cause: Which call does what, and since which release.

Fix: What to do instead, and since which release that is not necessary.
"""

$code''')
