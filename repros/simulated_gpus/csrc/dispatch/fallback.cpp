// The fallback: runs any operator by its CPU kernel. The arguments are host aliases of device tensors, and the results
// become device memory.
//
// Contracts held, besides placement (placement.cpp) and generators (generator.cpp):
// - a result that is an argument (in place, out=) is the same tensor; a result over its memory is a view of it
// - an argument whose shape or storage the kernel changed is changed on the device
// - a sparse tensor is aliased by one over its indices and values, a nested one by one over its storage (layouts.cpp)
// - a quantized tensor is aliased with its quantizer (quantized.cpp)
// - a result is on the device of a `device` argument, else on the arguments' common device
// None of this copies data.
#include "dispatch/fallback.h"

#include "autograd/threads.h"
#include "dispatch/determinism.h"
#include "dispatch/layouts.h"
#include "dispatch/placement.h"
#include "dispatch/tensor_lists.h"
#include "dispatch/types.h"
#include "dispatch/upcast.h"
#include "runtime/cuda_errors.h"
#include "runtime/device.h"
#include "runtime/generator.h"
#include "runtime/memory.h"
#include "runtime/sync.h"
#include "torch_versions.h"

#include <c10/util/SmallVector.h>

#include <algorithm>
#include <utility>
#include <vector>

namespace sim::fallback {

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
    if (is_optional_tensor_list(value)) {
      c10::List<SIM_OPTIONAL<at::Tensor>> list;
      for (const SIM_OPTIONAL<at::Tensor>& tensor : to_optional_tensor_list(value)) {
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
    for (const auto& each : composed_) {
      if (is_sparse(each.device)) {
        set_sparse(each.device, each.host, [&](const at::Tensor& part) {
          return to_device(part, each.device.device().index());
        });
      }
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
  struct ComposedPair {
    at::Tensor device;
    at::Tensor host;
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
    if (is_sparse(tensor) || is_nested(tensor)) {
      return composed_to_host(tensor);
    }
    check_strided(tensor);
    const auto storage = remember(tensor.storage());
    tensors_.push_back({tensor, host_tensor(tensor, storage), storage.unsafeGetStorageImpl()});
    return tensors_.back().host;
  }

  at::Tensor composed_to_host(const at::Tensor& tensor) {
    for (const auto& each : composed_) {
      if (each.device.is_same(tensor)) {
        return each.host;
      }
    }
    const auto host = is_sparse(tensor)
        ? sparse_over(tensor, [&](const at::Tensor& part) { return to_host(part); })
        : nested_over(tensor, [&](const c10::Storage& storage) { return remember(storage); });
    composed_.push_back({tensor, host});
    return host;
  }

  at::Tensor composed_to_device(const at::Tensor& host, c10::DeviceIndex index) {
    for (const auto& each : composed_) {
      if (each.host.is_same(host)) {
        return each.device;
      }
    }
    const c10::DeviceGuard guard({kDevice, index});
    return is_sparse(host) ? sparse_over(host, [&](const at::Tensor& part) { return to_device(part, index); })
                           : nested_over(host, [&](const c10::Storage& storage) { return to_device(storage, index); });
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
    if (is_sparse(host) || is_nested(host)) {
      return composed_to_device(host, index);
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

  c10::SmallVector<TensorPair, 6> tensors_;
  std::vector<ComposedPair> composed_;  // sparse and nested tensors
  c10::SmallVector<StoragePair, 6> storages_;
};

c10::DispatchKey host_key_of(c10::DispatchKeySet keys) {
  if (keys.has(c10::DispatchKey::NestedTensorCUDA)) {
    return c10::DispatchKey::NestedTensorCPU;
  }
  if (keys.has(c10::DispatchKey::QuantizedCUDA)) {
    return c10::DispatchKey::QuantizedCPU;
  }
  return keys.has(c10::DispatchKey::SparseCUDA) ? c10::DispatchKey::SparseCPU : c10::DispatchKey::CPU;
}

}  // namespace

void run_on_host(const c10::OperatorHandle& op, c10::DispatchKeySet keys, torch::jit::Stack* stack) {
  check_context();
  const auto& schema = op.schema();
  const auto host_key = host_key_of(keys);
  TORCH_CHECK_NOT_IMPLEMENTED(
      op.hasComputedKernelForDispatchKey(host_key), "Could not run '", op.operator_name(),
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
  if (on_sim) {
    check_types(schema, arguments);
    alert_nondeterministic(schema, arguments);
    note_sync_of(schema, arguments);
  }
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

  agree_on_threads();
  try {
    call_host_kernel(op, host_key, stack);
  } catch (const c10::Error& error) {
    if (on_sim) {
      assert_on_device(schema, error);
    }
    throw;
  }
  call.write_back();
  const size_t results = schema.returns().size();
  for (size_t i = stack->size() - results; on_sim && i < stack->size(); ++i) {
    (*stack)[i] = call.to_device((*stack)[i], index);
  }
}

}  // namespace sim::fallback
