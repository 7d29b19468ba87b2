"""Building the extension: once, by one of many processes, and with a helpful error where it cannot be built."""

from __future__ import annotations

import os
import re
import shutil
import signal
import stat
import subprocess
import sys
from importlib.util import find_spec, spec_from_file_location
from pathlib import Path
from typing import Any

import pytest

from repros.simulated_gpus import SimUnavailableError, build
from repros.simulated_gpus.operators_header import operators_header

pytestmark = [pytest.mark.one_release, pytest.mark.skipif(sys.platform == "win32", reason="not built for Windows")]
needs_torch = pytest.mark.skipif(find_spec("torch") is None, reason="runs in an environment with torch")

BUILD = "from repros.simulated_gpus import build; print(build.shared_object())"
# Records each call and creates its output, slowly enough for two builds to overlap.
COMPILER = """#!{python}
import sys, time
with open({calls!r}, "a") as calls:
    calls.write("call\\n")
time.sleep(0.5)
open(sys.argv[sys.argv.index("-o") + 1], "w").close()
"""


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setenv("REPROS_CACHE_DIR", str(tmp_path / "cache"))
    return tmp_path / "cache"


def compiler(tmp_path: Path, text: Any) -> Any:
    path = tmp_path / "compiler"
    path.write_text(text.format(python=sys.executable, calls=str(tmp_path / "calls")))
    path.chmod(path.stat().st_mode | stat.S_IEXEC)
    return str(path)


@needs_torch
def test_many_processes_at_once_build_once(
    cache: Any, root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CXX", compiler(tmp_path, COMPILER))
    environment = {**os.environ, "PYTHONPATH": str(root)}
    builders = [
        subprocess.Popen([sys.executable, "-c", BUILD], env=environment, stdout=subprocess.PIPE, text=True)
        for _ in range(4)
    ]
    made = {builder.communicate(timeout=120)[0].strip() for builder in builders}
    assert [builder.returncode for builder in builders] == [0] * 4
    assert len(made) == 1
    assert (tmp_path / "calls").read_text().count("call") == 3  # two units and the link, by one process
    folder = cache / "sim"
    left = sorted(path.name for path in next(folder.iterdir()).iterdir())
    name = Path(made.pop()).name
    assert left == sorted(["lock", name, f"{name}.sha256"])


@needs_torch
def test_what_is_built_is_not_built_again(
    cache: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("CXX", compiler(tmp_path, COMPILER))
    first = build.shared_object()
    assert "compiling the simulated GPUs for torch" in capsys.readouterr().err
    assert build.shared_object() == first
    assert capsys.readouterr().err == ""
    assert (tmp_path / "calls").read_text().count("call") == 3


@needs_torch
@pytest.mark.parametrize("damage", [b"", b"garbage", None])
def test_a_damaged_one_is_built_again(damage: Any, cache: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # Two kilobytes, so that a half of it differs from the whole.
    monkeypatch.setenv("CXX", compiler(tmp_path, COMPILER.replace('"w").close()', '"w").write("x" * 2048)')))
    built = build.shared_object()
    whole = built.read_bytes()
    for file in (built, built.with_name(f"{built.name}.sha256")):
        calls = (tmp_path / "calls").read_text().count("call")
        file.write_bytes(file.read_bytes()[:1000] if damage is None and file == built else damage or b"")
        assert build.shared_object() == built
        assert built.read_bytes() == whole
        assert (tmp_path / "calls").read_text().count("call") == calls + 3
    built.with_name(f"{built.name}.sha256").unlink()
    assert build.shared_object().read_bytes() == whole


@needs_torch
def test_a_copied_cache_serves_the_same_torch_alone(
    cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CXX", compiler(tmp_path, COMPILER))
    built = build.shared_object()
    other = tmp_path / "other"
    shutil.copytree(cache, other)
    monkeypatch.setenv("REPROS_CACHE_DIR", str(other))
    assert build.shared_object() == other / built.relative_to(cache)
    assert (tmp_path / "calls").read_text().count("call") == 3  # those of the first
    torch = build.installed_torch()
    elsewhere = tmp_path / "torch"
    elsewhere.symlink_to(torch.root)
    monkeypatch.setattr(build, "installed_torch", lambda: torch._replace(root=elsewhere))
    assert build.shared_object() == other / built.relative_to(cache)
    monkeypatch.setattr(build, "installed_torch", lambda: torch._replace(build="another"))
    assert build.shared_object().parent != other / built.parent.relative_to(cache)
    assert (tmp_path / "calls").read_text().count("call") == 6


@needs_torch
def test_what_a_killed_build_left_is_removed(cache: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CXX", compiler(tmp_path, COMPILER))
    built = build.shared_object()
    built.unlink()
    (built.parent / "tmpkilled").mkdir()
    (built.parent / "tmpkilled" / "core.cpp").touch()
    build.shared_object()
    assert sorted(path.name for path in built.parent.iterdir()) == sorted(["lock", built.name, f"{built.name}.sha256"])


# Ends the build that waits for it.
HANGING = """#!{python}
import os, signal, time
open({calls!r}, "a").close()
os.kill(os.getppid(), signal.SIGTERM)
time.sleep(600)
"""


@needs_torch
def test_a_build_that_is_ended_leaves_nothing(cache: Path, root: Path, tmp_path: Path) -> None:
    environ = {**os.environ, "PYTHONPATH": str(root), "CXX": compiler(tmp_path, HANGING)}
    command = [sys.executable, "-c", BUILD]
    ended = subprocess.run(command, env=environ, stderr=subprocess.PIPE, text=True, timeout=60, check=False)
    assert ended.returncode == -signal.SIGTERM
    assert ended.stderr.startswith("compiling the simulated GPUs")
    assert (tmp_path / "calls").exists()
    folder = next((cache / "sim").iterdir())
    assert not list(folder.glob("tmp*"))
    environ["CXX"] = compiler(tmp_path, COMPILER)
    again = subprocess.run(command, env=environ, stdout=subprocess.PIPE, text=True, timeout=60, check=True)
    assert Path(again.stdout.strip()).parent == folder


@needs_torch
def test_a_process_that_waits_for_a_build_says_so(cache: Path, root: Path, tmp_path: Path) -> None:
    slow = COMPILER.replace("sleep(0.5)", "sleep(3)")
    environ = {**os.environ, "PYTHONPATH": str(root), "CXX": compiler(tmp_path, slow)}
    builders = [
        subprocess.Popen([sys.executable, "-c", BUILD], env=environ, stderr=subprocess.PIPE, text=True)
        for _ in range(2)
    ]
    messages = sorted(builder.communicate(timeout=120)[1] for builder in builders)
    assert messages[0].startswith("compiling the simulated GPUs for torch")
    assert messages[1].startswith("waiting for another process that compiles the simulated GPUs for torch")


@needs_torch
def test_a_build_that_fails_keeps_its_log(cache: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CXX", compiler(tmp_path, "#!/bin/sh\necho no such header\nexit 1\n"))
    with pytest.raises(SimUnavailableError, match="did not compile") as raised:
        build.shared_object()
    log = str(raised.value).rpartition(" ")[2]
    assert "no such header" in Path(log).read_text()
    assert "\n" not in str(raised.value)


@needs_torch
def test_without_a_compiler(cache: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("CXX", raising=False)
    with pytest.raises(SimUnavailableError) as raised:
        build.shared_object()
    assert str(raised.value) == (
        "the simulated accelerator needs a C++ compiler and found none of g++, c++, clang++;"
        " install one (apt-get install g++)"
    )
    monkeypatch.setenv("CXX", "/nowhere/g++")
    with pytest.raises(SimUnavailableError, match=r"found none of \$CXX \(/nowhere/g\+\+\)"):
        build.shared_object()


def torch_of(version: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = tmp_path / "torch"
    package.mkdir()
    (package / "__init__.py").touch()
    (package / "version.py").write_text(f"__version__ = '{version}'\ngit_version = 'abc'\n")
    spec = spec_from_file_location("torch", package / "__init__.py")
    monkeypatch.setattr("importlib.util.find_spec", lambda name: spec)


def test_without_torch(cache: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(SimUnavailableError, match="needs torch, which this environment does not have"):
        build.shared_object()


def test_with_a_torch_too_old(cache: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    torch_of("1.13.1", tmp_path, monkeypatch)
    with pytest.raises(SimUnavailableError, match=r"needs torch 2\.0 or newer, and this environment has 1\.13\.1"):
        build.shared_object()


def test_with_a_torch_without_headers(cache: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    torch_of("2.1.0", tmp_path, monkeypatch)
    without_header = r"torch 2\.1\.0 comes without .*Tensor\.h; install torch from its wheel"
    with pytest.raises(SimUnavailableError, match=without_header):
        build.shared_object()


def test_on_windows(cache: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "win32")
    with pytest.raises(SimUnavailableError, match="not for Windows"):
        build.shared_object()


def test_a_cache_that_cannot_be_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if find_spec("torch") is None:
        pytest.skip("runs in an environment with torch")
    (tmp_path / "file").touch()
    monkeypatch.setenv("REPROS_CACHE_DIR", str(tmp_path / "file"))
    with pytest.raises(SimUnavailableError, match="set REPROS_CACHE_DIR to a writable folder"):
        build.shared_object()


@pytest.mark.parametrize(
    ("chosen", "folder"),
    [("~/kept", "home/kept"), ("kept", "work/kept"), ("/kept", "/kept"), ("", "home/.cache/repros")],
)
def test_the_cache_folder_is_absolute(
    chosen: str, folder: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "work").mkdir()
    monkeypatch.chdir(tmp_path / "work")
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("REPROS_CACHE_DIR", chosen)
    assert build._cache_folder() == tmp_path / folder


OPERATORS = """
# A comment

- func: add.out(Tensor self, Tensor other, *, Tensor(a!) out) -> Tensor(a!)
  device_check: NoCheck   # TensorIterator
  structured: True
  structured_inherits: TensorIteratorBase
  dispatch:
    CPU, CUDA: add_out

- func: add(Tensor self, Tensor other) -> Tensor
  device_check: NoCheck
  structured_delegate: add.out

- func: sum.out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)
  device_check: NoCheck
  structured: True
  dispatch:
    CPU, CUDA: sum_out

- func: sum(Tensor self) -> Tensor
  structured_delegate: sum.out

- func: addr(Tensor self, Tensor vec1, Tensor vec2) -> Tensor
  variants: function, method
  dispatch:
    CPU, CUDA: addr
    CompositeExplicitAutograd: math_addr

- func: shuffle(Tensor self) -> Tensor
  dispatch:
    CPU: shuffle_cpu
    CompositeExplicitAutograd: math_shuffle
"""


def test_operators_are_classified_by_pytorchs_list() -> None:
    header = operators_header(OPERATORS)
    arrays = {part.split("[")[0]: re.findall(r'"aten::(.+)"', part) for part in header.split("std::string_view ")[1:]}
    assert arrays == {
        "unchecked_operators": ["add.out", "add", "sum.out"],
        "operators_without_iterator": ["sum.out", "sum"],
        "operators_with_composite_for_others": ["addr"],
        "structured_operators": ["add.out", "add", "sum.out", "sum"],
    }
