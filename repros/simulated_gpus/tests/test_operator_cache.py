"""The cached checks of an operator are dropped when it is deregistered."""

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="runs in an environment with torch")


def test_an_operator_gets_its_own_check_at_the_address_of_a_deregistered_one(sim: Any) -> None:
    x, y = torch.ones(2, device="cuda:0"), torch.ones(2, device="cuda:1")
    for number in range(5):
        namespace, name = f"deregistered_{number}", f"add_{number}"
        library = torch.library.Library(namespace, "DEF")
        library.define(f"{name}(Tensor x, Tensor y) -> Tensor")
        library.impl(name, lambda x, y: x + y, "CPU")
        operator = getattr(getattr(torch.ops, namespace), name)
        assert operator(x, x).tolist() == [2.0, 2.0]
        with pytest.raises(RuntimeError, match=rf"in method wrapper_CUDA__{name}\)"):
            operator(x, y)
        del operator
        destroy(library)


def destroy(library: Any) -> None:
    if hasattr(library, "_destroy"):
        library._destroy()
    else:  # until torch 2.1
        library.m = None
