"""A new repro script from a template that passes the header check as it is written."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from pathlib import Path
from string import Template

from repros.engine.header import has_header, read
from repros.errors import ReprosError

_SLUG = re.compile(r"[a-z][a-z0-9_]*")


class ScaffoldError(ReprosError):
    """A script that cannot be begun."""


def write(
    catalogue: Path,
    family: str,
    slug: str,
    known: Iterable[Path] = (),
    change: Callable[[str], str] = str,
) -> Path:
    """Write the script and return where it lies.

    Args:
        catalogue: folder of the families.
        family: folder within it, made if it is not there.
        slug: the file's stem: what goes wrong, in lower case.
        known: further catalogues whose ids are taken.
        change: makes of the template what is written.

    Raises:
        ScaffoldError: a name that is none, a script that is there already, a folder that is none.
    """
    for kind, name in (("slug", slug), ("family", family)):
        if not _SLUG.fullmatch(name):
            raise ScaffoldError(f"{kind} {name!r}; expected lower case, such as 'resume_loses_momentum'.")
    if not catalogue.is_dir():
        raise ScaffoldError(f"no folder {catalogue} here; go to a checkout, or name one with --catalogue.")
    path = catalogue / family / f"{slug}.py"
    title = slug.replace("_", " ").capitalize()
    text = change(_TEMPLATE.substitute(id=next_id([catalogue, *known]), title=title))
    if path.exists():
        raise ScaffoldError(f"{path} is there already; choose another name, or edit that.")
    try:
        path.parent.mkdir(exist_ok=True)
        with path.open("x", encoding="utf-8") as file:
            file.write(text)
    except OSError as error:
        raise ScaffoldError(f"{path} cannot be written ({error.strerror}).") from error
    return path


def next_id(catalogues: Iterable[Path]) -> str:
    """Return the id behind the highest one taken; gaps are ids that were given up, and are not used again."""
    found = (path for catalogue in catalogues for path in catalogue.rglob("*.py") if has_header(path))
    scripts = {path.resolve() for path in found}
    highest = max((int(read(path).id.removeprefix("RPR-")) for path in scripts), default=0)
    return f"RPR-{highest + 1:04d}"


# The comments tell whoever fills it in what is wanted; what they do not need they delete.
_TEMPLATE = Template('''\
# /// script
# requires-python = ">=3.9"
# dependencies = ["torch>=2.1"]              # what the script imports
#
# [tool.repro]
# id = "$id"                            # never changes, never used again
# title = "$title"  # what goes wrong, in a sentence
# upstream = ["https://github.com/ORGANISATION/REPOSITORY/issues/NUMBER"]  # every thread known
# packages = ["torch"]                       # the packages that the failure is in
# affected = ["torch>=2.1"]                  # releases measured to fail: "lightning>=2.1,<2.4"; [] means all
# requires = []                              # without these a cell is unavailable
# home = "current"                           # the stack on which it is exact: see `repros stacks`
# strategies = ["ddp"]                       # ddp, ddp_spawn, fused_adamw, ...: what it is sensitive to
# devices = ["cpu"]                          # cuda, sim, cpu
# processes = 1                              # ranks
# deadline = 120                             # seconds
# silent = true                              # a wrong result without an error: the script asserts on it
#
# [tool.repro.variants.failing]
# outcome = "fails"
# about = "what this variant does, in one line"
# raises = "AssertionError"                  # or ends = "hang", "exit 3", "signal SIGSEGV"
# match = "expected 4.0"                     # words of the message, copied from a real run
#
# [tool.repro.variants.fixed]
# outcome = "passes"
# about = "what it does otherwise"
# source = "https://github.com/ORGANISATION/REPOSITORY/issues/NUMBER"      # where this fix is documented
#
# # A documented fix that does not work is a variant too: outcome = "fails", and `claim`: what it promises.
# ///
"""What the user does, in one sentence.

Symptom: What the user sees, with the words of the error.

Cause: Which call does what, and since which release.

Fix: What to do instead, and from which release it is not needed.
"""

from __future__ import annotations

import sys

import torch


def failing(device):
    return torch.tensor(2.0, device=device) + 1


def fixed(device):
    return torch.tensor(2.0, device=device) + 2


VARIANTS = {"failing": failing, "fixed": fixed}


def main(variant="failing", strategy="ddp", accelerator="cpu"):
    if variant not in VARIANTS:
        sys.exit(f"unknown variant {variant!r}, choose from {', '.join(VARIANTS)}")
    result = VARIANTS[variant](torch.device(accelerator)).item()
    assert result == 4.0, f"expected 4.0, got {result}"


if __name__ == "__main__":
    main(*sys.argv[1:])
''')
