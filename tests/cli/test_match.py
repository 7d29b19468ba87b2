"""`repros match`."""

from __future__ import annotations

import io
import json
import re
import sys
from importlib.metadata import version
from pathlib import Path

import pytest
from syrupy.assertion import SnapshotAssertion

from tests.cli.command import RAISES, Command, read_verdicts
from tests.diagnose.match.hang.made import STACK, content, entry, write
from tests.transcript import transcript

LOG = """\
Traceback (most recent call last):
  File "/home/user/train.py", line 9, in <module>
    main()
ValueError: the documented failure on cuda:3
torch==2.13.0
"""


@pytest.fixture
def log(here: Path) -> str:
    (here / "train.log").write_text(LOG)
    return "train.log"


def feed(monkeypatch: pytest.MonkeyPatch, raw: bytes) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(raw)))


MATCH = f"match train.log --catalogue {RAISES}"
LOGS = {
    "no_exception.log": "Epoch 1: loss 2.3",
    "unknown.log": "[rank1]: ValueError: another one\n[rank0]: RuntimeError: [a.cc:1] Connection closed by peer",
    "consequence.log": "RuntimeError: [a.cc:1] Connection closed by peer",
    "watchdog.log": "[rank1]:[E1 ProcessGroupNCCL.cpp:616] [Rank 1] Watchdog caught collective operation timeout: "
    "WorkNCCL(SeqNum=8, OpType=ALLREDUCE, NumelIn=9, NumelOut=9, Timeout(ms)=600000) ran for 600020 milliseconds "
    "before timing out.\n",
}


def test_text(
    repros: Command,
    here: Path,
    log: str,
    monkeypatch: pytest.MonkeyPatch,
    snapshot: SnapshotAssertion,
) -> None:
    for name, text in LOGS.items():
        (here / name).write_text(text)
    write(here / "dumps", WAITING)
    named = [f"match {name} --catalogue {RAISES}" for name in (*LOGS, "dumps", f"{log} dumps")]
    ranged, confirm = write_ranged(here, 1), f"--confirm --python {sys.executable}"
    sessions = transcript(repros, MATCH, *named, ranged)
    monkeypatch.setenv("COLUMNS", "300")  # a line with the path of an interpreter breaks anywhere
    confirmed = transcript(repros, f"{ranged} {confirm}", f"{named[1]} {confirm}", packaging=version("packaging"))
    name = re.escape(Path(sys.executable).parents[1].name)
    sessions += "\n" + re.sub(rf" {name}(\n|  )", r" ENVIRONMENT\1", confirmed)
    assert snapshot == sessions


FAMILIAR = """\
Traceback (most recent call last):
  File "/home/user/train.py", line 9, in <module>
    loss = torch.nn.functional.linear(batch, weight.cuda())
RuntimeError: Expected all tensors to be on the same device, but found at least two devices, cuda:0 and cpu!
"""


def test_what_the_words_of_an_error_mean(repros: Command, here: Path, snapshot: SnapshotAssertion) -> None:
    """Without a documented failure: an error of a family, and a script that was given for a log."""
    (here / "train.log").write_text(FAMILIAR)
    (here / "train.py").write_text("import torch\n\nprint(torch.ones(2))\n")
    assert snapshot == transcript(repros, MATCH, f"match train.py --catalogue {RAISES}")


def test_what_the_words_of_an_error_mean_as_json(repros: Command, here: Path) -> None:
    (here / "train.log").write_text(FAMILIAR)
    answer = json.loads(repros(*MATCH.split(), "--json")[1])
    (explanation,) = answer["explanations"]
    assert answer["candidates"] == []
    assert explanation["facts"] == ["tensors on cuda:0 and cpu"]


@pytest.mark.parametrize("words", [("-",), ()])
def test_a_pipe(repros: Command, log: str, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...]) -> None:
    expected = repros(*MATCH.split())
    feed(monkeypatch, LOG.encode())
    assert repros("match", *words, "--catalogue", RAISES) == expected


@pytest.mark.parametrize(
    ("name", "code"), [("no_exception.log", 1), ("unknown.log", 1), ("consequence.log", 1), ("watchdog.log", 0)]
)
def test_exit_codes(repros: Command, here: Path, name: str, code: int) -> None:
    (here / name).write_text(LOGS[name])
    assert repros("match", name, "--catalogue", RAISES)[0] == code


def test_sixty_columns(repros: Command, log: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    _, out, _ = repros("match", log, "--catalogue", RAISES)
    # Commands are never broken, since readers paste them.
    assert max(len(line) for line in out.splitlines() if "--catalogue" not in line) <= 60


def test_json(repros: Command, log: str) -> None:
    code, out, _ = repros("match", log, "--json", "--catalogue", RAISES)
    found = json.loads(out)
    assert (code, found["schema"], found["versions"]) == (0, 2, {"torch": ["2.13.0"]})
    (candidate,) = found["candidates"]
    assert (candidate["id"], candidate["confidence"]) == ("RPR-9001", "likely")
    assert candidate["seen"][0]["line"] == 4
    affected = {name: value for name, value in candidate["affected"].items() if name != "why"}
    assert affected == {"state": "affected", "ranges": [], "versions": {}, "missing": []}
    assert "confirmed" not in found


def test_confirm(repros: Command, log: str) -> None:
    assert repros("match", log, "--confirm", "--python", sys.executable, "--catalogue", RAISES)[0] == 0
    assert read_verdicts(".repros/match.jsonl") == ["failing reproduced"]
    assert not Path(".repros/latest.jsonl").exists()


def write_ranged(folder: Path, times: int) -> str:
    """Write a log without versions, its message that many times as long, and a catalogue in which versions decide."""
    script = Path(RAISES).read_text("utf-8").replace("# home", '# affected = ["packaging>=1 or torch>=2"]\n# home', 1)
    long = f"the documented failure on cuda:0 {'and more of it ' * times}"
    script = script.replace('match = "the documented failure on cuda:0"', f'match = "{long.strip()}"')
    script = script.replace('ValueError("the documented failure on cuda:1")', f'ValueError("{long}")')
    (folder / "toys").mkdir()
    (folder / "toys" / "raises.py").write_text(script, "utf-8")
    (folder / "ranged.log").write_text(f"ValueError: {long}", "utf-8")
    return "match ranged.log --catalogue toys"


def test_confirm_has_the_versions_of_the_environment(repros: Command, here: Path) -> None:
    ranged = write_ranged(here, 80)
    (candidate,) = json.loads(repros(*ranged.split(), "--json")[1])["candidates"]
    assert candidate["affected"]["state"] == "unknown"
    assert candidate["affected"]["missing"] == ["packaging", "torch"]
    code, out, _ = repros(*ranged.split(), "--json", "--confirm", "--python", sys.executable)
    (candidate,) = json.loads(out)["candidates"]
    assert (code, candidate["affected"]["state"]) == (0, "affected")
    assert candidate["affected"]["versions"]["packaging"] == [version("packaging")]
    code, out, _ = repros(*ranged.split(), "--confirm", "--python", sys.executable)
    assert code == 0
    assert [line for line in out.splitlines() if len(line) > 100 and sys.prefix not in line] == []


def test_confirm_json(repros: Command, log: str) -> None:
    words = ("match", log, "--json", "--confirm", "--python", sys.executable, "--catalogue", RAISES)
    code, out, err = repros(*words)
    (confirmed,) = json.loads(out)["confirmed"]
    assert (code, confirmed["variant"], confirmed["verdict"]) == (0, "failing", "reproduced")
    assert "reproduced" in err


WAITING = {
    0: content([entry(1), entry(2, state="scheduled", frames=STACK)], {"0": [0, 1]}),
    1: content([entry(1, frames=STACK)], {"0": [0, 1]}),
}


def test_the_dumps_of_a_hang_are_read_before_the_log(repros: Command, here: Path, log: str) -> None:
    write(here / "dumps", WAITING, as_json=True)
    found = repros(*MATCH.split())[1]
    hang = repros("match", "dumps", "--catalogue", RAISES)[1]
    code, out, _ = repros("match", log, "dumps/nccl_trace_rank_0", "dumps/nccl_trace_rank_1", "--catalogue", RAISES)
    assert (code, out) == (0, f"{hang}\n{found}")


def test_a_hang_as_json(repros: Command, here: Path) -> None:
    write(here / "dumps", WAITING)
    code, out, _ = repros("match", "dumps", "--json", "--catalogue", RAISES)
    found = json.loads(out)
    assert (code, found["schema"], found["candidates"]) == (0, 2, [])
    (hang,) = found["hangs"]
    assert (hang["source"], hang["waited_for"]) == ("dumps", [1])
