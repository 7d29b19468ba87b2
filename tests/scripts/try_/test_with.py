"""`repros try --with`: a script on stacks with packages replaced or added, made from wheels of a few bytes."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from repros.cli.main import main
from tests.scripts.bisect.tiny_question import SCRIPT, surroundings, write_stack
from tests.scripts.try_.conftest import Ended, Try, Write
from tests.scripts.try_.test_run import shown
from tests.tiny_stack import write_wheel

PRINTS = (
    "from importlib.metadata import version\nprint('tinylib', version('tinylib'), 'tinyextra', version('tinyextra'))\n"
)


REPAIRED = """
from importlib.metadata import version
print('unrelated')
if version('tinylib') < '1.5':
    print('it is wrong')
"""


@pytest.fixture
def try_tiny(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Try:
    """Run `repros try` in this process, on the stacks `tiny` and `tiny-6` of two wheels; a third has no stack yet."""
    wheels = tmp_path / "wheels"
    wheels.mkdir()
    for name, value in surroundings(wheels).items():
        monkeypatch.setenv(name, value)
    for name in ("UV_TORCH_BACKEND", "UV_INDEX", "UV_DEFAULT_INDEX"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    tiny = write_stack(wheels)
    write_wheel(wheels, "tinyextra")
    lock = wheels / "tiny-6.lock.txt"
    lock.write_text("tinylib==1.6\ntorch==1.0\n")
    six = replace(tiny, name="tiny-6", lock=lock, requirements=(Requirement("torch==1.0"), Requirement("tinylib")))
    monkeypatch.setattr("repros.cli.shared.where.load_stacks", lambda _: {"tiny": tiny, "tiny-6": six})

    def run(*words: object) -> Ended:
        code = main(["try", *map(str, words), "--no-watch"])
        return Ended(code, *capsys.readouterr())

    return run


Made = Callable[[], list[str]]


@pytest.fixture
def made(tmp_path: Path) -> Made:
    """Return a function that names the environments that were made, without their digests."""
    folder = tmp_path / "wheels/cache/environments"
    return lambda: sorted(found.name[:-13] for found in folder.glob("*") if (found / "pyvenv.cfg").exists())


@pytest.mark.slow
def test_each_stack_gets_an_environment_which_is_made_once(try_tiny: Try, write: Write, made: Made) -> None:
    write("prints.py", PRINTS)
    words = ["prints.py", "--stack", "tiny", "--stack", "tiny-6", "--with", "tinyextra>=1", "--with", "tinylib<1.5"]
    ended = try_tiny(*words)
    assert ended.code == 0, ended.err
    said = [line for line in ended.err.splitlines() if line.startswith(("tiny", "making", "running"))]
    six = "tiny-6 with tinyextra>=1, tinylib<1.5"
    assert [line for line in said if not line.startswith("making the environment of stack tiny")] == [
        "tiny with tinyextra>=1, tinylib<1.5 is to be made: tinyextra 1.0 added",
        f"{six} is to be made: tinyextra 1.0 added, tinylib 1.4 instead of 1.6",
        f"running on {six.replace('tiny-6', 'tiny')}",
        f"running on {six}",
    ]
    assert len(said) == 6
    assert shown(ended.out).splitlines() == [
        "tiny with tinyextra>=1, tinylib<1.5 clean after 1.0 s",
        "log       tinylib 1.4 tinyextra 1.0",
        "with      tinyextra 1.0 added",
        "versions  python N, torch 1.0, tinyextra 1.0",
        "logs      .repros/runs/RUN/tiny-with-tinyextra-1-tinylib-1.5",
        "",
        f"{six} clean after 1.0 s",
        "log       tinylib 1.4 tinyextra 1.0",
        "with      tinyextra 1.0 added, tinylib 1.4 instead of 1.6",
        "versions  python N, torch 1.0, tinyextra 1.0, tinylib 1.4",
        "logs      .repros/runs/RUN/tiny-6-with-tinyextra-1-tinylib-1.5",
    ]
    environments = ["tiny-6-with-tinyextra-1-tinylib-1.5", "tiny-with-tinyextra-1-tinylib-1.5"]
    assert made() == environments
    again = try_tiny(*words, "--json")
    assert not re.search("to be made|making", again.err)
    assert made() == environments
    first, second = again.json["stacks"]
    assert first["stack"] == "tiny with tinyextra>=1, tinylib<1.5"
    assert (first["wanted"], second["wanted"]) == (["tinyextra>=1", "tinylib<1.5"],) * 2
    assert second["versions"] == {"torch": "1.0", "tinyextra": "1.0", "tinylib": "1.4"}
    assert second["changes"] == [
        {"package": "tinyextra", "version": "1.0", "instead_of": None},
        {"package": "tinylib", "version": "1.4", "instead_of": "1.6"},
    ]


@pytest.mark.slow
def test_what_is_lacking_is_named_with_the_option_that_adds_it(try_tiny: Try, write: Write, made: Made) -> None:
    write("lacks.py", "# /// script\n# dependencies = ['tinyextra[more]>=1,<2']\n# ///\nimport tinylib, yaml_free\n")
    ended = try_tiny("lacks.py", "--stack", "tiny")
    lacking = "tinyextra, which the script needs; --with 'tinyextra[more]>=1,<2' adds it"
    assert (ended.code, ended.err, made()) == (
        2,
        f"repros: the script ran nowhere: tiny lacks {lacking}.\n",
        [],
    )
    write("later.py", "import tinylib\ndef main():\n    import tinyextra.parts\nmain()\n")
    ended = try_tiny("later.py", "--stack", "tiny")
    assert ended.code == 1
    assert "\nnote      --with tinyextra adds it\n" in ended.out
    ended = try_tiny(
        "later.py", "--stack", "tiny", "--with", "tinyextra", "--json"
    )  # it is there, without such a module
    assert (ended.stack["signature"], ended.stack["lacks"]) == (
        "ModuleNotFoundError: No module named 'tinyextra.parts'; 'tinyextra' is not a package",
        [],
    )


@pytest.mark.slow
def test_affected_is_judged_by_the_versions_that_ran(try_tiny: Try, write: Write, here: Path) -> None:
    (here / "catalogue").mkdir()
    write("catalogue/entry.py", SCRIPT.replace('"tinylib<9"', '"tinylib<1.4"'))
    write("train.py", "import tinylib\ntinylib.run()\n")
    states = {}
    for options in ((), ("--with", "tinylib==1.3")):
        ended = try_tiny("train.py", "--stack", "tiny", *options, "--catalogue", "catalogue", "--json")
        (candidate,) = ended.stack["match"]["candidates"]
        states[ended.stack["versions"]["tinylib"]] = candidate["affected"]["state"]
    assert states == {"1.4": "not affected", "1.3": "affected"}


@pytest.mark.slow
@pytest.mark.usefixtures("try_tiny")
def test_what_a_release_has_repaired_stays_of_a_reduced_script(
    write: Write, here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write("wrong.py", REPAIRED)
    words = ["reduce", "wrong.py", "--text", "it is wrong", "--minutes", "0.5", "--json"]
    assert main([*words, "--stack", "tiny", "--with", "tinylib==1.3", "--clean-with", "tinylib==1.6"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["stack"], found["clean_on"]) == ("tiny with tinylib==1.3", "tiny with tinylib==1.6")
    source = (here / "wrong.reduced.py").read_text()
    assert "version('tinylib') <" in source
    assert "unrelated" not in source
    assert main([*words, "--force", "--clean-with", "tiny lib"]) == 2
    assert capsys.readouterr().err.startswith("repros: --clean-with 'tiny lib' is not a requirement")


EXPECTED = "expected one such as torchmetrics==1.0.3."
UNREAD = "is not a requirement (Expected semicolon (after name with no version specifier) or end)"
NO_RELEASE = "there is no version of tinylib==9 and you require tinylib==9"
WAY_OUT = "name another release, or replace what does not fit with a further --with."


@pytest.mark.parametrize(
    ("wanted", "sentence"),
    [
        ("torch metrics", f"--with 'torch metrics' {UNREAD}; {EXPECTED}"),
        ("tinylib @ file:///tmp/it", f"--with 'tinylib @ file:///tmp/it' is an address, not a release; {EXPECTED}"),
        ("tinylib==9", f"tiny with tinylib==9 cannot be resolved: {NO_RELEASE}; {WAY_OUT}"),
    ],
)
def test_a_requirement_that_cannot_be_met(wanted: str, sentence: str, try_tiny: Try, write: Write, made: Made) -> None:
    write("train.py", "import tinylib\n")
    ended = try_tiny("train.py", "--stack", "tiny", "--with", wanted)
    assert (ended.code, ended.out, ended.err, made()) == (2, "", f"repros: {sentence}\n", [])
