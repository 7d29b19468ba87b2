"""A write that is interrupted leaves no line in a ledger that vouches for what it never saw."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import count
from pathlib import Path

import pytest

from repros.engine.evidence import VariantVerdict, files, read, write
from repros.model import Verdict
from tests.engine.evidence.samples import MEASUREMENT

NEW = replace(MEASUREMENT, inputs="another digest", variants={"failing": VariantVerdict(Verdict.GONE)})


class ProcessEndsError(Exception):
    """Stands for the end of the process."""


def test_wherever_a_write_ends_early_its_unit_is_as_before_or_not_measured(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    usual = files._replace
    for steps in count():
        folder = tmp_path / str(steps)
        write([MEASUREMENT], folder)
        left = iter(range(steps))

        def replace_or_end(file: Path, text: str | None, left: Iterator[int] = left) -> None:
            if next(left, None) is None:
                raise ProcessEndsError
            usual(file, text)

        with monkeypatch.context() as patched:
            patched.setattr(files, "_replace", replace_or_end)
            try:
                write([NEW], folder)
            except ProcessEndsError:
                assert read(folder).get(MEASUREMENT.unit) in (MEASUREMENT, None)
                continue
        assert read(folder) == {NEW.unit: NEW}
        assert steps == 3
        break
