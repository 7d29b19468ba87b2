"""PyTorch's tests of collectives, groups and DDP, each with its ranks.

In the wheel they are a mixin. PyTorch's repository starts the ranks with a class like this one, in
`test/distributed/test_distributed_spawn.py`, which the wheel does not have.
"""

from __future__ import annotations

from typing import Any

import torch
from torch.testing._internal.common_distributed import MultiProcessTestCase
from torch.testing._internal.distributed.distributed_test import DistributedTest, TestDistBackend

MultiProcessTestCase.__test__ = False  # pytest must not collect the bases
TestDistBackend.__test__ = False


class TestRanks(TestDistBackend, DistributedTest._DistTestBase):
    """All tests of the mixin."""

    __test__ = True
    runTest: Any = None  # noqa: N815 # pytest collects the class by it, and torch 2.1 reads it

    def setUp(self) -> None:
        """Start the ranks."""
        super().setUp()
        # Forked, not spawned: the imports would take most of the time.
        self._start_processes(torch.multiprocessing.get_context("fork").Process)
