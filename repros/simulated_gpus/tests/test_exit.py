"""A process that has used the devices ends as it should, however it ends."""

from __future__ import annotations

from typing import Any

import pytest

pytestmark = pytest.mark.usefixtures("sim")

PLAIN_STEP = "torch.ones(2, device='cuda', requires_grad=True).sum().backward()"
STEP = "x = torch.ones(2, device='cuda', requires_grad=True); x.register_hook(lambda g: g); x.sum().backward()"
ENDINGS = {
    "with backward in its own thread": (PLAIN_STEP, 0),
    "with backward": (STEP, 0),
    "with backward in a thread": (
        f"""
import threading
def step():
    {STEP}
thread = threading.Thread(target=step)
thread.start()
thread.join()
""",
        0,
    ),
    "with sys.exit in a hook": (
        """
import sys
x = torch.ones(2, device="cuda:1", requires_grad=True)
x.register_hook(lambda gradient: sys.exit(3))
x.sum().backward()
""",
        3,
    ),
    "with a function of Python in the graph": (
        """
class Double(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.held = [object() for _ in range(1000)]
        return x * 2
    @staticmethod
    def backward(ctx, gradient):
        return gradient * 2
torch.autograd.set_detect_anomaly(True)
y = torch.ones(2, device="cuda", requires_grad=True)
for _ in range(50):
    y = Double.apply(y)
y.sum().backward()
torch.set_grad_enabled(False)
""",
        0,
    ),
    "in a forked process": (
        f"""
import os, sys
{STEP}
child = os.fork()
if child:
    sys.exit(os.waitpid(child, 0)[1])
""",
        0,
    ),
    "with a context that an assertion has ended": (
        f"{STEP}\ntry:\n    torch.ones(2, device='cuda')[torch.tensor([2])]\nexcept RuntimeError:\n    pass",
        0,
    ),
    "with os._exit": (f"import os\n{STEP}\nos._exit(0)", 0),
}


COLD = ("with backward", "with sys.exit in a hook", "with a function of Python in the graph")
"""Endings of processes that have also imported torch themselves."""
AS_PYTHON_ENDS = "import __main__, sys\nvars(__main__).update(globals())\nsys.exit()"
"""Takes down what is left, which the warm interpreter leaves out."""


@pytest.mark.parametrize("ending", ENDINGS)
def test_a_process_ends(ending: str, run_python: Any, run_warm: Any) -> None:
    script, code = ENDINGS[ending]
    ended = (run_python if ending in COLD else run_warm)(f"import torch\n{script}\n{AS_PYTHON_ENDS}")
    assert (ended.returncode, "terminate" in ended.stderr, "ignored" in ended.stderr) == (code, False, False), (
        ended.stderr
    )


def test_a_process_without_memory_ends(run_python: Any) -> None:
    full = "torch.cuda.set_per_process_memory_fraction(1e-12)"
    ended = run_python(f"import torch\n{STEP}\nheld = torch.ones(2, device='cuda')\n{full}\nprint('done', flush=True)")
    assert (ended.returncode, ended.stdout) == (0, "done\n"), ended.stderr
