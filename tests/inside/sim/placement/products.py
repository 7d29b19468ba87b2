"""Matrix products, convolutions and layers: the generated check names the argument."""

from __future__ import annotations

from .line import COMPOSITE, GENERATED, PYTHON, Line, generated, lies, refused, says

CONVOLUTION = "aten/src/ATen/native/Convolution.cpp check_input_same_type_as_parameters"
LINEAR = "aten/src/ATen/native/Linear.cpp: addmm with the bias first, so that the bias sets the device"
MV = "aten/src/ATen/native/Blas.cpp mv: addmv_ on a result made where the vector is"
SAME_TYPE = "Input type (torch.{0}FloatTensor) and {1} type (torch.{2}FloatTensor) should be the same"


def product(name: str, expression: str, argument: str, operator: str, first: str = "D:0", second: str = "cpu") -> Line:
    """Return the line of an operator with a generated check."""
    return Line(name, expression, generated(first, second, argument, operator), GENERATED)


LINES = [
    product("mm", "torch.mm(m, cm)", "mat2", "mm"),
    product("mm_reversed", "torch.mm(cm, m)", "mat2", "mm", "cpu", "D:0"),
    product("mm_other_device", "torch.mm(m, m1)", "mat2", "mm", "D:0", "D:1"),
    product("mm_before_shapes", "torch.mm(m, torch.ones(5, 7))", "mat2", "mm"),
    product("mm_out", "torch.mm(m, m, out=torch.empty(3, 3))", "self", "mm", "cpu", "D:0"),
    product("mm_out_other_device", "torch.mm(m, m, out=torch.empty(3, 3, device=e))", "self", "mm", "D:1", "D:0"),
    product("matrix_times_matrix", "m @ cm", "mat2", "mm"),
    Line("mv", "torch.mv(m, cx)", generated("cpu", "D:0", "mat", "addmv_"), MV),
    Line("matmul", "m @ cx", generated("cpu", "D:0", "mat", "addmv_"), MV),
    product("dot", "torch.dot(x, cx)", "tensor", "dot"),
    product("dot_other_device", "torch.dot(x, x1)", "tensor", "dot", "D:0", "D:1"),
    product("bmm", "torch.bmm(b, cb)", "mat2", "bmm"),
    product("baddbmm", "torch.baddbmm(b, b, cb)", "batch2", "baddbmm"),
    product("addmm_bias", "torch.addmm(cx, m, m)", "mat1", "addmm", "cpu", "D:0"),
    product("addmm_bias_scalar", "torch.addmm(cs, m, m)", "mat1", "addmm", "cpu", "D:0"),
    product("addmm_mat1", "torch.addmm(x, cm, m)", "mat1", "addmm"),
    product("addmm_mat2", "torch.addmm(x, m, cm)", "mat2", "addmm"),
    product("addmv", "torch.addmv(x, m, cx)", "vec", "addmv"),
    product("addr", "torch.addr(m, x, cx)", "vec2", "addr"),
    product("addbmm", "torch.addbmm(m, b, cb)", "batch2", "addbmm"),
    Line("outer", "torch.outer(x, cx)", refused(), COMPOSITE),
    Line("einsum", "torch.einsum('ij,jk->ik', m, cm)", generated("D:0", "cpu", "mat2", "bmm"), COMPOSITE),
    Line("kron", "torch.kron(m, cm)", refused(), COMPOSITE),
    product("cross", "torch.linalg.cross(x, cx)", "other", "linalg_cross"),
    product("cdist", "torch.cdist(m, cm)", "x2", "_cdist_forward"),
    product("solve", "torch.linalg.solve(m, cm)", "B", "_linalg_solve_ex"),
    Line("cholesky_solve", "torch.cholesky_solve(m, cm)",
         says("Expected b and A to be on the same device, but found b on D:0 and A on cpu instead."),
         "aten/src/ATen/native/LinearAlgebraUtils.h linearSolveCheckInputs"),
    Line("linear_input", "F.linear(cm, m, x)", generated("D:0", "cpu", "mat1", "addmm"), LINEAR),
    Line("linear_weight", "F.linear(m, cm, x)", generated("D:0", "cpu", "mat2", "addmm"), LINEAR),
    Line("linear_bias", "F.linear(m, m, cx)", generated("cpu", "D:0", "mat1", "addmm"), LINEAR),
    Line("linear_3d", "F.linear(cb, m, x)", generated("D:0", "cpu", "mat1", "addmm"), LINEAR),
    Line("layer_and_input_on_cpu", "nn.Linear(3, 3).to(d)(cm)", generated("D:0", "cpu", "mat1", "addmm"), LINEAR),
    Line("layer_on_cpu", "nn.Linear(3, 3)(m)", generated("cpu", "D:0", "mat1", "addmm"), LINEAR),
    Line("layer_on_other_device", "nn.Linear(3, 3).to(e)(m)", generated("D:1", "D:0", "mat1", "addmm"), LINEAR),
    Line("bilinear", "F.bilinear(m, cm, b)", refused(), COMPOSITE),
    Line("conv_input", "F.conv2d(cimage, kernel)",
         says(SAME_TYPE.format("", "weight", "D."), more="( or .*)?"), CONVOLUTION),
    Line("conv_weight", "F.conv2d(image, ckernel)", says(SAME_TYPE.format("D.", "weight", "")), CONVOLUTION),
    Line("conv_bias", "F.conv2d(image, kernel, torch.ones(1))", says(SAME_TYPE.format("D.", "bias", "")), CONVOLUTION),
    Line("conv_other_device", "F.conv2d(image, kernel.to(e))", refused(), GENERATED),
    product("embedding_index", "F.embedding(ct, m)", "index", "index_select"),
    product("embedding_weight", "F.embedding(t, cm)", "index", "index_select", "cpu", "D:0"),
    product("embedding_other_device", "F.embedding(t, m1)", "index", "index_select", "D:1", "D:0"),
    product("embedding_module", "nn.Embedding(3, 3).to(d)(ct)", "index", "index_select"),
    product("embedding_bag", "F.embedding_bag(ct, m, ci)", "indices", "_embedding_bag_forward_only"),
    product("layer_norm_weight", "F.layer_norm(x, (3,), cx)", "weight", "native_layer_norm"),
    product("layer_norm_other_device", "F.layer_norm(x, (3,), x1)", "weight", "native_layer_norm", "D:0", "D:1"),
    product("group_norm_weight", "F.group_norm(image, 2, torch.ones(2))", "weight", "native_group_norm"),
    Line("batch_norm_statistics", "F.batch_norm(image, torch.ones(2), torch.ones(2))", refused(), GENERATED),
    Line("batch_norm_weight", "F.batch_norm(image, image[0, :, 0, 0], image[0, :, 0, 0], torch.ones(2))",
         refused(), GENERATED),
    product("prelu", "F.prelu(x, torch.ones(1))", "weight", "_prelu_kernel"),
    product("grid_sample", "F.grid_sample(image, torch.zeros(1, 2, 2, 2), align_corners=False)", "grid",
            "grid_sampler_2d"),
    Line("attention", "F.scaled_dot_product_attention(b, cb, b)",
         says("Expected query, key, and value to have the same device type, but got query.device: D:0 "
              "key.device: cpu and value.device: D:0 instead."),
         "aten/src/ATen/native/transformers/attention.cpp validate_sdpa_input"),
    Line("lstm_on_cpu", "nn.LSTM(3, 3)(b)",
         says("Input and parameter tensors are not at the same device, found input tensor at D:0 and parameter "
              "tensor at cpu"), "aten/src/ATen/native/RNN.h check_attributes"),
    Line("gru_cell_on_cpu", "nn.GRUCell(3, 3)(m)", refused(), COMPOSITE),
    Line("cosine_similarity", "F.cosine_similarity(x, cx, dim=0)", refused(), COMPOSITE),
    Line("gradient_on_cpu", "gradient_of(x, cx)",
         says("attempting to assign a gradient with device type 'cpu' to a tensor with device type 'D'. Please ensure "
              "that the gradient and the tensor are on the same device"),
         "torch/csrc/autograd/python_variable.cpp THPVariable_set_grad", (2, 1)),
    Line("numpy", "x.numpy()",
         says("can't convert D:0 device type tensor to numpy. Use Tensor.cpu() to copy the tensor to host memory "
              "first.",
              "TypeError"), "torch/csrc/utils/tensor_numpy.cpp"),
    Line("module_moves_its_parameters", "same_parameters(nn.Linear(2, 2), d).weight", lies("D:0"), PYTHON),
]  # fmt: skip
