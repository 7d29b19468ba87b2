"""The published random numbers and the operators that draw CUDA's: the page shows what the tests check."""

from __future__ import annotations

from pathlib import Path

from repros.simulated_gpus.tools.random_numbers.__main__ import fill_page
from repros.simulated_gpus.tools.random_numbers.data import read_published

PAGE = Path(__file__).parents[2] / "docs/simulate.md"


def test_the_page_shows_the_operators_and_the_published_numbers() -> None:
    text = PAGE.read_text("utf-8")
    assert fill_page(text) == text


def test_each_published_row_has_an_address_and_as_many_places_as_numbers() -> None:
    for row in read_published():
        assert row["address"].startswith("https://")
        assert len(row.get("at", row["numbers"])) == len(row["numbers"])
        assert ("gpu" in row) == ("like" in row)
