"""The summary table, whole, at the widths of terminals and logs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from repros.cli.shared.output import paint
from repros.engine import record
from repros.model import CellResult, Ending, ExpectedOutcome, Verdict
from repros.text import table
from tests import factories

FABRIC = "Calling a submodule of a Fabric module skips gradient synchronisation"
ADAMW = "Fused AdamW's step counter stays on the CPU after a resume"
NO_OLD_CUDA = "torch 2.0.1 is a build without CUDA"
NO_CUDA = "torch 2.13.0+cpu is a build without CUDA"


def line(repro: str, title: str, cell: str, verdict: Verdict, seconds: float | None = None, **given: Any) -> Any:
    """Return the part of a record line that the table reads."""
    variant, strategy, device, stack = cell.split()
    versions = {"torch": "2.0.1"} if stack == "2023-05" else {"lightning": "2.6.6", "torch": "2.13.0+cpu"}
    return {
        "repro": repro,
        "title": title,
        "variant": variant,
        "claim": None,
        "strategy": strategy,
        "device": device,
        "stack": {"name": stack, "python": "3.11.9", "versions": versions},
        "verdict": verdict.value,
        "reason": "",
        "seconds": seconds,
        **given,
    }


LINES = [
    line("RPR-0005", FABRIC, "failing ddp cpu current", Verdict.REPRODUCED, 10.94),
    line("RPR-0005", FABRIC, "failing ddp cuda current", Verdict.UNAVAILABLE, reason=NO_CUDA),
    line("RPR-0005", FABRIC, "failing ddp_spawn cpu current", Verdict.REPRODUCED, 12.5),
    line("RPR-0005", FABRIC, "fixed ddp cpu current", Verdict.CLEAN, 11),
    line("RPR-0005", FABRIC, "fixed ddp cuda current", Verdict.UNAVAILABLE, reason=NO_CUDA),
    line("RPR-0005", FABRIC, "no_backward_sync ddp cpu current", Verdict.REPRODUCED, 11.2, claim="it does"),
    line("RPR-0004", ADAMW, "failing fused_adamw sim 2023-05", Verdict.REPRODUCED, 4.04),
    line(
        "RPR-0004", ADAMW, "failing fused_adamw sim current", Verdict.DIFFERENT, 128.5,
        reason="rank 0 ended otherwise: RuntimeError: Expected a '{device}' device type for generator but "
        "found 'cpu'",
    ),
    line("RPR-0004", ADAMW, "fixed fused_adamw sim 2023-05", Verdict.INFRA, 1.5, reason="interrupted"),
    line("RPR-0004", ADAMW, "fixed fused_adamw cuda 2023-05", Verdict.UNAVAILABLE, reason=NO_OLD_CUDA),
]  # fmt: skip

AT_80 = """\
  variant          strategy    dev stack   verdict      sec
RPR-0004 Fused AdamW's step counter stays on the CPU after a resume
  failing          fused_adamw sim 2023-05 reproduced   4.0
!                  fused_adamw sim current different  128.5
    rank 0 ended otherwise: RuntimeError: Expected a '{device}' device type for
    generator but found 'cpu'
! fixed            fused_adamw sim 2023-05 infra        1.5
    interrupted
RPR-0005 Calling a submodule of a Fabric module skips gradient synchronisation
  failing          ddp         cpu current reproduced  10.9
                   ddp_spawn   cpu current reproduced  12.5
  fixed            ddp         cpu current clean       11.0
x no_backward_sync ddp         cpu current reproduced  11.2
x  a documented fix that does not fix

2023-05  python 3.11.9, torch 2.0.1
current  python 3.11.9, lightning 2.6.6, torch 2.13.0+cpu

Not run:
   2  cuda: torch 2.13.0+cpu is a build without CUDA (RPR-0005)
   1  cuda: torch 2.0.1 is a build without CUDA (RPR-0004)

5 agree, 0 news, 1 trouble; 3 unavailable, 1 infra
"""

AT_100 = """\
  variant           strategy     device  stack    verdict     seconds
RPR-0004 Fused AdamW's step counter stays on the CPU after a resume
  failing           fused_adamw  sim     2023-05  reproduced      4.0
!                   fused_adamw  sim     current  different     128.5
    rank 0 ended otherwise: RuntimeError: Expected a '{device}' device type for generator but found
    'cpu'
! fixed             fused_adamw  sim     2023-05  infra           1.5
    interrupted
RPR-0005 Calling a submodule of a Fabric module skips gradient synchronisation
  failing           ddp          cpu     current  reproduced     10.9
                    ddp_spawn    cpu     current  reproduced     12.5
  fixed             ddp          cpu     current  clean          11.0
  no_backward_sync  ddp          cpu     current  reproduced     11.2  does not fix
"""

AT_50 = """\
  variant  strategy    dev stack   verdict      sec
RPR-0004 Fused AdamW's step counter stays on the
         CPU after a resume
  failing  fused_adamw sim 2023-05 reproduced   4.0
!          fused_adamw sim current different  128.5
    rank 0 ended otherwise: RuntimeError: Expected
    a '{device}' device type for generator but
    found 'cpu'
! fixed    fused_adamw sim 2023-05 infra        1.5
    interrupted
RPR-0005 Calling a submodule of a Fabric module
         skips gradient synchronisation
  failing  ddp         cpu current reproduced  10.9
           ddp_spawn   cpu current reproduced  12.5
  fixed    ddp         cpu current clean       11.0
x no_      ddp         cpu current reproduced  11.2
   backward_
   sync
"""


def shown(lines: Sequence[Any], width: int, *, verbose: bool = False, colour: bool = False) -> str:
    text = table.summary_table(lines, width, verbose=verbose)
    return f"{paint(text) if colour else text.plain}\n"


def test_at_the_width_of_a_terminal() -> None:
    assert shown(LINES, 80) == AT_80


def test_notes_follow_the_row_if_there_is_room() -> None:
    assert shown(LINES, 100).startswith(AT_100)


def test_variant_names_break_at_underscores_if_there_is_no_room() -> None:
    assert shown(LINES, 50).startswith(AT_50)


@pytest.mark.parametrize("width", [52, 60, 72, 80, 100, 120, 200])
def test_no_line_is_wider_than_the_output(width: int) -> None:
    assert max(map(len, shown(LINES, width).splitlines())) <= width


def test_verbose_shows_the_unavailable_cells() -> None:
    lines = [line for line in LINES if line["variant"] == "failing" and line["repro"] == "RPR-0005"]
    rows = shown(lines, 100, verbose=True)
    assert "  failing  ddp        cpu     current  reproduced      10.9\n" in rows
    assert f"           ddp        cuda    current  unavailable\n    {NO_CUDA}\n" in rows
    assert "Not run" not in rows


def test_the_last_of_several_results_for_a_cell_counts() -> None:
    first, last = (line("RPR-0005", FABRIC, "fixed ddp cpu current", v, 1) for v in (Verdict.DIFFERENT, Verdict.CLEAN))
    assert shown([first, last], 80) == (
        "  variant  strategy  device  stack    verdict  seconds\n"
        "RPR-0005 Calling a submodule of a Fabric module skips gradient synchronisation\n"
        "  fixed    ddp       cpu     current  clean        1.0\n"
        "\n"
        "current  python 3.11.9, lightning 2.6.6, torch 2.13.0+cpu\n"
        "\n"
        "1 earlier result of the same cells omitted\n"
        "1 agree, 0 news, 0 trouble\n"
    )
    assert record.disagreeing([first, last]) == []
    assert record.disagreeing([last, first]) == [first]


def test_an_interpreter_has_the_name_of_its_environment() -> None:
    lines = [
        line("RPR-0005", FABRIC, f"fixed ddp cpu {path}/bin/python", Verdict.CLEAN, 1) for path in ("/a/one", "/b/two")
    ]
    rows = shown(lines, 100)
    assert "  fixed    ddp       cpu     one    clean        1.0\n" in rows
    assert "two  python 3.11.9, lightning 2.6.6, torch 2.13.0+cpu (/b/two/bin/python)\n" in rows


def test_two_environments_of_one_name_get_their_paths() -> None:
    lines = [
        line("RPR-0005", FABRIC, f"fixed ddp cpu {path}/bin/python", Verdict.CLEAN, 1)
        for path in ("/a/venv", "/b/venv")
    ]
    rows = shown(lines, 100)
    assert "cpu     /a/venv/bin/python  clean" in rows
    assert "cpu     /b/venv/bin/python  clean" in rows


def test_only_unavailable_cells() -> None:
    assert shown([LINES[1]], 80) == (
        "Not run:\n"
        "   1  cuda: torch 2.13.0+cpu is a build without CUDA (RPR-0005)\n"
        "\n"
        "0 agree, 0 news, 0 trouble; 1 unavailable\n"
    )


def test_a_script_that_cannot_run_on_a_release_says_nothing_about_its_failure() -> None:
    reason = "needs torch>=2.4 (found 2.1.2)"
    assert shown([line("RPR-0044", "x", "failing auto cpu 2023-12", Verdict.UNAVAILABLE, reason=reason)], 100) == (
        "Not run:\n"
        "   1  cpu: needs torch>=2.4 (found 2.1.2) (RPR-0044)\n"
        "A script that cannot run on a release is no evidence about that release; see repros audit.\n"
        "\n"
        "0 agree, 0 news, 0 trouble; 1 unavailable\n"
    )


def test_every_verdict_has_the_colour_of_its_category() -> None:
    colours = {"green": "32", "yellow": "33", "red": "31", "dim": "2"}
    for verdict in Verdict:
        rows = shown([line("RPR-0005", FABRIC, "fixed ddp cpu current", verdict, 1)], 80, verbose=True, colour=True)
        assert f"\x1b[{colours[table.verdict_style(verdict)]}m{verdict}\x1b[0m" in rows


@pytest.mark.parametrize("verdict", list(Verdict))
def test_a_disagreeing_cell_has_a_mark_besides_its_colour(verdict: Verdict) -> None:
    lines = [line("RPR-0005", FABRIC, "fixed ddp cpu current", verdict, 1, reason="because")]
    agrees = verdict in {Verdict.REPRODUCED, Verdict.CLEAN, Verdict.UNAVAILABLE}
    assert bool(record.disagreeing(lines)) is not agrees
    assert ("\n! fixed" in shown(lines, 80)) is not agrees


def test_a_real_record_line_is_enough() -> None:
    claimed = factories.variant("claimed", claim="it helps")
    cell = factories.cell(ExpectedOutcome.FAILS, variant=claimed)
    seen = factories.observation(factories.process(0, Ending.RAISED))
    rows = shown([record.line(CellResult(cell, Verdict.REPRODUCED, "as documented", "RuntimeError", seen))], 80)
    assert rows == (
        "  variant  strategy  device  stack    verdict     seconds\n"
        "RPR-0001 A toy\n"
        "  claimed  ddp       cpu     current  reproduced      1.5  does not fix\n"
        "\n"
        "current  python 3.11.9, torch 2.13.0+cpu\n"
        "\n"
        "1 agree, 0 news, 0 trouble\n"
    )


def test_repeats_are_shown_beside_the_verdict() -> None:
    repeats = {"n": 20, "agreeing": 19}
    flaky = line("RPR-0005", FABRIC, "failing ddp cpu current", Verdict.FLAKY, 10.9, repeats=repeats, reason="because")
    assert "current  flaky 19/20     10.9\n    because\n" in table.summary_table([flaky], 100).plain


def test_cells_that_ran_side_by_side_are_sorted() -> None:
    order = [0, 3, 2, 5, 1, 4, 9, 7, 6, 8]
    assert list(map(cell_of, record.latest(LINES[i] for i in order))) == [
        "RPR-0004 fixed fused_adamw cuda 2023-05",
        "RPR-0004 fixed fused_adamw sim 2023-05",
        "RPR-0004 failing fused_adamw sim current",
        "RPR-0004 failing fused_adamw sim 2023-05",
        "RPR-0005 failing ddp cpu current",
        "RPR-0005 failing ddp cuda current",
        "RPR-0005 failing ddp_spawn cpu current",
        "RPR-0005 fixed ddp cpu current",
        "RPR-0005 fixed ddp cuda current",
        "RPR-0005 no_backward_sync ddp cpu current",
    ]


def cell_of(line: Mapping[str, Any]) -> str:
    return f"{line['repro']} {line['variant']} {line['strategy']} {line['device']} {line['stack']['name']}"


def test_the_stacks_of_a_variant_are_in_order() -> None:
    ended = [
        line("RPR-0004", ADAMW, f"{variant} fused_adamw sim {stack}", Verdict.CLEAN, 1.0)
        for variant, stacks in {"fixed": ("current", "2023-05"), "failing": ("2023-05", "current")}.items()
        for stack in stacks
    ]
    rows = [row.split() for row in table.summary_table(ended, 100).plain.splitlines() if " sim " in row]
    assert [row[-3] for row in rows] == ["2023-05", "current"] * 2
    assert [row[0] for row in rows[::2]] == ["fixed", "failing"]
