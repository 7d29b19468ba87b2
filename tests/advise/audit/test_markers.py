"""Pins with environment markers: each that Linux may install counts as a pin, and no other."""

from __future__ import annotations

from pathlib import Path

import pytest

from repros.advise.audit.assess import assess
from repros.advise.audit.markers import can_hold
from repros.advise.audit.sources import read_source
from repros.model.errors import ReprosError
from tests import factories

REPRO = factories.repro(packages=("torch",), affected=factories.conditions("torch>=2.1,<2.5"))
WITHOUT = factories.repro(packages=("torch",), affected=factories.conditions("torch<2 or no torch>=2.5"))


@pytest.mark.parametrize(
    ("marker", "holds"),
    [
        ("", True),
        ('sys_platform == "linux"', True),
        ('python_version >= "3.11" and python_version < "4.0"', True),
        ('python_version >= "3.12"', True),
        ('python_full_version == "3.11.4"', True),
        ('platform_machine == "aarch64"', True),
        ('platform_system == "Windows" or os_name == "posix"', True),
        ('sys_platform == "win32"', False),
        ('sys_platform == "darwin" and platform_machine == "arm64"', False),
        ('python_version < "3.9"', False),
        ('implementation_name == "pypy"', False),
        ("extra == 'gpu'", None),
        ("group == 'dev' and sys_platform == 'linux'", None),
        ('platform_release >= "6"', None),
        ("not a marker", None),
    ],
)
def test_whether_a_marker_can_hold(marker: str, holds: bool | None) -> None:
    assert can_hold(marker) is holds


@pytest.mark.parametrize(
    ("text", "status", "without"),
    [
        ('torch==2.4.1 ; sys_platform == "linux"', "affected", "affected"),
        ('torch==2.4.1 ; python_version >= "3.11" and python_version < "4.0"', "affected", "affected"),
        ('torch==2.6 ; sys_platform == "linux"', "clear", "clear"),
        ('torch==2.4.1 ; sys_platform == "darwin"\ntorch==2.6 ; sys_platform == "linux"', "clear", "clear"),
        ('torch==2.4.1 ; sys_platform == "win32"\nnumpy', "unknown", "unknown"),
        ('torch==2.4.1 ; python_version < "3.12"\ntorch==2.6 ; python_version >= "3.12"', "affected", "affected"),
        ('torch==2.6 ; python_version < "3.12"\ntorch==2.7 ; python_version >= "3.12"', "clear", "clear"),
        ('torch>=2.4 ; sys_platform == "linux"', "possible", "possible"),
        ("torch==2.4.1\n-c limits.txt", "affected", "affected"),
        ("-c limits.txt", "possible", "possible"),
    ],
)
def test_a_pin_that_linux_may_install_is_a_pin(
    text: str, status: str, without: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("limits.txt").write_text('torch==2.4.1 ; sys_platform == "linux"\n', encoding="utf-8")
    file = Path("requirements.txt")
    file.write_text(f"{text}\n", encoding="utf-8")
    subject = read_source(file)
    assert [one.status for one in assess([REPRO], subject, {})] == [status]
    if "torch" in subject.constraints:
        assert [one.status for one in assess([WITHOUT], subject, {})] == [without]


def test_a_file_for_other_platforms_alone_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "requirements.txt"
    file.write_text('torch==2.4.1 ; sys_platform == "win32"\n', encoding="utf-8")
    with pytest.raises(ReprosError, match=r"requirements\.txt has no requirement for Linux with Python 3\.11 or newer"):
        read_source(file)
