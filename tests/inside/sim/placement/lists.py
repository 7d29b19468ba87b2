"""Lists of tensors: concatenation checks them all, foreach operators position by position."""

from __future__ import annotations

from .line import COMPOSITE, FOREACH, GENERATED, Line, generated, iterator, lies, says

LINES = [
    Line("cat", "torch.cat([x, cx])", generated("D:0", "cpu", "tensors", "cat"), GENERATED),
    Line("cat_reversed", "torch.cat([cx, x])", generated("cpu", "D:0", "tensors", "cat"), GENERATED),
    Line("cat_other_device", "torch.cat([x, x1])", generated("D:0", "D:1", "tensors", "cat"), GENERATED),
    Line("cat_third", "torch.cat([x, x, x1])", generated("D:0", "D:1", "tensors", "cat"), GENERATED),
    Line("cat_out", "torch.cat([x, x], out=torch.empty(6))", generated("cpu", "D:0", "tensors", "cat"), GENERATED),
    Line("stack", "torch.stack([x, cx])", generated("D:0", "cpu", "tensors", "cat"), COMPOSITE),
    Line("hstack", "torch.hstack([x, cx])", generated("D:0", "cpu", "tensors", "cat"), COMPOSITE),
    Line("block_diag", "torch.block_diag(m, cm)",
         says("torch.block_diag: input tensors must all be on the same device. Input 0 is on device D:0 and input 1 is "
              "on device cpu"), COMPOSITE),
    Line("meshgrid", "torch.meshgrid(x, cx, indexing='ij')",
         says("meshgrid expects all tensors to have the same device"), COMPOSITE),
    Line("cartesian", "torch.cartesian_prod(x, cx)",
         says("meshgrid expects all tensors to have the same device"), COMPOSITE),
    Line("foreach_over_devices", "torch._foreach_add([x, x1], [x, x1])", lies("D:0", "D:1"), FOREACH),
    Line("foreach_over_devices_and_cpu", "torch._foreach_add([x, cx], [x, cx])", lies("D:0", "cpu"), FOREACH),
    Line("foreach_crosswise", "torch._foreach_add([x, x1], [x1, x])", iterator("D:1"), FOREACH),
    Line("foreach_add_lists", "torch._foreach_add([x, x], [cx, cx])", iterator(), FOREACH),
    Line("foreach_add_inplace", "torch._foreach_add_([x, x], [cx, cx])", iterator(), FOREACH),
    Line("foreach_add_inplace_to_cpu", "torch._foreach_add_([cx], [x])", iterator(), FOREACH),
    Line("foreach_add_scalar", "(torch._foreach_add_([x, x], cs), x)[1]", lies("D:0"), FOREACH),
    Line("foreach_mixed_list", "(torch._foreach_mul_([x, cx], 2.0), x, cx)[1:]", lies("D:0", "cpu"), FOREACH),
    Line("foreach_lerp", "torch._foreach_lerp_([x], [cx], 0.5)", iterator(), FOREACH),
    Line("foreach_lerp_cpu", "torch._foreach_lerp_([cx], [x], 0.5)", iterator(), FOREACH),
    Line("foreach_addcdiv", "torch._foreach_addcdiv_([x], [x], [cx])", iterator(), FOREACH),
    Line("foreach_norm_mixed", "torch._foreach_norm([x, cx])", lies("D:0", "cpu"), FOREACH),
]  # fmt: skip
