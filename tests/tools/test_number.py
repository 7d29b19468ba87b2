"""Final ids: which, and where they are written; `test_merge.py` numbers two branches."""

from __future__ import annotations

from pathlib import Path

from tools.number import _replace_ids, choose_ids


def test_final_ids_follow_the_highest_and_final_ones_stay() -> None:
    ids = ["RPR-0001", "RPR-0052", "RPR-7001", "RPR-5003", "ACME-6000"]
    assert choose_ids(ids) == {"RPR-5003": "RPR-0053", "RPR-7001": "RPR-0054"}
    assert choose_ids(["RPR-0001"]) == {}


def test_an_id_is_replaced_in_names_and_texts_and_others_are_left(tmp_path: Path) -> None:
    log, picture = tmp_path / "rpr-5003-failing-ddp-hand-current.log", tmp_path / "RPR-5003.png"
    log.write_text("RPR-5003/failing rpr-5003-x RPR-50031 XRPR-5003 RPR-7001 [RPR-5003]\n", "utf-8")
    picture.write_bytes(b"\xff\xfe RPR-5003")
    for file in (log, picture):
        _replace_ids(file, {"RPR-5003": "RPR-0053"})
    renamed = tmp_path / "rpr-0053-failing-ddp-hand-current.log"
    assert renamed.read_text("utf-8") == "RPR-0053/failing rpr-0053-x RPR-50031 XRPR-5003 RPR-7001 [RPR-0053]\n"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["RPR-5003.png", renamed.name]
