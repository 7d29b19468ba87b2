"""Shell completion of ids, variants, strategies, stacks, families, packages and clusters.

click prints the scripts: `eval "$(_REPROS_COMPLETE=bash_source repros)"`, and likewise for zsh and fish.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator

import click
from click.shell_completion import CompletionItem

from repros.cli.shared.inputs import read_catalogue
from repros.engine.stacks import load_stacks
from repros.model import Repro
from repros.model.errors import ReprosError
from repros.model.settings import CatalogueLocations, find_catalogues

Offer = Callable[[click.Context], Iterable[tuple[str, str]]]
"""Returns names with a description each, given the rest of the command line."""


class _CatalogueName(click.types.StringParamType):
    """A string that the shell can complete."""

    def __init__(self, offer: Offer) -> None:
        self._offer = offer

    def shell_complete(
        self,
        ctx: click.Context,
        param: click.Parameter,  # noqa: ARG002 - click hands it over
        incomplete: str,
    ) -> list[CompletionItem]:
        """Return the names with this prefix, ignoring case."""
        try:
            names = list(self._offer(ctx))
        except ReprosError:
            return []  # the command itself reports it
        matches = (item for item in names if item[0].lower().startswith(incomplete.lower()))
        return [CompletionItem(name, help=about) for name, about in dict(matches).items()]


def add_completion(command: click.Command) -> None:
    """Add completion to the parameters of a command that take a known name."""
    for parameter in command.params:
        if parameter.type is click.STRING and (offer := _offer(parameter.name)):
            parameter.type = _CatalogueName(offer)


def _offer(parameter: str | None) -> Offer | None:
    return next((offer for names, offer in _OFFERS.items() if parameter in names), None)


def _places(ctx: click.Context) -> CatalogueLocations:
    """Return the catalogues in use; not every command has `--catalogue`."""
    return ctx.params.get("places") or find_catalogues()


def _repros(ctx: click.Context) -> Iterator[Repro]:
    """Yield the repros that the command line names, or all."""
    # An option without its value ends click's parsing: the words before it are then in `args`.
    named = {*(ctx.params.get("ids") or ()), ctx.params.get("id_"), *ctx.args}
    catalogue = read_catalogue(_places(ctx))
    found: list[Repro] = []
    for name in filter(None, named):
        with contextlib.suppress(ReprosError):
            found.append(catalogue.find(name))
    yield from found or catalogue


def _stacks(ctx: click.Context) -> Iterator[tuple[str, str]]:
    yield from ((stack.name, stack.about) for stack in load_stacks(_places(ctx)).values())
    # `home` is accepted by the options that take several stacks.
    if "stacks" in ctx.params:
        yield "home", "the reference stack of each repro"


_OFFERS: dict[tuple[str, ...], Offer] = {
    ("ids", "id_", "always"): lambda ctx: (
        (name, repro.title) for repro in read_catalogue(_places(ctx)) for name in (repro.id, repro.slug)
    ),
    ("variant", "variants"): lambda ctx: (
        (variant.name, variant.about) for repro in _repros(ctx) for variant in repro.variants
    ),
    ("strategy", "strategies"): lambda ctx: ((name, "") for repro in _repros(ctx) for name in repro.strategies),
    ("package", "packages"): lambda ctx: ((name, "") for repro in _repros(ctx) for name in repro.packages),
    ("family", "families"): lambda ctx: ((repro.family, "") for repro in read_catalogue(_places(ctx))),
    ("stack", "stack_name", "stacks", "clean_on", "locked"): _stacks,
    ("on",): lambda _: [
        ("ray", "the cluster at RAY_ADDRESS, or a local one"),
        ("ray://", "the address of a remote cluster"),
    ],
}
"""By the parameter's name."""
