"""What the README and its neighbours say is so."""

from __future__ import annotations

import ast
import re
import tomllib
from pathlib import Path

import click
import pytest

from repros.cli.main import cli
from repros.docs import readme
from repros.engine.catalogue import load
from repros.model import Verdict

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")
CONTRIBUTING = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")

COMMANDS = sorted(set(re.findall(r"^(?:\| `|\$ )(repros \w+[^`\n]*)", README + CONTRIBUTING, re.MULTILINE)))


def test_the_table_of_failures_is_that_of_the_catalogue() -> None:
    remedy = "the headers have changed; run: python -m repros.docs.readme README.md"
    assert readme.fill_tables(README, load()) == README, remedy


def test_every_command_is_there() -> None:
    assert set(cli.commands) == {line.split()[1] for line in COMMANDS}


@pytest.mark.parametrize("line", COMMANDS)
def test_every_option_is_one_of_the_commands(line: str) -> None:
    _, name, *words = line.split()
    command = cli.commands[name]
    known = {option for parameter in command.params for option in parameter.opts}
    assert {word for word in words if word.startswith("--")} <= known
    if name in {"show", "run"} and words and not words[0].startswith("--") and words[0] != "resume_loses_momentum":
        load().find(words[0])


def test_every_other_option_it_speaks_of_is_one() -> None:
    known = {option for command in cli.commands.values() for parameter in command.params for option in parameter.opts}
    assert {"--results", "--variant"} <= known
    format_requirement = set(re.findall(r"`(--[a-z-]+)", README))
    assert format_requirement <= known


def test_every_verdict_is_explained() -> None:
    rows = re.findall(r"^\| `([a-z]+)` \|", README, re.MULTILINE)
    assert rows == list(Verdict)


def test_every_session_of_nox_is_one() -> None:
    noxfile = ast.parse((ROOT / "noxfile.py").read_text(encoding="utf-8"))
    sessions = {
        node.name
        for node in noxfile.body
        if isinstance(node, ast.FunctionDef) and any("nox.session" in ast.unparse(d) for d in node.decorator_list)
    }
    format_requirement = " ".join(re.findall(r"nox -s ([a-z ]+)", README + CONTRIBUTING))
    assert set(format_requirement.split()) <= sessions
    assert {"repro", "tests"} <= set(format_requirement.split())


@pytest.mark.parametrize("page", ["README.md", "CONTRIBUTING.md", "CHANGELOG.md"])
def test_every_link_within_the_project_leads_somewhere(page: str) -> None:
    text = (ROOT / page).read_text(encoding="utf-8")
    headings = {
        re.sub(r"[^\w -]", "", title).strip().lower().replace(" ", "-")
        for title in re.findall(r"^#+ (.+)$", text, re.MULTILINE)
    }
    for target in re.findall(r"\]\(([^)]+)\)", text):
        if target.startswith("#"):
            assert target[1:] in headings
        elif not target.startswith("https://"):
            assert (ROOT / target).is_file(), target


def test_the_changelog_has_the_form() -> None:
    changelog = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    assert "https://keepachangelog.com/en/1.1.0/" in changelog
    assert re.findall(r"^## \[(.+?)\]", changelog, re.MULTILINE)[0] == "Unreleased"
    kinds = {"Added", "Changed", "Deprecated", "Removed", "Fixed", "Security"}
    assert set(re.findall(r"^### (.+)$", changelog, re.MULTILINE)) <= kinds


def test_the_package_has_the_commands_it_promises() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert project["scripts"] == {"repros": "repros.cli:main"}
    assert isinstance(cli, click.Group)
