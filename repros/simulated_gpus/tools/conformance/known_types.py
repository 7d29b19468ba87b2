"""Where a simulated GPU answers otherwise than `op_db` says which element types CUDA has, with upstream's line.

What the first list names runs on CUDA, too, in some sample. CUDA's own code takes it on the CUDA stub, as
`kernel_types/accepted` records, except `_scaled_mm`, which asks for a newer GPU, and `multinomial`, which looks at the
numbers first. The quoted lines are upstream's.
"""

from __future__ import annotations

from .entry import Known

_BOOL = ("bool",)
_INTEGERS = ("int64", "bool")
_HALVES = ("float16", "bfloat16")
_DROPOUT = ("dropout", "dropout2d", "dropout3d", "alpha_dropout", "feature_alpha_dropout.with_train")
_SAMPLES = "torch/testing/_internal/common_methods_invocations.py"

Entries = tuple[tuple[tuple[str, ...], tuple[str, ...], str], ...]
"""The names of operators and types, and the reason."""

_TOO_STRICT: Entries = (
    (
        ("allclose",),
        _INTEGERS,
        "ATen/native/TensorCompare.cpp, isclose: 'Tensor close = self == other;' has each type.",
    ),
    (
        ("clamp",),
        _BOOL,
        "TensorCompare.cpp, clamp_Tensor_out: '} else if (min) { maximum_stub(device_type(), *this);'.",
    ),
    (
        ("cumsum", "cumprod"),
        _BOOL,
        (
            "ATen/native/ReduceOps.cpp, meta_func_cum_ops: 'auto is_integral = at::isIntegralType(self.scalar_type(),"
            " /*includeBool=*/true);', so bools are counted in int64."
        ),
    ),
    (
        ("linspace",),
        _BOOL,
        "ATen/native/cuda/RangeFactories.cu: '} else if (steps == 1) {', one number is filled in.",
    ),
    (
        ("torch._scaled_mm", "torch._scaled_mm_v2"),
        (*_HALVES, *_INTEGERS),
        f"{_SAMPLES}, sample_inputs_scaled_mm: the samples are of a float8 type, whichever is asked for.",
    ),
    (("nn.functional.silu.complex",), _HALVES, f"{_SAMPLES}: another entry has the real types of this function."),
    (("einsum",), _INTEGERS, "ATen/native/Linear.cpp: 'if (sum_dims_.empty()) return at::mul(left_, right_);'."),
    (("inner",), _INTEGERS, "ATen/native/LinearAlgebra.cpp, inner: 'return self * other;' if one of them is a number."),
    (("tensordot",), _INTEGERS, "ATen/native/Linear.cpp, tensordot: a contraction to one number is a mul and a sum."),
    (
        ("randint",),
        _BOOL,
        "ATen/native/cuda/DistributionTemplates.h: 'AT_DISPATCH_ALL_TYPES_AND3(at::ScalarType::Bool, ...'.",
    ),
    (
        ("nn.functional.l1_loss",),
        ("int64",),
        (
            "ATen/native/Loss.cpp: 'return apply_loss_reduction((input - target).abs(), reduction);', of which only the"
            " mean lacks integers."
        ),
    ),
    (
        tuple(f"nn.functional.{name}" for name in _DROPOUT),
        _INTEGERS,
        "ATen/native/Dropout.cpp, _dropout_impl: 'if (p == 0 || !train || input.sym_numel() == 0) { return input;'.",
    ),
    (("nn.functional.embedding",), _INTEGERS, "ATen/native/Embedding.cpp: 'return weight.index_select(0, indices);'."),
    (
        ("linalg.matrix_power",),
        (*_HALVES, *_INTEGERS),
        (
            "ATen/native/LinearAlgebra.cpp, linalg_matrix_power_impl: 'if (n == 0)' and 'if (n == 1)' copy; others are"
            " products, which the half types have."
        ),
    ),
    (
        ("masked.amax", "masked.amin", "masked.logsumexp"),
        _BOOL,
        "torch/masked/_ops.py, _combine_input_and_mask: 'if mask is None: return input', whose reduction has bool.",
    ),
    (
        ("masked.median",),
        _INTEGERS,
        "torch/masked/_ops.py, median: 'input = input.to(dtype=torch.float)' for what is not floating point.",
    ),
)

_SORTS = (
    "ATen/native/cuda/Sorting.cpp, median_cuda: 'return median_impl(self, /*ignore_nan=*/false);' sorts; only a median"
    " along a dimension lacks the type."
)
_BEFORE_2_3 = ("2.0.", "2.1.", "2.2.")
_FROM_2_6 = ("2.6.", "2.9.", "2.10.", "2.13.", "2.15.")
_TOO_STRICT_BEFORE_2_3: Entries = (
    (("median", "nanmedian"), ("bfloat16",), _SORTS),
    (
        ("multinomial",),
        ("bfloat16",),
        (
            "ATen/native/Distributions.cpp, multinomial_out: 'Fast-path for no replacement or if only one sample draw.'"
            " takes the largest quotients of exponential numbers."
        ),
    ),
)
_TOO_STRICT_FROM_2_6: Entries = ((("median", "nanmedian"), _BOOL, _SORTS),)

_LACKING: Entries = (
    (
        ("torch.ops.aten._flash_attention_forward",),
        _HALVES,
        "A simulated GPU has the kernel under scaled_dot_product_attention only.",
    ),
    (("nanmean", "nansum"), ("complex32",), "The CPU has no complex nansum."),
)

_LACKING_BEFORE_2_3: Entries = (
    (
        ("multinomial",),
        ("float16",),
        "This run draws the CPU's random numbers, for which the CPU's multinomial takes no half; CUDA's are drawn.",
    ),
    (
        ("torch.ops.aten._efficient_attention_forward",),
        _HALVES,
        "The host has no fused kernel, so a simulated GPU has this one under scaled_dot_product_attention only.",
    ),
)
_LACKING_FROM_2_15: Entries = (
    (
        ("stft", "fft.fft", "fft.ifft", "fft.rfft", "fft.rfft2", "fft.ihfft"),
        ("bfloat16",),
        "The size is no power of two, and cuFFT takes no other in bfloat16, says CuFFTPlanCache.h.",
    ),
)

KNOWN_TYPES = tuple(
    Known(operator, reason, frozenset(dtypes), frozenset({form}), versions, against="types")
    for form, versions, entries in (
        ("denied", (), _TOO_STRICT),
        ("denied", _BEFORE_2_3, _TOO_STRICT_BEFORE_2_3),
        ("denied", _FROM_2_6, _TOO_STRICT_FROM_2_6),
        ("only CUDA has", (), _LACKING),
        ("only CUDA has", _BEFORE_2_3, _LACKING_BEFORE_2_3),
        ("only CUDA has", ("2.15.",), _LACKING_FROM_2_15),
    )
    for operators, dtypes, reason in entries
    for operator in operators
)
