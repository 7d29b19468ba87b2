"""The options `--stale`, `--always`, `--sample` and `--seed`: a part of the selection for a quick check."""

from __future__ import annotations

import functools
import secrets
from collections.abc import Callable
from typing import Any

import click

from repros.engine.matrix.subset import Reason, Subset, SubsetOptions
from repros.text.wording import count

_SEED_BYTES = 4


def _to_share(_: click.Context, __: click.Parameter, text: str | None) -> float | None:
    """Return a percentage as a share from 0 to 1; a callback."""
    if text is None:
        return None
    number, sign, rest = text.partition("%")
    try:
        share = float(number) / 100
    except ValueError:
        share = -1.0
    if not sign or rest or not 0 <= share <= 1:
        raise click.BadParameter(f"{text!r} is not a percentage from 0% to 100%, such as 10%.")
    return share


def subset_options(command: Callable[..., int]) -> Callable[..., int]:
    """Add the options of a subset; the command gets their value as `subset`, None if none is given."""

    @click.option(
        "--stale", is_flag=True, help="Run only the repros of which a cell has no fresh evidence; for a quick check."
    )
    @click.option(
        "--always", multiple=True, metavar="ID", help="Run only this repro, or in addition to --stale; repeatable."
    )
    @click.option(
        "--sample",
        "share",
        callback=_to_share,
        metavar="PERCENT",
        help="Run only a random sample, such as 10%, of the repros on each stack, or of those that --stale and "
        "--always leave out.",
    )
    @click.option(
        "--seed",
        metavar="TEXT",
        help="Seed of --sample, such as a commit's hash; the same seed draws the same sample. Default: a new seed, "
        "which is printed.",
    )
    @functools.wraps(command)
    def with_subset(
        *words: Any, stale: bool, always: tuple[str, ...], share: float | None, seed: str | None, **others: Any
    ) -> int:
        if seed is not None and share is None:
            raise click.UsageError("--seed needs --sample.")
        options = SubsetOptions(stale, always, share or 0.0, seed or secrets.token_hex(_SEED_BYTES))
        return command(*words, subset=options if stale or always or share is not None else None, **others)

    return with_subset


def describe(subset: Subset, options: SubsetOptions) -> str:
    """Return one sentence: the cells that run by reason, the number left out, and how to run all."""
    names = {
        Reason.STALE: "without fresh evidence",
        Reason.ALWAYS: f"of {', '.join(options.always)}",
        Reason.SAMPLED: f"sampled with --seed {options.seed}",
    }
    parts = [f"{number} {names[why]}" for why, number in subset.cells.items() if number and why in names]
    options_used = ", ".join(
        name
        for name, used in (("--stale", options.stale), ("--always", options.always), ("--sample", options.share))
        if used
    )
    left_out, total = subset.cells[Reason.LEFT_OUT], sum(subset.cells.values())
    return (
        f"{left_out} of {count(total, 'cell')} left out; chosen: {', '.join(parts) or 'none'}; "
        f"to run all, omit {options_used or '--sample'}"
    )
