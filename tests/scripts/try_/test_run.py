"""Scripts on stacks: the answer for each ending, which stacks are left out, and the exit codes."""

from __future__ import annotations

import os
import re

import pytest
from syrupy.assertion import SnapshotAssertion

from repros.engine.launch.inherited import notes
from tests.scripts.try_.conftest import Try, Write


def shown(text: str) -> str:
    """Return an output without times, versions, lines of libraries and the folder of the logs."""
    text = re.sub(r"after \d+\.\d s", "after 1.0 s", text)
    text = re.sub(r"\d{8}-\d{6}-\d{6}", "RUN", text)
    text = re.sub(r"(?<=torch )\d+\.\d+\.\d+\S*|(?<=python )\d+\.\d+\.\d+", "N", text)
    return re.sub(r"(torch/\S+?\.py):\d+", r"\1:N", text)


def test_a_clean_run_on_two_stacks(try_here: Try, write: Write, sentences: SnapshotAssertion) -> None:
    write("train.py", "import sys\nimport torch_free\nassert sys.argv[1:] == ['--epochs', '1'], sys.argv\n")
    write("torch_free.py", "import beside_it\n")
    write("beside_it.py", "")
    ended = try_here("train.py", "--stack", "2023-12", "--stack", "current", "--memory", "8GB", "--", "--epochs", "1")
    assert ended.code == 0
    assert shown(ended.out) == sentences
    assert re.findall("120 s|8 GB|1 GB", ended.err) == ["120 s", "8 GB", "1 GB"], "its limits, once for both"


def test_an_exception_has_its_chain(try_here: Try, write: Write) -> None:
    write(
        "fails.py",
        """
        def load(name):
            try:
                {}[name]
            except KeyError as error:
                raise ValueError(f"no weights at 0x{id(name):012x}") from error
        load("a")
        """,
    )
    ended = try_here("fails.py", "--json")
    stack = ended.stack
    assert (ended.code, stack["status"], stack["signature"]) == (1, "exception", "ValueError: no weights at {address}")
    assert [(link["type"], link["via"], link["frames"]) for link in stack["chain"]] == [
        ("ValueError", None, ["fails.py:7 <module>", "fails.py:6 load"]),
        ("KeyError", "cause", ["fails.py:4 load"]),
    ]
    assert (stack["places"], stack["findings"], stack["match"]["candidates"]) == ([], [], [])


@pytest.mark.parametrize(
    ("source", "seen"),
    [
        ("import sys\nprint('bad usage')\nsys.exit(3)\n", ("exit", "exit 3", ["bad usage"])),
        ("import os, signal\nos.kill(os.getpid(), signal.SIGKILL)\n", ("signal", "signal SIGKILL", [])),
        ("import ctypes\nctypes.string_at(0)\n", ("signal", "signal SIGSEGV", [])),
    ],
)
def test_other_endings(source: str, seen: tuple[str, str, list[str]], try_here: Try, write: Write) -> None:
    write("ends.py", source)
    ended = try_here("ends.py", "--json")
    assert ended.code == 1
    assert (ended.stack["status"], ended.stack["signature"], ended.stack["last_lines"]) == seen


def test_a_clean_run_shows_what_was_printed(try_here: Try, write: Write, sentences: SnapshotAssertion) -> None:
    write("value.py", "import os\nfor epoch in range(6):\n    print('rank', os.environ.get('RANK'), 'epoch', epoch)\n")
    ended = try_here("value.py")
    assert ended.code == 0
    assert shown(ended.out) == sentences
    ended = try_here("value.py", "--ranks", "2", "--json")
    assert (ended.stack["status"], ended.stack["last_lines"][-1]) == ("clean", "rank 0 epoch 5")


@pytest.mark.slow
def test_the_time_limit_says_where_it_was(try_here: Try, write: Write, sentences: SnapshotAssertion) -> None:
    write("slow.py", "import time\ndef wait_for_news():\n    time.sleep(100)\nwait_for_news()\n")
    ended = try_here("slow.py", "--timeout", "8")
    assert ended.code == 1
    assert shown(ended.out) == sentences


def test_ranks_get_what_torchrun_gives_them(try_here: Try, write: Write) -> None:
    write(
        "rank.py",
        """
        import os, sys
        names = ("RANK", "LOCAL_RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE")
        assert [os.environ[name] for name in names] == [os.environ["RANK"]] * 2 + ["3"] * 2
        if os.environ["RANK"] == "1":
            sys.exit("the second rank has had enough")
        """,
    )
    ended = try_here("rank.py", "--ranks", "3", "--json")
    assert (ended.code, ended.stack["signature"], ended.stack["ranks"]) == (1, "exit 1", ["rank 1"])
    assert ended.stack["last_lines"] == ["the second rank has had enough"]
    endings = [(place["rank"], place["ending"]) for place in ended.stack["places"]]
    assert endings == [("rank 0", "returned"), ("rank 1", "exited with 1"), ("rank 2", "returned")]


def test_a_single_rank_gets_it_where_ranks_are_asked_for(try_here: Try, write: Write) -> None:
    write("rank.py", "import os, sys\nsys.exit(os.environ.get('WORLD_SIZE', 'no launcher'))\n")
    assert try_here("rank.py", "--json").stack["last_lines"] == ["no launcher"]
    assert try_here("rank.py", "--ranks", "1", "--json").stack["last_lines"] == ["1"]


def test_a_stack_that_lacks_something_is_left_out(try_here: Try, write: Write, sentences: SnapshotAssertion) -> None:
    write("old.py", "# /// script\n# dependencies = ['torch==2.1.2']\n# requires-python = '>=3.8'\n# ///\nimport sys\n")
    ended = try_here("old.py", "--stack", "2023-12", "--stack", "current")
    assert ended.code == 0
    assert "torch==2.1.2 (here 2.15.0)\n" in ended.out
    write("lacks.py", "import sklearn, yaml.nodes, nowhere\ntry:\n    import apex\nexcept ImportError:\n    pass\n")
    ended = try_here("lacks.py")
    assert (ended.code, ended.out) == (2, "")
    assert re.sub(r"pyyaml \(imported as yaml\), |--with pyyaml ", "", ended.err) == sentences


def test_a_stack_that_is_not_made_is_not_made_in_vain(try_here: Try, write: Write) -> None:
    write("lacks.py", "# /// script\n# dependencies = ['polars>=1', 'torch']\n# ///\n")
    ended = try_here("lacks.py")
    assert ended.code == 2
    assert "--with 'polars>=1'" in ended.err


def test_the_code_of_an_issue(try_here: Try, write: Write) -> None:
    write("issue.md", "It fails:\n\n```python\nimport sys\nraise LookupError('as reported')\n```\n")
    ended = try_here("--from-issue", "issue.md", "--json")
    assert (ended.code, ended.stack["signature"]) == (1, "LookupError: as reported")
    assert ended.json["script"] == "block 1 of 1 of issue.md (line 3)"


@pytest.mark.parametrize(
    "words",
    [
        "",
        "nowhere.py",
        "notes.txt",
        "clean.py --block 1",
        "--from-issue notes.txt --block 2",
        "clean.py --ranks 2 --own-ranks 2",
        "damaged.py",
    ],
)
def test_bad_input_is_one_sentence(words: str, sentences: SnapshotAssertion, try_here: Try, write: Write) -> None:
    write("notes.txt", "my own notes\n")
    write("clean.py", "pass\n")
    write("damaged.py", "# /// script\n# dependencies = ['torch>']\n# ///\n")
    ended = try_here(*words.split())
    assert (ended.code, ended.out) == (2, "")
    assert ended.err == sentences


@pytest.mark.parametrize("words", ["--memory much", "--file-size 0GB", "--gpus 65", "--stack curent"])
def test_a_wrong_value_of_an_option_is_refused(words: str, try_here: Try, write: Write) -> None:
    write("clean.py", "pass\n")
    ended = try_here("clean.py", *words.split())
    assert (ended.code, ended.out, words.split()[1] in ended.err) == (2, "", True)


SPAWNS = """\
import os, subprocess, sys
if sys.argv[1:]:
    print("rank", sys.argv[1], "cannot read its shard", flush=True)
    sys.exit(3)
ranks = [
    subprocess.Popen([sys.executable, __file__, str(rank)], env={**os.environ, "RANK": str(rank)}) for rank in range(2)
]
for rank in ranks:
    rank.wait()
print("a rank failed", flush=True)
sys.exit(1)
"""


@pytest.mark.parametrize("options", [(), ("--ranks", "1")])
def test_a_launcher_of_its_own_ranks_is_none_of_them_and_rank_0_has_its_lines(
    options: tuple[str, ...], try_here: Try, write: Write
) -> None:
    write("spawns.py", SPAWNS)
    ended = try_here("spawns.py", *options, "--json")
    assert [place["rank"] for place in ended.stack["places"]] == ["launcher", "rank 0", "rank 1"]
    assert (ended.stack["signature"], ended.stack["last_lines"]) == (
        "exit 1", ["rank 0 cannot read its shard", "a rank failed"]
    )  # fmt: skip


def test_the_variables_that_may_change_a_result_are_named_without_their_values(
    try_here: Try, write: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in [name for name in os.environ if notes({name: "x"}, (), on_stack=True)]:
        monkeypatch.delenv(name)
    set_here = {
        "TORCHDYNAMO_DISABLE": "1",
        "HF_ENDPOINT": "a.b",
        "PYTHONPATH": "/mine",
        "OMP_NUM_THREADS": "97",
    }
    for name, value in set_here.items():
        monkeypatch.setenv(name, value)
    script = write("sets.py", f"import os\nprint([os.environ.get(name) for name in {[*set_here]}])\n")
    ended = try_here(script, "--json")
    assert ended.json["shell"] == [
        "Left out of your environment variables: HF_ENDPOINT, OMP_NUM_THREADS, PYTHONPATH.",
        "In effect, and may change results: TORCHDYNAMO_DISABLE.",
    ]
    assert all(sentence in " ".join(ended.err.split()) for sentence in ended.json["shell"])
    assert "a.b" not in ended.out + ended.err
    assert ended.written.startswith("['1', None, ")
    assert ("/mine" in ended.written, "97" in ended.written) == (False, False)


def test_the_hint_for_a_requirement_with_an_address_keeps_the_address(try_here: Try, write: Write) -> None:
    wanted = "mine_of_no_index @ git+https://example.org/mine"
    script = write("asks.py", f"# /// script\n# dependencies = ['{wanted}']\n# ///\nimport mine_of_no_index\n")
    ended = try_here(script)
    assert (ended.code, f"--with '{wanted}'" in ended.err, "packages that you trust" in ended.err) == (2, True, True)
