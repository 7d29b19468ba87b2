"""`repros match`."""

from __future__ import annotations

import io
import json
import sys
from importlib.metadata import version
from pathlib import Path

import pytest

from tests.cli.command import RAISES, Command, read_verdicts
from tests.diagnose.match.hang.made import STACK, content, entry, write

LOG = """\
Traceback (most recent call last):
  File "/home/user/train.py", line 9, in <module>
    main()
ValueError: the documented failure on cuda:3
torch==2.13.0
"""

FOUND = """\
RPR-9001 A plain exception
likely    class and message agree
seen      line 4: ValueError: the documented failure on cuda:3 torch==2.13.0
versions  every release of torch is affected
works     fixed: returns
          not_a_fix: is documented as a fix and raises all the same
"""

NO_DUMP = (
    "has no flight recorder dump among its 2 files; expected one for each rank, named by "
    "TORCH_NCCL_DEBUG_INFO_TEMP_FILE (or TORCH_FR_DUMP_TEMP_FILE)."
)
ALONE = (
    "--confirm needs --python PATH, the environment to run on, and --python needs --confirm. "
    "(try 'repros match --help')"
)


@pytest.fixture
def log(here: Path) -> str:
    (here / "train.log").write_text(LOG)
    return "train.log"


def feed(monkeypatch: pytest.MonkeyPatch, raw: bytes) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(raw)))


def test_a_file(repros: Command, log: str) -> None:
    code, out, err = repros("match", log, "--catalogue", RAISES)
    assert (code, err) == (0, "")
    assert out.startswith(FOUND)
    where = f" --catalogue {RAISES}"
    assert out.endswith(
        f"next      repros show RPR-9001{where}\n"
        f"          repros run RPR-9001 --python PATH{where}\n"
        f"          repros report RPR-9001 --python PATH{where}\n"
    )


@pytest.mark.parametrize("words", [("-",), ()])
def test_a_pipe(repros: Command, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...]) -> None:
    feed(monkeypatch, LOG.encode())
    code, out, _ = repros("match", *words, "--catalogue", RAISES)
    assert (code, out[: len(FOUND)]) == (0, FOUND)


def test_sixty_columns(repros: Command, log: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    _, out, _ = repros("match", log, "--catalogue", RAISES)
    # Commands are never broken, since readers paste them.
    assert max(len(line) for line in out.splitlines() if "--catalogue" not in line) <= 60


def test_a_log_without_an_exception_leads_to_the_watch(repros: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    feed(monkeypatch, b"Epoch 1: loss 2.3")
    code, out, _ = repros("match", "--catalogue", RAISES)
    assert (code, out.splitlines()[2:4]) == (
        1,
        [
            "next      repros watch -- python train.py (your own command: finds silent failures)",
            "          repros list",
        ],
    )


def test_no_known_repro(repros: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    feed(monkeypatch, b"[rank1]: ValueError: another one\n[rank0]: RuntimeError: [a.cc:1] Connection closed by peer")
    code, out, err = repros("match", "--catalogue", RAISES)
    assert (code, err) == (1, "")
    assert out == (
        "No known repro.\n"
        "exception line 1, rank 1: ValueError: another one\n"
        "next      repros list\n"
        "          repros new NAME (to document it)\n"
    )


def test_only_a_consequence_of_another_failure(repros: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    feed(monkeypatch, b"RuntimeError: [a.cc:1] Connection closed by peer")
    code, out, _ = repros("match", "--catalogue", RAISES)
    assert code == 1
    assert out.splitlines()[1:3] == [
        "exception line 1: RuntimeError: [a.cc:1] Connection closed by peer",
        "          This error means that another process failed first; the cause is in that process's log.",
    ]


def test_json(repros: Command, log: str) -> None:
    code, out, _ = repros("match", log, "--json", "--catalogue", RAISES)
    found = json.loads(out)
    assert (code, found["schema"], found["versions"]) == (0, 2, {"torch": ["2.13.0"]})
    (candidate,) = found["candidates"]
    assert (candidate["id"], candidate["confidence"], candidate["why"]) == (
        "RPR-9001",
        "likely",
        "class and message agree",
    )
    assert candidate["seen"][0]["line"] == 4
    why = "every release of torch is affected"
    assert candidate["affected"] == {"state": "affected", "why": why, "ranges": [], "versions": {}, "missing": []}
    assert "confirmed" not in found


def test_confirm(repros: Command, log: str) -> None:
    code, out, _ = repros("match", log, "--confirm", "--python", sys.executable, "--catalogue", RAISES)
    assert code == 0
    assert out.startswith(FOUND)
    assert "\nconfirming RPR-9001\n" in out
    assert "reproduced  RPR-9001 failing plain cpu" in out
    assert read_verdicts(".repros/match.jsonl") == ["failing reproduced"]
    assert not Path(".repros/latest.jsonl").exists()


def test_confirm_has_the_versions_of_the_environment(repros: Command, here: Path) -> None:
    script = Path(RAISES).read_text("utf-8").replace("# home", '# affected = ["packaging>=1 or torch>=2"]\n# home', 1)
    long = f"the documented failure on cuda:0 {'and more of it ' * 80}"
    script = script.replace('match = "the documented failure on cuda:0"', f'match = "{long.strip()}"')
    script = script.replace('ValueError("the documented failure on cuda:1")', f'ValueError("{long}")')
    (here / "toys").mkdir()
    (here / "toys" / "raises.py").write_text(script, "utf-8")
    (here / "train.log").write_text(f"ValueError: {long}", "utf-8")
    words = ("match", "train.log", "--catalogue", "toys")
    _, out, _ = repros(*words)
    assert "versions  unknown: the log does not state the version of packaging, torch" in out
    code, out, _ = repros(*words, "--confirm", "--python", sys.executable)
    assert code == 0
    assert f"versions  affected: packaging {version('packaging')} (packaging>=1 or torch>=2)" in out
    assert f"The versions that the log does not state are those of {sys.executable}." in out.replace("\n", " ")
    confirmed = out.partition("\nconfirming RPR-9001\n")[2]
    assert "reproduced  RPR-9001 failing plain cpu" in confirmed
    assert [line for line in confirmed.splitlines() if len(line) > 100 and sys.prefix not in line] == []


def test_confirm_json(repros: Command, log: str) -> None:
    words = ("match", log, "--json", "--confirm", "--python", sys.executable, "--catalogue", RAISES)
    code, out, err = repros(*words)
    (confirmed,) = json.loads(out)["confirmed"]
    assert (code, confirmed["variant"], confirmed["verdict"]) == (0, "failing", "reproduced")
    assert "reproduced" in err


def test_nothing_to_confirm(repros: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    feed(monkeypatch, b"ValueError: another one")
    code, out, _ = repros("match", "--confirm", "--python", sys.executable, "--catalogue", RAISES)
    assert code == 1
    assert out.endswith("\nnothing to confirm: no candidate.\n")


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (
            ("none.log",),
            "none.log cannot be read (No such file or directory); expected the text of a log or a traceback.",
        ),
        ((".",), f". {NO_DUMP}"),
        (("empty",), "empty is empty; expected the text of a log or a traceback."),
        (("binary",), "binary is not text; expected the text of a log or a traceback."),
        (
            ("empty", "--confirm"),
            ALONE,
        ),
        (
            ("empty", "--python", "x"),
            ALONE,
        ),
    ],
)
def test_bad_input(repros: Command, here: Path, words: tuple[str, ...], problem: str) -> None:
    (here / "empty").touch()
    (here / "binary").write_bytes(bytes(range(256)) * 9)
    assert repros("match", *words) == (2, "", f"repros: {problem}\n")


WAITING = {
    0: content([entry(1), entry(2, state="scheduled", frames=STACK)], {"0": [0, 1]}),
    1: content([entry(1, frames=STACK)], {"0": [0, 1]}),
}
HANGS = """\
A hang: the other ranks wait for rank 1.
missing   rank 1 never called all_reduce of 4x2 Float, number 2 of the default group
waiting   rank 0, since 2023-11-14 22:13:20 UTC
where     rank 1: after all_reduce of 4x2 Float in the default group, /home/user/train.py:31 step
          rank 0: in all_reduce of 4x2 Float in the default group, /home/user/train.py:31 step
"""


def test_a_folder_of_dumps(repros: Command, here: Path) -> None:
    write(here / "dumps", WAITING)
    assert repros("match", "dumps", "--catalogue", RAISES) == (0, HANGS, "")


def test_dumps_beside_a_log(repros: Command, here: Path, log: str) -> None:
    write(here / "dumps", WAITING, as_json=True)
    without_stacks = HANGS.replace(", /home/user/train.py:31 step", "")
    code, out, _ = repros("match", log, "dumps/nccl_trace_rank_0", "dumps/nccl_trace_rank_1", "--catalogue", RAISES)
    assert code == 0
    assert out.startswith(HANGS)
    assert without_stacks not in out
    assert f"\n\n{FOUND}" in out


def test_a_hang_as_json(repros: Command, here: Path) -> None:
    write(here / "dumps", WAITING)
    code, out, _ = repros("match", "dumps", "--json", "--catalogue", RAISES)
    found = json.loads(out)
    assert (code, found["schema"], found["candidates"]) == (0, 2, [])
    (hang,) = found["hangs"]
    assert (hang["source"], hang["waited_for"]) == ("dumps", [1])


def test_a_watchdogs_lines_in_a_log(repros: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    feed(
        monkeypatch,
        b"[rank1]:[E1 ProcessGroupNCCL.cpp:616] [Rank 1] Watchdog caught collective operation timeout: "
        b"WorkNCCL(SeqNum=8, OpType=ALLREDUCE, NumelIn=9, NumelOut=9, Timeout(ms)=600000) ran for 600020 "
        b"milliseconds before timing out.\n",
    )
    code, out, _ = repros("match", "--catalogue", RAISES)
    assert code == 0
    assert out.startswith(
        "A hang: rank 1 waits; the log shows no other rank there.\nwaiting   rank 1: ALLREDUCE of 9 elements"
    )


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("empty",), "empty has no flight recorder dump among its 0 files; expected one for each rank, named"),
        (("bad_0",), "bad_0 is refused: its pickle has more than plain values (GLOBAL os system at byte 2)"),
        (("cut_0",), "cut_0 is a truncated or damaged pickle"),
        (("gone",), "gone cannot be read (No such file or directory)"),
    ],
)
def test_what_is_wrong_with_dumps_is_one_sentence(
    repros: Command, here: Path, words: tuple[str, ...], sentence: str
) -> None:
    (here / "empty").mkdir()
    (here / "bad_0").write_bytes(b"\x80\x02cos\nsystem\n(S'true'\ntR.")
    (here / "cut_0").write_bytes(b"\x80\x02}q\x00(X\x07")
    code, out, err = repros("match", *words, "--catalogue", RAISES)
    assert (code, out) == (2, "")
    assert sentence in err.replace("\n", " ")
    assert "Traceback" not in err
