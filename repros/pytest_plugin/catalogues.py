"""The catalogues of a pytest session, from the settings of its root folder."""

from __future__ import annotations

import pytest

from repros.model.settings import CatalogueLocations, find_catalogues

_places = pytest.StashKey[CatalogueLocations]()


def catalogues_of(config: pytest.Config) -> CatalogueLocations:
    """Return the catalogues in use, read once per session.

    Raises:
        ReprosError: the project's settings are invalid.
    """
    if _places not in config.stash:
        config.stash[_places] = find_catalogues(folder=config.rootpath)
    return config.stash[_places]
