"""Files that no project has: `repros audit` ends in time, with a sentence, and with exit code 1 for "affected" only."""

from __future__ import annotations

import json
import os
import socket
from pathlib import Path

import pytest
from jsonschema import Draft4Validator, FormatChecker

from repros.advise.audit.formats.sarif import _uri
from repros.advise.audit.sources import read_source
from repros.cli import main
from repros.model.errors import ReprosError

HERE = Path(__file__).parent
HUGE = "9" * 5_000


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def audit(name: str, content: str | bytes, capsys: pytest.CaptureFixture[str], *options: str) -> tuple[int, str, str]:
    Path(name).write_bytes(content if isinstance(content, bytes) else content.encode("utf-8"))
    code = main(["audit", name, *options])  # what takes far too long meets the suite's time limit for a test
    out, err = capsys.readouterr()
    assert "Traceback" not in out + err
    return code, out, err


def test_files_that_include_one_another_are_read_once(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = audit("self.txt", "-r self.txt\n-r ./self.txt\ntorch==2.1\n-r self.txt\n", capsys, "--json")
    constraints = [
        (one["package"], constraint["raw"], constraint["file"], constraint["line"])
        for finding in json.loads(out)["findings"]
        for one in finding["conditions"]
        for constraint in one["constraints"]
    ]
    assert (code, {*constraints}) == (1, {("torch", "2.1", "self.txt", 3)})
    for level in range(6):
        Path(f"l{level}.txt").write_text(f"-r l{level + 1}.txt\n" * 10)
    Path("l6.txt").write_text("torch==2.1\n-c l0.txt\n")
    subject = read_source(Path("l0.txt"))
    assert [(constraint.raw, constraint.required) for constraint in subject.constraints["torch"]] == [
        ("2.1", True),
        ("2.1", False),
    ]


def test_a_long_chain_of_files_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    for level in range(2_000):
        Path(f"c{level}.txt").write_text(f"-r c{level + 1}.txt\n")
    code, out, err = audit("start.txt", "-r c0.txt\n", capsys)
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert err.startswith("repros: c49.txt:1: ")


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("missing.txt", "No such file or directory"),
        ("folder", "repros: folder "),
        ("x" * 300 + ".txt", "File name too long"),
        ("latin.txt", "UTF-8"),
        ("pipe.txt", "repros: pipe.txt "),
        ("/dev/zero", "repros: /dev/zero "),
        ("a\0b", "null byte"),
    ],
)
def test_an_include_that_cannot_be_read_is_refused(
    name: str, why: str, here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (here / "folder").mkdir()
    (here / "latin.txt").write_bytes(b"# caf\xe9\n")
    os.mkfifo(here / "pipe.txt")
    for option in ("-r", "-c"):
        code, out, err = audit("requirements.txt", f"torch==2.1\n{option} {name}\n", capsys)
        assert (code, out, err.count("\n")) == (2, "", 1)
        assert why in err


@pytest.mark.parametrize("name", ["../theirs/credentials", "/proc/self/environ", "link.txt"])
@pytest.mark.parametrize("form", ["text", "markdown", "json", "sarif"])
def test_no_line_of_a_file_elsewhere_is_quoted(
    name: str, form: str, here: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (here / "theirs").mkdir()
    (here / "theirs/credentials").write_text("KEY=dear-diary of mine\n- dear-diary\n./dear-diary.whl\n")
    (here / "project").mkdir()
    monkeypatch.chdir(here / "project")
    Path("link.txt").symlink_to("../theirs/credentials")
    options = [] if form == "text" else ["--format", form]
    code, out, err = audit("requirements.txt", f"torch==2.1\n-r {name}\nno requirement here\n", capsys, *options)
    if name.startswith("/proc"):
        secrets = Path(name).read_bytes().split(b"\0")  # those that this process was started with
        assert not [one for one in secrets if len(one) > 30 and one[:30].decode() in out + err]
    assert (code, "dear-diary" in out + err) == (1, False)
    if form != "sarif":  # which has no unparsed lines
        assert "no requirement here" in out


def test_the_file_itself_may_be_a_link_and_is_not_quoted_either(
    here: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (here / "credentials").write_text("torch==2.1\nKEY=dear-diary\n")
    (here / "project").mkdir()
    monkeypatch.chdir(here / "project")
    Path("requirements.txt").symlink_to("../credentials")
    assert main(["audit", "requirements.txt"]) == 1
    out, err = capsys.readouterr()
    assert "dear-diary" not in out + err
    assert "requirements.txt:2: no requirement" in " ".join(out.split())


@pytest.mark.parametrize("item", ["a{}'", "w{}!", "w{}"])
@pytest.mark.parametrize("filling", ["\t", " ", "[]"])
def test_a_long_item_of_conda_is_named_in_time(item: str, filling: str, capsys: pytest.CaptureFixture[str]) -> None:
    text = f"name: a\ndependencies:\n  - pytorch=2.1.0\n  - {item.format(filling * 40_000)}x\n"
    code, out, _ = audit("environment.yml", text, capsys)
    assert (code, "environment.yml:4: " in out) == (1, True)


def test_an_address_is_not_fetched(capsys: pytest.CaptureFixture[str]) -> None:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        listener.settimeout(0.1)
        address = f"http://127.0.0.1:{listener.getsockname()[1]}/more.txt"
        code, out, _ = audit("requirements.txt", f"torch==2.1.2\nlightning==2.1.3\n-r {address}\n", capsys)
        with pytest.raises(TimeoutError):
            listener.accept()
    assert (code, f"'{address}'" in " ".join(out.split())) == (1, True)


@pytest.mark.parametrize("name", ["requirements.txt", "pyproject.toml", "uv.lock", "pylock.toml"])
def test_only_regular_files_of_a_reasonable_size_are_read(
    name: str, here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    os.mkfifo(here / name)
    assert main(["audit", name]) == 2
    assert capsys.readouterr().err.startswith(f"repros: {name} ")
    (here / name).unlink()
    (here / name).symlink_to("/dev/zero")
    assert main(["audit", name]) == 2
    assert capsys.readouterr().err.startswith(f"repros: {name} ")
    (here / name).unlink()
    with (here / name).open("wb") as file:
        file.truncate(10 * 2**30)
    assert main(["audit", name]) == 2
    assert "10,737,418,240 bytes" in capsys.readouterr().err


PROJECT = '[project]\nname = "x"\n'
WRONG = {
    "dependencies = 3": PROJECT + "dependencies = 3\n",
    "a number in dependencies": PROJECT + "dependencies = [1]\n",
    "a list in dependencies": PROJECT + "dependencies = [['torch']]\n",
    "optional-dependencies is a list": PROJECT + "optional-dependencies = ['x']\n",
    "an extra is a number": PROJECT + "optional-dependencies = {a = 1}\n",
    "a group is a number": PROJECT + "[dependency-groups]\na = 1\n",
    "a number in a group": PROJECT + "[dependency-groups]\na = [1]\n",
    "dynamic is a number": PROJECT + "dynamic = 1\n",
    "project is a text": 'project = "x"\n',
    "groups are a text": 'dependency-groups = "x"\n',
    "tool is a text": 'tool = "x"\n[project]\nname = "x"\n',
    "tool.repros is a text": PROJECT + '[tool]\nrepros = "x"\n',
    "tool.repros.audit is a list": PROJECT + "[tool.repros]\naudit = [1]\n",
    "an ignore of 200,000 characters": PROJECT
    + f"[tool.repros.audit]\nignore = [{{ id = '{'x' * 200_000}', reason = 'y', until = 2030-01-01 }}]\n",
    "arrays within arrays": "a = " + "[" * 50_000,
    "tables within tables": "a" + ".a" * 50_000 + " = 1",
    "a number of 5,000 digits": f"a = {HUGE}",
}


@pytest.mark.parametrize("case", WRONG)
def test_a_project_of_wrong_types_is_refused_in_a_sentence(case: str, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = audit("pyproject.toml", WRONG[case], capsys)
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert len(err) < 2_500, "the names of all failures, and no more"


LOCK = "version = 1\n"
WRONG_LOCKS = {
    "a text among the packages": LOCK + 'package = ["x"]\n',
    "a number among the packages": LOCK + "package = [1]\n",
    "markers are a number": LOCK + '[[package]]\nname = "torch"\nversion = "2.1"\nresolution-markers = 1\n',
    "a number among the markers": LOCK + '[[package]]\nname = "torch"\nversion = "2.1"\nresolution-markers = [1]\n',
    "a version is a number": LOCK + '[[package]]\nname = "torch"\nversion = 2.1\n',
    "a name is a table": LOCK + '[[package]]\nname = {}\nversion = "2.1"\n',
}


@pytest.mark.parametrize("case", WRONG_LOCKS)
def test_a_lock_of_wrong_types_is_refused_in_a_sentence(case: str, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = audit("uv.lock", WRONG_LOCKS[case], capsys)
    assert (code, out, err.count("\n")) == (2, "", 1)


@pytest.mark.parametrize(
    "lock",
    [
        "lock-version = '1.0'\ncreated-by = 'x'\npackages = [1]\n",
        "lock-version = '1.0'\ncreated-by = 'x'\npackages = 'x'\n",
        f"lock-version = '1.0'\ncreated-by = 'x'\n[[packages]]\nname = 'torch'\nversion = '{HUGE}'\n",
        f"lock-version = '1.0'\ncreated-by = 'x'\n[[packages]]\nname = 'torch'\nmarker = '{'(' * 5000}'\n",
        "lock-version = '1.0'\ncreated-by = 'x'\n[[packages]]\nname = 'torch'\nmarker = 'python_version <'\n",
    ],
)
def test_a_pylock_of_wrong_types_is_refused_in_a_sentence(lock: str, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = audit("pylock.toml", lock, capsys)
    assert (code, out, err.count("\n")) == (2, "", 1)


EXCESSIVE = {
    "200 specifiers": "torch" + ",".join(f"!=1.{n}" for n in range(200)),
    "3,000 specifiers": "torch" + ",".join(f"!=1.{n}" for n in range(3_000)),
    "a version of 5,000 digits": f"torch=={HUGE}",
    "a marker of 20,000 parts": "torch==2.1 ; " + " or ".join(['python_version < "3.12"'] * 20_000),
    "parentheses within parentheses": "torch==2.1 ; " + "(" * 900 + 'python_version < "3.12"' + ")" * 900,
}


@pytest.mark.parametrize("case", EXCESSIVE)
def test_an_excessive_requirement_is_not_understood(case: str, capsys: pytest.CaptureFixture[str]) -> None:
    text = EXCESSIVE[case]
    code, out, err = audit("requirements.txt", text, capsys)
    stated = text.startswith("torch==2.1")  # a text that states a release, although no requirement
    assert (code, bool(out), len(err.splitlines())) == ((1, True, 0) if stated else (2, False, 1))
    assert len(err) < 1_000
    projects = {
        "requirements.txt": f"numpy\n{text}",
        "pyproject.toml": f"{PROJECT}dependencies = ['{text}']\n",
    }
    for name, content in projects.items():
        code, out, err = audit(name, content, capsys)
        assert (code, err) == (0, "")
        assert json.loads(audit(name, content, capsys, "--json")[1])["unparsed"]
        assert len(out) < 20_000


def test_many_constraints_of_one_package_are_counted(capsys: pytest.CaptureFixture[str]) -> None:
    lines = "".join(f"torch==2.{n % 9}.{n} ; python_version < '3.{12 + n % 7}'\n" for n in range(1_000))
    code, out, _ = audit("requirements.txt", lines, capsys, "--all", "--verbose")
    assert code in {0, 1}
    assert " more " in " ".join(out.split())
    assert len(out) < 200_000, "most of it about the 177 failures, not about a thousand lines for each"


@pytest.mark.parametrize("encoding", ["foo", "rot13", "utf-16", "base64", "undefined"])
def test_a_coding_comment_of_an_unknown_encoding(encoding: str, capsys: pytest.CaptureFixture[str]) -> None:
    code, _, err = audit("requirements.txt", f"# -*- coding: {encoding} -*-\ntorch==2.1\n", capsys)
    assert code in {0, 1, 2}
    assert (code == 2) == (err != "")
    assert err.count("\n") <= 1


@pytest.mark.parametrize(
    "name", ["s p#%zz/r\u00e9q[1].txt", "a/../b?c.txt", "../up:.txt", "/absolute/x.txt", "byte\udcff"]
)
def test_a_sarif_reference_is_a_uri_reference(name: str) -> None:
    schema = json.loads((HERE / "sarif-schema-2.1.0.json").read_text(encoding="utf-8"))
    location = {"definitions": schema["definitions"], "$ref": "#/definitions/artifactLocation"}
    formats = FormatChecker()
    assert "uri-reference" in formats.checkers, "jsonschema needs rfc3986-validator for this format"
    checker = Draft4Validator(location, format_checker=formats)
    uri = _uri(name)
    assert not list(checker.iter_errors({"uri": uri}))
    assert uri.isascii()
    assert "/../" not in uri


def test_a_sarif_log_of_a_file_with_an_odd_name(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (here / "s p#%zz").mkdir()
    name = "s p#%zz/r\u00e9q[1].txt"
    code, out, _ = audit(name, "torch==2.1.2\nlightning==2.1.3\n", capsys, "--format", "sarif")
    assert code == 1
    found = json.loads(out)["runs"][0]["results"][0]["locations"][0]["physicalLocation"]["artifactLocation"]["uri"]
    assert found == "s%20p%23%25zz/r%C3%A9q%5B1%5D.txt"


def test_a_long_name_is_cut_in_a_sentence(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["show", "x" * 200_000]) == 2
    assert len(capsys.readouterr().err) < 2_500, "the names of all failures, and no more"
    with pytest.raises(ReprosError):
        read_source(Path("nowhere/requirements.txt"))
