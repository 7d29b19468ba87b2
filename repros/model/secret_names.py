"""Names of environment variables that hold secrets."""

from __future__ import annotations

import re

SECRET_NAME = re.compile(r"TOKEN|SECRET|PASS|PWD|KEY|AUTH|CRED|COOKIE|SSH", re.IGNORECASE)
"""Found within the name of a variable with a secret: a report redacts its value, the sandbox does not pass it on.

Harmless names match too (`TOKENIZERS_PARALLELISM`); each user has its own exceptions.
"""
