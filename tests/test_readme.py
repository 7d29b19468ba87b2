"""The README and the other pages name only commands, options, sessions, paths and outputs that exist."""

from __future__ import annotations

import ast
import contextlib
import re
import tomllib
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from repros.cli.main import cli, load_commands
from repros.engine.stacks import load_stacks
from repros.model import Category, Verdict
from tests.package_catalogue import load
from tools.docs import readme

KNOWN = load_commands()

ROOT = Path(__file__).parents[1]
HISTORY = {ROOT / "CHANGELOG.md", *ROOT.glob("docs/changes/+*.md")}
"""Pages that may name what no longer exists."""
PAGES = sorted({*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob(".github/**/*.[my][dm]*")} - HISTORY)
LINKED = [*PAGES, ROOT / "CHANGELOG.md", *sorted({*ROOT.glob("repros/**/*.md"), *ROOT.glob("tools/**/*.md")})]

TEXTS = {page: page.read_text(encoding="utf-8") for page in PAGES}
README = TEXTS[ROOT / "README.md"]
USAGE = TEXTS[ROOT / "docs/usage.md"]

_COMMAND = re.compile(r"(?:`|^ *\$ )(repros [a-z][^`\n#>|]*)", re.MULTILINE)
COMMANDS = sorted({command.strip() for text in TEXTS.values() for command in _COMMAND.findall(text)})
NEW_REPRO = "resume_loses_momentum"
"""The script of CONTRIBUTING.md's example."""


@pytest.mark.of_all_scripts
def test_the_table_is_that_of_the_catalogue() -> None:
    assert readme.fill(README) == README, "the headers have changed; run: python -m tools.docs.readme"


def test_the_table_of_commands_names_each() -> None:
    assert set(re.findall(r"^\| `repros ([a-z]+)", USAGE, re.MULTILINE)) == set(KNOWN)


@pytest.mark.parametrize("line", COMMANDS)
def test_every_command_and_its_options_exist(line: str) -> None:
    _, name, *words = line.partition(" -- ")[0].split()  # what follows is another program's
    name = name if name in KNOWN else "triage"
    known = {option for parameter in KNOWN[name].params for option in parameter.opts}
    assert {word for word in words if word.startswith("--")} <= known
    if name in {"show", "run", "report", "export", "bisect"} and words and words[0].startswith("RPR-"):
        load().find(words[0])
    elif name in {"show", "run", "bisect"} and words and not words[0].startswith("-"):
        assert words[0] in {NEW_REPRO, "ID", "SCRIPT", "train.py", "issue.reduced.py"}


def test_every_option_in_the_text_exists() -> None:
    known = {option for command in KNOWN.values() for parameter in command.params for option in parameter.opts}
    named = set(re.findall(r"`(--[a-z-]+)", README + USAGE))
    assert {"--results", "--variant"} <= named
    assert named <= known


def test_every_verdict_is_explained_with_its_category() -> None:
    verdicts = TEXTS[ROOT / "docs/verdicts.md"]
    rows = re.findall(r"^\| `([a-z]+)` \|.*\| ([a-z ]+) \|$", verdicts, re.MULTILINE)
    assert rows == [(verdict.value, verdict.category.value) for verdict in Verdict]
    assert {category for _, category in rows} == set(Category)


def test_every_session_exists() -> None:
    noxfile = ast.parse((ROOT / "noxfile.py").read_text(encoding="utf-8"))
    sessions = {
        node.name
        for node in noxfile.body
        if isinstance(node, ast.FunctionDef) and any("nox.session" in ast.unparse(d) for d in node.decorator_list)
    }
    named = set(" ".join(re.findall(r"(?:nox|noxfile\.py) -s ([a-z ]+)", "\n".join(TEXTS.values()))).split())
    assert {"repro", "tests", "unit"} <= named <= sessions


@pytest.mark.parametrize(
    ("given", "source"),
    [("train.log", "weights.log"), ("issue.md", "issue.md"), ("requirements.txt", "requirements.txt")],
)
def test_a_sample_of_an_answer_is_its_output(tmp_path: Path, given: str, source: str) -> None:
    inputs = ROOT / "tests/scripts/triage/inputs"
    (tmp_path / given).write_bytes((inputs / source).read_bytes())
    _check_parts(_sample(f"repros {given}"), _output([given], tmp_path))


def test_the_sample_of_a_verbose_audit_is_in_its_output(tmp_path: Path) -> None:
    (tmp_path / "requirements.txt").write_text("torch==2.4.1\nlightning==2.4.0\n", encoding="utf-8")
    output = _output(["audit", "requirements.txt", "--verbose"], tmp_path)
    _check_parts(_sample("repros audit requirements.txt --verbose", USAGE), output)


def _check_parts(sample: str, output: str) -> None:
    """Check that the parts of a sample between `...` are in an output, in this order."""
    rest = f"\n{output}\n"
    for part in filter(None, re.split(r"(?:^|\n)\.\.\.(?:\n|$)", sample)):
        _, found, after = rest.partition(f"\n{part}\n")
        assert found, part
        rest = f"\n{after}"


def test_the_sizes_in_the_text_are_those_of_the_stacks() -> None:
    sizes = [stack.cuda for stack in load_stacks().values() if stack.cuda]
    assert sizes
    assert "The CUDA builds of a stack are 2 to 5 GB to download and 4 to 8 GB on disk" in " ".join(README.split())
    assert all(2e9 <= size.download <= 5e9 and 4e9 <= size.unpacked <= 8e9 for size in sizes)
    ((name, cpu),) = [(stack.name, stack.cpu) for stack in load_stacks().values() if stack.cpu]
    said = f"measured on {name}, {cpu.download / 1e9:.1f} GB to download and {cpu.unpacked / 1e9:.1f} GB on disk"
    assert said in " ".join(README.split())
    needed = [load_stacks()[name].cuda for name in sorted({repro.home for repro in load()} | {"current"})]
    parts = ("download", "unpacked")
    download, unpacked = (sum(getattr(size, part) for size in needed if size) / 1e9 for part in parts)
    said = f"The CUDA builds of these stacks are {download:.0f} GB to download and {unpacked:.0f} GB on disk"
    assert said in " ".join(USAGE.split())


def test_the_text_counts_nothing_that_grows_with_the_catalogue() -> None:
    """Two branches with a new failure each would change the same line."""
    prose = re.sub(r"^```.*?^```$", "", README + USAGE, flags=re.MULTILINE | re.DOTALL)
    assert not re.findall(r"\d+ (?:documented failures|failures|repros|scripts|golden logs|logs|measurements)", prose)


@pytest.mark.parametrize("page", PAGES, ids=lambda path: str(path.relative_to(ROOT)))
def test_every_path_in_the_text_exists(page: Path) -> None:
    text = TEXTS[page]
    paths = re.findall(r"`((?:repros|tests|tools|docs|\.github)/[\w./-]*)", text)
    placeholders = {"repros/evidence/STACK/ID.toml"}
    examples = {f"repros/catalogue/lightning/{NEW_REPRO}.py"}
    missing = {path for path in paths if not (ROOT / path).exists()} - placeholders - examples
    assert not missing
    modules = re.findall(r"python -m ((?:repros|tests|tools)\.[\w.]+)", text)
    assert not {module for module in modules if not _is_module(module)}


@pytest.mark.parametrize("page", LINKED, ids=lambda path: str(path.relative_to(ROOT)))
def test_every_link_within_the_project_leads_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)]+)\)", page.read_text(encoding="utf-8")):
        if target.startswith("https://"):
            continue
        name, _, heading = target.partition("#")
        file = page.parent / name if name else page
        assert file.exists(), target
        assert not heading or heading in _headings(file), target


def _headings(page: Path) -> set[str]:
    titles = re.findall(r"^#+ (.+)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", title).strip().lower().replace(" ", "-") for title in titles}


def test_the_changelog_has_the_form_of_keep_a_changelog() -> None:
    changelog = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    assert "https://keepachangelog.com/en/1.1.0/" in changelog
    assert re.findall(r"^## \[(.+?)\]", changelog, re.MULTILINE)[0] == "Unreleased"
    kinds = {"Added", "Changed", "Deprecated", "Removed", "Fixed", "Security"}
    assert set(re.findall(r"^### (.+)$", changelog, re.MULTILINE)) <= kinds


def test_the_map_has_every_folder_and_each_file_to_start_at() -> None:
    architecture = TEXTS[ROOT / "docs/architecture.md"]
    rows = re.findall(r"^\| `([\w/]+)/` \|.*\|(.*)\|$", architecture, re.MULTILINE)
    folders = {path.name for path in (ROOT / "repros").iterdir() if path.is_dir() and path.name != "__pycache__"}
    assert folders == {folder.partition("/")[0] for folder, _ in rows}
    named = [(folder, file) for folder, files in rows for file in re.findall(r"`([\w./-]+)`", files)]
    assert named
    # A file with a folder is named from `repros/` on, as everywhere on this page.
    places = [Path(file) if "/" in file else Path(folder, file) for folder, file in named]
    assert not [place for place in places if not (ROOT / "repros" / place).is_file()]


def test_the_package_installs_the_command() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert project["scripts"] == {"repros": "repros.__main__:run"}
    assert isinstance(cli, click.Group)


def _sample(command: str, page: str = README) -> str:
    """Return a command's output on a page, without the newline at its end."""
    output: str = re.findall(rf"^\$ {re.escape(command)}\n(.*?)\n```$", page, re.MULTILINE | re.DOTALL)[0]
    return output


def _output(arguments: list[str], folder: Path) -> str:
    """Return what a command prints in a terminal of 100 columns, without the newline at its end."""
    with contextlib.chdir(folder):
        return CliRunner().invoke(cli, arguments, env={"COLUMNS": "100", "NO_COLOR": "1"}).stdout.rstrip("\n")


def _is_module(name: str) -> bool:
    path = ROOT / name.replace(".", "/")
    return path.with_suffix(".py").is_file() or (path / "__main__.py").is_file()
