"""Files that cross between the driver and the nodes."""

from __future__ import annotations

from pathlib import Path

from repros.cluster.payload import Payload, pack_logs, unpack_logs
from repros.engine.stacks import stack
from repros.model.settings import CATALOGUE


def test_a_file_of_the_package_crosses_as_its_name() -> None:
    script = next(CATALOGUE.rglob("*.py"))
    packed = Payload.pack(script)
    assert packed == Payload(str(script.relative_to(CATALOGUE.parent)))
    assert packed.unpack(Path("/nowhere")) == script
    lock = stack("current").lock
    assert Payload.pack(lock).unpack(Path("/nowhere")) == lock


def test_a_file_of_the_users_keeps_its_folder_and_name(tmp_path: Path) -> None:
    script = tmp_path / "ddp" / "loses_a_rank.py"
    script.parent.mkdir()
    script.write_bytes(b"text \xff")
    there = Payload.pack(script).unpack(tmp_path / "node")
    assert there.read_bytes() == b"text \xff"
    assert (there.parent.name, there.name) == ("ddp", "loses_a_rank.py")
    assert Payload.pack(script).unpack(tmp_path / "node") == there


def test_two_files_of_one_name_do_not_meet(tmp_path: Path) -> None:
    places = []
    for text in ("one", "two"):
        script = tmp_path / text / "ddp" / "same.py"
        script.parent.mkdir(parents=True)
        script.write_text(text)
        places.append(Payload.pack(script).unpack(tmp_path / "node"))
    assert [place.read_text() for place in places] == ["one", "two"]


def test_logs_come_back_as_they_were(tmp_path: Path) -> None:
    there, here = tmp_path / "there", tmp_path / "here"
    (there / "cell" / "processes").mkdir(parents=True)
    (there / "cell" / "main.log").write_bytes(b"\xff\n")
    (there / "cell" / "processes" / "empty.jsonl").touch()
    (there / "cell" / "link").symlink_to("/etc/passwd")
    (there / "cell" / "long.log").write_bytes(bytes(5 * 2**20))
    unpack_logs(pack_logs(there), here)
    assert {str(file.relative_to(here)): file.stat().st_size for file in here.rglob("*") if file.is_file()} == {
        "cell/main.log": 2,
        "cell/processes/empty.jsonl": 0,
        "cell/long.log": 4 * 2**20,
    }
