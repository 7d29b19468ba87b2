"""Each kind of file, parsed as its tools mean it; uv writes the locks of these tests itself."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from packaging.specifiers import SpecifierSet
from uv import find_uv_bin

from repros.advise.audit.sources import DEFAULT_FILES, find_source, read_source
from repros.advise.audit.sources.environment import environment_subject
from repros.advise.audit.subject import Subject
from repros.model.affected import Overlap
from repros.model.errors import ReprosError
from tests import factories
from tests.tiny_stack import write_wheel


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def written(name: str, text: str) -> Path:
    file = Path(name)
    file.parent.mkdir(exist_ok=True)
    file.write_text(text, encoding="utf-8")
    return file


def summary(subject: Subject) -> dict[str, list[str]]:
    return {
        name: [
            f"{constraint.raw} {constraint.location}{' if ' + constraint.marker if constraint.marker else ''}"
            for constraint in constraints
        ]
        for name, constraints in subject.constraints.items()
    }


REQUIREMENTS = """\
# a comment
-r base/more.txt
-c constraints.txt
--index-url https://example.org/simple
torch==2.1.2 ; python_version < "3.12"
torch==2.3.0 ; python_version >= "3.12"
Accelerate[x]>=0.20,<1 \\
    --hash=sha256:aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa
numpy
-e git+https://example.org/own@main#egg=own
torchmetrics @ https://example.org/torchmetrics.whl
./folder
bitsandbytes ===0.43 what
"""


def test_requirements_with_everything_that_pip_allows() -> None:
    written("base/more.txt", "lightning==2.1.3\n")
    written("constraints.txt", "numpy<2\n")
    subject = read_source(written("requirements.txt", REQUIREMENTS))
    assert summary(subject) == {
        "lightning": ["2.1.3 base/more.txt:1"],
        "numpy": ["<2 constraints.txt:1", "any release requirements.txt:9"],
        "torch": [
            '2.1.2 requirements.txt:5 if python_version < "3.12"',
            '2.3.0 requirements.txt:6 if python_version >= "3.12"',
        ],
        "accelerate": [">=0.20,<1 requirements.txt:7"],
        "own": ["from a URL requirements.txt:10"],
        "torchmetrics": ["from a URL requirements.txt:11"],
    }
    assert [constraint.required for constraint in subject.constraints["numpy"]] == [False, True]
    assert not subject.complete
    assert [line.split()[:2] for line in subject.unparsed] == [
        ["requirements.txt:12:", "./folder"],
        ["requirements.txt:13:", "'bitsandbytes"],
    ]


def test_a_line_that_a_pin_meets_says_nothing_more() -> None:
    written("constraints.txt", "torch==2.1.2\nnumpy==1.26\n")
    text = "-c constraints.txt\ntorch\ntorchmetrics==0.11.1\ntorchmetrics[image]>=0.11\nlightning==2.4\nlightning<2.4\n"
    subject = read_source(written("requirements.txt", text))
    assert summary(subject) == {
        "torch": ["2.1.2 constraints.txt:1"],
        "numpy": ["1.26 constraints.txt:2"],
        "torchmetrics": ["0.11.1 requirements.txt:3"],
        "lightning": ["2.4 requirements.txt:5", "<2.4 requirements.txt:6"],
    }
    assert [subject.constraints[name][0].required for name in ("torch", "numpy")] == [True, False]


PYPROJECT = """\
[project]
name = "own"
requires-python = ">=3.11"
dependencies = [
    "torch>=2.1",
    "lightning==2.1.3 ; sys_platform == 'linux'",
    "not a requirement",
]
[project.optional-dependencies]
quantised = ["bitsandbytes"]
[dependency-groups]
dev = ["torch==2.2.0", { include-group = "more" }]
more = ["accelerate @ https://example.org/accelerate.whl"]
"""


def test_dependencies_extras_and_groups_of_a_project() -> None:
    subject = read_source(written("pyproject.toml", PYPROJECT))
    assert summary(subject) == {
        "torch": [">=2.1 pyproject.toml:5", "2.2.0 pyproject.toml:12 if group == 'dev'"],
        "lightning": ['2.1.3 pyproject.toml:6 if sys_platform == "linux"'],
        "bitsandbytes": ["any release pyproject.toml:10 if extra == 'quantised'"],
        "accelerate": ["from a URL pyproject.toml:13 if group == 'more'"],
        "python": [">=3.11 pyproject.toml:3"],
    }
    (unparsed,) = subject.unparsed
    assert unparsed.startswith("pyproject.toml:7: 'not a requirement' ")
    assert not subject.complete


def test_what_uv_resolves_otherwise_than_the_dependencies_say(here: Path) -> None:
    project = written(
        "pyproject.toml",
        """
        [project]
        dependencies = ["torch>=2.1", "lightning==2.4.0", "accelerate==1.0", "peft==0.9"]
        [tool.uv]
        override-dependencies = ["Lightning==2.0.9"]
        constraint-dependencies = ["torch<2.3"]
        [tool.uv.sources]
        accelerate = { git = "https://example.org/accelerate" }
        peft = { index = "own" }
        """,
    )
    found = read_source(project).constraints
    assert {name: [(one.raw, one.required) for one in own] for name, own in found.items()} == {
        "torch": [(">=2.1", True), ("<2.3", False)],
        "lightning": [("2.0.9", True)],
        "accelerate": [("from tool.uv.sources", True)],
        "peft": [("0.9", True)],
    }
    wrong = '[project]\ndependencies = []\n[tool.uv]\noverride-dependencies = ["not a name"]\n'
    with pytest.raises(ReprosError, match=r"^pyproject\.toml: 'not a name' "):
        read_source(written("pyproject.toml", wrong))


def test_a_package_without_metadata_is_unknown(tmp_path: Path) -> None:
    folder = tmp_path / "lib/python3.11/site-packages"
    (folder / "torch").mkdir(parents=True)
    environment = factories.environment(versions={"lightning": "2.4.0"}, python=tmp_path / "bin/python")
    subject = environment_subject(environment, ["torch", "lightning", "peft"])
    (unknown,) = subject.constraints["torch"]
    assert (unknown.version, unknown.releases, unknown.raw) == (None, None, f"without metadata in {folder}")
    assert subject.overlap_with("torch", SpecifierSet("<2.4")) is Overlap.UNKNOWN
    assert subject.overlap_with("peft", SpecifierSet("<2.4")) is Overlap.NONE


@pytest.mark.parametrize(
    ("metadata", "raw", "version"),
    [
        ({"torch-2.4.0": ""}, "without a version in {folder}", None),
        ({"~orch-2.4.0": "2.4.0"}, "with the metadata of an interrupted installation, {folder}/~orch-2.4.0", None),
        ({"~orch-2.4.0": "2.4.0", "torch-2.6.0": "2.6.0"}, "2.6.0", "2.6.0"),
        ({"~orch-2.4.0": "2.4.0", "torch-2.6.0": ""}, "with the metadata of an interrupted", None),
    ],
    ids=["no version", "leftover", "both", "leftover and no version"],
)
def test_damaged_metadata_names_no_release(
    metadata: dict[str, str], raw: str, version: str | None, tmp_path: Path
) -> None:
    folder = tmp_path / "lib/python3.11/site-packages"
    (folder / "torch").mkdir(parents=True)
    for name, written_version in metadata.items():
        info = folder / f"{name}.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Name: torch\n{f'Version: {written_version}' if written_version else ''}\n")
    (listed, *_) = metadata.values()  # as its interpreter lists them
    environment = factories.environment(versions={"torch": listed}, python=tmp_path / "bin/python")
    subject = environment_subject(environment, ["torch"])
    (found,) = subject.constraints["torch"]
    assert found.raw.startswith(raw.format(folder=folder))
    assert (str(found.version) if found.version else None) == version
    assert bool(subject.unparsed) is (version is None)
    (folder / "torch").rmdir()  # nothing to import: what is left over is absent
    gone = environment_subject(environment, ["torch"]).constraints
    assert ("torch" in gone) is ("torch-2.4.0" in metadata or version == "2.6.0")


def test_a_package_with_the_metadata_of_two_releases_is_unknown(tmp_path: Path) -> None:
    folder = tmp_path / "lib/python3.11/site-packages"
    for name, version in (("torch", "2.4.0"), ("torch", "2.13.0"), ("lightning", "2.4.0")):
        info = folder / f"{name}-{version}.dist-info"
        info.mkdir(parents=True)
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n", "utf-8")
    (folder / "lightning-2.0.0.dist-info").mkdir()  # without metadata, which an interrupted removal leaves
    (folder / "lightning-2.1.0.dist-info").mkdir()
    (folder / "lightning-2.1.0.dist-info/METADATA").write_bytes(b"\x97 is no UTF-8")
    versions = {"torch": "2.13.0", "lightning": "2.4.0"}
    environment = factories.environment(versions=versions, python=tmp_path / "bin/python")
    subject = environment_subject(environment, ["torch", "lightning"])
    (unknown,) = subject.constraints["torch"]
    assert unknown.raw == "with the metadata of several releases, 2.13.0 and 2.4.0"
    assert subject.overlap_with("torch", SpecifierSet("<2.11")) is Overlap.UNKNOWN
    assert subject.overlap_with("lightning", SpecifierSet("<2.5")) is Overlap.ALL


def test_dynamic_dependencies_are_reported_as_unparsed() -> None:
    subject = read_source(written("pyproject.toml", '[project]\nname = "x"\ndynamic = ["dependencies"]\n'))
    (unparsed,) = subject.unparsed
    assert unparsed.startswith("pyproject.toml: ")
    assert (subject.constraints, subject.complete) == ({}, False)


@pytest.fixture
def locked(here: Path) -> Path:
    """A project that depends on two tiny wheels, and the environment variables for uv to lock it."""
    for name in ("torch", "lightning"):
        write_wheel(here, name)
    dependencies = '["torch", "lightning; python_version >= \'3.12\'"]'
    written(
        "pyproject.toml",
        f'[project]\nname = "own"\nversion = "1"\nrequires-python = ">=3.11"\ndependencies = {dependencies}\n',
    )
    return here


def uv(folder: Path, *words: str) -> None:
    environ = {name: value for name, value in os.environ.items() if not name.startswith(("UV_", "PYTHON"))}
    settings = {"UV_CACHE_DIR": str(folder / "cache"), "UV_PYTHON": sys.executable}
    offline = ("--no-index", "--find-links", str(folder), "--offline", "--quiet")
    subprocess.run([find_uv_bin(), *words, *offline], cwd=folder, env=environ | settings, timeout=60, check=True)


def test_a_lock_as_uv_writes_it(locked: Path) -> None:
    uv(locked, "lock")
    subject = read_source(Path("uv.lock"))
    assert subject.complete
    lines = Path("uv.lock").read_text(encoding="utf-8").splitlines()
    for name in ("torch", "lightning"):
        (constraint,) = subject.constraints[name]
        assert str(constraint.version) == "1.0"
        assert lines[constraint.location.line - 1] == f'name = "{name}"'


def test_a_pylock_as_uv_writes_it(locked: Path) -> None:
    uv(locked, "export", "--format", "pylock.toml", "-o", "pylock.toml")
    subject = read_source(Path("pylock.toml"))
    assert subject.complete
    lines = Path("pylock.toml").read_text(encoding="utf-8").splitlines()
    (torch,) = subject.constraints["torch"]
    assert (str(torch.version), lines[torch.location.line - 1]) == ("1.0", 'name = "torch"')
    assert subject.constraints["lightning"][0].marker


def test_several_releases_of_one_package_have_a_line_each() -> None:
    package = '[[package]]\nname = "torch"\nversion = "{}"\nresolution-markers = ["{}"]\n'
    text = "version = 1\n" + package.format("2.13.0", "a") + package.format("2.13.0+cpu", "b")
    assert summary(read_source(written("uv.lock", text))) == {
        "torch": ["2.13.0 uv.lock:3 if a", "2.13.0+cpu uv.lock:7 if b"]
    }


def test_an_environment_is_complete() -> None:
    subject = environment_subject(factories.environment(versions={"torch": "2.1.2+cu121", "odd": "unknown"}))
    assert subject.complete
    assert summary(subject) == {"torch": ["2.1.2+cu121 "], "odd": ["unknown "], "python": ["3.11.9 "]}
    assert subject.constraints["odd"][0].version is None


def test_the_most_exact_file_of_a_project_is_found(here: Path) -> None:
    with pytest.raises(ReprosError, match=", ".join(DEFAULT_FILES)):
        find_source(here)
    for name in reversed(DEFAULT_FILES):
        written(name, "")
        assert find_source(here).name == name


@pytest.mark.parametrize("name", ["poetry.lock", "uv.lock", "pylock.toml", "pyproject.toml", "absent.txt"])
def test_other_files_are_refused(name: str) -> None:
    if name != "absent.txt":
        written(name, "x = 1\n")
    with pytest.raises(ReprosError, match=f"^{name} "):
        read_source(Path(name))
    if name.endswith(".toml"):
        with pytest.raises(ReprosError, match=f"^{name}:? "):
            read_source(written(name, "["))


@pytest.mark.parametrize("text", ["lightning=2.4.0", "torch==2.4.1\nlightning = 2.4.0  # ours", "lightning=2.4.0 ; x"])
def test_a_pin_with_one_equals_sign_is_refused(text: str) -> None:
    file = written("requirements.txt", f"{text}\n")
    line = text.count("\n") + 1
    with pytest.raises(
        ReprosError, match=rf"^requirements\.txt:{line}: 'lightning=2\.4\.0' .* 'lightning==2\.4\.0'\.$"
    ):
        read_source(file)
    with pytest.raises(ReprosError, match=rf"^requirements\.txt:{line}: "):
        read_source(written("more-requirements.txt", "-r requirements.txt\nnumpy\n"))


def test_other_lines_that_are_no_requirements_are_noted() -> None:
    text = "torch==2.4.1\n-e .\n--find-links=2.4\nhttps://example.org/a.whl?x=1\nlightning 2.4.0\n"
    assert "torch" in read_source(written("requirements.txt", text)).constraints
    assert read_source(written("log.txt", "a log\nbatch=32\nlr=0.1\ntorch\n")).unparsed


def test_a_file_that_is_not_text_is_refused(here: Path) -> None:
    (here / "requirements.txt").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(ReprosError, match=r"^requirements\.txt .*UTF-8"):
        read_source(Path("requirements.txt"))
