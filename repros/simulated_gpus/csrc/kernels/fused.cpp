// Fused optimizers where PyTorch has them for CUDA only (on the CPU: Adam and AdamW from 2.4, SGD from 2.4).
//
// Contract held: native_functions.yaml (`_fused_adam_`, `_fused_adamw_`, `_fused_sgd_`) and
// ATen/native/cuda/fused_adam_utils.cuh: all tensors except the learning rate on one device; the caller has advanced
// the step counters; nothing changes if `found_inf` is one; unscaled gradients are written back. A reference
// implementation, not a fast one.
#include "dispatch/placement.h"
#include "kernels/kernels.h"
#include "runtime/memory.h"

#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/ops/maximum.h>
#include <ATen/ops/pow.h>

#include <cmath>
#include <string>

namespace sim::fused {

namespace {

using Tensors = std::vector<at::Tensor>;

// The arguments of one call by name, with tensors as host aliases.
class Arguments {
 public:
  Arguments(const c10::FunctionSchema& schema, c10::ArrayRef<c10::IValue> values) : schema_(schema), values_(values) {}

  Tensors tensors(const char* name) const {
    return host_aliases(value(name).toTensorVector());
  }
  double number(const char* name) const {
    const auto& found = value(name);
    return found.isTensor() ? host_alias(found.toTensor()).item<double>() : found.toDouble();
  }
  bool flag(const char* name) const {
    return value(name).toBool();
  }
  // Undefined if the argument is absent.
  at::Tensor tensor(const char* name) const {
    const auto& found = value(name);
    return found.isTensor() ? host_alias(found.toTensor()) : at::Tensor();
  }

 private:
  const c10::IValue& value(const char* name) const {
    return values_[static_cast<size_t>(*schema_.argumentIndexWithName(name))];
  }

  const c10::FunctionSchema& schema_;
  c10::ArrayRef<c10::IValue> values_;
};

// The gradient for the update: unscaled (in place), and negated to maximize.
at::Tensor prepare_gradient(at::Tensor grad, const Arguments& arguments) {
  const auto scale = arguments.tensor("grad_scale");
  if (scale.defined()) {
    grad.div_(scale);
  }
  return arguments.flag("maximize") ? grad.neg() : grad;
}

bool found_overflow(const Arguments& arguments) {
  const auto found = arguments.tensor("found_inf");
  return found.defined() && found.item<double>() == 1.0;
}

void adam(const Arguments& arguments, bool decoupled) {
  const auto parameters = arguments.tensors("self"), grads = arguments.tensors("grads");
  const auto steps = arguments.tensors("state_steps");
  const auto averages = arguments.tensors("exp_avgs"), squares = arguments.tensors("exp_avg_sqs");
  const auto largest = arguments.tensors("max_exp_avg_sqs");
  const double lr = arguments.number("lr"), decay = arguments.number("weight_decay"), eps = arguments.number("eps");
  const double beta1 = arguments.number("beta1"), beta2 = arguments.number("beta2");
  for (size_t i = 0; i < parameters.size(); ++i) {
    auto parameter = parameters[i];
    auto average = averages[i], square = squares[i];
    auto grad = prepare_gradient(grads[i], arguments);
    if (decoupled) {
      parameter.mul_(1 - lr * decay);
    } else if (decay != 0) {
      grad = grad.add(parameter, decay);
    }
    average.lerp_(grad, 1 - beta1);
    square.mul_(beta2).addcmul_(grad, grad, 1 - beta2);
    const double step = steps[i].item<double>();
    auto bound = square;
    if (arguments.flag("amsgrad")) {
      bound = largest[i];
      bound.copy_(at::maximum(bound, square));
    }
    const auto denominator = bound.sqrt().div_(std::sqrt(1 - std::pow(beta2, step))).add_(eps);
    parameter.addcdiv_(average, denominator, -lr / (1 - std::pow(beta1, step)));
  }
}

void sgd(const Arguments& arguments) {
  const auto parameters = arguments.tensors("self"), grads = arguments.tensors("grads");
  const auto momenta = arguments.tensors("momentum_buffer_list");
  const double lr = arguments.number("lr"), decay = arguments.number("weight_decay"),
               momentum = arguments.number("momentum");
  for (size_t i = 0; i < parameters.size(); ++i) {
    auto parameter = parameters[i];
    auto grad = prepare_gradient(grads[i], arguments);
    if (decay != 0) {
      grad = grad.add(parameter, decay);
    }
    if (momentum != 0) {
      auto buffer = momenta[i];
      if (arguments.flag("is_first_step")) {
        buffer.copy_(grad);
      } else {
        buffer.mul_(momentum).add_(grad, 1 - arguments.number("dampening"));
      }
      grad = arguments.flag("nesterov") ? grad.add(buffer, momentum) : buffer;
    }
    parameter.add_(grad, -lr);
  }
}

void update(const c10::OperatorHandle& op, c10::DispatchKeySet /*keys*/, torch::jit::Stack* stack) {
  const auto& schema = op.schema();
  const size_t count = schema.arguments().size();
  const auto values = c10::ArrayRef<c10::IValue>(*stack).slice(stack->size() - count, count);
  check_placement(schema, values);
  const at::AutoDispatchBelowADInplaceOrView below;
  const Arguments arguments(schema, values);
  if (!found_overflow(arguments)) {
    if (schema.name() == "aten::_fused_sgd_") {
      sgd(arguments);
    } else {
      adam(arguments, /*decoupled=*/schema.name() == "aten::_fused_adamw_");
    }
  }
  torch::jit::drop(*stack, count);
}

}  // namespace

void register_kernels(Registrar& registrar) {
  for (const std::string base : {"_fused_adam_", "_fused_adamw_", "_fused_sgd_"}) {
    for (const std::string overload : {"", "tensor_lr"}) {
      const auto op = c10::Dispatcher::singleton().findSchema({"aten::" + base, overload});
      if (op.has_value() && !op->hasKernelForDispatchKey(c10::DispatchKey::CPU)) {
        const auto name = overload.empty() ? base : base + "." + overload;
        registrar.impl(name, c10::KernelFunction::makeFromBoxedFunction<&update>());
      }
    }
  }
}

}  // namespace sim::fused
