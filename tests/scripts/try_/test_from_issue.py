"""`repros try --from-issue`: the issue's releases and `current`, and whether each run did what the issue reports."""

from __future__ import annotations

from pathlib import Path

import pytest
from packaging.requirements import Requirement

from repros.cli.main import main
from repros.engine.environments.downloads import Downloads, find_downloads
from repros.model.stack import Stack
from repros.scripts.try_.reported_stack import ReportedStack, find_reported_stack
from tests.scripts.bisect.tiny_question import surroundings, write_stack
from tests.scripts.try_.conftest import Try, Write

ISSUE = """\
# A wrong number

```python
import sys
print("rows", 1234.5)
```

It prints:

```
{printed}
```

### Environment

- PyTorch Version (e.g., 1.0): {torch}
- Python version: 3.9.1
"""


def test_the_releases_of_the_issue_are_run_next_to_current(try_here: Try, write: Write) -> None:
    write("issue.md", ISSUE.format(printed="rows 1234.5", torch="2.1.0"))
    ended = try_here("--from-issue", "issue.md", "--json")
    first, second = ended.json["stacks"]
    assert (first["stack"], second["stack"]) == ("2023-12", "current")
    assert first["reported"] == {"agreement": "as reported", "reason": "prints rows 1234.5"}
    assert "Python 3.11 instead of 3.9.1" in " ".join(ended.err.split())


def test_another_number_is_not_as_reported(try_here: Try, write: Write) -> None:
    write("issue.md", ISSUE.format(printed="rows -0.5", torch="2.1.2"))
    ended = try_here("--from-issue", "issue.md", "--stack", "current")
    assert "\nreported  not as reported: rows 1234.5 where the issue has rows -0.5\n" in ended.out


def test_without_releases_current_alone_is_run(try_here: Try, write: Write) -> None:
    write("issue.md", "```python\nimport sys\nprint(sys.argv)\n```\n")
    ended = try_here("--from-issue", "issue.md", "--json")
    assert ended.stack["stack"] == "current"
    assert ended.stack["reported"]["agreement"] == "not compared"
    assert "states no release" in ended.err


def test_a_comment_is_short_and_has_no_name_of_this_machine(
    try_here: Try, write: Write, here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MY_HOST_NAME", "secret-machine-17")
    source = 'import os\nprint("in", "secret-machine-17", 1234.5)\n'
    write(
        "issue.md",
        ISSUE.format(printed="rows 1234.5", torch="2.1.2").replace('import sys\nprint("rows", 1234.5)\n', source),
    )
    ended = try_here("--from-issue", "issue.md", "--comment")
    assert len(ended.out.splitlines()) == 8
    assert "secret-machine-17" not in ended.out
    assert "| torch 2.1.2 (Python 3.11.9) | clean" in ended.out
    assert str(here) not in ended.out


def test_a_comment_needs_an_issue(try_here: Try, write: Write) -> None:
    write("train.py", "print(1)\n")
    ended = try_here("train.py", "--comment")
    assert ended.code == 2
    assert "--comment needs --from-issue" in ended.err


def test_a_dry_run_runs_nothing(try_here: Try, write: Write, here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        "repros.scripts.try_.text.find_downloads",
        lambda stack: Downloads({"torch 2.1.2": 5}, 5_000_000, has_torch=False),
    )
    write(
        "issue.md",
        ISSUE.format(printed="x", torch="2.1.2").replace("import sys", f"open({str(here / 'ran')!r}, 'w')\nimport sys"),
    )
    ended = try_here("--from-issue", "issue.md", "--dry-run")
    assert ended.code == 0
    assert "download  1 package, 5.0 MB: torch 2.1.2" in ended.out
    assert not (here / "ran").exists()


@pytest.fixture
def tiny(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Stack:
    """Return a stack of wheels of a few bytes: torch 1.0 and tinylib 1.4; the index has 1.0 to 1.9."""
    wheels = tmp_path / "wheels"
    wheels.mkdir()
    for name, value in surroundings(wheels).items():
        monkeypatch.setenv(name, value)
    return write_stack(wheels)


@pytest.mark.slow
def test_pins_that_an_index_lacks_are_named_and_the_others_kept(tiny: Stack) -> None:
    versions = {"torch": ("1.0",), "tinylib": ("1.3",), "tinyextra": ("7.0",)}
    found = find_reported_stack(versions, ("tinylib", "tinyextra"), {"tiny": tiny}, lambda _: None)
    assert found is not None
    assert found.stack.name == "tiny with tinylib==1.3"
    (note,) = found.notes
    assert note.startswith("tinyextra==7.0 cannot be had: ")
    extra = [Requirement("tinylib==1.2")]
    found = find_reported_stack(versions, ("tinylib",), {"tiny": tiny}, lambda _: None, extra)
    assert found is not None
    assert found.stack.name == "tiny with tinylib==1.2"


@pytest.mark.slow
def test_the_downloads_of_an_environment(tiny: Stack) -> None:
    found = find_downloads(tiny)
    assert {name.split()[0] for name in found.sizes} <= {"torch", "tinylib"}
    assert not found.has_torch


def test_another_patch_release_of_torch_is_named_and_not_downloaded(tiny: Stack) -> None:
    found = find_reported_stack({"torch": ("1.0.1+cu117",)}, ("torch",), {"tiny": tiny}, print)
    assert found == ReportedStack(tiny, ("torch 1.0 instead of 1.0.1 (--with torch==1.0.1 replaces it)",))


def test_a_development_version_is_no_release(tiny: Stack) -> None:
    assert find_reported_stack({"torch": ("2.7.0.dev20250101",)}, (), {"tiny": tiny}, print) is None


def test_a_report_of_an_issue_has_the_printed_line_and_no_environment_dump(
    two_stacks: None, write: Write, capsys: pytest.CaptureFixture[str]
) -> None:
    write("issue.md", ISSUE.format(printed="rows 1234.5", torch="2.1.2"))
    assert main(["report", "--from-issue", "issue.md"]) == 0
    block = capsys.readouterr().out
    assert "| `torch 2.1.2` | **clean** | `rows 1234.5` |" in block
    assert "collect_env" not in block
    assert main(["report", "--from-issue", "issue.md", "--short"]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 8
    assert main(["report", "--from-issue", "issue.md", "--script", "x.py"]) == 2
    assert main(["report", "RPR-0001", "--with", "peft==1.0"]) == 2
