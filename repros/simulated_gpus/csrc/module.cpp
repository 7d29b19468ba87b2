// The Python module `_sim`, of which the functions of `torch._C` for CUDA are made.
#include "autograd/backward.h"
#include "autograd/threads.h"
#include "distributed/collectives.h"
#include "distributed/nccl_version.h"
#include "graphs/capture.h"
#include "graphs/graph.h"
#include "kernels/philox.h"
#include "kernels/sdp.h"
#include "runtime/accounts.h"
#include "runtime/cuda_errors.h"
#include "runtime/cudnn.h"
#include "runtime/device.h"
#include "runtime/generator.h"
#include "runtime/memory.h"
#include "runtime/pinned.h"
#include "runtime/sync.h"
#include "torch_versions.h"

#include <ATen/ops/empty.h>
#include <c10/core/AutogradState.h>
#include <c10/core/GradMode.h>
#include <c10/core/InferenceMode.h>
#include <c10/core/StorageImpl.h>
#include <torch/csrc/Exceptions.h>
#include <torch/csrc/Generator.h>
#include <torch/csrc/autograd/anomaly_mode.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/autograd/python_variable.h>
#if __has_include(<torch/csrc/utils/device_lazy_init.h>)
#include <torch/csrc/utils/device_lazy_init.h>
#else
#include <torch/csrc/utils/cuda_lazy_init.h>
#endif
#include <torch/csrc/utils/pybind.h>

#include <exception>
#include <string>
#include <utility>
#include <vector>

namespace {

c10::DeviceIndex checked(int index) {
  const auto count = static_cast<int>(sim::device_count());
  TORCH_CHECK_VALUE(
      index >= -1 && index < count, "invalid device ordinal ", index, ": there are ", count, " cuda devices");
  return index < 0 ? sim::current_device() : static_cast<c10::DeviceIndex>(index);
}

// `torch.Generator(device="cuda")`: a CUDA build up to 2.5 makes one that asks the driver, and a CPU build refuses.
newfunc original_constructor = nullptr;

PyObject* construct_generator(PyTypeObject* type, PyObject* arguments, PyObject* named) {
  try {
    py::object device = py::none();
    if (PyTuple_GET_SIZE(arguments) > 0) {
      device = py::reinterpret_borrow<py::object>(PyTuple_GET_ITEM(arguments, 0));
    } else if (named != nullptr && PyDict_GetItemString(named, "device") != nullptr) {
      device = py::reinterpret_borrow<py::object>(PyDict_GetItemString(named, "device"));
    }
    if (!device.is_none()) {
      const auto wanted = py::module_::import("torch").attr("device")(device).cast<at::Device>();
      if (wanted.type() == sim::kDevice) {
        return THPGenerator_Wrap(sim::make_generator(wanted.has_index() ? checked(wanted.index()) : wanted.index()));
      }
    }
    return original_constructor(type, arguments, named);
  } catch (py::error_already_set& error) {
    error.restore();
  } catch (const c10::Error& error) {
    PyErr_SetString(PyExc_RuntimeError, error.what_without_backtrace());
  }
  return nullptr;
}

void replace_generator_constructor() {
  auto* type = reinterpret_cast<PyTypeObject*>(THPGeneratorClass);
  original_constructor = std::exchange(type->tp_new, &construct_generator);
}

// What begins a tensor type such as `torch.cuda.FloatTensor` (torch/csrc/tensor/python_tensor.cpp, `PyTensorType`).
struct TensorType {
  PyTypeObject type;
  void* dtype;
  void* layout;
  bool is_cuda;
};

// A CPU build refuses to make a tensor of a type of CUDA's, and to have it as the default; it asks nothing but this
// flag.
void allow_tensor_type(const py::handle& type) {
  auto* found = reinterpret_cast<TensorType*>(type.ptr());
  TORCH_CHECK(
      py::str(py::type::handle_of(type).attr("__name__")).cast<std::string>() == "tensortype" && found->is_cuda,
      "not a tensor type of CUDA's");
  found->is_cuda = false;
}

// `run_backward(tensors, ...)` of autograd's engine (torch/csrc/autograd/python_engine.cpp).
PyCFunctionWithKeywords original_run_backward = nullptr;

std::vector<at::Tensor> roots_of(PyObject* arguments) {
  std::vector<at::Tensor> roots;
  if (PyTuple_GET_SIZE(arguments) > 0 && PyTuple_Check(PyTuple_GET_ITEM(arguments, 0))) {
    PyObject* given = PyTuple_GET_ITEM(arguments, 0);
    for (Py_ssize_t index = 0; index < PyTuple_GET_SIZE(given); ++index) {
      PyObject* root = PyTuple_GET_ITEM(given, index);
      if (!THPVariable_Check(root)) {
        return {};
      }
      roots.push_back(THPVariable_Unpack(root));
    }
  }
  return roots;
}

bool can_run_in_callers_thread(PyObject* arguments) {
  try {
    const auto roots = roots_of(arguments);
    return !roots.empty() && sim::can_run_in_callers_thread(roots);
  } catch (const std::exception&) {  // a root without a gradient, of which `run_backward` says so itself
    return false;
  }
}

PyObject* run_backward(PyObject* self, PyObject* arguments, PyObject* named) {
  sim::note_threads();
  if (!can_run_in_callers_thread(arguments)) {
    return original_run_backward(self, arguments, named);
  }
  auto& state = c10::AutogradState::get_tls_state();
  const bool before = state.get_multithreading_enabled();
  state.set_multithreading_enabled(false);
  PyObject* result = original_run_backward(self, arguments, named);
  c10::AutogradState::get_tls_state().set_multithreading_enabled(before);
  return result;
}

void replace_run_backward(const py::handle& engine) {
  auto* methods = reinterpret_cast<PyTypeObject*>(engine.ptr())->tp_methods;
  while (methods->ml_name != nullptr && std::string(methods->ml_name) != "run_backward") {
    ++methods;
  }
  TORCH_CHECK(methods->ml_name != nullptr, "autograd's engine has no run_backward");
  original_run_backward = reinterpret_cast<PyCFunctionWithKeywords>(reinterpret_cast<void*>(methods->ml_meth));
  methods->ml_meth = reinterpret_cast<PyCFunction>(reinterpret_cast<void*>(&run_backward));
}

// Waits until each device's autograd thread has freed what the last `backward` held, which it does after that has
// returned. A thread does one task after another; this one holds nothing that needs Python to be freed, and no memory:
// there may be none left.
void await_autograd() {
  const c10::AutoGradMode with_gradients(true);
  const c10::InferenceMode not_for_inference(false);
  torch::autograd::AnomalyMode::set_enabled(false);
  sim::exchange_context_error(0);  // the process ends: whatever has happened, its threads must
  for (c10::DeviceIndex index = 0; index < sim::device_count(); ++index) {
    const auto nothing = at::empty({0}, at::TensorOptions(c10::Device(sim::kDevice, index)));
    torch::autograd::backward({nothing.detach().set_requires_grad(true).mul(2)}, {nothing});
  }
}

// PyTorch asks CUDA's hooks nothing, such as whether memory is pinned, before this.
void initialize_context() {
#if SIM_TORCH_AT_LEAST(2, 6)
  at::globalContext().lazyInitDevice(sim::kDevice);
#else
  at::globalContext().lazyInitCUDA();
#endif
}

// Tensor methods ask no more whether CUDA is initialised once it was (torch/csrc/cuda/Module.cpp, `forked_child`).
void require_initialization_again() {
#if __has_include(<torch/csrc/utils/device_lazy_init.h>)
  torch::utils::set_requires_device_init(sim::kDevice, true);
#else
  torch::utils::set_requires_cuda_init(true);
#endif
}

}  // namespace

PYBIND11_MODULE(_sim, module) {
  module.def("device_count", [] { return static_cast<int>(sim::device_count()); });
  module.def("current_device", [] { return static_cast<int>(sim::current_device()); });
  module.def("memory", [](int index) {
    const auto memory = sim::account_of(checked(index)).memory();
    const auto to_list = [](const sim::Figures& figures) {
      py::list pools;
      for (const auto& count : figures) {
        pools.append(
            py::dict(
                py::arg("current") = count.current, py::arg("peak") = count.peak,
                py::arg("allocated") = count.allocated, py::arg("freed") = count.freed));
      }
      return pools;
    };
    const auto& usage = memory.usage;
    return py::dict(
        py::arg("bytes") = to_list(usage.bytes), py::arg("requested") = to_list(usage.requested),
        py::arg("blocks") = to_list(usage.blocks), py::arg("reserved") = to_list(usage.reserved),
        py::arg("segments") = to_list(usage.segments), py::arg("inactive_bytes") = to_list(usage.inactive_bytes),
        py::arg("inactive") = to_list(usage.inactive), py::arg("taken") = usage.taken, py::arg("given") = usage.given,
        py::arg("refused") = memory.refused, py::arg("retried") = memory.retried, py::arg("limit") = memory.limit);
  });
  module.def("reset_peak", [](int index) { sim::account_of(checked(index)).reset_peak(); });
  module.def("reset_accumulated", [](int index) { sim::account_of(checked(index)).reset_accumulated(); });
  module.def("empty_cache", &sim::empty_cache);
  module.def("cache_emptied", &sim::cache_emptied);
  module.def("set_limit", [](int index, uint64_t bytes) { sim::account_of(checked(index)).set_limit(bytes); });
  module.def("device_bytes", &sim::device_bytes);
  module.def("set_device_bytes", &sim::set_device_bytes);

  module.def("has_allocated", [] {
    for (c10::DeviceIndex index = 0; index < sim::device_count(); ++index) {
      if (sim::account_of(index).memory().usage.blocks[0].peak > 0) {
        return true;
      }
    }
    return false;
  });
  module.def("await_autograd", &await_autograd, py::call_guard<py::gil_scoped_release>());
  module.def("new_stream", &sim::new_stream);
  module.def("current_stream", [](int index) { return sim::current_stream(checked(index)); });
  module.def("set_stream", [](int index, int64_t id) { sim::set_stream(checked(index), id); });
  module.def("throw_error", torch::wrap_pybind_function(&sim::throw_cuda_error));
  module.def("check_context", torch::wrap_pybind_function(&sim::check_context));
  module.def("set_device", [](int index) {
    return static_cast<int>(sim::exchange_device(static_cast<c10::DeviceIndex>(index)));
  });
  module.def("default_generator", [](int index) {
    return py::reinterpret_steal<py::object>(THPGenerator_initDefaultGenerator(sim::default_generator(checked(index))));
  });
  // Both take what `UntypedStorage._cdata` and `torch.Generator` are, past bindings that ask CUDA's own runtime.
  module.def("resize_storage", [](uintptr_t address, size_t bytes) {
    auto* impl = reinterpret_cast<c10::StorageImpl*>(address);
    sim::resize_storage(c10::Storage(c10::intrusive_ptr<c10::StorageImpl>::reclaim_copy(impl)), bytes);
  });
  module.def("replace_generator_constructor", &replace_generator_constructor);
  module.def("replace_run_backward", &replace_run_backward);
  module.def("expect_saved_tensor_hooks", &sim::expect_saved_tensor_hooks);
  module.def("allow_tensor_type", &allow_tensor_type);
  module.def("initialize_context", &initialize_context);
  module.def("poison_forks", [] { sim::poison_forks(&require_initialization_again); });
  module.def("exchange_sync_mode", &sim::exchange_sync_mode);
  module.def("note_sync", torch::wrap_pybind_function(&sim::note_sync));
  module.def("register_host", &sim::register_host);
  module.def("unregister_host", &sim::unregister_host);
  module.def("is_capturing", &sim::is_capturing);
  module.def("refuse_in_capture", torch::wrap_pybind_function(&sim::refuse_in_capture));
  pybind11::class_<sim::Graph>(module, "Graph")
      .def(pybind11::init<>())
      .def("capture_begin", torch::wrap_pybind_function(&sim::Graph::capture_begin))
      .def("capture_end", torch::wrap_pybind_function(&sim::Graph::capture_end))
      .def("replay", torch::wrap_pybind_function(&sim::Graph::replay))
      .def("reset", torch::wrap_pybind_function(&sim::Graph::reset))
      .def("register_generator", torch::wrap_pybind_function(&sim::Graph::register_generator))
      .def("is_captured", &sim::Graph::is_captured);
  module.attr("nccl_version") = sim::kNcclVersion;
  module.attr("cudnn_version") = sim::kCuDNNVersion;
  module.def("set_capability", &sim::set_capability);
  module.def("set_multiprocessors", &sim::set_multiprocessors);
#if SIM_TORCH_AT_LEAST(2, 4)
  module.def("can_use_flash_attention", torch::wrap_pybind_function(&sim::can_use_flash_attention));
  module.def("can_use_efficient_attention", torch::wrap_pybind_function(&sim::can_use_efficient_attention));
#endif

#if SIM_HAS_COLLECTIVES
  module.def("collectives", [](const c10::intrusive_ptr<c10d::Backend>& host) -> c10::intrusive_ptr<c10d::Backend> {
    return c10::make_intrusive<sim::Collectives>(host);
  });
#if SIM_GLOO_SPLITS
  module.def(
      "host_options", [](const c10::intrusive_ptr<c10d::Backend>& backend) { return backend->getBackendOptions(); });
#endif
  module.def(
      "nccl",
      [](const c10::intrusive_ptr<c10d::Backend>& host, const c10::intrusive_ptr<c10d::Store>& store)
          -> c10::intrusive_ptr<c10d::Backend> { return c10::make_intrusive<sim::Collectives>(host, store); });
#endif
}
