"""`repros triage --run`: on a stack of two tiny wheels, one release of which fails as documented."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from repros.cli.main import main
from repros.diagnose.issue import read_issue
from repros.scripts.triage.run_answer import plan_ranks
from repros.scripts.try_.task import TaskOptions
from tests.scripts.bisect.scripts import as_file
from tests.scripts.bisect.tiny_question import RELEASES, surroundings, write_stack
from tests.scripts.try_.conftest import Ended

ISSUE = """\
# The library fails

```python
import tinylib

tinylib.run()
print("loss", {value})
```

```
{reported}
```

torch==1.0, tinylib==1.3
"""
RAISED = """\
Traceback (most recent call last):
  File "/home/ann/train.py", line 3, in <module>
    tinylib.run()
  File "/home/ann/.venv/lib/python3.11/site-packages/tinylib.py", line 1, in run
    def run(): raise ValueError('as documented')
ValueError: as documented"""

Triage = Callable[..., Ended]


@pytest.fixture
def triage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Triage:
    """Run `repros triage` in this process, where `current` has release 1.6, and `tiny` has 1.4."""
    wheels, here = tmp_path / "wheels", tmp_path / "here"
    wheels.mkdir()
    here.mkdir()
    monkeypatch.chdir(here)
    for name, value in (surroundings(wheels) | {"COLUMNS": "100", "PIP_CONFIG_FILE": os.devnull}).items():
        monkeypatch.setenv(name, value)
    for name in ("UV_TORCH_BACKEND", "UV_INDEX", "UV_DEFAULT_INDEX", "FORCE_COLOR"):
        monkeypatch.delenv(name, raising=False)
    tiny = write_stack(wheels)
    lock = wheels / "current.lock.txt"
    lock.write_text("tinylib==1.6\ntorch==1.0\n")
    wanted = (Requirement("torch==1.0"), Requirement("tinylib==1.6"))
    current = replace(tiny, name="current", lock=lock, requirements=wanted)
    monkeypatch.setattr("repros.cli.shared.where.load_stacks", lambda _: {"tiny": tiny, "current": current})
    monkeypatch.setattr("repros.scripts.bisect.script.question.fetch_files", lambda _: list(map(as_file, RELEASES)))

    def run(*words: str) -> Ended:
        code = main(["triage", *words])
        return Ended(code, *capsys.readouterr())

    return run


@pytest.mark.slow
def test_the_release_that_repaired_it_is_found(triage: Triage) -> None:
    Path("issue.md").write_text(ISSUE.format(value=1, reported=RAISED))
    ended = triage("issue.md", "--bisect")
    assert "by its text: " in ended.err
    assert "current: not as reported: it exits cleanly where the issue has ValueError: as documented" in ended.err
    assert len(ended.out.splitlines()) <= 15
    text = " ".join(ended.out.split())
    assert "tinylib 1.3: as reported: ValueError at tinylib.py:1 run" in text
    assert "ValueError: as documented with tinylib 1.4, clean from 1.6 on" in text
    comment = triage("issue.md", "--comment")
    assert len(comment.out.splitlines()) == 8
    assert "| **as reported** |" in comment.out
    assert "It changes between tinylib 1.3 and 1.6." in comment.out
    assert comment.out.startswith("The script of this issue (block 1 of 2 of the issue), run by")
    assert "Not run" not in comment.out


@pytest.mark.slow
def test_another_number_is_said_and_reduced_to_nothing(triage: Triage) -> None:
    source = ISSUE.replace("tinylib.run()\n", "").format(value=0.9996, reported="loss -0.5")
    Path("issue.md").write_text(source)
    ended = triage("issue.md", "--reduce")
    assert ended.code == 1
    assert ended.out.startswith("It does not do what is reported, on any of the releases that were run")
    assert "nothing to reduce" in ended.err
    assert not list(Path().glob("*.reduced.py"))


@pytest.mark.slow
def test_the_comment_names_a_release_of_the_issue_that_no_run_had(triage: Triage) -> None:
    source = ISSUE.format(value=1, reported=RAISED)
    Path("4711.md").write_text(source.replace("tinylib==1.3", "tinylib==1.3.7"))
    shown = triage("4711.md", "--comment").out
    assert "Not run, though the issue has it: tinylib 1.3.7." in shown
    assert "4711" not in shown


@pytest.mark.parametrize(
    ("text", "way_out"),
    [
        ("# Broken\n\n```\nValueError: it is broken now\n```\n", "no code block"),
        ("ValueError: it is broken now\n", "--run needs a script or the text of an issue"),
    ],
)
def test_what_has_no_script_is_refused_in_one_sentence(triage: Triage, text: str, way_out: str) -> None:
    Path("issue.md").write_text(text)
    ended = triage("issue.md", "--run")
    assert ended.code == 2
    assert way_out in ended.err.splitlines()[-1]


@pytest.mark.parametrize(
    ("text", "source", "options"),
    [
        ("torchrun --nproc-per-node 8 a.py", "dist.init_process_group()", TaskOptions(2)),
        ("torchrun a.py", "Accelerator()", TaskOptions(2)),
        ("num_processes: 4", "import torch", TaskOptions(1)),
        ("```python\nmp.spawn(f, nprocs=3)\n```", "mp.spawn(f, nprocs=3)", TaskOptions(3, own=True)),
        ("```python\nTrainer(devices=8)\n```", "Trainer(devices=8)", TaskOptions(1)),
        ('```python\nmodel.to("cuda")\n```', "x", TaskOptions(1, gpus=1)),
        ("a word", "x", TaskOptions(1)),
    ],
)
def test_ranks_and_gpus_of_a_report(text: str, source: str, options: TaskOptions) -> None:
    assert plan_ranks(read_issue(text), source) == options
