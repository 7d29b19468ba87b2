"""Where the simulated accelerator does not do what the table says, and why: a line that does it must go from here."""

from __future__ import annotations

import torch

FIRST_SEEN = "names the devices in the arguments' order; TensorIterator names an output's first, and the CPU's last"
NO_OUTPUT_CHECK = "refuses an output elsewhere in TensorIterator's words; here resize_out would, in words of its own"
FILL = "refuses in TensorIterator's words; masked_fill__cuda checks by itself, in words of its own"
WRITE = "refuses in TensorIterator's words; _index_put_impl_ checks by itself when it accumulates"
CONVOLUTION = "checks with the generated check; Convolution.cpp compares types before, in words of its own"
HAS_A_COMPOSITE = "takes the composite kernel, whose inner operators refuse; CUDA has a kernel with a generated check"
GENERATOR = "refuses any generator in randperm_out_cpu's words; the CPU kernel's check_generator has others"
POSITION = "puts the result for a CPU tensor on the device"

DIFFERENCES = {
    **dict.fromkeys(["add_out_other_device", "add_out_of_cpu_inputs", "where_condition"], FIRST_SEEN),
    **dict.fromkeys(["cpu_index_put_device_value"], FIRST_SEEN),
    **dict.fromkeys(["sum_out", "cumsum_out", "cumprod_out"], NO_OUTPUT_CHECK),
    **dict.fromkeys(["masked_fill_mask", "masked_fill_value_1d", "cpu_masked_fill_device_value"], FILL),
    **dict.fromkeys(["index_put_accumulate"], WRITE),
    **dict.fromkeys(["conv_input", "conv_weight", "conv_bias"], CONVOLUTION),
    **dict.fromkeys(["addr", "layer_norm_weight", "layer_norm_other_device", "group_norm_weight"], HAS_A_COMPOSITE),
    **dict.fromkeys(["randperm_device_generator", "rand_device_generator", "randn_device_generator"], GENERATOR),
    **dict.fromkeys(["randint_device_generator", "normal_inplace_on_cpu", "uniform_inplace_on_cpu"], GENERATOR),
    **dict.fromkeys(["bernoulli_on_cpu", "exponential_on_cpu", "multinomial_on_cpu"], GENERATOR),
}
OF_CPU_KERNELS = {
    **dict.fromkeys(["foreach_add_inplace_to_cpu", "foreach_lerp_cpu", "SGD_foreach_momentum_on_cpu"], FIRST_SEEN),
    **dict.fromkeys(["Adam_foreach_moment_on_cpu", "AdamW_foreach_moment_on_cpu"], FIRST_SEEN),
    **dict.fromkeys(["foreach_over_devices_and_cpu", "foreach_norm_mixed"], POSITION),
}
"""Only where foreach operators have kernels of their own for the CPU, which later versions wrote for every device."""


def difference(name: str) -> str | None:
    """Return why a line is not done as the table says, on this torch; None where it is."""
    own = torch._C._dispatch_has_kernel_for_dispatch_key("aten::_foreach_add.List", "CPU")
    composite = torch._C._dispatch_has_kernel_for_dispatch_key("aten::_foreach_add.List", "CompositeExplicitAutograd")
    return DIFFERENCES.get(name) or (OF_CPU_KERNELS.get(name) if own and not composite else None)
