// Cells of recurrent layers: later versions of PyTorch fuse them on every device, but have kernels for CUDA and XPU
// only.
//
// Contract held: ATen/native/RNN.cpp (LSTMCell and GRUCell, whose unfused branch is the arithmetic) and
// native_functions.yaml
// (`_thnn_fused_*`). Only a cell and its derivative use the workspace. Written with operators on device tensors.
#include "kernels/kernels.h"
#include "torch_versions.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/zeros_like.h>

#include <tuple>

namespace sim::recurrent {

namespace {

using at::Tensor;
using MaybeTensor = SIM_OPTIONAL<Tensor>;

Tensor with_bias(const Tensor& gates, const MaybeTensor& bias) {
  return bias.has_value() && bias->defined() ? gates + *bias : gates;
}

// The gradient through a sigmoid, or a hyperbolic tangent, from its value.
Tensor sigmoid_gradient(const Tensor& grad, const Tensor& value) {
  return grad * value * (1 - value);
}

Tensor tanh_gradient(const Tensor& grad, const Tensor& value) {
  return grad * (1 - value * value);
}

Tensor bias_gradient(const Tensor& grad, bool has_bias) {
  return has_bias ? grad.sum(0) : Tensor();
}

std::tuple<Tensor, Tensor, Tensor> lstm_cell(
    const Tensor& input_gates, const Tensor& hidden_gates, const Tensor& cx, const MaybeTensor& input_bias,
    const MaybeTensor& hidden_bias) {
  const at::AutoDispatchBelowADInplaceOrView below;
  const auto gates = (with_bias(hidden_gates, hidden_bias) + with_bias(input_gates, input_bias)).chunk(4, 1);
  const auto in = gates[0].sigmoid(), forget = gates[1].sigmoid(), cell = gates[2].tanh(), out = gates[3].sigmoid();
  const auto cy = forget * cx + in * cell;
  return {out * cy.tanh(), cy, at::cat({in, forget, cell, out}, 1)};
}

std::tuple<Tensor, Tensor, Tensor> lstm_cell_backward(
    const MaybeTensor& grad_hy, const MaybeTensor& grad_cy, const Tensor& cx, const Tensor& cy, const Tensor& workspace,
    bool has_bias) {
  const at::AutoDispatchBelowADInplaceOrView below;
  const auto saved = workspace.chunk(4, 1);
  const auto &in = saved[0], &forget = saved[1], &cell = saved[2], &out = saved[3];
  const auto or_zeros = [&](const MaybeTensor& grad) {
    return grad.has_value() && grad->defined() ? *grad : at::zeros_like(cx);
  };
  const auto hy = or_zeros(grad_hy);
  const auto tanh = cy.tanh();
  const auto grad = tanh_gradient(hy * out, tanh) + or_zeros(grad_cy);
  const auto gates = at::cat(
      {sigmoid_gradient(grad * cell, in), sigmoid_gradient(grad * cx, forget), tanh_gradient(grad * in, cell),
       sigmoid_gradient(hy * tanh, out)},
      1);
  return {gates, grad * forget, bias_gradient(gates, has_bias)};
}

std::tuple<Tensor, Tensor> gru_cell(
    const Tensor& input_gates, const Tensor& hidden_gates, const Tensor& hx, const MaybeTensor& input_bias,
    const MaybeTensor& hidden_bias) {
  const at::AutoDispatchBelowADInplaceOrView below;
  const auto from_input = with_bias(input_gates, input_bias).chunk(3, 1);
  const auto from_hidden = with_bias(hidden_gates, hidden_bias).chunk(3, 1);
  const auto reset = (from_hidden[0] + from_input[0]).sigmoid();
  const auto update = (from_hidden[1] + from_input[1]).sigmoid();
  const auto fresh = (from_input[2] + from_hidden[2] * reset).tanh();
  return {(hx - fresh) * update + fresh, at::cat({reset, update, fresh, hx, from_hidden[2]}, 1)};
}

std::tuple<Tensor, Tensor, Tensor, Tensor, Tensor> gru_cell_backward(
    const Tensor& grad_hy, const Tensor& workspace, bool has_bias) {
  const at::AutoDispatchBelowADInplaceOrView below;
  const auto saved = workspace.chunk(5, 1);
  const auto &reset = saved[0], &update = saved[1], &fresh = saved[2], &hx = saved[3], &hidden = saved[4];
  const auto of_fresh = tanh_gradient(grad_hy * (1 - update), fresh);
  const auto of_reset = sigmoid_gradient(of_fresh * hidden, reset);
  const auto of_update = sigmoid_gradient(grad_hy * (hx - fresh), update);
  const auto of_input = at::cat({of_reset, of_update, of_fresh}, 1);
  const auto of_hidden = at::cat({of_reset, of_update, of_fresh * reset}, 1);
  return {of_input, of_hidden, grad_hy * update, bias_gradient(of_input, has_bias), bias_gradient(of_hidden, has_bias)};
}

}  // namespace

void register_kernels(Registrar& registrar) {
  registrar.impl("_thnn_fused_lstm_cell", &lstm_cell);
  registrar.impl("_thnn_fused_lstm_cell_backward_impl", &lstm_cell_backward);
  registrar.impl("_thnn_fused_gru_cell", &gru_cell);
  registrar.impl("_thnn_fused_gru_cell_backward", &gru_cell_backward);
}

}  // namespace sim::recurrent
