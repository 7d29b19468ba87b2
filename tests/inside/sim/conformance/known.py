"""What the simulated accelerator does not do as the CPU does, and why.

An entry that passes has to leave: the run fails as long as it is here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable

    from .run import Found


class Known(NamedTuple):
    """An operator, or one way of calling it, that differs."""

    operator: str
    """Its name in `op_db`, with its variant behind a dot where it has one."""
    reason: str
    dtypes: frozenset[str] = frozenset()
    """Names of element types; empty: all."""
    forms: frozenset[str] = frozenset()
    """Names of forms; empty: all."""
    versions: tuple[str, ...] = ()
    """Beginnings of torch versions (`2.1.`); empty: all."""

    def covers(self, operator: str, dtype: str, form: str) -> bool:
        """Whether a combination is what this entry speaks of."""
        own = operator == self.operator and (not self.dtypes or dtype in self.dtypes)
        return own and (not self.forms or form in self.forms)


KNOWN: tuple[Known, ...] = (
    Known(
        "nn.functional.scaled_dot_product_attention",
        "The strides and the last bits are those of the algorithm, and aten/src/ATen/native/transformers/attention.cpp"
        " chooses it by device type: on `cuda` and `cpu` a fused one, before 2.4 the general one elsewhere.",
        versions=("2.1.",),
    ),
    *(
        Known(
            f"nn.functional.linear_cross_entropy.{variant}",
            "torch/nn/modules/linear_cross_entropy_options.py has bfloat16 accumulated in float32 on the device types"
            " that it names, `cuda` and `cpu`, and in bfloat16 on every other.",
            dtypes=frozenset({"bfloat16"}),
        )
        for variant in ("chunked", "chunked_none")
    ),
)


def of_version(version: str) -> list[Known]:
    """The entries that speak of a torch version."""
    return [entry for entry in KNOWN if not entry.versions or version.startswith(entry.versions)]


def uncovered(found: Iterable[Found], known: Iterable[Known]) -> list[Found]:
    """What differs and is named by no entry."""
    entries = list(known)
    return [one for one in found if one.wrong and not any(entry.covers(*one[:3]) for entry in entries)]


def stale(found: Iterable[Found], known: Iterable[Known]) -> list[Known]:
    """The entries for operators that were run which name nothing that differs."""
    combinations = list(found)
    run = {one.operator for one in combinations}
    wrong = [one for one in combinations if one.wrong]
    return [entry for entry in known if entry.operator in run and not any(entry.covers(*one[:3]) for one in wrong)]
