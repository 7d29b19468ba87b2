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
#include <c10/util/FunctionRef.h>
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

#include <cstring>
#include <exception>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace {

c10::DeviceIndex checked(int index) {
  const auto count = static_cast<int>(sim::device_count());
  TORCH_CHECK(index >= -1 && index < count, "invalid device ordinal ", index, ": there are ", count, " cuda devices");
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
void allow_tensor_type(PyObject* type) {
  auto* found = reinterpret_cast<TensorType*>(type);
  TORCH_CHECK(
      std::strcmp(Py_TYPE(type)->tp_name, "torch.tensortype") == 0 && found->is_cuda, "not a tensor type of CUDA's");
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

void replace_run_backward(PyObject* engine) {
  auto* methods = reinterpret_cast<PyTypeObject*>(engine)->tp_methods;
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
  const py::gil_scoped_release released;
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

// Functions of Python. pybind11 would make some functions of its own for each, which took the compiler longer than all
// other code in this file; so it converts only what has a class of its own in Python.

template <class Value>
Value from_python(PyObject* given) {
  if constexpr (std::is_same_v<Value, PyObject*>) {
    return given;
  } else if constexpr (std::is_same_v<Value, bool>) {
    return given == Py_True;
  } else if constexpr (std::is_integral_v<Value>) {
    const long long number = PyLong_AsLongLong(given);
    if (number == -1 && PyErr_Occurred() != nullptr) {
      throw py::error_already_set();
    }
    const bool fits = number == static_cast<long long>(static_cast<Value>(number));
    TORCH_CHECK_TYPE(fits && (number >= 0 || std::is_signed_v<Value>), "an argument is out of range: ", number);
    return static_cast<Value>(number);
  } else {
    return py::handle(given).cast<Value>();
  }
}

template <class Value>
PyObject* to_python(Value&& value) {
  using Plain = std::decay_t<Value>;
  if constexpr (std::is_same_v<Plain, PyObject*>) {
    return value;
  } else if constexpr (std::is_same_v<Plain, bool>) {
    return PyBool_FromLong(value);
  } else if constexpr (std::is_integral_v<Plain>) {
    return PyLong_FromLongLong(static_cast<long long>(value));
  } else {
    return py::cast(std::forward<Value>(value)).release().ptr();
  }
}

// Returns what `call` does, or null with Python's error of its exception, as PyTorch's own functions do. What these
// catch with (END_HANDLE_TH_ERRORS) refers to symbols that later releases do not export.
PyObject* guarded(c10::function_ref<PyObject*()> call) {
  try {
    HANDLE_TH_ERRORS
    return call();
    END_HANDLE_TH_ERRORS_PYBIND
  } catch (py::error_already_set& error) {
    error.restore();
  } catch (const py::builtin_exception& error) {
    error.set_error();
  } catch (const std::exception& error) {
    PyErr_SetString(PyExc_RuntimeError, error.what());
  }
  return nullptr;
}

template <class Function>
struct Bound;

template <class Result, class... Arguments>
struct Bound<Result (*)(Arguments...)> {
  template <Result (*kFunction)(Arguments...)>
  static PyObject* call(PyObject* /*module*/, PyObject* const* given, Py_ssize_t count) {
    return guarded([&] {
      TORCH_CHECK_TYPE(count == sizeof...(Arguments), "expected ", sizeof...(Arguments), " arguments, got ", count);
      return apply<kFunction>(given, std::index_sequence_for<Arguments...>());
    });
  }

 private:
  template <Result (*kFunction)(Arguments...), size_t... kIndices>
  static PyObject* apply([[maybe_unused]] PyObject* const* given, std::index_sequence<kIndices...> /*indices*/) {
    if constexpr (std::is_void_v<Result>) {
      kFunction(from_python<std::decay_t<Arguments>>(given[kIndices])...);
      Py_RETURN_NONE;
    } else {
      return to_python(kFunction(from_python<std::decay_t<Arguments>>(given[kIndices])...));
    }
  }
};

template <auto kFunction>
PyMethodDef bound(const char* name) {
  auto* call = &Bound<decltype(kFunction)>::template call<kFunction>;
  return {name, reinterpret_cast<PyCFunction>(reinterpret_cast<void*>(call)), METH_FASTCALL, nullptr};
}

int device_count() {
  return static_cast<int>(sim::device_count());
}

int current_device() {
  return static_cast<int>(sim::current_device());
}

PyObject* to_list(const sim::Figures& figures) {
  PyObject* pools = PyList_New(0);
  for (const auto& count : figures) {
    PyObject* pool = Py_BuildValue(
        "{sKsKsKsK}", "current", count.current, "peak", count.peak, "allocated", count.allocated, "freed", count.freed);
    PyList_Append(pools, pool);
    Py_DECREF(pool);
  }
  return pools;
}

PyObject* memory(int index) {
  const auto memory = sim::account_of(checked(index)).memory();
  const auto& usage = memory.usage;
  return Py_BuildValue(
      "{sNsNsNsNsNsNsNsKsKsKsKsK}", "bytes", to_list(usage.bytes), "requested", to_list(usage.requested), "blocks",
      to_list(usage.blocks), "reserved", to_list(usage.reserved), "segments", to_list(usage.segments), "inactive_bytes",
      to_list(usage.inactive_bytes), "inactive", to_list(usage.inactive), "taken", usage.taken, "given", usage.given,
      "refused", memory.refused, "retried", memory.retried, "limit", memory.limit);
}

void reset_peak(int index) {
  sim::account_of(checked(index)).reset_peak();
}

void reset_accumulated(int index) {
  sim::account_of(checked(index)).reset_accumulated();
}

void set_limit(int index, uint64_t bytes) {
  sim::account_of(checked(index)).set_limit(bytes);
}

bool has_allocated() {
  for (c10::DeviceIndex index = 0; index < sim::device_count(); ++index) {
    if (sim::account_of(index).memory().usage.blocks[0].peak > 0) {
      return true;
    }
  }
  return false;
}

c10::StreamId current_stream(int index) {
  return sim::current_stream(checked(index));
}

void set_stream(int index, int64_t id) {
  sim::set_stream(checked(index), id);
}

int set_device(int index) {
  return static_cast<int>(sim::exchange_device(static_cast<c10::DeviceIndex>(index)));
}

PyObject* default_generator(int index) {
  return THPGenerator_initDefaultGenerator(sim::default_generator(checked(index)));
}

// Takes what `UntypedStorage._cdata` is, past a binding that asks CUDA's own runtime.
void resize_storage(uintptr_t address, size_t bytes) {
  auto* impl = reinterpret_cast<c10::StorageImpl*>(address);
  sim::resize_storage(c10::Storage(c10::intrusive_ptr<c10::StorageImpl>::reclaim_copy(impl)), bytes);
}

void poison_forks() {
  sim::poison_forks(&require_initialization_again);
}

#if SIM_HAS_COLLECTIVES
using Backend = c10::intrusive_ptr<c10d::Backend>;

Backend collectives(const Backend& host) {
  return c10::make_intrusive<sim::Collectives>(host);
}

Backend nccl(const Backend& host, const c10::intrusive_ptr<c10d::Store>& store) {
  return c10::make_intrusive<sim::Collectives>(host, store);
}

#if SIM_GLOO_SPLITS
c10::intrusive_ptr<c10d::Backend::Options> host_options(const Backend& backend) {
  return backend->getBackendOptions();
}
#endif
#endif

// The class `Graph`.
struct GraphObject {
  PyObject head;
  sim::Graph* graph;
};

sim::Graph& graph_of(PyObject* self) {
  return *reinterpret_cast<GraphObject*>(self)->graph;
}

PyObject* make_graph(PyTypeObject* type, PyObject* /*arguments*/, PyObject* /*named*/) {
  PyObject* made = type->tp_alloc(type, 0);
  reinterpret_cast<GraphObject*>(made)->graph = new sim::Graph;
  return made;
}

void free_graph(PyObject* self) {
  PyTypeObject* type = Py_TYPE(self);
  delete &graph_of(self);
  type->tp_free(self);
  Py_DECREF(type);
}

template <void (sim::Graph::*kMethod)()>
PyObject* call_graph(PyObject* self, PyObject* /*none*/) {
  return guarded([&]() -> PyObject* {
    (graph_of(self).*kMethod)();
    Py_RETURN_NONE;
  });
}

PyObject* register_generator(PyObject* self, PyObject* generator) {
  return guarded([&]() -> PyObject* {
    graph_of(self).register_generator(py::handle(generator).cast<at::Generator>());
    Py_RETURN_NONE;
  });
}

PyObject* is_captured(PyObject* self, PyObject* /*none*/) {
  return PyBool_FromLong(graph_of(self).is_captured());
}

PyObject* graph_class() {
  static PyMethodDef methods[] = {
      {"capture_begin", &call_graph<&sim::Graph::capture_begin>, METH_NOARGS, nullptr},
      {"capture_end", &call_graph<&sim::Graph::capture_end>, METH_NOARGS, nullptr},
      {"replay", &call_graph<&sim::Graph::replay>, METH_NOARGS, nullptr},
      {"reset", &call_graph<&sim::Graph::reset>, METH_NOARGS, nullptr},
      {"register_generator", &register_generator, METH_O, nullptr},
      {"is_captured", &is_captured, METH_NOARGS, nullptr},
      {nullptr, nullptr, 0, nullptr}};
  static PyType_Slot slots[] = {
      {Py_tp_new, reinterpret_cast<void*>(&make_graph)},
      {Py_tp_dealloc, reinterpret_cast<void*>(&free_graph)},
      {Py_tp_methods, methods},
      {0, nullptr}};
  static PyType_Spec spec{"_sim.Graph", sizeof(GraphObject), 0, Py_TPFLAGS_DEFAULT, slots};
  return PyType_FromSpec(&spec);
}

PyMethodDef functions[] = {
    bound<&device_count>("device_count"),
    bound<&current_device>("current_device"),
    bound<&memory>("memory"),
    bound<&reset_peak>("reset_peak"),
    bound<&reset_accumulated>("reset_accumulated"),
    bound<&sim::empty_cache>("empty_cache"),
    bound<&sim::cache_emptied>("cache_emptied"),
    bound<&set_limit>("set_limit"),
    bound<&sim::device_bytes>("device_bytes"),
    bound<&sim::set_device_bytes>("set_device_bytes"),
    bound<&has_allocated>("has_allocated"),
    bound<&await_autograd>("await_autograd"),
    bound<&sim::new_stream>("new_stream"),
    bound<&current_stream>("current_stream"),
    bound<&set_stream>("set_stream"),
    bound<&sim::throw_cuda_error>("throw_error"),
    bound<&sim::check_context>("check_context"),
    bound<&set_device>("set_device"),
    bound<&default_generator>("default_generator"),
    bound<&resize_storage>("resize_storage"),
    bound<&replace_generator_constructor>("replace_generator_constructor"),
    bound<&replace_run_backward>("replace_run_backward"),
    bound<&sim::expect_saved_tensor_hooks>("expect_saved_tensor_hooks"),
    bound<&allow_tensor_type>("allow_tensor_type"),
    bound<&initialize_context>("initialize_context"),
    bound<&poison_forks>("poison_forks"),
    bound<&sim::exchange_sync_mode>("exchange_sync_mode"),
    bound<&sim::note_sync>("note_sync"),
    bound<&sim::register_host>("register_host"),
    bound<&sim::unregister_host>("unregister_host"),
    bound<&sim::is_capturing>("is_capturing"),
    bound<&sim::refuse_in_capture>("refuse_in_capture"),
    bound<&sim::set_capability>("set_capability"),
    bound<&sim::set_multiprocessors>("set_multiprocessors"),
#if SIM_TORCH_AT_LEAST(2, 4)
    bound<&sim::can_use_flash_attention>("can_use_flash_attention"),
    bound<&sim::can_use_efficient_attention>("can_use_efficient_attention"),
#endif
#if SIM_HAS_COLLECTIVES
    bound<&collectives>("collectives"),
    bound<&nccl>("nccl"),
#if SIM_GLOO_SPLITS
    bound<&host_options>("host_options"),
#endif
#endif
    {nullptr, nullptr, 0, nullptr}};

}  // namespace

PyMODINIT_FUNC PyInit__sim() {
  static PyModuleDef definition{
      PyModuleDef_HEAD_INIT, "_sim", nullptr, -1, functions, nullptr, nullptr, nullptr, nullptr};
  PyObject* module = PyModule_Create(&definition);
  PyModule_AddObject(module, "Graph", graph_class());
  PyModule_AddStringConstant(module, "nccl_version", sim::kNcclVersion);
  PyModule_AddIntConstant(module, "cudnn_version", sim::kCuDNNVersion);
  return module;
}
