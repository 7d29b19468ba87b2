"""Verdict and signature of each toy that needs only an interpreter, however it is launched."""

from __future__ import annotations

from repros.model import Verdict

ENDINGS: list[tuple[str, str, Verdict, str | None]] = [
    ("raises", "failing", Verdict.REPRODUCED, "ValueError: the documented failure on {device}"),
    ("raises", "fixed", Verdict.CLEAN, None),
    ("raises", "not_a_fix", Verdict.UNFIXED, "ValueError: the documented failure on {device}"),
    ("raises", "outside", Verdict.REGRESSED, "ValueError: the documented failure on {device}"),
    ("raises", "outside_fine", Verdict.CLEAN, None),
    ("raises", "gone", Verdict.GONE, None),
    ("raises", "another_message", Verdict.DIFFERENT, "ValueError: quite another failure"),
    ("raises", "another_type", Verdict.DIFFERENT, "KeyError: 'the documented failure on {device}'"),
    ("raises", "subclass", Verdict.REPRODUCED, "UnicodeError: the documented failure on {device}"),
    ("raises", "undecodable", Verdict.DIFFERENT, "OSError: no such file: ?.pt"),
    ("raises", "no_disk", Verdict.INFRA, "OSError: [Errno 28] No space left on device"),
    ("asserts", "failing", Verdict.REPRODUCED, "AssertionError: the sum is wrong: 5"),
    ("asserts", "fixed", Verdict.CLEAN, None),
    ("exits", "failing", Verdict.REPRODUCED, "exit 3"),
    ("exits", "sys_exit", Verdict.REPRODUCED, "exit 3"),
    ("exits", "on_rank_1", Verdict.REPRODUCED, "exit 3"),
    ("exits", "undocumented", Verdict.DIFFERENT, "exit 3"),
    ("dies_on_rank_1", "failing", Verdict.REPRODUCED, "signal SIGSEGV"),
    ("dies_on_rank_1", "unnoticed", Verdict.REPRODUCED, "signal SIGSEGV"),
    ("dies_on_rank_1", "undocumented", Verdict.DIFFERENT, "signal SIGSEGV"),
    ("kills_itself", "failing", Verdict.REPRODUCED, "signal SIGKILL"),
    ("kills_itself", "undocumented", Verdict.INFRA, "signal SIGKILL"),
    ("raises_in_a_relaunched_rank", "failing", Verdict.REPRODUCED, "RuntimeError: the documented failure"),
    ("raises_in_a_relaunched_rank", "fixed", Verdict.CLEAN, None),
    ("masks_its_error", "failing", Verdict.REPRODUCED, "RuntimeError: the documented failure"),
    ("unprintable", "failing", Verdict.REPRODUCED, "RuntimeError: the documented failure"),
    (
        "unprintable",
        "alone",
        Verdict.DIFFERENT,
        "__main__.UnprintableError: <no message: its __str__ raised SystemError>",
    ),
    ("one_rank_only", "failing", Verdict.DIFFERENT, None),
    ("one_rank_only", "fixed", Verdict.DIFFERENT, None),
    ("own_excepthook", "failing", Verdict.REPRODUCED, "RuntimeError: the documented failure"),
    ("corrupts_its_events", "failing", Verdict.REPRODUCED, "RuntimeError: the documented failure"),
    ("corrupts_its_events", "emptied", Verdict.REPRODUCED, "RuntimeError: the documented failure"),
    ("corrupts_its_events", "removed", Verdict.DIFFERENT, "exit 1"),
    ("prints_garbage", "failing", Verdict.REPRODUCED, "RuntimeError: the documented failure"),
    ("aborts_on_its_way_out", "failing", Verdict.REPRODUCED, "RuntimeError: the documented failure"),
    ("aborts_on_its_way_out", "fixed", Verdict.CLEAN, None),
    ("aborts_on_its_way_out", "in_c", Verdict.CLEAN, None),
]
"""Script, variant, verdict, observed signature."""
