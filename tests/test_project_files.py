"""The files around the package: changelog fragments, pages, the lock of the tools, and the pins of pre-commit."""

from __future__ import annotations

import re
import tomllib
from itertools import chain
from pathlib import Path

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[1]
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
LOCK = ROOT / ".ci/tools.lock.txt"
FRAGMENTS = sorted(set(ROOT.glob("docs/changes/*.md")) - {ROOT / "docs/changes/README.md"})


def test_a_changelog_fragment_has_a_kind_and_a_text() -> None:
    # towncrier silently ignores a file whose name it does not understand.
    kinds = "|".join(PYPROJECT["tool"]["towncrier"]["fragment"])
    assert [file.name for file in FRAGMENTS if not re.fullmatch(rf"\+[a-z0-9-]+\.({kinds})\.md", file.name)] == []
    assert [file.name for file in FRAGMENTS if not file.read_text(encoding="utf-8").strip()] == []


def test_the_changelog_has_the_place_where_towncrier_writes() -> None:
    changelog = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    unreleased, marker, released = changelog.partition("<!-- towncrier release notes start -->\n")
    assert marker
    assert unreleased.count("\n## [") == 1
    assert "[Unreleased]" not in released


def test_the_lock_of_the_tools_is_in_step_with_pyproject() -> None:
    lines = [line for line in LOCK.read_text("utf-8").splitlines() if not line.startswith("#")]
    pins = [re.fullmatch(r"([\w.-]+)==(\S+)( ; [^#]+?)?((?: --hash=sha256:[0-9a-f]{64})+)", line) for line in lines]
    assert [line for line, pin in zip(lines, pins, strict=True) if pin is None] == []
    locked = {canonicalize_name(pin[1]): pin[2] for pin in pins if pin}
    groups = [entry for group in PYPROJECT["dependency-groups"].values() for entry in group if isinstance(entry, str)]
    extras = PYPROJECT["project"]["optional-dependencies"].values()
    wanted = [*PYPROJECT["project"]["dependencies"], *PYPROJECT["build-system"]["requires"], *groups, *chain(*extras)]
    remedy = "pyproject.toml has changed; run: nox -s lock_tools"
    for requirement in map(Requirement, wanted):
        version = locked.get(canonicalize_name(requirement.name))
        assert version, f"{requirement} is not locked: {remedy}"
        assert requirement.specifier.contains(version), f"{requirement} refuses {version} of the lock: {remedy}"


def test_every_hook_of_pre_commit_is_pinned_to_a_commit() -> None:
    config = (ROOT / ".pre-commit-config.yaml").read_text(encoding="utf-8")
    for repo in yaml.safe_load(config)["repos"]:
        assert re.fullmatch("[0-9a-f]{40}", repo["rev"])
        assert f"rev: {repo['rev']} # frozen: " in config


@pytest.mark.parametrize("page", ["architecture.md", "glossary.md"])
def test_every_path_below_the_package_exists(page: str) -> None:
    text = (ROOT / "docs" / page).read_text(encoding="utf-8")
    paths = {
        path
        for path in re.findall(r"`([a-z_]+/[\w./-]*)`", text)
        if not path.startswith(("repros/", "tests/", "tools/"))
    }
    assert len(paths) > 20
    assert not {path for path in paths if not (ROOT / "repros" / path).exists()}
