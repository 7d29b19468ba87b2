"""`python -m repros` is `repros`."""

from __future__ import annotations

import sys

from repros.cli import main

sys.exit(main())
