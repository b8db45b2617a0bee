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
#include <sys/mman.h>

#include <atomic>
#include <cstdint>
#include <cstring>
#include <new>

#include "tests/benchmark/or_exit.h"
#include "tests/benchmark/payload.h"
#include "transport/wait/relax.h"

namespace tandem {
namespace {

namespace py = pybind11;

// A pair of cache lines each, as the row "spin" has them. Writer and reader:
// client and engine; and the other way round. Both start at 0 and wrap.
struct Words {
  alignas(128) std::atomic<uint32_t> asked{0};
  alignas(128) std::atomic<uint32_t> answered{0};
};

class BareSpin {
 public:
  BareSpin(uint32_t envs, uint32_t obs, uint32_t act)
      : size_{.envs = envs, .obs = obs, .act = act},
        bytes_(sizeof(Words) + Payload::Bytes(size_)),
        memory_(mmap(nullptr, bytes_, PROT_READ | PROT_WRITE,
                     MAP_SHARED | MAP_ANONYMOUS | MAP_POPULATE, -1, 0)),
        words_(
            (RequireCall(memory_ != MAP_FAILED, "mmap"), new (memory_) Words)),
        payload_(size_, words_ + 1) {}
  BareSpin(const BareSpin&) = delete;
  BareSpin& operator=(const BareSpin&) = delete;
  ~BareSpin() { munmap(memory_, bytes_); }

  // Until a signal's handler raises.
  void Serve() {
    constexpr uint32_t kLooksBetweenSignals = 1 << 16;
    uint32_t looks = 0;
    for (uint32_t number = 1;; ++number) {
      // SYNC(bare_spin.told): acquire; the number, then the actions.
      while (words_->asked.load(std::memory_order_acquire) != number) {
        Relax();
        if (++looks % kLooksBetweenSignals != 0) continue;
        if (PyErr_CheckSignals() != 0) throw py::error_already_set();
      }
      TrivialWork(size_, payload_.actions, payload_.obs, payload_.rewards,
                  payload_.dones);
      // SYNC(bare_spin.told): release; the results before the number.
      words_->answered.store(number, std::memory_order_release);
    }
  }

  // False: no answer in many seconds, the engine is gone.
  bool Exchange(const void* actions) {
    constexpr int64_t kMostLooks = 1'000'000'000;
    std::memcpy(payload_.actions, actions, size_.action_floats() * 4);
    ++number_;
    // SYNC(bare_spin.told): release; the actions before the number.
    words_->asked.store(number_, std::memory_order_release);
    for (int64_t looks = 0; looks < kMostLooks; ++looks) {
      // SYNC(bare_spin.told): acquire; the number, then the results.
      if (words_->answered.load(std::memory_order_acquire) == number_) {
        return true;
      }
      Relax();
    }
    return false;
  }

  // (obs, rewards, dones), views that `owner` keeps alive.
  py::tuple Results(py::handle owner) const {
    return py::make_tuple(
        py::array_t<float>({size_.envs, size_.obs}, payload_.obs, owner),
        py::array_t<float>(size_.envs, payload_.rewards, owner),
        py::array_t<uint8_t>(size_.envs, payload_.dones, owner));
  }

 private:
  Size size_;
  size_t bytes_;
  void* memory_;
  Words* words_;
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
    PyErr_SetString(PyExc_RuntimeError,
                    "expected an answer of the bare spin's engine, found none");
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
