"""What a check does in a checkout: the style is repaired or named, and stacks that the watch needs are asked for."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from repros.model.settings import Origin
from tests import factories
from tools import checkout


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


def test_a_failure_that_the_watch_does_not_name_is_to_say_why() -> None:
    def ran(repro: str, variant: str, *found: tuple[str, list[str]], fails: bool = True) -> dict[str, object]:
        findings = [{"check": check, "ids": ids} for check, ids in found]
        return {"repro": repro, "variant": variant, "fails": fails, "found": findings}

    explained = factories.repro("RPR-0002", doc="Symptom: x.\n\nWatch: `rate_reset` finds it, whatever the cause is.")
    lines = [
        ran("RPR-0001", "failing", ("rate_reset", ["RPR-0001"])),
        ran("RPR-0001", "fixed", fails=False),
        ran("RPR-0001", "other", ("rate_reset", []), ("eval_mode", ["RPR-0006"])),
        ran("RPR-0001", "other", ("rate_reset", [])),
        ran("RPR-0001", "third"),
        ran("RPR-0002", "failing", ("rate_reset", [])),
        ran("RPR-0002", "other", ("eval_mode", [])),
    ]
    why = "say after 'Watch:' in the docstring why none names it"
    one = f"name the one that only this failure brings about in finds, or {why}"
    assert list(checkout.problems_of_findings([factories.repro("RPR-0001"), explained], lines)) == [
        f"the watch says rate_reset, eval_mode of RPR-0001/other: {one}",
        f"the watch says nothing of RPR-0001/third: {why}",
        f"the watch says eval_mode of RPR-0002/other: {one}",
    ]
