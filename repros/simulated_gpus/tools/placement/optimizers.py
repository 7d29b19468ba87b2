"""A step of an optimizer after a bad resume: part of the state is on the CPU, or on another device."""

from __future__ import annotations

from .line import FOREACH, GENERATED, ITERATOR, PYTHON, Expectation, Line, codegen, error, illegal_access, iterator, on

KINDS = {"fused": "fused=True", "foreach": "foreach=True", "for_loop": "foreach=False, fused=False"}
SOURCES = {"fused": GENERATED, "foreach": FOREACH, "for_loop": ITERATOR}
GROUPING = "aten/src/ATen/native/ForeachUtils.h _group_tensors_by_first_tensors_device_and_dtype"
GROUPS = "Tensors of the same index must be on the same device and the same dtype except `step` tensors"
KEYWORD_ONLY = "torchgen/dest/register_dispatch_key.py gen_device_check is for outputs and positional arguments"
LEARNING_RATE = "_fused_adam_.tensor_lr has NoCheck; aten/src/ATen/native/cuda/FusedAdamKernel.cu reads a CPU rate"


def moment_on_cpu(kind: str, name: str) -> Expectation:
    """Return the outcome of a step with a first moment on the CPU, which TensorIterator never names first."""
    return codegen("D:0", "cpu", "exp_avgs", f"_fused_{name.lower()}_") if kind == "fused" else iterator()


def moment_on_other_device(kind: str) -> Expectation:
    """Return the outcome of a step with a first moment on another device: written to, hence named first."""
    return iterator("D:0", "D:1") if kind == "for_loop" else error(GROUPS, more=".*")


def counter_on_cpu(kind: str, name: str) -> Expectation:
    """Return the outcome of a step with its counter on the CPU, which only fused optimizers refuse."""
    return codegen("D:0", "cpu", "state_steps", f"_fused_{name.lower()}_") if kind == "fused" else on("D:0")


LINES = [
    line
    for name in ("Adam", "AdamW")
    for kind, options in KINDS.items()
    for line in (
        Line(f"{name}_{kind}_counter_on_cpu", f"resume('{name}', 'step', c, {options})",
             counter_on_cpu(kind, name), SOURCES[kind]),
        Line(f"{name}_{kind}_moment_on_cpu", f"resume('{name}', 'exp_avg', c, {options})",
             moment_on_cpu(kind, name), SOURCES[kind]),
        Line(f"{name}_{kind}_moment_on_other_device", f"resume('{name}', 'exp_avg', e, {options})",
             moment_on_other_device(kind), ITERATOR if kind == "for_loop" else GROUPING, (2, 1)),
        Line(f"{name}_{kind}_state_in_place", f"resume('{name}', 'exp_avg', d, {options})", on("D:0"), PYTHON),
    )
]  # fmt: skip
LINES += [
    Line("SGD_foreach_momentum_on_cpu", "resume('SGD', 'momentum_buffer', c, momentum=0.9, foreach=True)",
         iterator(), FOREACH),
    Line("SGD_for_loop_momentum_on_cpu", "resume('SGD', 'momentum_buffer', c, momentum=0.9, foreach=False)",
         iterator(), ITERATOR),
    Line("SGD_fused_momentum_on_cpu", "resume('SGD', 'momentum_buffer', c, momentum=0.9, fused=True)",
         codegen("D:0", "cpu", "momentum_buffer_list", "_fused_sgd_"), GENERATED, (2, 4)),
    Line("Adam_fused_rate_on_cpu", "resume('Adam', 'exp_avg', d, lr=torch.tensor(0.1), fused=True)",
         on("D:0"), LEARNING_RATE, (2, 2)),
    Line("fused_adamw_step_on_cpu",
         "torch._fused_adamw_([x], [x], [x], [x], [], [cs], lr=0.1, beta1=0.9, beta2=0.99, weight_decay=0.0, eps=1e-8, "
         "amsgrad=False, maximize=False)", codegen("D:0", "cpu", "state_steps", "_fused_adamw_"), GENERATED),
    Line("fused_adam_gradients_on_cpu",
         "torch._fused_adam_([x], [cx], [x], [x], [], [s], lr=0.1, beta1=0.9, beta2=0.99, weight_decay=0.0, eps=1e-8, "
         "amsgrad=False, maximize=False)", codegen("D:0", "cpu", "grads", "_fused_adam_"), GENERATED),
    Line("fused_adam_found_inf_on_cpu",
         "torch._fused_adam_([x], [x], [x], [x], [], [s], lr=0.1, beta1=0.9, beta2=0.99, weight_decay=0.0, eps=1e-8, "
         "amsgrad=False, maximize=False, found_inf=cs)",
         illegal_access(), KEYWORD_ONLY),
    Line("fused_adam_gradients_on_other_device",
         "torch._fused_adam_([x], [x1], [x], [x], [], [s], lr=0.1, beta1=0.9, beta2=0.99, weight_decay=0.0, eps=1e-8, "
         "amsgrad=False, maximize=False)", codegen("D:0", "D:1", "grads", "_fused_adam_"), GENERATED),
    Line("fused_sgd_gradients_on_cpu",
         "torch._fused_sgd_([x], [cx], [], weight_decay=0.0, momentum=0.0, lr=0.1, dampening=0.0, nesterov=False, "
         "maximize=False, is_first_step=False)", codegen("D:0", "cpu", "grads", "_fused_sgd_"), GENERATED, (2, 3)),
    *(Line(f"{name}_foreach_{part}_on_cpu", f"resume('{name}', '{part}', c, foreach=True)", iterator(), FOREACH)
      for name, part in (("Adagrad", "sum"), ("RMSprop", "square_avg"), ("Adadelta", "acc_delta"))),
    Line("clip_gradients_of_both", "clip([d, c])", on("D:0"), PYTHON),
]  # fmt: skip
