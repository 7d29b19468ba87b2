"""Tables of the documentation: each is named on one page, and made anew as Markdown."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from tools import tables
from tools.tables import MARK, TABLES

ROOT = Path(__file__).parents[2]
PAGES = {page.name: page.read_text("utf-8") for page in sorted((ROOT / "docs").glob("*.md"))}


def test_each_table_is_named_on_one_page() -> None:
    found = Counter(match["name"] for text in PAGES.values() for match in MARK.finditer(text))
    assert found == Counter(dict.fromkeys(TABLES, 1))


@pytest.mark.parametrize("name", TABLES)
def test_a_page_names_it_by_its_title(name: str) -> None:
    assert any(tables.mark(name) in text.splitlines() for text in PAGES.values()), f"expected: {tables.mark(name)}"


@pytest.mark.of_all_scripts
@pytest.mark.parametrize("name", TABLES)
def test_its_rows_have_as_many_cells_as_its_head(name: str) -> None:
    cells: list[int] = []
    for line in TABLES[name].body().splitlines():
        if line.startswith("|"):
            cells.append(line.replace("\\|", "").count("|"))
            assert cells[-1] == cells[0], line
        else:
            cells.clear()


def test_the_command_prints_a_table(capsys: pytest.CaptureFixture[str]) -> None:
    tables.main(["costs"])
    printed = capsys.readouterr().out
    assert printed == TABLES["costs"].body()
    assert printed.startswith("| Stack |")


@pytest.mark.parametrize("words", [[], ["costs", "--marks"], ["nothing"]])
def test_a_wrong_call_is_refused(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as error:
        tables.main(words)
    assert error.value.code == 2
    assert "usage: python -m tools.tables" in capsys.readouterr().err
