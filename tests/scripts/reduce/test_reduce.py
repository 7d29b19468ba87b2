"""`repros reduce`: real scripts on a stack with torch, contained, confirmed, and refused in one sentence."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from textwrap import dedent
from typing import Any, NamedTuple

import pytest
from syrupy.assertion import SnapshotAssertion

from repros.cli.main import main
from repros.scripts.reduce.layout import count_lines
from repros.scripts.try_.sandbox import find_sandbox
from tests.scripts.reduce.measure import HERE, read_figures

ROOT = Path(__file__).parents[3]
STACK = os.environ.get("REPROS_TEST_STACK", "current")
OLDEST = "2023-05"
SANDBOX = find_sandbox(network=False)

FAILS = '''\
"""A script that fails in a library, behind what people post around that."""
import argparse
import logging
import os

import torch
from torch import nn

logging.basicConfig(level=logging.INFO)
log = logging.getLogger()


class Net(nn.Module):
    def __init__(self, width=32, depth=3):
        super().__init__()
        self.layers = nn.Sequential(*[nn.Linear(width, width) for _ in range(depth)])
        self.norm = nn.LayerNorm(width)

    def forward(self, x):
        return self.norm(self.layers(x)).mean()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=3)
    args = parser.parse_args()
    model = Net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for step in range(args.steps):
        loss = model(torch.randn(4, 32))
        loss.backward()
        optimizer.step()
        log.info("step %d loss %.3f", step, loss.item())
    torch.save(optimizer.state_dict(), "optimizer.pt")
    other = torch.optim.SGD([*model.layers.parameters()], lr=0.1)
    other.load_state_dict(torch.load("optimizer.pt"))


if __name__ == "__main__":
    main()
'''


class Ended(NamedTuple):
    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


Reduce = Callable[..., Ended]
_TIMEOUT = 600
"""Seconds of a reduction, for busy machines."""


@pytest.fixture
def reduce(tmp_path: Path, current_python: Path) -> Reduce:
    """Run `repros reduce` as a program in a folder of its own."""

    def run(*words: str) -> Ended:
        command = [sys.executable, "-m", "repros", "reduce", *words, "--stack", STACK]
        environ = {**os.environ, "PYTHONPATH": str(ROOT), "HF_TOKEN": "confidential"}
        ended = subprocess.run(
            command, cwd=tmp_path, env=environ, capture_output=True, text=True, timeout=_TIMEOUT, check=False
        )
        return Ended(ended.returncode, ended.stdout, ended.stderr)

    return run


@pytest.mark.slow
@pytest.mark.timeout(_TIMEOUT + 20)
def test_a_script_is_smaller_and_fails_alike(reduce: Reduce, tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(FAILS)
    ended = reduce("train.py", "--minutes", "9")  # four of them on a busy machine
    assert ended.code == 0, ended.err
    source = (tmp_path / "train.reduced.py").read_text()
    assert re.findall(r"\d+", ended.out.splitlines()[0])[:2] == [str(count_lines(FAILS)), str(count_lines(source))]
    printed = " ".join(ended.out.split())
    assert "no smaller candidate fails alike" in printed
    assert count_lines(source) <= count_lines(FAILS) * 0.4, source
    assert "doesn't match the size of optimizer's group" in printed
    assert not re.search("argparse|logging|#", source)


@pytest.mark.long
@pytest.mark.slow
def test_two_ranks_that_hang_go_on_hanging(reduce: Reduce, tmp_path: Path) -> None:
    script = """\
        import logging
        import torch
        import torch.distributed as dist
        logging.basicConfig()
        dist.init_process_group("gloo")
        rank = dist.get_rank()
        values = torch.arange(8.0)
        if rank == 0:
            dist.all_reduce(values)
        else:
            dist.barrier()
        logging.info("done")
        """
    (tmp_path / "hang.py").write_text(dedent(script))
    ended = reduce("hang.py", "--ranks", "2", "--minutes", "2", "--json")
    assert ended.code == 0, ended.err
    assert (ended.json["signature"], ended.json["ranks"]) == ("hang", 2)
    assert [place.split()[:2] for place in ended.json["places"]] == [["waits", "all_reduce"], ["waits", "barrier"]]
    source = (tmp_path / "hang.reduced.py").read_text()
    assert "logging" not in source
    assert "dist.barrier()" in source


@pytest.mark.slow
@pytest.mark.skipif(not (SANDBOX.files and SANDBOX.network), reason="this system cannot build the sandbox")
def test_candidates_are_as_contained_as_the_script(reduce: Reduce, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "kept").write_text("kept")
    script = f"""\
        import os
        import socket
        import subprocess
        import sys
        import torch
        problems = []
        for name, act in {{
            "read": lambda: open({str(outside / "kept")!r}).read(),
            "write": lambda: open({str(outside / "new")!r}, "w"),
            "list": lambda: os.listdir({str(tmp_path)!r}),
            "connect": lambda: socket.create_connection(("192.0.2.1", 80), 1),
        }}.items():
            try:
                act()
                problems.append(name)
            except OSError:
                pass
        words = [name for name, value in os.environ.items() if value == "confidential"]
        own = open("/proc/self/environ", "rb").read()
        subprocess.Popen(["sleep", "1000"], start_new_session=True, env={{}})
        raise RuntimeError(f"{{problems}} {{words}} {{b'confidential' in own}}")
        """
    (tmp_path / "escape.py").write_text(dedent(script))
    begun = time.time()
    ended = reduce("escape.py", "--minutes", "0.5", "--json")
    assert ended.code == 0, ended.err
    assert ended.json["warm"], "what a forked candidate sees is what the script sees alone"
    assert ended.json["signature"] == "RuntimeError: [] [] False"
    assert sorted(path.name for path in outside.iterdir()) == ["kept"]
    left = subprocess.run(["ps", "-eo", "etimes=,args="], capture_output=True, text=True, check=True).stdout
    young = [line for line in left.splitlines() if line.split()[1:] == ["sleep", "1000"]]
    assert not [line for line in young if int(line.split()[0]) <= time.time() - begun]


@pytest.mark.long
@pytest.mark.slow
def test_a_text_in_the_output_stays(reduce: Reduce, tmp_path: Path) -> None:
    script = """\
        import torch
        torch.manual_seed(0)
        layer = torch.nn.Linear(2, 2)
        drop = torch.nn.Dropout(0.5)
        x = torch.ones(1, 2)
        total = x.sum() + 1
        print("unrelated", layer(drop(x)))
        if total == 3:
            print(f"the sum is {total.item()}")
        """
    (tmp_path / "wrong.py").write_text(dedent(script))
    ended = reduce("wrong.py", "--text", "the sum is 3.0", "--minutes", "1")
    assert ended.code == 0, ended.err
    source = (tmp_path / "wrong.reduced.py").read_text()
    assert "if total == 3:" in source
    assert "Dropout" not in source


@pytest.mark.slow
def test_what_two_releases_differ_in_stays(reduce: Reduce, tmp_path: Path) -> None:
    script = """\
        import torch
        layer = torch.nn.Linear(2, 2)
        value = float("nan") if torch.__version__ > "2.1" else 1.0
        print("unrelated", layer(torch.ones(1, 2)))
        print(f"the value is {value}")
        """
    (tmp_path / "wrong.py").write_text(dedent(script))
    words = ("wrong.py", "--text", "the value is nan", "--minutes", "4")
    ended = reduce(*words, "--clean-on", OLDEST, "--json")
    assert ended.code == 0, ended.err
    assert ended.json["clean_on"] == OLDEST
    source = (tmp_path / "wrong.reduced.py").read_text()
    assert "if torch.__version__ >" in source
    assert "Linear" not in source
    # What a search for the text alone leaves.
    (tmp_path / "alone.py").write_text('print("the value is nan")\n')
    ended = reduce("alone.py", *words[1:], "--clean-on", OLDEST)
    assert ended.code == 2
    assert ended.err.splitlines()[-1].startswith("repros: ")
    assert f" {OLDEST}" in ended.err.splitlines()[-1]


@pytest.mark.slow
def test_what_does_not_fail_is_refused_in_a_sentence(
    reduce: Reduce, tmp_path: Path, sentences: SnapshotAssertion
) -> None:
    (tmp_path / "fine.py").write_text("import torch\nprint('fine')\n")
    ended = reduce("fine.py")
    assert ended.code == 2
    assert ended.err.splitlines()[-1].replace(STACK, "STACK") == sentences
    assert not (tmp_path / "fine.reduced.py").exists()
    ended = reduce("fine.py", "--text", "wrong")
    assert ended.err.splitlines()[-1].replace(STACK, "STACK") == sentences


def test_an_output_that_exists_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("train.py").write_text(FAILS)
    Path("train.reduced.py").write_text("mine")
    assert main(["reduce", "train.py"]) == 2
    assert capsys.readouterr().err.startswith("repros: train.reduced.py ")
    assert Path("train.reduced.py").read_text() == "mine"


def test_the_figures_are_of_the_scripts_that_are_here() -> None:
    own = {name for name, row in read_figures().items() if not row["public"]}
    assert own <= {path.stem for path in (HERE / "toys").glob("*.py")}
    for name in own:
        assert read_figures()[name]["lines"][0] == count_lines((HERE / "toys" / f"{name}.py").read_text())
