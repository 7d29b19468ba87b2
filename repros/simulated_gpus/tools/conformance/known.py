"""The known differences between the simulated accelerator and its reference, with their reasons.

An entry that no longer differs fails the run until it is removed; those of element types (`known_types.py`), of which a
release's list may have no samples, only if they differ in no release.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from .entry import Known
from .known_types import KNOWN_TYPES

if TYPE_CHECKING:
    from collections.abc import Iterable

    from .run import Found


KNOWN: tuple[Known, ...] = (
    *(
        Known(
            operator,
            "aten/src/ATen/native/BatchLinearAlgebra.cpp, linalg_lstsq: CUDA has one of LAPACK's four drivers, gels.",
            dtypes=frozenset({"float32"}),
        )
        for operator in ("linalg.lstsq", "linalg.lstsq.grad_oriented")
    ),
    Known(
        "nn.functional.linear_cross_entropy.chunked",
        "torch/nn/modules/linear_cross_entropy_options.py chooses other parts of the batch and another accumulation for"
        " bfloat16 on `cuda` than on `cpu`.",
        dtypes=frozenset({"bfloat16"}),
    ),
    Known(
        "renorm",
        "torch/csrc/autograd/FunctionsManual.cpp, renorm_backward, takes `at::toAccumulateType`: float64 on the"
        " CPU, float32 on `cuda`.",
        dtypes=frozenset({"float32"}),
        forms=frozenset({"backward"}),
    ),
    Known(
        "nn.functional.scaled_dot_product_attention",
        "The result has the strides of the kernel that a GPU would choose (sdp_choice.cpp), and the CPU's values.",
        forms=frozenset({"forward"}),
        versions=("2.4.", "2.6.", "2.9.", "2.10.", "2.13.", "2.15."),  # from where on the CPU's layouts differ, too
    ),
    *(
        Known(operator, "A kernel counts its size, and on the CUDA stub no kernel runs.", against="cuda")
        for operator in (
            "__getitem__",
            "argwhere",
            "bincount",
            "combinations",
            "masked_select",
            "nonzero",
            "nn.functional.one_hot",
            "unique",
            "unique_consecutive",
        )
    ),
    Known(
        "prod",
        "Its gradient is computed differently if a kernel finds a zero, and on the CUDA stub every element is zero.",
        forms=frozenset({"backward"}),
        against="cuda",
    ),
    *(
        Known(
            operator,
            "aten/src/ATen/native/cuda/jit_utils.cpp compiles for CUDA, whatever the device.",
            against="cuda",
        )
        for operator in (
            "jiterator_unary",
            "jiterator_binary",
            "jiterator_4inputs_with_extra_args",
            "jiterator_binary_return_by_ref",
            "jiterator_2inputs_2outputs",
        )
    ),
    *(
        Known(
            operator,
            "CUDA's kernel returns its saved statistics in float32 and in full size. The CPU's kernel, which computes"
            " on the simulated GPU, returns them in the input's type, and empty for a batch norm in evaluation.",
            against="cuda",
        )
        for operator in (
            "native_layer_norm",
            "native_batch_norm",
            "_native_batch_norm_legit",
            "_batch_norm_with_update",
        )
    ),
    *(
        Known(
            operator,
            "The strides depend on the algorithm: CUDA's own, and the CPU's on the simulated GPU.",
            against="cuda",
        )
        for operator in (
            "nn.functional.max_unpool2d",
            "nn.functional.max_unpool2d.grad",
            "svd",
            "linalg.svd",
            "linalg.eig",
            "nn.functional.scaled_dot_product_attention",
        )
    ),
    *KNOWN_TYPES,
)


def entries_for(version: str, against: str = "cpu") -> list[Known]:
    """Return the entries for a torch version and a reference."""
    entries = [entry for entry in KNOWN if entry.against == against]
    return [entry for entry in entries if not entry.versions or version.startswith(entry.versions)]


def uncovered(found: Iterable[Found], known: Iterable[Known]) -> list[Found]:
    """Return the differences that no entry covers."""
    entries = list(known)
    return [
        combination
        for combination in found
        if combination.wrong and not any(entry.covers(*combination[:3]) for entry in entries)
    ]


def stale(found: Iterable[Found], known: Iterable[Known]) -> list[Known]:
    """Return the entries whose operators were run and did not differ."""
    combinations = list(found)
    run = {combination.operator for combination in combinations}
    wrong = [combination for combination in combinations if combination.wrong]
    return [
        entry
        for entry in known
        if entry.operator in run and not any(entry.covers(*combination[:3]) for combination in wrong)
    ]
