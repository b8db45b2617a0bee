// Python module bare_spin: the bare spin, in place, stepped from Python through
// as thin a binding as can be. What any client in Python pays, whatever it
// joins.
//
// Data flow: actions -> step -> shared memory -> serve, in a fork -> results,
// as views.
// Ownership: the step function and the views keep the memory.
//
//   spin = bare_spin.BareSpin(envs, obs, act)
//   if os.fork() == 0: spin.serve()
//   step = bare_spin.stepper(spin)
//   obs, rewards, dones = step(actions)
#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>

#include <atomic>
#include <cstdint>
#include <cstring>

#include "tests/benchmark/payload.h"
#include "tests/benchmark/shared_block.h"
#include "transport/base/clock.h"
#include "transport/wait/relax.h"

namespace tandem {
namespace {

namespace py = pybind11;

class BareSpin {
 public:
  BareSpin(uint32_t envs, uint32_t obs, uint32_t act)
      : size_{.envs = envs, .obs = obs, .act = act},
        block_(size_),
        payload_(size_, block_.payload()) {}

  // Until a signal's handler raises.
  void Serve() {
    uint32_t looks = 0;
    for (uint32_t number = 1;; ++number) {
      // SYNC(bare_spin.told): acquire; the number, then the actions.
      while (block_.words().asked.load(std::memory_order_acquire) != number) {
        Relax();
        if (++looks % kLooksBetweenSignals != 0) continue;
        if (PyErr_CheckSignals() != 0) throw py::error_already_set();
      }
      TrivialWork(size_, payload_.actions, payload_.obs, payload_.rewards,
                  payload_.dones);
      // SYNC(bare_spin.told): release; the results before the number.
      block_.words().answered.store(number, std::memory_order_release);
    }
  }

  // False: no answer in ten seconds, the engine is gone; or a signal's handler
  // has raised.
  bool Exchange(const void* actions) {
    std::memcpy(payload_.actions, actions, size_.action_floats() * 4);
    ++number_;
    // SYNC(bare_spin.told): release; the actions before the number.
    block_.words().asked.store(number_, std::memory_order_release);
    Deadline deadline = Deadline::Infinite();
    for (uint32_t looks = 1;; ++looks) {
      // SYNC(bare_spin.told): acquire; the number, then the results.
      if (block_.words().answered.load(std::memory_order_acquire) == number_) {
        return true;
      }
      Relax();
      if (looks % kLooksBetweenSignals != 0) continue;
      if (PyErr_CheckSignals() != 0) return false;
      if (looks == kLooksBetweenSignals) deadline = Deadline::After(10);
      if (deadline.PassedAt(MonotonicNanos())) return false;
    }
  }

  // (obs, rewards, dones), views that `owner` keeps alive.
  py::tuple Results(py::handle owner) const {
    return py::make_tuple(
        py::array_t<float>({size_.envs, size_.obs}, payload_.obs, owner),
        py::array_t<float>(size_.envs, payload_.rewards, owner),
        py::array_t<uint8_t>(size_.envs, payload_.dones, owner));
  }

 private:
  static constexpr uint32_t kLooksBetweenSignals = 1 << 16;

  Size size_;
  SharedBlock block_;
  Payload payload_;
  uint32_t number_ = 0;
};

// What a step function is bound to.
struct Stepper {
  py::object owner;
  BareSpin* spin;
  py::tuple results;
};

PyObject* Step(PyObject* capsule, PyObject* actions) {
  auto* const stepper =
      static_cast<Stepper*>(PyCapsule_GetPointer(capsule, nullptr));
  if (!stepper->spin->Exchange(py::detail::array_proxy(actions)->data)) {
    if (PyErr_Occurred() == nullptr) {
      PyErr_SetString(
          PyExc_RuntimeError,
          "expected an answer of the bare spin's engine, found none");
    }
    return nullptr;
  }
  return Py_NewRef(stepper->results.ptr());
}

py::object MakeStepper(py::object owner) {
  static PyMethodDef method = {"step", Step, METH_O, nullptr};
  auto* const spin = owner.cast<BareSpin*>();
  py::tuple results = spin->Results(owner);
  const py::capsule self(
      new Stepper{std::move(owner), spin, std::move(results)},
      [](void* stepper) { delete static_cast<Stepper*>(stepper); });
  return py::reinterpret_steal<py::object>(
      PyCFunction_New(&method, self.ptr()));
}

}  // namespace

PYBIND11_MODULE(bare_spin, module) {
  py::class_<BareSpin>(module, "BareSpin")
      .def(py::init<uint32_t, uint32_t, uint32_t>())
      .def("serve", &BareSpin::Serve);
  module.def("stepper", &MakeStepper);
}

}  // namespace tandem
