from __future__ import annotations

import pytest

from repros.diagnose.match.versions import find_versions

PACKAGES = {"torch", "lightning", "accelerate", "bitsandbytes", "python"}


def stated(text: str) -> dict[str, tuple[str, ...]]:
    return dict(find_versions(enumerate(text.splitlines()), PACKAGES))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        # pip freeze, pip list, conda list, poetry show, uv pip list
        ("torch==2.1.2+cu121\nlightning==2.1.3", {"torch": ("2.1.2+cu121",), "lightning": ("2.1.3",)}),
        ("torch                    2.1.2\ntorchvision 0.16.2", {"torch": ("2.1.2",)}),
        ("pytorch   2.1.2   py3.11_cuda12.1_cudnn8.9.2_0    pytorch", {"torch": ("2.1.2",)}),
        ("[pip3] torch==2.1.2\n[conda] torch 2.1.2 pypi_0 pypi", {"torch": ("2.1.2",)}),
        # collect_env
        ("PyTorch version: 2.1.2+cu121", {"torch": ("2.1.2+cu121",)}),
        ("Python version: 3.11.7 (main, Dec  8 2023) [GCC 12.2.0] (64-bit runtime)", {"python": ("3.11.7",)}),
        # the forms of Lightning, transformers and accelerate
        ("#- PyTorch Lightning Version (e.g., 2.4.0): 2.1.3", {"lightning": ("2.1.3",)}),
        ("#- PyTorch Version (e.g., 2.4): 2.1", {"torch": ("2.1",)}),
        ("#- Python version (e.g., 3.12): 3.10", {"python": ("3.10",)}),
        (
            "* Lightning:\n\t- lightning:         2.1.3\n\t- torch:             2.1.2",
            {"lightning": ("2.1.3",), "torch": ("2.1.2",)},
        ),
        ("- PyTorch version (GPU?): 2.1.2+cu121 (True)", {"torch": ("2.1.2+cu121",)}),
        ("- `Accelerate` version: 0.25.0", {"accelerate": ("0.25.0",)}),
        # prose
        ("torch version: 2.1.2, accelerate 0.25.0", {"torch": ("2.1.2",), "accelerate": ("0.25.0",)}),
        ("torch.__version__ = '2.1.2'", {"torch": ("2.1.2",)}),
        ("I use lightning v2.1.3 and torch (2.1.2)", {"lightning": ("2.1.3",), "torch": ("2.1.2",)}),
        ("pytorch-lightning==2.1.3", {"lightning": ("2.1.3",)}),
        ("pytorch_lightning 2.1.3\nlightning 2.2.0", {"lightning": ("2.2.0",)}),
        ("Successfully installed lightning-2.1.3 torch-2.1.2", {"lightning": ("2.1.3",), "torch": ("2.1.2",)}),
        # the most exact of equal versions; all of different ones
        ("torch 2.1\ntorch==2.1.2+cpu", {"torch": ("2.1.2+cpu",)}),
        ("lightning 2.1.3, then lightning 2.4.0", {"lightning": ("2.1.3", "2.4.0")}),
        ('File "/env/lib/python3.10/site-packages/torch/a.py", line 1', {"python": ("3.10",)}),
        # requirements and numbers that are not versions
        ("lightning requires torch>=2.0 but torch<2.1 is pinned, torch~=2.1", {}),
        ("requires torch 2 or newer; see torch/2.1.2/docs and my-torch==2.0.1", {}),
        ("numpy 1.26.4, torchmetrics==1.2.1", {}),
        ("torch step 2.1 loss 0.3", {}),
        ("torch == 2.1.x", {}),
        ("(1) In PyTorch 2.6, we changed the default value of the `weights_only` argument in `torch.load`", {}),
        ("", {}),
    ],
)
def test_versions_stated_in_a_text(text: str, expected: dict[str, tuple[str, ...]]) -> None:
    assert stated(text) == expected


def test_no_packages_no_versions() -> None:
    assert find_versions([(1, "torch==2.1.2")], set()) == {}
