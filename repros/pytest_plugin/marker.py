"""The marker `@pytest.mark.repro("RPR-0001")`, which links a test of another project to a documented failure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import pytest

from repros.engine.catalogue import load
from repros.model.catalogue import Catalogue
from repros.model.errors import ReprosError
from repros.pytest_plugin.catalogues import catalogues_of
from repros.text.control import remove_controls

_catalogue = pytest.StashKey[Catalogue]()


def record_marks(items: Iterable[pytest.Item], report: pytest.CollectReport) -> None:
    """Add the failures of marked items to the JUnit report; an unknown id is a collection error."""
    for item in items:
        try:
            item.user_properties += _properties(item)
        except ReprosError as error:
            report.outcome, report.result = "failed", []
            report.longrepr = remove_controls(f"{item.nodeid}: {error}")
            return


def _properties(item: pytest.Item) -> Iterator[tuple[str, object]]:
    """Yield each failure's id and title, the module's failures before the test's."""
    for mark in reversed(list(item.iter_markers("repro"))):
        if not mark.args or mark.kwargs or not all(isinstance(name, str) for name in mark.args):
            raise ReprosError('@pytest.mark.repro expects ids of failures, such as "RPR-0001".')
        for name in mark.args:
            repro = _get_catalogue(item.config).find(name)
            yield from (("repro", repro.id), ("repro-title", repro.title))


def _get_catalogue(config: pytest.Config) -> Catalogue:
    """Return the catalogues of the package and of the project, loaded for the first marked test."""
    if _catalogue not in config.stash:
        places = catalogues_of(config)
        config.stash[_catalogue] = load(places.scripts, places)
    return config.stash[_catalogue]
