"""Ports that no connection of another process takes."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

from repros.engine.launch import ports
from repros.engine.launch.ports import free_port


def test_a_port_is_outside_of_the_kernels_range() -> None:
    first, last = ports._kernel_range()
    if len(ports._outside(first, last)) < ports._FEWEST:
        pytest.skip("this machine's kernel gives almost every port to connections")
    found = [free_port() for _ in range(50)]
    assert [port for port in found if first <= port <= last] == []
    assert len(set(found)) > 25, "engines that begin at the same time would meet"


@pytest.mark.parametrize("address", ["127.0.0.1", ""])
def test_a_port_on_which_somebody_listens_is_not_chosen(address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ports, "_FEWEST", 1)
    with socket.create_server((address, 0)) as other:
        taken = other.getsockname()[1]
        monkeypatch.setattr(ports, "_outside", lambda *_: range(taken, taken + 1))
        assert free_port() not in {0, taken}


@pytest.mark.parametrize(
    ("written", "outside"),
    [
        ("32768\t60999\n", range(20_000, 32_768)),
        ("15000\t60000\n", range(60_001, 65_536)),
        ("1024\t65535\n", range(0)),
        ("", range(20_000, 49_152)),
        (None, range(20_000, 49_152)),
    ],
)
def test_the_ports_outside_of_a_range(
    written: str | None, outside: range, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ports, "_KERNELS", tmp_path / "range")
    if written is not None:
        (tmp_path / "range").write_text(written)
    assert ports._outside(*ports._kernel_range()) == outside


def test_a_machine_without_such_ports_gives_one_of_the_kernels(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ports, "_outside", lambda *_: range(0))
    assert free_port() > 0
