"""A report's traceback names the lines of the script that is in the report."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from repros.advise.export import pins
from repros.advise.export.script import export_for_report
from repros.advise.report.redact import MachineIdentity, Redactor
from repros.advise.report.tracebacks import ScriptVersions, last_traceback
from repros.engine import header
from repros.engine.stacks import load_stacks
from repros.model import Repro
from tests.cli.command import CLAIMED
from tests.package_catalogue import load

CATALOGUE = load()
REDACTOR = Redactor(MachineIdentity())


def exported(repro: Repro) -> str:
    return export_for_report(repro, pins.pins_of_stack(repro, load_stacks()[repro.home], measured=True))


def traceback(repro: Repro, text: str, folder: Path, *frames: tuple[int, str, str]) -> list[str]:
    """Return what the report has of a traceback through these lines of the repro's script."""
    path = repro.path.resolve()
    rows = [f'  File "{path}", line {number}, in {name}\n    {line.strip()}' for number, name, line in frames]
    log = "\n".join(["Traceback (most recent call last):", *rows, "RuntimeError: x"])
    (folder / "main.log").write_text(log, encoding="utf-8")
    public = f"repros/catalogue/{repro.family}/{repro.path.name}"
    return last_traceback([folder], ScriptVersions.of(repro, public, text), REDACTOR).split("\n")[1:-1:2]


@pytest.mark.of_each_script
@pytest.mark.parametrize("repro", CATALOGUE.repros, ids=lambda repro: repro.id)
def test_a_line_of_a_frame_is_that_of_the_script_in_the_report(repro: Repro, tmp_path: Path) -> None:
    text = exported(repro)
    lines = repro.path.read_text(encoding="utf-8").split("\n")
    frames = [(number, "f", line) for number, line in enumerate(lines, 1) if line.startswith(" ") and line.strip()]
    named = 0
    for chunk in batched(frames, 25):
        for (number, _, line), place in zip(chunk, traceback(repro, text, tmp_path, *chunk), strict=True):
            found = re.fullmatch(r'  File "([^"]+)", line (\d+), in f', place)
            assert found
            if found[1] == f"{repro.id.lower().replace('-', '_')}.py":
                assert text.split("\n")[int(found[2]) - 1].strip() == line.strip()
                named += 1
            else:
                assert (found[1], found[2]) == (f"repros/catalogue/{repro.family}/{repro.path.name}", str(number))
    assert named > 5


def batched(frames: list[tuple[int, str, str]], size: int) -> Iterator[list[tuple[int, str, str]]]:
    """Yield parts that are short enough to be shown whole."""
    yield from (frames[start : start + size] for start in range(0, len(frames), size))


def test_a_line_that_two_variants_share_is_that_of_its_own_function(tmp_path: Path) -> None:
    repro = CATALOGUE.find("RPR-0025")
    lines = repro.path.read_text(encoding="utf-8").split("\n")
    failing, refused = [number for number, line in enumerate(lines, 1) if line.strip() == "return Model()"]
    frames = ((failing, "failing", "return Model()"), (refused, "refused", "return Model()"))
    places = traceback(repro, exported(repro), tmp_path, *frames)
    assert places[0].startswith('  File "rpr_0025.py", line ')
    assert places[1] == f'  File "repros/catalogue/lightning/{repro.path.name}", line {refused}, in refused'


def test_a_script_that_has_changed_since_keeps_the_place_that_was_run(tmp_path: Path) -> None:
    repro = CATALOGUE.find("RPR-0005")
    path = f"repros/catalogue/fabric/{repro.path.name}"
    places = traceback(repro, exported(repro), tmp_path, (150, "f", "nobody wrote this"), (9999, "f", "x"))
    assert places == [f'  File "{path}", line 150, in f', f'  File "{path}", line 9999, in f']


def test_a_redacted_script_that_is_no_python_any_more_has_lines_all_the_same(tmp_path: Path) -> None:
    script = tmp_path / "own.py"
    script.write_text(CLAIMED, encoding="utf-8")
    text = CLAIMED.replace("# /// script", "# A line.\n# /// script", 1) + "{a b}\n"
    number = CLAIMED.split("\n").index('raise ValueError("as documented")') + 1
    (place,) = traceback(header.read(script), text, tmp_path, (number, "f", 'raise ValueError("as documented")'))
    assert place == f'  File "rpr_0007.py", line {number + 1}, in f'
