"""Layers: linear, convolution, embedding, normalisation, attention, recurrence; and the modules that call them."""

from __future__ import annotations

from .line import COMPOSITE, GENERATED, PYTHON, Line, codegen, device_error, error, on, product

ATTENTION = "aten/src/ATen/native/transformers/attention.cpp validate_sdpa_input"
RECURRENT = "aten/src/ATen/native/RNN.h check_attributes"
CONVOLUTION = "aten/src/ATen/native/Convolution.cpp check_input_same_type_as_parameters"
LINEAR = "aten/src/ATen/native/Linear.cpp: addmm with the bias first, so that the bias sets the device"
SAME_TYPE = "Input type (torch.{0}FloatTensor) and {1} type (torch.{2}FloatTensor) should be the same"

LINES = [
    Line("linear_input", "F.linear(cm, m, x)", codegen("D:0", "cpu", "mat1", "addmm"), LINEAR),
    Line("linear_weight", "F.linear(m, cm, x)", codegen("D:0", "cpu", "mat2", "addmm"), LINEAR),
    Line("linear_bias", "F.linear(m, m, cx)", codegen("cpu", "D:0", "mat1", "addmm"), LINEAR),
    Line("linear_3d", "F.linear(cb, m, x)", codegen("D:0", "cpu", "mat1", "addmm"), LINEAR),
    Line("layer_and_input_on_cpu", "nn.Linear(3, 3).to(d)(cm)", codegen("D:0", "cpu", "mat1", "addmm"), LINEAR),
    Line("layer_on_cpu", "nn.Linear(3, 3)(m)", codegen("cpu", "D:0", "mat1", "addmm"), LINEAR),
    Line("layer_on_other_device", "nn.Linear(3, 3).to(e)(m)", codegen("D:1", "D:0", "mat1", "addmm"), LINEAR),
    Line("bilinear", "F.bilinear(m, cm, b)", device_error(), COMPOSITE),
    product("conv_small_input", "F.conv2d(cimage, kernel)", "weight", "_slow_conv2d_forward", "cpu", "D:0"),
    Line("conv_input", "F.conv2d(cimage.expand(2, 2, 4, 4), kernel)",
         error(SAME_TYPE.format("", "weight", "D."), more="( or .*)?"), CONVOLUTION),
    Line("conv_weight", "F.conv2d(image, ckernel)", error(SAME_TYPE.format("D.", "weight", "")), CONVOLUTION),
    Line("conv_bias", "F.conv2d(image, kernel, torch.ones(1))", error(SAME_TYPE.format("D.", "bias", "")), CONVOLUTION),
    Line("conv_other_device", "F.conv2d(image, kernel.to(e))", device_error(), GENERATED),
    product("embedding_index", "F.embedding(ct, m)", "index", "index_select"),
    product("embedding_weight", "F.embedding(t, cm)", "index", "index_select", "cpu", "D:0"),
    product("embedding_other_device", "F.embedding(t, m1)", "index", "index_select", "D:1", "D:0"),
    product("embedding_module", "nn.Embedding(3, 3).to(d)(ct)", "index", "index_select"),
    product("embedding_bag", "F.embedding_bag(ct, m, ci)", "indices", "_embedding_bag_forward_only"),
    product("layer_norm_weight", "F.layer_norm(x, (3,), cx)", "weight", "native_layer_norm"),
    product("layer_norm_other_device", "F.layer_norm(x, (3,), x1)", "weight", "native_layer_norm", "D:0", "D:1"),
    product("group_norm_weight", "F.group_norm(image, 2, torch.ones(2))", "weight", "native_group_norm"),
    Line("batch_norm_statistics", "F.batch_norm(image, torch.ones(2), torch.ones(2))", device_error(), GENERATED),
    Line("batch_norm_weight", "F.batch_norm(image, image[0, :, 0, 0], image[0, :, 0, 0], torch.ones(2))",
         device_error(), GENERATED),
    product("prelu", "F.prelu(x, torch.ones(1))", "weight", "_prelu_kernel"),
    product("grid_sample", "F.grid_sample(image, torch.zeros(1, 2, 2, 2), align_corners=False)", "grid",
            "grid_sampler_2d"),
    Line("attention", "F.scaled_dot_product_attention(b, cb, b)",
         error("Expected query, key, and value to have the same device type, but got query.device: D:0 "
              "key.device: cpu and value.device: D:0 instead."),
         ATTENTION),
    Line("lstm_on_cpu", "nn.LSTM(3, 3)(b)",
         error("Input and parameter tensors are not at the same device, found input tensor at D:0 and parameter "
              "tensor at cpu"), RECURRENT),
    Line("gru_cell_on_cpu", "nn.GRUCell(3, 3)(m)", device_error(), COMPOSITE),
    Line("cosine_similarity", "F.cosine_similarity(x, cx, dim=0)", device_error(), COMPOSITE),
    Line("gradient_on_cpu", "gradient_of(x, cx)",
         error("attempting to assign a gradient with device type 'cpu' to a tensor with device type 'D'. Please ensure "
              "that the gradient and the tensor are on the same device"),
         "torch/csrc/autograd/python_variable.cpp THPVariable_set_grad", (2, 1)),
    Line("numpy", "x.numpy()",
         error("can't convert D:0 device type tensor to numpy. Use Tensor.cpu() to copy the tensor to host memory "
              "first.",
              "TypeError"), "torch/csrc/utils/tensor_numpy.cpp"),
    Line("module_moves_its_parameters", "same_parameters(nn.Linear(2, 2), d).weight", on("D:0"), PYTHON),
    Line("conv1d_weight", "F.conv1d(b, torch.ones(1, 3, 1))", error(SAME_TYPE.format("D.", "weight", "")), CONVOLUTION),
    Line("conv3d_weight", "F.conv3d(torch.ones(1, 1, 2, 2, 2, device=d), torch.ones(1, 1, 1, 1, 1))",
         error(SAME_TYPE.format("D.", "weight", "")), CONVOLUTION),
    Line("conv_transpose_weight", "F.conv_transpose2d(image, torch.ones(2, 1, 3, 3))",
         error(SAME_TYPE.format("D.", "weight", "")), CONVOLUTION),
    Line("conv_transpose_bias", "F.conv_transpose2d(image, torch.ones(2, 1, 3, 3, device=d), torch.ones(1))",
         error(SAME_TYPE.format("D.", "bias", "")), CONVOLUTION),
    Line("conv_layer_on_cpu", "nn.Conv2d(2, 1, 3)(image)", error(SAME_TYPE.format("D.", "weight", "")), CONVOLUTION),
    Line("conv_layer_on_other_device", "nn.Conv2d(2, 1, 3).to(e)(image)", device_error(), GENERATED),
    product("max_unpool", "F.max_unpool2d(image, torch.zeros(1, 2, 4, 4, dtype=torch.long), 2)",
            "indices", "max_unpool2d"),
    product("fractional_max_pool",
            "F.fractional_max_pool2d(image, 2, output_size=2, _random_samples=torch.ones(1, 2, 2))",
            "random_samples", "fractional_max_pool2d"),
    product("embedding_bag_weights", "F.embedding_bag(t, m, i, per_sample_weights=cx, mode='sum')",
            "per_sample_weights", "_embedding_bag_forward_only"),
    product("embedding_on_cpu", "nn.Embedding(3, 3)(t)", "index", "index_select", "cpu", "D:0"),
    product("layer_norm_on_cpu", "nn.LayerNorm(3)(m)", "weight", "native_layer_norm"),
    Line("instance_norm_weight", "F.instance_norm(image, weight=torch.ones(2), bias=torch.ones(2))",
         device_error(), GENERATED),
    Line("batch_norm_on_cpu", "nn.BatchNorm2d(2)(image)", device_error(), GENERATED),
    Line("attention_mask", "F.scaled_dot_product_attention(b, b, b, cb)", device_error(),
         "observed on the CUDA stub; the message depends on the algorithm, and the algorithm on the GPU"),
    Line("attention_on_both", "F.scaled_dot_product_attention(b, b.to(e), b)",
         error("Expected query, key, and value to have the same device type, but got query.device: D:0 "
              "key.device: D:1 and value.device: D:0 instead."),
         ATTENTION),
    Line("multihead_input", "nn.MultiheadAttention(3, 1).to(d)(cb, cb, cb)",
         codegen("D:0", "cpu", "mat1", "addmm"), LINEAR),
    # torch 2.0 decides by the input only whether to use oneDNN, which has no kernel for a device.
    Line("lstm_input_on_cpu", "nn.LSTM(3, 3).to(d)(cb)",
         error("Input and parameter tensors are not at the same device, found input tensor at cpu and parameter "
              "tensor at D:0"), RECURRENT, (2, 1)),
    Line("lstm_state_on_cpu", "nn.LSTM(3, 3).to(d)(b, (torch.zeros(1, 3, 3), torch.zeros(1, 3, 3)))",
         error("Input and hidden tensors are not at the same device, found input tensor at D:0 and hidden tensor "
              "at cpu"),
         RECURRENT),
    Line("gru_state_on_cpu", "nn.GRU(3, 3).to(d)(b, torch.zeros(1, 3, 3))",
         error("Input and hidden tensors are not at the same device, found input tensor at D:0 and hidden tensor "
              "at cpu"),
         RECURRENT),
    Line("rnn_on_other_device", "nn.RNN(3, 3).to(e)(b)",
         error("Input and parameter tensors are not at the same device, found input tensor at D:0 and parameter "
              "tensor at D:1"), RECURRENT),
    Line("lstm_cell_on_cpu", "nn.LSTMCell(3, 3)(m)", device_error(), COMPOSITE),
    Line("lstm", "nn.LSTM(3, 3).to(d)(b)[0]", on("D:0"), COMPOSITE),
    Line("gru", "nn.GRU(3, 3).to(d)(b)[0]", on("D:0"), COMPOSITE),
    Line("bilinear_input", "nn.Bilinear(3, 3, 1).to(d)(m, cm)", device_error(), COMPOSITE),
    Line("encoder_input", "nn.TransformerEncoderLayer(3, 1).to(d)(cb)",
         codegen("D:0", "cpu", "mat1", "addmm"), LINEAR),
]  # fmt: skip
