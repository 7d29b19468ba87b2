"""The environments of stacks: created with uv in the cache folder, and removed when no longer needed."""

from __future__ import annotations

from repros.engine.environments.store import EnvironmentFailedError, drop, ensure, environment_folder, ready

__all__ = ["EnvironmentFailedError", "drop", "ensure", "environment_folder", "ready"]
