"""A probe's answer is kept, and each kind of change to the environment lets it be asked again."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import venv
from pathlib import Path

import pytest

import repros
from repros import simulated_gpus
from repros.engine import probe_cache
from repros.engine.probe import ProbeError, probe
from repros.model import Device, cache
from tests.engine.busy_start import make_environment

TORCH = """\
import os
with open(os.path.join({folder!r}, "imports"), "a") as file:
    file.write("x")
class backends:
    class cuda:
        is_built = staticmethod(lambda: False)
from .version import __version__
"""
"""A package that counts how often it is imported. That the real one is asked once is shown below."""


class Asked:
    """An environment with that torch, and what was asked of it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        venv.create(folder / "venv", symlinks=True)
        self.python = folder / "venv/bin/python"
        (self.site,) = folder.glob("venv/lib/python*/site-packages")
        self.install("torch", "2.1.0")
        (self.site / "torch").mkdir()
        (self.site / "torch/__init__.py").write_text(TORCH.format(folder=str(folder)))
        (self.site / "torch/version.py").write_text("__version__ = '2.1.0'\n")

    def install(self, name: str, version: str, site: Path | None = None) -> Path:
        info = (site or self.site) / f"{name}-{version}.dist-info"
        info.mkdir(parents=True)
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
        return info

    def remove(self, info: Path) -> None:
        (info / "METADATA").unlink()
        info.rmdir()

    def versions(self) -> dict[str, str]:
        return dict(probe(self.python, sim=False).versions)

    @property
    def imports(self) -> int:
        return len((self.folder / "imports").read_text())


@pytest.fixture
def asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Asked:
    monkeypatch.setenv(cache.VARIABLE, str(tmp_path / "cache"))
    monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "1")
    monkeypatch.delenv("PYTHONPATH", raising=False)
    (tmp_path / "dev").mkdir()
    monkeypatch.setattr(probe_cache, "_DRIVER", tmp_path / "nvidia")
    monkeypatch.setattr(probe_cache, "_DEV", tmp_path / "dev")
    made = Asked(tmp_path)
    assert made.versions() == made.versions() == {"torch": "2.1.0"}
    assert made.imports == 1
    return made


def test_a_package_installed_upgraded_and_removed(asked: Asked) -> None:
    first = asked.install("lightning", "2.1.0")
    assert asked.versions() == {"torch": "2.1.0", "lightning": "2.1.0"}
    asked.remove(first)
    second = asked.install("lightning", "2.2.0")
    assert asked.versions() == {"torch": "2.1.0", "lightning": "2.2.0"}
    asked.remove(second)
    assert asked.versions() == asked.versions() == {"torch": "2.1.0"}
    assert asked.imports == 4


def test_an_upgrade_within_its_folder_and_within_the_same_second(asked: Asked) -> None:
    times = asked.site.stat()
    asked.remove(asked.site / "torch-2.1.0.dist-info")
    asked.install("torch", "2.1.1")
    os.utime(asked.site, ns=(times.st_atime_ns, times.st_mtime_ns))
    assert asked.versions() == {"torch": "2.1.1"}
    (asked.site / "torch/version.py").write_text("__version__ = '2.1.2'\n")
    asked.versions()
    assert asked.imports == 3


@pytest.mark.parametrize("form", ["folder on the path", "finder"])
def test_an_editable_install(form: str, asked: Asked, tmp_path: Path) -> None:
    source = tmp_path / "project/src"
    asked.install("mine", "1.0", source if form == "folder on the path" else None)
    if form == "finder":
        (asked.site / "__editable___mine_finder.py").write_text("")
        (asked.site / "__editable__.mine.pth").write_text("import __editable___mine_finder\n")
    else:
        (asked.site / "mine.pth").write_text(f"{source}\n")
    assert asked.versions() == asked.versions() == {"torch": "2.1.0", "mine": "1.0"}
    assert asked.imports == 2
    if form == "folder on the path":
        asked.remove(source / "mine-1.0.dist-info")
        asked.install("mine", "1.1", source)
        assert asked.versions() == {"torch": "2.1.0", "mine": "1.1"}


def test_another_search_path(asked: Asked, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked.install("second", "1.0", tmp_path / "second")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "second"))
    assert asked.versions() == asked.versions() == {"torch": "2.1.0", "second": "1.0"}
    monkeypatch.delenv("PYTHONPATH")
    assert asked.versions() == {"torch": "2.1.0"}
    assert asked.imports == 2  # as before the change, of which the answer is still kept


@pytest.mark.parametrize(
    "name", ["CUDA_VISIBLE_DEVICES", "LD_LIBRARY_PATH", "LD_PRELOAD", "PYTORCH_NVML_BASED_CUDA_CHECK"]
)
def test_a_variable_that_decides(name: str, asked: Asked, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(name, "")
    asked.versions()
    monkeypatch.setenv("SOMETHING_ELSE", "1")
    asked.versions()
    assert asked.imports == 2


def test_gpus_that_appear(asked: Asked, tmp_path: Path) -> None:
    (tmp_path / "dev/tty1").touch()
    asked.versions()
    assert asked.imports == 1
    (tmp_path / "nvidia/gpus/0000:01:00.0").mkdir(parents=True)
    (tmp_path / "nvidia/gpus/0000:01:00.0/information").write_text("Model: NVIDIA H100\n")
    asked.versions()
    asked.versions()  # none is found though the driver lists one: it may be busy, so this is not kept
    assert asked.imports == 3


@pytest.mark.parametrize("path", ["nvidia/version", "dev/nvidia0", "dev/nvidia-caps/nvidia-cap1", "dev/kfd"])
def test_what_shows_a_gpu(path: str, asked: Asked, tmp_path: Path) -> None:
    before = [*probe_cache._gpus()]
    (tmp_path / path).parent.mkdir(exist_ok=True)
    (tmp_path / path).write_text("NVRM version: 570\n")
    assert before == []
    assert len([*probe_cache._gpus()]) >= 1


def test_another_interpreter_in_its_place(asked: Asked) -> None:
    real = asked.python.resolve()
    asked.python.unlink()
    shutil.copy(real, asked.python)
    asked.versions()
    assert asked.imports == 2


def test_what_starts_another_interpreter_is_asked_each_time(asked: Asked, tmp_path: Path) -> None:
    shim = tmp_path / "python"
    shim.write_text(f'#!/bin/sh\nexec {asked.python} "$@"\n')
    shim.chmod(0o700)
    for _ in range(2):
        assert probe(shim, sim=False).versions == {"torch": "2.1.0"}
    assert asked.imports == 3


def test_a_broken_answer_is_not_kept(asked: Asked) -> None:
    file = asked.site / "torch/version.py"
    times, text = file.stat(), file.read_text()
    file.write_text('raise RuntimeError("DefaultCPUAllocator: can\'t allocate memory")')
    for imports in (2, 3):
        assert Device.CPU in probe(asked.python, sim=False).counts  # nothing is known of a torch without memory
        assert asked.imports == imports
    file.write_text("raise OSError('libcudart.so.12: cannot open shared object file')")
    for imports in (4, 5):
        with pytest.raises(ProbeError, match=r"\(OSError: libcudart"):
            probe(asked.python, sim=False)
        assert asked.imports == imports
    file.write_text(text)
    os.utime(file, ns=(times.st_atime_ns, times.st_mtime_ns))
    assert asked.versions() == {"torch": "2.1.0"}


def test_without_torch_each_run_asks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(cache.VARIABLE, str(tmp_path / "cache"))
    python = make_environment(tmp_path / "venv", "pass")
    for _ in range(2):
        with pytest.raises(ProbeError, match="torch"):
            probe(python, sim=False)
    assert [*tmp_path.glob("cache/snapshots/*")] == []


def test_another_checkout_asks_only_if_its_probe_or_its_accelerator_differs(
    asked: Asked, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clone = tmp_path / "clone"
    shutil.copytree(
        Path(repros.__file__).parent, clone / "repros", ignore=shutil.ignore_patterns("__pycache__", "tests")
    )
    program = "import sys; from pathlib import Path; from repros.engine.probe import probe; "
    program += f"probe(Path({str(asked.python)!r}), sim=False)"

    def ask() -> int:
        subprocess.run([sys.executable, "-c", program], cwd=clone, check=True)
        return asked.imports

    assert ask() == 1
    with (clone / "repros/inside/probe.py").open("a") as file:
        file.write("# another answer\n")
    assert ask() == 2
    before = probe_cache._own_digest(sim=True)
    monkeypatch.setattr(simulated_gpus, "__file__", str(clone / "repros/simulated_gpus/__init__.py"))
    assert probe_cache._own_digest(sim=True) == before
    (clone / "repros/simulated_gpus/csrc/new.cpp").write_text("")
    assert probe_cache._own_digest(sim=True) != before


def test_a_real_torch_is_imported_once_and_its_simulated_gpus_are_looked_for(
    current_python: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = probe(current_python, "current")
    said: list[str] = []
    assert probe(current_python, "current", report_progress=said.append) == first
    assert said == []
    monkeypatch.setattr(Path, "exists", lambda _: False)  # as if what was compiled were removed
    assert probe(current_python, "current", report_progress=said.append) == first
    # On a busy machine, a line each half minute follows.
    assert [line for line in said if " has not answered for " not in line] == said[:1] != []
