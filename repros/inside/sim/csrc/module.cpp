// The Python module `_sim`: what torch.sim (device_module.py) and the process group (collectives.py) call.
#include "sim.h"

#include "collectives.h"

#include <torch/csrc/utils/pybind.h>

namespace {

c10::DeviceIndex checked(int index) {
  const auto count = static_cast<int>(sim::device_count());
  TORCH_CHECK_VALUE(index >= -1 && index < count, "invalid device ordinal ", index, ": there are ", count, " sim devices");
  return index < 0 ? sim::current_device() : static_cast<c10::DeviceIndex>(index);
}

}  // namespace

PYBIND11_MODULE(_sim, module) {
  sim::register_hooks();

  module.def("device_count", [] { return static_cast<int>(sim::device_count()); });
  module.def("current_device", [] { return static_cast<int>(sim::current_device()); });
  module.def("exchange_device", [](int index) {
    return static_cast<int>(sim::exchange_device(checked(index)));
  });
  module.def("memory_statistics", [](int index) {
    const auto of = sim::memory_statistics(checked(index));
    return py::dict(py::arg("allocated") = of.allocated, py::arg("peak") = of.peak, py::arg("requests") = of.requests);
  });
  module.def("reset_peak", [](int index) { sim::reset_peak(checked(index)); });

  module.def("manual_seed", [](int index, uint64_t seed) {
    auto generator = sim::default_generator(checked(index));
    const std::lock_guard<std::mutex> lock(generator.mutex());
    generator.set_current_seed(seed);
  });
  module.def("seed", [](int index) {
    auto generator = sim::default_generator(checked(index));
    const std::lock_guard<std::mutex> lock(generator.mutex());
    return generator.seed();
  });
  module.def("initial_seed", [](int index) { return sim::default_generator(checked(index)).current_seed(); });
  module.def("get_rng_state", [](int index) { return sim::default_generator(checked(index)).get_state(); });
  module.def("set_rng_state", [](int index, const at::Tensor& state) {
    auto generator = sim::default_generator(checked(index));
    const std::lock_guard<std::mutex> lock(generator.mutex());
    generator.set_state(state);
  });

  // For spawned processes: the bytes of a device tensor as a CPU tensor, and back.
  module.def("host_alias", &sim::host_alias);
  module.def("adopt", [](const at::Tensor& host, int index) {
    return sim::device_tensor(host, sim::adopt(host.storage(), checked(index)));
  });

#if SIM_HAS_COLLECTIVES
  module.def("collectives", [](const c10::intrusive_ptr<c10d::Backend>& host) -> c10::intrusive_ptr<c10d::Backend> {
    return c10::make_intrusive<sim::Collectives>(host);
  });
#endif
}
