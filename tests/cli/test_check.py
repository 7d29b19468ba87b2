"""`repros check` before anything runs; the example project runs the rest."""

from __future__ import annotations

from pathlib import Path

from tests.cli.command import Command

OPEN = """\
  to do: line 8: replace the template's text 'ORGANISATION/REPOSITORY'
  to do: line 14: replace the template's text 'what this variant does, in one line'
  to do: line 19: replace the template's text 'what it does differently'
  to do: line 20: replace the template's text 'ORGANISATION/REPOSITORY'
  to do: line 23: replace the template's text 'What the user does, in one sentence'
  to do: line 25: replace the template's text 'What the user sees, with the text of the error'
  to do: line 27: replace the template's text 'Which call does what, and since which release'
  to do: line 29: replace the template's text 'What to do instead, and since which release'
"""


def test_open_rules_stop_the_check(repros: Command, here: Path) -> None:
    repros("new", "it_breaks", "--family", "toys", "--catalogue", ".")
    removed = "  the template's comments were removed from the header\n"
    first = f"\nRules\n{removed}{OPEN}\nLOCAL-0001: 8 to do\n"
    assert repros("check", "it_breaks", "--catalogue", ".", "--rules") == (1, first, "")
    again = first.replace(removed, "")
    assert repros("check", "it_breaks", "--catalogue", ".") == (1, again, "")
    assert sorted(path.name for path in here.rglob("*") if path.is_file()) == ["it_breaks.py"]


def test_several_scripts_are_named_in_each_sentence(repros: Command, here: Path) -> None:
    for slug in ("it_breaks", "it_breaks_too"):
        repros("new", slug, "--family", "toys", "--catalogue", ".")
    code, out, _ = repros("check", "it_breaks", "LOCAL-0002", "LOCAL-0001", "--catalogue", ".", "--rules")
    sentences = [line for line in out.splitlines() if line.startswith("  to do: ")]
    assert code == 1
    assert [line[9:19] for line in sentences] == ["LOCAL-0001"] * 8 + ["LOCAL-0002"] * 8
    assert out.endswith("\nLOCAL-0001, LOCAL-0002: 16 to do\n")


def test_rules_that_hold_end_the_short_check(repros: Command) -> None:
    code, out, _ = repros("check", "RPR-0001", "--rules")
    assert (code, out) == (
        0,
        "\nRules\n  all 16 hold\n\nStyle\n  ruff finds nothing\n\nRPR-0001: no rule is broken (9 variants, 4 fail)\n",
    )


def test_a_wrong_value_in_the_table_of_steps_is_refused(repros: Command, here: Path) -> None:
    repros("new", "it_breaks", "--family", "toys", "--catalogue", ".")
    (here / "pyproject.toml").write_text("[tool.repros]\ncheck = 3\n", "utf-8")
    code, out, err = repros("check", "it_breaks", "--catalogue", ".")
    assert (code, out) == (2, "")
    assert f"{here / 'pyproject.toml'}: check in [tool.repros]; expected tables" in err
