"""bitsandbytes calls its own CUDA kernels for CUDA tensors: they are refused, and never silently replaced."""

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="runs in an environment with torch")

SCRIPT = """
import bitsandbytes, torch
values = torch.linspace(-1, 1, 4096, device="cuda:1")
print(bitsandbytes.functional.quantize_blockwise(values))
"""


@pytest.mark.usefixtures("sim")
def test_blocks_are_not_quantized(run_warm: Any) -> None:
    pytest.importorskip("bitsandbytes", reason="bitsandbytes is not installed in this environment")
    ended = run_warm(SCRIPT)
    assert ended.returncode != 0, ended.stdout
    assert "CUDA" in ended.stderr, ended.stderr
