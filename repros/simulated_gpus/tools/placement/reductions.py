"""Reductions, scans and sorting: one input, so only their results can be on another device."""

from __future__ import annotations

from .line import COMPOSITE, GENERATED, ITERATOR, OUTPUT, Line, codegen, error, iterator, one_error_of

NOT_THE_OUTPUTS = error("Expected out tensor to have device D:0, but got cpu instead")
NO_GUARD = ("t == DeviceType::CUDA INTERNAL ASSERT FAILED", "CUDAGuardImpl initialized with non-CUDA DeviceType")
GUARD = "c10/cuda/impl/CUDAGuardImpl.h: CUDA's kernel is selected and guards the device of its result, the CPU"
OF_TYPE_LONG = "torch.empty(3, dtype=torch.long)"


def not_the_outputs(name: str, call: str) -> Line:
    """Return the line of an operator whose meta function determines the result's device."""
    return Line(name, call, NOT_THE_OUTPUTS, OUTPUT)


def outputs_first(name: str, call: str, operator: str) -> Line:
    """Return the line of an operator with a generated check, which begins with the outputs."""
    return Line(name, call, codegen("cpu", "D:0", "self", operator), GENERATED)


LINES = [
    Line("sum_out", "torch.sum(m, 0, out=torch.empty(3))", NOT_THE_OUTPUTS, OUTPUT),
    Line("cumprod_out", "torch.cumprod(x, 0, out=torch.empty(3))", NOT_THE_OUTPUTS, OUTPUT),
    Line("cumsum_out", "torch.cumsum(x, 0, out=torch.empty(3))", NOT_THE_OUTPUTS, OUTPUT),
    not_the_outputs("mean_out", "torch.mean(m, 0, out=torch.empty(3))"),
    not_the_outputs("prod_out", "torch.prod(m, 0, out=torch.empty(3))"),
    not_the_outputs("all_out", "torch.all(k, 0, out=torch.empty((), dtype=torch.bool))"),
    not_the_outputs("any_out", "torch.any(k, 0, out=torch.empty((), dtype=torch.bool))"),
    not_the_outputs("aminmax_out", "torch.aminmax(m, dim=0, out=(torch.empty(3), torch.empty(3)))"),
    not_the_outputs("max_out", f"torch.max(m, 0, out=(torch.empty(3), {OF_TYPE_LONG}))"),
    not_the_outputs("max_out_indices", f"torch.max(m, 0, out=(torch.empty(3, device=d), {OF_TYPE_LONG}))"),
    Line("sum_out_other_device", "torch.sum(x, 0, out=torch.empty((), device=e))",
         error("Expected out tensor to have device D:0, but got D:1 instead"), OUTPUT),
    Line("cpu_sum_out_on_device", "torch.sum(cm, 0, out=torch.empty(3, device=d))",
         one_error_of("Expected out tensor to have device cpu, but got D:0 instead", *NO_GUARD, more=".*"), GUARD),
    Line("std_out", "torch.std(m, 0, out=torch.empty(3))", iterator(), ITERATOR),
    Line("var_out", "torch.var(m, 0, out=torch.empty(3))", iterator(), ITERATOR),
    Line("logsumexp_out", "torch.logsumexp(m, 0, out=torch.empty(3))", NOT_THE_OUTPUTS, COMPOSITE),
    outputs_first("amax_out", "torch.amax(m, 0, out=torch.empty(3))", "amax"),
    outputs_first("nansum_out", "torch.nansum(m, 0, out=torch.empty(3))", "nansum"),
    outputs_first("vector_norm_out", "torch.linalg.vector_norm(m, dim=0, out=torch.empty(3))", "linalg_vector_norm"),
    outputs_first("median_out", f"torch.median(m, 0, out=(torch.empty(3), {OF_TYPE_LONG}))", "median"),
    outputs_first("kthvalue_out", f"torch.kthvalue(m, 1, 0, out=(torch.empty(3), {OF_TYPE_LONG}))", "kthvalue"),
    outputs_first("softmax_out", "torch.softmax(m, 0, out=torch.empty(3, 3))", "_softmax"),
    outputs_first("log_softmax_out", "torch.log_softmax(m, 0, out=torch.empty(3, 3))", "_log_softmax"),
    outputs_first("histc_out", "torch.histc(x, out=torch.empty(100))", "histc"),
    outputs_first("nonzero_out", "torch.nonzero(x, out=torch.empty(3, 1, dtype=torch.long))", "nonzero"),
    Line("bincount_weights", "torch.bincount(t, cx)", codegen("D:0", "cpu", "weights", "bincount"), GENERATED),
    Line("quantile", "torch.quantile(x, torch.tensor([0.5]))",
         error("quantile() q tensor must be on the same device as the input tensor"), COMPOSITE),
    Line("distance", "torch.dist(x, cx)", iterator(), COMPOSITE),
    Line("trapezoid", "torch.trapezoid(x, cx)", iterator(), COMPOSITE),
]  # fmt: skip
