"""The environments of stacks: made with uv, kept in the cache folder, removed when they are no longer needed."""

from __future__ import annotations

from repros.engine.environments.store import EnvironmentFailedError, drop, ensure, place, ready

__all__ = ["EnvironmentFailedError", "drop", "ensure", "place", "ready"]
