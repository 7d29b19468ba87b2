"""`repros run --stale --always --sample --seed`: what runs, what the sentence says, and what is refused."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.cli.command import RAISES, Command, read_verdicts

HERE = ("run", "--python", "/usr/venv/bin/python", "--catalogue", RAISES, "--variant", "failing", "--no-summary")


def test_a_sample_may_be_empty_or_whole(repros: Command, here: Path) -> None:
    code, out, _ = repros(*HERE, "--sample", "0%")
    assert code == 0
    assert re.search(r"1 of 1 cell left out; chosen: none; to run all, omit --sample\nnothing to run", out)
    assert (here / ".repros/latest.jsonl").read_text() == "", "no earlier results are taken for those of this run"
    code, out, _ = repros(*HERE, "--sample", "100%", "--seed", "abc")
    assert "0 of 1 cell left out; chosen: 1 sampled with --seed abc; to run all, omit --sample\n" in out
    assert read_verdicts() == ["failing reproduced"]


def test_a_seed_of_its_own_is_printed(repros: Command) -> None:
    _, out, _ = repros(*HERE, "--sample", "50%")
    assert re.search(r"chosen: 1 sampled with --seed [0-9a-f]{8};", out)


def test_what_is_left_out_is_no_disagreement_with_the_evidence(repros: Command) -> None:
    code, out, _ = repros(*HERE, "--always", "RPR-9001")
    assert "chosen: 1 of RPR-9001; to run all, omit --always\n" in out
    assert repros("matrix", "--check", "--from", ".repros/latest.jsonl")[0] == code
    repros(*HERE, "--sample", "0%")
    assert repros("matrix", "--check", "--allow-empty", "--from", ".repros/latest.jsonl") == (
        0,
        "0 cells checked\n",
        "",
    )


@pytest.mark.parametrize("wrong", ["10", "x%", "101%", "-1%", "nan%", "10%%", ""])
def test_a_wrong_share_is_refused(wrong: str, repros: Command) -> None:
    code, out, err = repros(*HERE, f"--sample={wrong}")
    assert (code, out) == (2, "")
    assert f"{wrong!r} is not a percentage from 0% to 100%, such as 10%." in err


def test_a_seed_alone_is_refused(repros: Command) -> None:
    code, _, err = repros(*HERE, "--seed", "a")
    assert code == 2
    assert "--seed needs --sample." in err
