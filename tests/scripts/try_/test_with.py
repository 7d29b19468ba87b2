"""`repros try --with`: a script on stacks with packages replaced or added, made from wheels of a few bytes."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from syrupy.assertion import SnapshotAssertion

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
def test_each_stack_gets_an_environment_which_is_made_once(
    try_tiny: Try, write: Write, made: Made, sentences: SnapshotAssertion
) -> None:
    write("prints.py", PRINTS)
    words = ["prints.py", "--stack", "tiny", "--stack", "tiny-6", "--with", "tinyextra>=1", "--with", "tinylib<1.5"]
    ended = try_tiny(*words)
    assert ended.code == 0, ended.err
    assert shown(ended.out) == sentences
    environments = ["tiny-6-with-tinyextra-1-tinylib-1.5", "tiny-with-tinyextra-1-tinylib-1.5"]
    assert made() == environments
    again = try_tiny(*words, "--json")
    assert len(again.err.splitlines()) < len(ended.err.splitlines()), "there is nothing to make"
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
    assert (ended.code, made()) == (2, [])
    assert "--with 'tinyextra[more]>=1,<2'" in ended.err
    write("later.py", "import tinylib\ndef main():\n    import tinyextra.parts\nmain()\n")
    ended = try_tiny("later.py", "--stack", "tiny")
    assert ended.code == 1
    assert "\nnote      --with tinyextra " in ended.out
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
    words = ["reduce", "wrong.py", "--text", "it is wrong", "--minutes", "10", "--json"]
    assert main([*words, "--stack", "tiny", "--with", "tinylib==1.3", "--clean-with", "tinylib==1.6"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["stack"], found["clean_on"]) == ("tiny with tinylib==1.3", "tiny with tinylib==1.6")
    source = (here / "wrong.reduced.py").read_text()
    assert "version('tinylib') <" in source
    assert "unrelated" not in source
    assert main([*words, "--force", "--clean-with", "tiny lib"]) == 2
    assert capsys.readouterr().err.startswith("repros: --clean-with 'tiny lib' is not a requirement")


@pytest.mark.parametrize(
    ("wanted", "place"),
    [
        ("torch metrics", "--with 'torch metrics'"),
        ("tinylib @ file:///tmp/it", "--with 'tinylib @ file:///tmp/it'"),
        ("tinylib==9", "tiny with tinylib==9"),
    ],
)
def test_a_requirement_that_cannot_be_met(wanted: str, place: str, try_tiny: Try, write: Write, made: Made) -> None:
    write("train.py", "import tinylib\n")
    ended = try_tiny("train.py", "--stack", "tiny", "--with", wanted)
    assert (ended.code, ended.out, ended.err.count("\n"), made()) == (2, "", 1, [])
    assert ended.err.startswith(f"repros: {place} ")
