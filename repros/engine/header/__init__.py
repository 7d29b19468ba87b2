"""Headers: the parser of a script's PEP 723 block with its table `[tool.repro]` into a :class:`~repros.model.Repro`.

The two tables of :mod:`repros.engine.header.keys` define all keys. Any other key is an error with file, line and the
expected keys, so that a typo does not silently disable a test.
"""

from __future__ import annotations

import ast
import contextlib
import errno
import re
import stat
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from repros.engine.header.block import HeaderBlock, HeaderError
from repros.engine.header.keys import NAME, REPRO, flattened, parsed, requirements, variant_keys
from repros.model.kinds import ExpectedOutcome, FailureKind
from repros.model.repro import Repro, Signature, Upstream, Variant
from repros.model.settings import PACKAGE, CatalogueLocations

__all__ = ["HeaderError", "has_header", "read", "restated_keys"]

_LARGEST_SCRIPT = 2**20
"""Bytes; the scripts of the catalogue have at most 10,000."""
_SIGNATURE = ("raises", "match", "ends", "frames")
"""The keys of a variant's signature, which it inherits as a whole."""
_TABLE = re.compile(r"^#?\s*\[tool\.repro", re.MULTILINE)


def has_header(path: Path) -> bool:
    """Return whether a file is a repro script: a comment opens a table such as `[tool.repro]`.

    An invalid header counts, so that :func:`read` reports it and the script is not silently skipped.
    """
    try:
        return _TABLE.search(_read_text(path)) is not None
    except (OSError, UnicodeDecodeError):
        return False


def read(path: Path, locations: CatalogueLocations = PACKAGE) -> Repro:
    """Read and validate one repro script.

    Args:
        path: the script.
        locations: the catalogues in use, one of which is the origin of the script.

    Raises:
        HeaderError: the header is invalid; the message has the file, the line and the expected value.
    """
    try:
        source = _read_text(path)
    except (OSError, UnicodeDecodeError) as error:
        raise HeaderError(path, 1, f"cannot be read as UTF-8 text: {error}") from error
    block = HeaderBlock(path, source)
    repro = _repro(block, block.table("tool.repro"), _docstring(block))
    return replace(repro, origin=locations.origin_of(path))


def restated_keys(path: Path) -> Iterator[tuple[str, str]]:
    """Yield the table and the key of each redundant value, which repeats a default or an inherited value.

    Raises:
        HeaderError: the header is invalid.
    """
    block = HeaderBlock(path, _read_text(path))
    data, doc = block.table("tool.repro"), _docstring(block)
    repro = _repro(block, data, doc)
    for table, keys, rest in _shortened(data):
        with contextlib.suppress(HeaderError):
            if _repro(block, rest, doc) == repro:
                yield from ((table, key) for key in keys)


def _shortened(data: Mapping[str, Any]) -> Iterator[tuple[str, Sequence[str], Mapping[str, Any]]]:
    """Yield a table, keys that may be omitted together, and the header without them."""
    flat = flattened(data, REPRO)
    for key in flat.keys() - {"variants"}:
        yield "tool.repro", [key], {other: value for other, value in flat.items() if other != key}
    for name, variant in data["variants"].items():
        signature = [key for key in variant if key in _SIGNATURE]
        for keys in [*([key] for key in variant if key not in _SIGNATURE), signature]:
            rest = {key: value for key, value in variant.items() if key not in keys}
            yield f"tool.repro.variants.{name}", keys, {**data, "variants": {**data["variants"], name: rest}}


def _read_text(path: Path) -> str:
    """Return the text of a script.

    Raises:
        OSError: it cannot be read, is not a regular file (a pipe or a device may never end), or is too large.
        UnicodeDecodeError: it is not UTF-8.
    """
    status = path.stat()
    if not stat.S_ISREG(status.st_mode):
        raise OSError(errno.EINVAL, "not a regular file", str(path))
    if status.st_size > _LARGEST_SCRIPT:
        raise OSError(errno.EFBIG, f"more than {_LARGEST_SCRIPT:,} bytes", str(path))
    return path.read_text(encoding="utf-8")


def _repro(block: HeaderBlock, data: Mapping[str, Any], doc: str) -> Repro:
    """Validate the whole header and return the repro."""
    at = "tool.repro"
    if isinstance(pasted := data.get("pasted"), Mapping):
        problem = "pasted is no table of a header; expected its keys in the table of the id in match.toml"
        raise block.error(at, f"pasted.{next(iter(pasted), '')}", problem)
    values = parsed(block, at, data, REPRO)
    if not isinstance(values["variants"], Mapping) or "failing" not in values["variants"]:
        raise block.error(at, None, "expected a table [tool.repro.variants.failing]")
    values["minimum"] = values["minimum"] or values["processes"]
    _check_together(block, at, values)
    try:
        dependencies = requirements(block.data.get("dependencies"))
    except (TypeError, ValueError):  # among them InvalidRequirement
        raise block.error("", "dependencies", "expected dependencies: a list of requirements") from None
    variants = values.pop("variants")
    documented = parsed(block, f"{at}.variants.failing", variants["failing"], variant_keys("failing"))
    if documented["outcome"] is not ExpectedOutcome.FAILS:
        problem = "outcome of the failing variant; expected 'fails'"
        raise block.error(f"{at}.variants.failing", "outcome", problem)
    failing = _signature(block, "failing", documented)
    if failing is None:
        problem = "the failing variant lacks a signature; expected 'raises' with 'match', or 'ends'"
        raise block.error(f"{at}.variants.failing", None, problem)
    return Repro(
        path=block.path,
        dependencies=dependencies,
        doc=doc,
        variants=tuple(_variant(block, name, data, values, failing) for name, data in variants.items()),
        upstream=Upstream(**_inner(values, "upstream")),
        **{key: value for key, value in values.items() if "." not in key},
    )


def _check_together(block: HeaderBlock, at: str, values: Mapping[str, Any]) -> None:
    """Refuse combinations of individually valid values."""
    if values["kind"] is not FailureKind.BUG and values["documented"] is None:
        kind = values["kind"].value
        problem = f"a failure that is {kind!r} lacks 'documented'; expected the address that documents it"
        raise block.error(at, "kind", problem)
    if values["exists"] and values["exists_source"] is None:
        problem = "exists lacks 'exists_source'; expected the address at which upstream says which releases have this"
        raise block.error(at, "exists", problem)
    if values["exists_source"] and not values["exists"]:
        problem = "exists_source lacks 'exists'; expected the releases that have what fails"
        raise block.error(at, "exists_source", problem)
    if values["minimum"] > values["processes"]:
        problem = f"minimum = {values['minimum']} in [{at}]; expected at most processes = {values['processes']}"
        raise block.error(at, "minimum", problem)
    if unknown := [name for name in values["cold"] if name not in values["strategies"]]:
        known = ", ".join(values["strategies"])
        raise block.error(at, "cold", f"cold names {unknown[0]!r}; expected some of the repro's strategies: {known}")


def _inner(values: Mapping[str, Any], table: str) -> dict[str, Any]:
    """Return the values of the dotted keys of an inner table."""
    return {key.removeprefix(f"{table}."): value for key, value in values.items() if key.startswith(f"{table}.")}


def _variant(block: HeaderBlock, name: str, data: Any, repro: Mapping[str, Any], failing: Signature) -> Variant:
    """Return one variant; omitted keys are inherited from the repro and the failing variant."""
    table = f"tool.repro.variants.{name}"
    if not NAME.fullmatch(name):
        raise block.error(table, None, f"variant {name!r}; expected a name in lower case, such as 'fresh_trainer'")
    values = parsed(block, table, data, variant_keys(name))
    for key in ("strategies", "devices"):
        if values[key] is None:
            values[key] = repro[key]
        elif unknown := [item for item in values[key] if item not in repro[key]]:
            problem = (
                f"{key} of [{table}] names {str(unknown[0])!r}; expected some of the repro's: {', '.join(repro[key])}"
            )
            raise block.error(table, key, problem)
    if values["contrast"] and values["outcome"] is not ExpectedOutcome.PASSES:
        raise block.error(table, "contrast", "contrast is for a variant that passes; expected outcome = 'passes'")
    own = _signature(block, name, values)
    inherited = repro["finds"] if values["outcome"] is ExpectedOutcome.FAILS else ()
    return Variant(
        name=name,
        outcome=values["outcome"],
        about=values["about"],
        strategies=values["strategies"],
        devices=values["devices"],
        affected=repro["affected"] if values["affected"] is None else values["affected"],
        requires=repro["requires"] + (values["requires"] or ()),
        signature=own or failing,
        claim=values["claim"],
        source=values["source"],
        finds=inherited if values["finds"] is None else values["finds"],
        contrast=values["contrast"],
    )


def _signature(block: HeaderBlock, name: str, values: Mapping[str, Any]) -> Signature | None:
    """Return the variant's own signature, or None."""
    table = f"tool.repro.variants.{name}"
    raises, match, ends = values["raises"], values["match"], values["ends"]
    if values["frames"] is not None and raises is None:
        raise block.error(table, "frames", f"[{table}] has frames without a signature; expected 'raises' as well")
    if raises is None and match is None and ends is None:
        return None
    if values["outcome"] is ExpectedOutcome.PASSES:
        raise block.error(table, "raises", "a variant that passes has no signature; expected it under one that fails")
    if ends is not None and (raises or match):
        raise block.error(table, "ends", "expected either 'ends' or 'raises' with 'match', not both")
    if ends is None and (raises is None or match is None):
        raise block.error(table, None, f"[{table}] has half a signature; expected both 'raises' and 'match'")
    return Signature(raises=raises, match=match or (), ends=ends, frames=values["frames"] or ())


def _docstring(block: HeaderBlock) -> str:
    """Return the docstring of the script.

    Raises:
        HeaderError: the script is not valid Python, or has no docstring.
    """
    try:
        doc = ast.get_docstring(ast.parse(block.source))
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        line, problem = getattr(error, "lineno", None) or 1, getattr(error, "msg", str(error))
        raise HeaderError(block.path, line, f"not valid Python: {problem}") from error
    if not doc:
        raise HeaderError(block.path, 1, "expected a docstring with the symptom, the cause and the fix")
    return doc
