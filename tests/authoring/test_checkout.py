"""What a check does in a checkout: the style is repaired or named, and stacks that the watch needs are asked for."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from repros.authoring import checkout
from repros.settings import Origin
from tests import factories


def test_the_style_is_repaired_and_what_needs_the_author_is_named(tmp_path: Path) -> None:
    script = tmp_path / "it_breaks.py"
    script.write_text('"""A toy."""\n\nimport os\n\n\ndef f( ):\n    return eval("1")\n', "utf-8")
    sentences = checkout.problems_of_style(replace(factories.repro(), path=script))
    written = script.read_text("utf-8")
    assert "import os" not in written
    assert '\ndef f():\n    return eval("1")\n' in written
    assert all(sentence.startswith("fix the style: ") for sentence in sentences)
    assert len([sentence for sentence in sentences if ": S307 " in sentence]) == 1


def test_the_stacks_that_the_watch_needs_are_asked_for_in_one_command() -> None:
    repros = [factories.repro("RPR-0001", home="2023-12"), factories.repro("RPR-0002", home="current")]
    assert checkout.watch_runs(repros, [], ["2023-12"], print) == (
        ["run them under the watch on current too: repros check RPR-0001 RPR-0002 --stack 2023-12 --stack current"],
        "",
    )


def test_a_private_catalogue_has_its_own(tmp_path: Path) -> None:
    private = replace(factories.repro(), origin=Origin(tmp_path), path=tmp_path / "toys/it_breaks.py")
    assert checkout.problems_of_style(private) == []
    assert checkout.watch_runs([private], [], [], print) == (
        [],
        "not run: there is no checkout to keep the findings in",
    )
    assert checkout.write_documents([private]) == ([], "none to write: the script is not one of a checkout")
    assert checkout.run_script_tests([private]) == (
        [],
        f"none here; as tests of your own: python -m pytest {tmp_path / 'toys'} --repro RPR-0001",
        "",
    )
