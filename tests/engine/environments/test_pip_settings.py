from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import repros.engine.environments.pip_settings
from repros.engine.environments.pip_settings import configuration_files, uv_settings


@pytest.mark.parametrize(
    ("pip", "uv"),
    [
        ({"PIP_FIND_LINKS": "/wheels"}, {"UV_FIND_LINKS": "/wheels"}),
        ({"PIP_FIND_LINKS": "/wheels /more"}, {"UV_FIND_LINKS": "/wheels,/more"}),
        ({"PIP_CERT": "/ca.pem"}, {"SSL_CERT_FILE": "/ca.pem"}),
        ({"PIP_INDEX_URL": "https://mirror/simple"}, {"UV_DEFAULT_INDEX": "https://mirror/simple"}),
        (
            {"PIP_EXTRA_INDEX_URL": "https://a/simple\nhttps://b/simple"},
            {"UV_INDEX": "https://a/simple https://b/simple", "UV_INDEX_STRATEGY": "unsafe-best-match"},
        ),
        ({"PIP_FIND_LINKS": "/wheels", "UV_FIND_LINKS": "/own"}, {}),
        ({"PIP_FIND_LINKS": "/wheels", "UV_FIND_LINKS": ""}, {}),
        ({"PIP_INDEX_URL": "https://mirror/simple", "UV_INDEX_URL": "https://own/simple"}, {}),
        ({"PIP_CERT": "/ca.pem", "SSL_CERT_FILE": "/own.pem"}, {}),
        ({"PIP_FIND_LINKS": ""}, {}),
        ({}, {}),
    ],
)
def test_variables_are_passed_on_unless_uv_has_its_own(pip: dict[str, str], uv: dict[str, str]) -> None:
    assert uv_settings(pip, files=[]) == uv


def test_variables_override_configuration_files(tmp_path: Path) -> None:
    first, second = tmp_path / "first.conf", tmp_path / "second.conf"
    first.write_text("[global]\nfind-links =\n    /a\n    /b\nindex-url = https://mirror/simple\ntimeout = 60\n")
    second.write_text("[install]\nindex-url = https://nearer/simple\n")
    absent = tmp_path / "absent.conf"
    assert uv_settings({}, [first, second, absent]) == {
        "UV_FIND_LINKS": "/a,/b",
        "UV_DEFAULT_INDEX": "https://nearer/simple",
    }
    assert uv_settings({"PIP_FIND_LINKS": "/c"}, [first]) == {
        "UV_FIND_LINKS": "/c",
        "UV_DEFAULT_INDEX": "https://mirror/simple",
    }


def test_an_invalid_configuration_file_is_ignored(tmp_path: Path) -> None:
    broken = tmp_path / "pip.conf"
    broken.write_text("find-links = /a\n")
    assert uv_settings({}, [broken]) == {}


def test_the_configuration_files_are_those_that_pip_reads(tmp_path: Path) -> None:
    environ = {"HOME": str(tmp_path), "PATH": os.environ["PATH"], "PIP_CONFIG_FILE": "/chosen.conf"}
    python = Path(sys.base_prefix, "bin", "python3")  # the base Python has pip more often than a virtual environment
    debug = subprocess.run(
        [python, "-m", "pip", "config", "debug"], env=environ, capture_output=True, text=True, check=False
    )
    if debug.returncode != 0:
        pytest.skip("no pip to compare with")
    for file in configuration_files(environ):
        assert f"{file}, exists:" in debug.stdout or file.parent == Path(sys.prefix)


def test_no_files_are_read_if_pip_reads_none() -> None:
    assert configuration_files({"PIP_CONFIG_FILE": os.devnull}) == []


def test_the_module_runs_by_its_path_without_installed_packages() -> None:
    """The noxfile runs it so, in an environment with nox only."""
    script = "import runpy, sys; runpy.run_path(sys.argv[1])['uv_settings']({})"
    file = str(repros.engine.environments.pip_settings.__file__)
    subprocess.run([sys.executable, "-I", "-S", "-c", script, file], check=True, cwd="/")
