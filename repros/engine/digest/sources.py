"""Digests of source files: Python modules with their imports from the project, and folders of C++.

A file is represented by its normal form, in which an import is replaced by the content of the imported module, not its
path. So comments, docstrings, layout, renamed files and moved modules do not change a digest; any other edit does.
"""

from __future__ import annotations

import ast
import hashlib
from collections.abc import Callable, Collection, Iterable, Iterator
from pathlib import Path

from repros.engine.digest import cpp, python


def sha256(parts: Iterable[bytes]) -> str:
    """Return the hexadecimal digest of a sequence of parts; it depends on the boundaries between them."""
    digest = hashlib.sha256()
    for part in parts:
        digest.update(len(part).to_bytes(8, "big") + part)
    return digest.hexdigest()


class PythonSources:
    """The modules of a project, located from import statements."""

    def __init__(self, packages: dict[str, Path]) -> None:
        self._packages = packages
        self._trees: dict[Path, ast.Module] = {}
        self._own: dict[Path, str] = {}

    def digest(self, roots: Collection[Path], without: Collection[Path] = ()) -> str:
        """Return the digest of modules and all modules of the project that they import, directly or not.

        Args:
            roots: files of the modules.
            without: folders whose modules are excluded; only the names of imports from them count.
        """

        def identity(path: Path) -> str:
            return "" if _is_below(path, without) else self._identity(path)

        forms = {self._form(path, identity) for path in self.closure(roots, without)}
        return sha256(form.encode() for form in sorted(forms))

    def closure(self, roots: Iterable[Path], without: Collection[Path] = ()) -> set[Path]:
        """Return the files of modules and of all modules of the project that they import, directly or not."""
        closure: set[Path] = set()
        waiting = list(roots)
        while waiting:
            path = waiting.pop()
            if path not in closure and not _is_below(path, without):
                closure.add(path)
                waiting += self._imports(path)
        return closure

    def _imports(self, path: Path) -> Iterator[Path]:
        for node in ast.walk(self._tree(path)):
            if isinstance(node, ast.ImportFrom):
                yield from (target for target, _ in (self._targets(path, node) or {}).values())

    def _tree(self, path: Path) -> ast.Module:
        if path not in self._trees:
            self._trees[path] = ast.parse(path.read_bytes())
        return self._trees[path]

    def _form(self, path: Path, identity: Callable[[Path], str]) -> str:
        """Return the normal form of a module, with imported modules replaced by their identity."""

        def resolve(node: ast.ImportFrom) -> python.Bindings | None:
            targets = self._targets(path, node)
            if targets is None:
                return None
            return {name: f"{identity(target)}.{attribute}" for name, (target, attribute) in targets.items()}

        return python.normal_form(self._tree(path), resolve)

    def _identity(self, path: Path) -> str:
        """Return the digest of a module's own code, without its imports, since modules may import each other."""
        if path not in self._own:
            self._own[path] = sha256([self._form(path, lambda _: "").encode()])
        return self._own[path]

    def _targets(self, path: Path, node: ast.ImportFrom) -> dict[str, tuple[Path, str]] | None:
        """Return the module and the attribute of each imported name; None for an import from outside the project.

        The attribute is empty if the name is a module.
        """
        base = self._base(path, node)
        if base is None:
            return None
        targets = {}
        for alias in node.names:
            module = _module(base / alias.name)
            container = _module(base)
            if module is not None:
                targets[alias.asname or alias.name] = (module, "")
            elif container is not None:
                targets[alias.asname or alias.name] = (container, alias.name)
        return targets

    def _base(self, path: Path, node: ast.ImportFrom) -> Path | None:
        """Return the module or package that a statement imports from, as a path without suffix."""
        parts = (node.module or "").split(".") if node.module else []
        if node.level:
            return path.parents[node.level - 1].joinpath(*parts)
        folder = self._packages.get(parts[0])
        return folder.joinpath(*parts[1:]) if folder else None


def _module(base: Path) -> Path | None:
    """Return the file of the module or package at a path without suffix, or None."""
    files = (base.with_name(f"{base.name}.py"), base / "__init__.py")
    return next((file for file in files if file.is_file()), None)


def cpp_digest(folder: Path) -> str:
    """Return the digest of the C++ files in a folder, which include each other by relative path."""
    files = [file for file in folder.rglob("*") if file.suffix in {".cpp", ".h"}]
    sources = {file.relative_to(folder).as_posix(): file.read_text(encoding="utf-8") for file in files}
    own = {name: sha256([cpp.normal_form(source, lambda _: "header").encode()]) for name, source in sources.items()}
    return sha256(form.encode() for form in sorted(cpp.normal_form(source, own.get) for source in sources.values()))


def _is_below(path: Path, folders: Iterable[Path]) -> bool:
    return any(map(path.is_relative_to, folders))
