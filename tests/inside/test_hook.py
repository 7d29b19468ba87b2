"""What the hook records, checked in the files that it writes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import repros.inside

INSIDE = Path(repros.inside.__file__).parent

Events = dict[str, list[dict[str, Any]]]
Hooked = Callable[..., Events]


@pytest.fixture
def hooked(tmp_path: Path) -> Hooked:
    """Return a function that runs a script with the hook and returns each process's events by its last role."""

    def run(source: str, **variables: str) -> Events:
        script = tmp_path / "script.py"
        script.write_text(textwrap.dedent(source), encoding="utf-8")
        cell = tmp_path / "cell"
        cell.mkdir()
        subprocess.run(
            [sys.executable, script],
            env={
                **os.environ,
                "PYTHONPATH": str(INSIDE / "site"),
                "REPROS_CELL": str(cell),
                "REPROS_SCRIPT": str(script),
                **variables,
            },
            capture_output=True,
            timeout=60,
            check=False,
        )
        found: Events = {}
        for file in cell.glob("processes/*/events.jsonl"):
            events = [json.loads(line) for line in file.read_text("utf-8").splitlines() if line]
            role = [event["role"] for event in events if event["event"] == "start"][-1]
            # multiprocessing has its own helper processes, which record nothing of interest.
            found[role] = max(events, found.get(role, []), key=lambda one: ("raised" in names(one), len(one)))
        return found

    return run


def names(events: list[dict[str, Any]]) -> list[str]:
    return [event["event"] for event in events]


def chain(events: list[dict[str, Any]]) -> list[tuple[str, str, str | None]]:
    (raised,) = [event for event in events if event["event"] == "raised"]
    return [(link["type"], link["message"], link["via"]) for link in raised["chain"]]


def test_a_script_that_returns_records_its_end(hooked: Hooked) -> None:
    events = hooked("print('hello')")["main"]
    assert names(events) == ["start", "finished"]
    assert events[0]["role"] == "main"
    assert events[0]["time"] < events[1]["time"]


@pytest.mark.parametrize(
    ("body", "links"),
    [
        ("raise ValueError('m')", [("builtins.ValueError", "m", None)]),
        (
            "raise ValueError('m') from KeyError('k')",
            [("builtins.ValueError", "m", None), ("builtins.KeyError", "'k'", "cause")],
        ),
        (
            """
            try:
                raise KeyError('k')
            except KeyError:
                raise ValueError('m') from None
            """,
            [("builtins.ValueError", "m", None), ("builtins.KeyError", "'k'", "context")],
        ),
        (
            """
            class Several(Exception):
                exceptions = (KeyError('a'), KeyError('b'))
            raise Several('m')
            """,
            [
                ("__main__.Several", "m", None),
                ("builtins.KeyError", "'a'", "group"),
                ("builtins.KeyError", "'b'", "group"),
            ],
        ),
        (
            """
            a, b = ValueError('a'), KeyError('b')
            a.__cause__, b.__cause__ = b, a
            raise a
            """,
            [("builtins.ValueError", "a", None), ("builtins.KeyError", "'b'", "cause")],
        ),
        ("raise KeyboardInterrupt", [("builtins.KeyboardInterrupt", "", None)]),
    ],
)
def test_an_exception_is_recorded_with_its_chain(
    hooked: Hooked, body: str, links: list[tuple[str, str, str | None]]
) -> None:
    events = hooked(body)["main"]
    assert names(events) == ["start", "raised"]
    assert chain(events) == links


def test_a_long_chain_and_a_long_message_are_cut(hooked: Hooked) -> None:
    events = hooked(
        """
        error = None
        for number in range(1000):
            outer = ValueError(str(number))
            outer.__cause__, error = error, outer
        error.args = ('head' + 'x' * 1_000_000 + 'end',)
        raise error
        """
    )["main"]
    links = chain(events)
    assert len(links) == 20
    message = links[0][1]
    assert len(message) < 21_000
    assert message.startswith("head")
    assert message.endswith("end")


def test_an_exception_of_a_thread_does_not_end_the_process(hooked: Hooked) -> None:
    events = hooked(
        """
        import threading
        def fail(): raise ValueError('in a thread')
        thread = threading.Thread(target=fail)
        thread.start()
        thread.join()
        """
    )["main"]
    assert names(events) == ["start", "finished"]


def test_a_caught_exception_is_not_recorded(hooked: Hooked) -> None:
    events = hooked(
        """
        import sys
        try:
            raise ValueError
        except ValueError:
            pass
        """
    )["main"]
    assert names(events) == ["start", "finished"]


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_an_exception_of_a_multiprocessing_child_is_recorded(hooked: Hooked, method: str) -> None:
    events = hooked(
        f"""
        import multiprocessing, sys
        def fail(): raise ValueError('in a child')
        if __name__ == '__main__':
            process = multiprocessing.get_context({method!r}).Process(target=fail)
            process.start()
            process.join()
            sys.exit(process.exitcode)
        """
    )
    assert chain(events["helper"]) == [("builtins.ValueError", "in a child", None)]
    (reaped,) = [event for event in events["main"] if event["event"] == "reaped"]
    assert os.waitstatus_to_exitcode(reaped["status"]) == 1


def test_a_forked_child_writes_its_own_files(hooked: Hooked) -> None:
    events = hooked(
        """
        import os
        if os.fork() == 0:
            os._exit(7)
        os.wait()
        """
    )
    assert names(events["helper"]) == ["start", "exit"]
    assert events["helper"][1]["code"] == 7
    assert names(events["main"]) == ["start", "finished"]


def test_a_relaunched_rank_is_recognised_by_its_environment_and_its_command(hooked: Hooked) -> None:
    events = hooked(
        """
        import os, subprocess, sys
        if "LOCAL_RANK" not in os.environ:
            environ = dict(os.environ, LOCAL_RANK="1")
            subprocess.run([sys.executable, *sys.argv], env=environ)
            subprocess.run([sys.executable, "-c", "pass"], env=environ)
        """
    )
    assert (events["main"][0]["rank"], events["rank"][0]["rank"], events["helper"][0]["rank"]) == (
        None,
        1,
        None,
    )


def test_a_captured_stdout_is_not_redirected(hooked: Hooked, tmp_path: Path) -> None:
    log = tmp_path / "main.log"
    log.touch()
    hooked(
        """
        import os, subprocess, sys
        if "LOCAL_RANK" in os.environ:
            print("rank 1 here")
        else:
            environ = dict(os.environ, LOCAL_RANK="1")
            done = subprocess.run([sys.executable, *sys.argv], env=environ, capture_output=True)
            assert done.stdout == b"rank 1 here\\n"
            with open(os.environ["REPROS_LOG"], "ab") as log:
                subprocess.run([sys.executable, *sys.argv], env=environ, stdout=log)
        """,
        REPROS_LOG=str(log),
    )
    assert sorted(file.read_text() for file in tmp_path.glob("cell/processes/*/log.txt")) == [
        "",
        "rank 1 here\n",
    ]
    assert log.read_text() == ""


def test_a_missing_log_is_not_a_failure(hooked: Hooked) -> None:
    events = hooked(
        """
        import os, subprocess, sys
        if "LOCAL_RANK" not in os.environ:
            subprocess.run([sys.executable, *sys.argv], env=dict(os.environ, LOCAL_RANK="1"))
        """,
        REPROS_LOG="/nowhere/main.log",
    )
    assert names(events["rank"]) == ["start", "finished"]


def test_without_a_cell_nothing_is_recorded_and_only_the_contract_is_imported(tmp_path: Path) -> None:
    script = "import sys; print([name for name in sys.modules if name.startswith('repros.')])"
    environ = {name: value for name, value in os.environ.items() if not name.startswith("REPROS_")}
    environ["PYTHONPATH"] = str(INSIDE / "site")
    done = subprocess.run([sys.executable, "-c", script], env=environ, capture_output=True, text=True, check=True)
    assert done.stdout == "['repros.inside', 'repros.inside.contract']\n"


def test_a_hidden_sitecustomize_is_run_too(hooked: Hooked, tmp_path: Path) -> None:
    theirs = tmp_path / "theirs"
    theirs.mkdir()
    (theirs / "sitecustomize.py").write_text("import os; os.environ['THEIRS'] = 'ran'\n")
    path = os.pathsep.join([str(INSIDE / "site"), str(theirs)])
    events = hooked("import os; raise ValueError(os.environ['THEIRS'])", PYTHONPATH=path)["main"]
    assert chain(events) == [("builtins.ValueError", "ran", None)]


def test_a_folder_that_cannot_be_written_does_not_stop_the_script(tmp_path: Path) -> None:
    environ = {**os.environ, "PYTHONPATH": str(INSIDE / "site"), "REPROS_CELL": "/proc/none"}
    script = tmp_path / "script.py"
    script.write_text("print('it ran')\n")
    done = subprocess.run([sys.executable, script], env=environ, capture_output=True, text=True, check=True)
    assert done.stdout == "it ran\n"
