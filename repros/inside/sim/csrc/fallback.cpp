// Any operator, run by its CPU kernel: the arguments are host aliases of device tensors, the results become device memory.
//
// Contracts held, besides placement (placement.cpp) and generators (generator.cpp):
// - a result that is an argument (in place, out=) is the same tensor; a result over an argument's memory is a view of it
// - an argument whose shape or storage the kernel changed is changed on the device
// - a result is on the device of a `device` argument, else on the arguments' common device
// None of this copies data.
#include "sim.h"

#include <torch/library.h>

#include <utility>
#include <vector>

namespace sim {

namespace {

// The host aliases of one call, and the device tensor or storage of each.
class Call {
 public:
  c10::IValue to_host(const c10::IValue& value) {
    if (value.isTensor()) {
      return to_host(value.toTensor());
    }
    if (value.isTensorList()) {
      c10::List<at::Tensor> list;
      for (const at::Tensor& tensor : value.toTensorList()) {
        list.push_back(to_host(tensor));
      }
      return list;
    }
    if (value.isOptionalTensorList()) {
      c10::List<SIM_OPTIONAL<at::Tensor>> list;
      for (const SIM_OPTIONAL<at::Tensor>& tensor : value.toOptionalTensorList()) {
        list.push_back(tensor.has_value() ? SIM_OPTIONAL<at::Tensor>(to_host(*tensor)) : tensor);
      }
      return list;
    }
    if (value.isStorage() && value.toStorage().device_type() == kDevice) {
      return remember(value.toStorage());
    }
    return value;
  }

  // Applies the kernel's changes of an alias's shape and storage to the device tensor.
  void write_back() {
    for (const auto& each : storages_) {
      follow_host(each.device);
    }
    for (const auto& each : tensors_) {
      auto* impl = each.device.unsafeGetTensorImpl();
      if (each.host.storage().unsafeGetStorageImpl() != each.given) {
        impl->set_storage_keep_dtype(to_device(each.host.storage(), each.device.device().index()));
      }
      if (each.host.sizes() != each.device.sizes() || each.host.strides() != each.device.strides() ||
          each.host.storage_offset() != each.device.storage_offset()) {
        impl->set_sizes_and_strides(each.host.sizes(), each.host.strides());
        impl->set_storage_offset(each.host.storage_offset());
      }
    }
  }

  c10::IValue to_device(const c10::IValue& value, c10::DeviceIndex index) {
    if (value.isTensor()) {
      return to_device(value.toTensor(), index);
    }
    if (value.isTensorList()) {
      c10::List<at::Tensor> list;
      for (const at::Tensor& tensor : value.toTensorList()) {
        list.push_back(to_device(tensor, index));
      }
      return list;
    }
    return value;
  }

 private:
  struct TensorPair {
    at::Tensor device;
    at::Tensor host;
    const c10::StorageImpl* given;  // the storage the alias began with
  };
  struct StoragePair {
    c10::Storage device;
    c10::Storage host;
  };

  at::Tensor to_host(const at::Tensor& tensor) {
    if (!is_sim(tensor)) {
      return tensor;
    }
    for (const auto& each : tensors_) {
      if (each.device.is_same(tensor)) {
        return each.host;
      }
    }
    check_strided(tensor);
    const auto storage = remember(tensor.storage());
    tensors_.push_back({tensor, host_tensor(tensor, storage), storage.unsafeGetStorageImpl()});
    return tensors_.back().host;
  }

  c10::Storage remember(const c10::Storage& device) {
    for (const auto& each : storages_) {
      if (each.device.unsafeGetStorageImpl() == device.unsafeGetStorageImpl()) {
        return each.host;
      }
    }
    storages_.push_back({device, host_storage(device)});
    return storages_.back().host;
  }

  at::Tensor to_device(const at::Tensor& host, c10::DeviceIndex index) {
    if (!host.defined() || !host.device().is_cpu()) {
      return host;
    }
    for (const auto& each : tensors_) {
      if (each.host.is_same(host)) {
        return each.device;
      }
    }
    check_strided(host);
    return device_tensor(host, to_device(host.storage(), index));
  }

  c10::Storage to_device(const c10::Storage& host, c10::DeviceIndex index) {
    for (const auto& each : storages_) {
      if (each.host.unsafeGetStorageImpl() == host.unsafeGetStorageImpl()) {
        return each.device;
      }
    }
    storages_.push_back({adopt(host, index), host});
    return storages_.back().device;
  }

  std::vector<TensorPair> tensors_;
  std::vector<StoragePair> storages_;
};

}  // namespace

void run_on_host(const c10::OperatorHandle& op, c10::DispatchKeySet /*keys*/, torch::jit::Stack* stack) {
  const auto& schema = op.schema();
  TORCH_CHECK_NOT_IMPLEMENTED(
      op.hasComputedKernelForDispatchKey(c10::DispatchKey::CPU), "Could not run '", op.operator_name(),
      "' on the simulated accelerator: there is no CPU kernel to run it with.");

  const size_t count = schema.arguments().size();
  const size_t begin = stack->size() - count;
  const auto arguments = c10::ArrayRef<c10::IValue>(*stack).slice(begin, count);
  auto device = check_placement(schema, arguments);
  for (const auto& argument : arguments) {
    if (argument.isDevice()) {
      device = argument.toDevice();
    }
  }
  const bool on_sim = !device.has_value() || device->type() == kDevice;
  const auto index = on_sim && device.has_value() && device->has_index() ? device->index() : current_device();

  Call call;
  for (size_t i = 0; i < count; ++i) {
    auto& value = (*stack)[begin + i];
    const auto& argument = schema.arguments()[i];
    if (value.isDevice()) {
      value = c10::Device(c10::DeviceType::CPU);
    } else if (argument.name() == "pin_memory") {
      value = c10::IValue();
    } else if (argument.name() == "generator" && on_sim) {
      value = host_generator(value.isNone() ? SIM_OPTIONAL<at::Generator>() : value.toGenerator(), index);
    } else if (value.isGenerator()) {
      // The dispatcher sends a call with CPU tensors here because of the generator's type, as it does for CUDA.
      TORCH_CHECK(
          value.toGenerator().device().is_cpu(), "Expected a 'cpu' device type for generator but found '",
          value.toGenerator().device().type(), "'");
    } else {
      value = call.to_host(value);
    }
  }

  call_host_kernel(op, stack);
  call.write_back();
  const size_t results = schema.returns().size();
  for (size_t i = stack->size() - results; on_sim && i < stack->size(); ++i) {
    (*stack)[i] = call.to_device((*stack)[i], index);
  }
}

TORCH_LIBRARY_IMPL(_, CUDA, library) {
  library.fallback(torch::CppFunction::makeFromBoxedFunction<&run_on_host>());
}

// Operators without a derivative (c10d::allreduce_) must pass through autograd. Early versions register no fallback for this
// device (2.1 and 2.2 do not, 2.13 does); registering a second one raises, so check first.
TORCH_LIBRARY_IMPL(_, AutogradCUDA, library) {
  if (!c10::Dispatcher::singleton().hasBackendFallbackForDispatchKey(c10::DispatchKey::AutogradCUDA)) {
    library.fallback(torch::CppFunction::makeFallthrough());
  }
}

}  // namespace sim
