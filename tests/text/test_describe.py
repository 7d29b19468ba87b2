"""The description of a repro, as `repros show` prints it."""

from __future__ import annotations

from pathlib import Path

import pytest

from repros.engine import header
from repros.text.describe import describe
from tests.factories import VALID

SHOWN = """\
RPR-0001 The LR finder leaves logged results on the CPU
kind      bug
affects   lightning>=2.1,<2.4; exact on stack 2023-12
runs      ddp, ddp_spawn on cuda, sim, 2 ranks
needs     torch>=2.1, lightning>=2.1
shows     RuntimeError: No backend type associated with
          device type cpu

symptom   an error.

cause     a cause.

fix       a fix.

Variants
  failing: fails
    finds a learning rate, then fits
  fixed: works
    fits without looking for a learning rate
    https://github.com/Lightning-AI/pytorch-lightning/pull/19814
  checked: does not fix
    checks the device first
    claim: a check of the device before the reduction is
    enough
    only under ddp
    needs lightning>=2.2

Upstream
  reported in
    https://github.com/Lightning-AI/pytorch-lightning/issues/19813

From failing to fixed
  @@ -1,2 +1,2 @@
  -def failing():
  -    find()
  +def fixed():
  +    fit()

Run it
  repros run RPR-0001 --catalogue slug.py
  repros run RPR-0001 --catalogue slug.py --python PATH   # in your environment
  python slug.py failing ddp cuda"""


def test_a_failure_shows_where_what_fails_exists(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    given = '# exists = ["lightning>=2.1"]\n# exists_source = "https://a.b/1"\n# home'
    script.write_text(VALID.replace("# home", given).replace('affected = ["lightning>=2.1,<2.4"]', "affected = []"))
    lines = describe(header.read(script), 100).plain.splitlines()
    assert lines[2:4] == [
        "affects   every release of lightning>=2.1; exact on stack 2023-12",
        "exists    in lightning>=2.1, see https://a.b/1",
    ]


def test_the_whole_description(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    script = tmp_path / "slug.py"
    script.write_text(f"{VALID}\ndef failing():\n    find()\n\n\ndef fixed():\n    fit()\n", encoding="utf-8")
    assert describe(header.read(script), 60).plain == SHOWN


def test_a_docstring_without_labels_is_shown_as_it_is(tmp_path: Path) -> None:
    script = tmp_path / "slug.py"
    body = VALID[: VALID.index('"""Symptom')] + '"""It fails.\n\nSometimes.\n"""\n'
    script.write_text(
        body.replace("processes = 2", "processes = 1").replace("minimum = 1", "silent = true"),
        encoding="utf-8",
    )
    shown = describe(header.read(script), 80).plain
    assert "\n\nIt fails.\n\nSometimes.\n\nVariants\n" in shown
    assert "runs      ddp, ddp_spawn on cuda, sim, 1 rank\n" in shown
    assert "with device type cpu (silent:\n          the script asserts on it)\n" in shown
    assert "From failing to fixed" not in shown
