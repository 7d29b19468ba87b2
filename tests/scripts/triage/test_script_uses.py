"""The documented failures whose calls a script has."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from textwrap import dedent

import pytest

from repros.engine.catalogue import load
from repros.scripts.triage.script_uses import FailureUses, failure_uses, find_resemblances, read_uses


@pytest.fixture(scope="module")
def failures() -> Sequence[FailureUses]:
    return tuple(uses for repro in load() if (uses := failure_uses(repro)))


def test_uses_are_the_same_whatever_the_import() -> None:
    sources = (
        "import torch\ntorch.optim.AdamW(p, fused=True)",
        "from torch.optim import AdamW\nAdamW(p, fused=True)",
        "import torch.optim as o\no.AdamW(p, fused=True)",
        "from torch import optim\noptim.AdamW(p, fused=True)",
    )
    for source in sources:
        assert read_uses(source).items() >= {"torch:AdamW": 2, "AdamW(fused=True)": 2}.items(), source


def test_a_call_of_a_method_is_no_attribute() -> None:
    assert ".module()" in read_uses("ddp.module(x)")
    assert {".module", ".state_dict()"} <= read_uses("ddp.module.state_dict()").keys()
    assert ".module()" not in read_uses("ddp.module.state_dict()")


CLIPPED = """\
    import torch
    from torch.amp import GradScaler

    scaler = GradScaler("cuda")
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    scaler.scale(model(x).sum()).backward()
    {unscaled}
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    scaler.step(optimizer)
    """


@pytest.mark.parametrize(("unscaled", "expected"), [("", True), ("scaler.unscale_(optimizer)", False)])
def test_a_fix_in_the_script_is_seen(failures: Sequence[FailureUses], unscaled: str, *, expected: bool) -> None:
    found = find_resemblances(read_uses(dedent(CLIPPED).format(unscaled=unscaled)), failures)
    assert ("RPR-0067" in {one.uses.repro_id for one in found}) is expected


def test_the_line_is_that_of_the_rarest_use(failures: Sequence[FailureUses]) -> None:
    found = find_resemblances(read_uses(dedent(CLIPPED).format(unscaled="")), failures)
    first = next(one for one in found if one.uses.repro_id == "RPR-0067")
    assert (first.line, first.rare[0]) == (8, "torch:clip_grad_norm_")


def test_the_fixed_variant_of_no_failure_resembles_its_own_failure(failures: Sequence[FailureUses]) -> None:
    """A script with the fix, as the catalogue has it, is not taken for one with the failure."""
    wrong = []
    for repro in load():
        body = ast.parse(repro.path.read_text("utf-8"))
        others = {variant.name.casefold() for variant in repro.variants} - {"fixed"}
        body.body = [node for node in body.body if getattr(node, "name", "").casefold() not in others]
        uses = read_uses(ast.unparse(body))
        own = [one for one in find_resemblances(uses, failures) if one.uses.repro_id == repro.id]
        wrong += [repro.id] if own else []
    assert not wrong
