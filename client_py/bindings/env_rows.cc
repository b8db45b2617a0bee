#include "client_py/bindings/env_rows.h"

#include <algorithm>
#include <atomic>
#include <string>

#include "absl/strings/str_cat.h"
#include "base/clock.h"
#include "client_py/bindings/errors.h"
#include "client_py/bindings/numpy_arrays.h"
#include "schema/layout/field.h"

namespace tandem {
namespace py = pybind11;
namespace {

// Calls env.name(...) with arguments[1] as env and `count` more. One is free
// before them, so that CPython need not copy them.
py::object CallMethod(const py::str& name, PyObject** arguments, size_t count,
                      PyObject* names = nullptr) {
  return Owned(PyObject_VectorcallMethod(
      name.ptr(), arguments + 1, (1 + count) | PY_VECTORCALL_ARGUMENTS_OFFSET,
      names));
}

// Returns what an error message calls found.
std::string Described(PyObject* object) {
  return py::str(py::module_::import("tandem.arguments.arrays")
                     .attr("described")(py::handle(object)));
}

std::span<std::byte> AreaOf(const py::array& area) {
  if (!area.dtype().is(py::dtype::of<uint8_t>()) || area.ndim() != 1 ||
      !IsContiguous(area.ptr()) || !area.writeable()) {
    RaiseInvalid("info_area: expected a writable uint8[bytes], found " +
                 Described(area.ptr()));
  }
  return {Data<std::byte>(area.ptr()), static_cast<size_t>(area.nbytes())};
}

uint32_t* CurrentOf(const py::array& current) {
  if (!IsPlain(current.ptr(), NumpyTypeOf(FieldType::kUint32).number,
               std::array<py::ssize_t, 1>{1}) ||
      !current.writeable()) {
    RaiseInvalid("current: expected a writable uint32[1], found " +
                 Described(current.ptr()));
  }
  return Data<uint32_t>(current.ptr());
}

}  // namespace

EnvRows::EnvRows(const Options& options)
    : options_(options),
      arrays_(
          {.rewards = Column<float>("rewards", FieldType::kFloat32),
           .reward = Column<double>("reward", FieldType::kFloat64),
           .terminateds = Column<uint8_t>("terminateds", FieldType::kUint8),
           .truncateds = Column<uint8_t>("truncateds", FieldType::kUint8),
           .dones = Column<uint8_t>("dones", FieldType::kUint8),
           .resets = Column<uint8_t>("resets", FieldType::kUint8),
           .reset_seeds = Column<uint64_t>("reset_seeds", FieldType::kUint64),
           .status = Column<uint8_t>("status", FieldType::kUint8),
           .episode_return =
               Column<double>("episode_return", FieldType::kFloat64),
           .episode_length =
               Column<int64_t>("episode_length", FieldType::kInt64)}),
      observations_(options.observations, options.envs.size()),
      final_observations_(options.final_observations, options.envs.size()),
      actions_(options.actions, options.envs.size()),
      infos_(AreaOf(options.info_area),
             static_cast<uint32_t>(options.envs.size()), options.first_env),
      current_(CurrentOf(options.current)),
      step_name_("step"),
      reset_name_("reset"),
      reset_arguments_(py::make_tuple("seed", "options")) {
  for (const py::handle env : options.envs) {
    rows_.push_back({.env = py::reinterpret_borrow<py::object>(env),
                     .failure = py::object(),
                     .restarted = options.restarted});
  }
  restart_info_["worker_restarted"] = true;
  SetCurrent(kNoEnvironment);
}

template <typename T>
std::span<T> EnvRows::Column(const char* name, FieldType type) const {
  const py::object array = options_.arrays.attr(name);
  const auto rows = static_cast<py::ssize_t>(options_.envs.size());
  if (!NumpyApi::get().PyArray_Check_(array.ptr()) ||
      !IsPlain(array.ptr(), NumpyTypeOf(type).number,
               std::array<py::ssize_t, 1>{rows}) ||
      (Proxy(array.ptr())->flags & NumpyApi::NPY_ARRAY_WRITEABLE_) == 0) {
    RaiseInvalid(absl::StrCat(name, ": expected a writable ", NameOf(type), "[",
                              rows, "], found ", Described(array.ptr())));
  }
  return {Data<T>(array.ptr()), static_cast<size_t>(rows)};
}

py::list EnvRows::Run(ExchangeKind kind, AutoresetMode mode,
                      const py::object& options) {
  if (kind > ExchangeKind::kResetOnly || mode > AutoresetMode::kDisabled) {
    RaiseInvalid(absl::StrCat(
        "run: expected a kind in 0 .. 1 and an autoreset mode in 0 .. 2, "
        "found ",
        static_cast<uint32_t>(kind), " and ", static_cast<uint32_t>(mode)));
  }
  const OneCall call(&busy_);
  struct Idle {
    EnvRows* rows;
    ~Idle() { rows->SetCurrent(kNoEnvironment); }
  } const idle{this};
  py::list failures;
  infos_.Begin();
  for (uint32_t row = 0; row < rows_.size(); ++row) {
    Row& state = rows_[row];
    const uint8_t flags = arrays_.resets[row];
    if (flags == kSkip) continue;
    const bool flagged = IsReset(flags);
    if (!flagged && kind == ExchangeKind::kResetOnly) continue;
    if (flagged) {
      state.failure = py::object();
    } else if (state.failure) {
      failures.append(state.failure);
      continue;
    }
    if (PyErr_CheckSignals() != 0) throw py::error_already_set();
    infos_.BeginRow(row);
    SetCurrent(options_.first_env + row);
    const bool resets_at_end = mode == AutoresetMode::kSameStep;
    bool stepping = false;
    const auto fail = [&](py::error_already_set& error) {
      if (error.matches(options_.stop)) throw error;
      if (error.trace()) {
        PyException_SetTraceback(error.value().ptr(), error.trace().ptr());
      }
      if (stepping && !options_.truncation.is_none() &&
          error.matches(PyExc_Exception)) {
        stepping = false;  // a reset may follow, and fail
        infos_.ClearRow();
        Truncate(row, resets_at_end,
                 Told(options_.truncation, row, error.value()));
        arrays_.status[row] = static_cast<uint8_t>(EnvStatus::kOk);
        return;
      }
      Fail(row, error.value());
      failures.append(state.failure);
    };
    try {
      if (flagged) {
        ResetByFlag(row, options);
      } else if (state.restarted) {
        Truncate(row, resets_at_end, restart_info_);
        arrays_.status[row] = static_cast<uint8_t>(EnvStatus::kRestarted);
        continue;
      } else if (mode == AutoresetMode::kNextStep && state.ended) {
        PyObject* arguments[] = {nullptr, state.env.ptr()};
        Reset(row, arguments, nullptr);
        ClearResults(row);
      } else {
        stepping = true;
        Step(row, resets_at_end);
      }
      arrays_.status[row] = static_cast<uint8_t>(EnvStatus::kOk);
    } catch (py::error_already_set& error) {
      try {
        fail(error);
      } catch (py::error_already_set& of_reset) {
        fail(of_reset);
      }
    }
  }
  return failures;
}

void EnvRows::Step(uint32_t row, bool resets_at_end) {
  Row& state = rows_[row];
  ++state.step;
  const py::object action = actions_.Read(row);
  PyObject* arguments[] = {nullptr, state.env.ptr(), action.ptr()};
  const py::tuple items = Items(row, CallMethod(step_name_, arguments, 1), 5);
  PyObject* const observation = PyTuple_GET_ITEM(items.ptr(), 0);
  PyObject* const info = PyTuple_GET_ITEM(items.ptr(), 4);
  const double reward = Reward(row, PyTuple_GET_ITEM(items.ptr(), 1));
  const bool terminated =
      Flag(row, "terminated", PyTuple_GET_ITEM(items.ptr(), 2));
  const bool truncated =
      Flag(row, "truncated", PyTuple_GET_ITEM(items.ptr(), 3));
  state.ended = terminated || truncated;
  state.episode_return += reward;
  ++state.episode_length;
  if (state.ended) {
    arrays_.episode_return[row] = state.episode_return;
    arrays_.episode_length[row] = state.episode_length;
    ended_[episodes_++ % kEpisodes] = {
        .at_ns = MonotonicNanos(),
        .episode_return = state.episode_return,
        .episode_length = static_cast<double>(state.episode_length)};
  }
  if (state.ended && resets_at_end) {
    // Before the reset, which may overwrite the observation's memory.
    final_observations_.Write(row, observation);
    infos_.Write(InfoPart::kFinal, info);
    Reset(row, arguments, nullptr);
  } else {
    observations_.Write(row, observation);
    infos_.Write(InfoPart::kInfo, info);
  }
  arrays_.reward[row] = reward;
  arrays_.rewards[row] = static_cast<float>(reward);
  arrays_.terminateds[row] = terminated ? 1 : 0;
  arrays_.truncateds[row] = truncated ? 1 : 0;
  arrays_.dones[row] = terminated || truncated ? 1 : 0;
}

void EnvRows::ResetByFlag(uint32_t row, const py::object& options) {
  py::object seed = py::none();
  if ((arrays_.resets[row] & kResetSeeded) != 0) {
    seed = py::int_(arrays_.reset_seeds[row]);
  }
  Row& state = rows_[row];
  PyObject* arguments[] = {nullptr, state.env.ptr(), seed.ptr(), options.ptr()};
  state.continued.reset();
  Reset(row, arguments, reset_arguments_.ptr());
  ClearResults(row);
  if (!state.continued) return;
  state.ended = state.continued->ended;
  state.episode_return = state.continued->episode_return;
  state.episode_length = state.continued->episode_length;
  state.step = state.episode_length - 1;
  arrays_.dones[row] = state.ended ? 1 : 0;
}

void EnvRows::Truncate(uint32_t row, bool resets_at_end,
                       const py::dict& infos) {
  Row& state = rows_[row];
  PyObject* arguments[] = {nullptr, state.env.ptr()};
  if (resets_at_end) {
    final_observations_.Write(row, observations_.Read(row).ptr());
    infos_.Write(InfoPart::kFinal, infos.ptr());
    Reset(row, arguments, nullptr);
  } else {
    infos_.Write(InfoPart::kInfo, infos.ptr());
    state.restarted = false;
    state.ended = true;
  }
  ClearResults(row);
  arrays_.truncateds[row] = 1;
  arrays_.dones[row] = 1;
  arrays_.episode_return[row] = 0;
  arrays_.episode_length[row] = 0;
}

void EnvRows::Reset(uint32_t row, PyObject** arguments, PyObject* names) {
  Row& state = rows_[row];
  ++state.episode;
  state.step = -1;
  const py::tuple items =
      Items(row, CallMethod(reset_name_, arguments, 0, names), 2);
  observations_.Write(row, PyTuple_GET_ITEM(items.ptr(), 0));
  infos_.Write(InfoPart::kInfo, PyTuple_GET_ITEM(items.ptr(), 1));
  state.ended = false;
  state.restarted = false;
  state.episode_return = 0;
  state.episode_length = 0;
}

void EnvRows::ClearResults(uint32_t row) {
  arrays_.reward[row] = 0;
  arrays_.rewards[row] = 0;
  arrays_.terminateds[row] = 0;
  arrays_.truncateds[row] = 0;
  arrays_.dones[row] = 0;
}

void EnvRows::Fail(uint32_t row, const py::object& exception) {
  infos_.ClearRow();
  ClearResults(row);
  arrays_.status[row] = static_cast<uint8_t>(EnvStatus::kRaised);
  Row& state = rows_[row];
  state.ended = false;
  state.episode_return = 0;
  state.episode_length = 0;
  state.failure =
      py::make_tuple(row, exception, Told(options_.failure, row, exception));
}

py::object EnvRows::Told(const py::object& function, uint32_t row,
                         const py::object& exception) const {
  const Row& state = rows_[row];
  return function(state.env, options_.first_env + row, exception, state.episode,
                  state.step);
}

py::tuple EnvRows::Episodes() const {
  const auto count =
      static_cast<py::ssize_t>(std::min<uint64_t>(episodes_, kEpisodes));
  py::array_t<int64_t> times(count);
  py::array_t<double> returns(count);
  py::array_t<double> lengths(count);
  for (py::ssize_t i = 0; i < count; ++i) {
    const Ended& ended =
        ended_[(episodes_ - static_cast<uint64_t>(count - i)) % kEpisodes];
    times.mutable_at(i) = ended.at_ns;
    returns.mutable_at(i) = ended.episode_return;
    lengths.mutable_at(i) = ended.episode_length;
  }
  const auto rows = static_cast<py::ssize_t>(rows_.size());
  py::array_t<double> running(rows);
  py::array_t<int64_t> numbers(rows);
  py::array_t<int64_t> steps(rows);
  for (size_t row = 0; row < rows_.size(); ++row) {
    running.mutable_at(row) = rows_[row].episode_return;
    numbers.mutable_at(row) = rows_[row].episode;
    steps.mutable_at(row) = rows_[row].episode_length;
  }
  return py::make_tuple(episodes_, times, returns, lengths, running, numbers,
                        steps);
}

void EnvRows::ContinueEpisode(uint32_t row, bool ended, double episode_return,
                              int64_t episode_length) {
  rows_.at(row).continued = {ended, episode_return, episode_length};
}

py::tuple EnvRows::Items(uint32_t row, py::object result,
                         Py_ssize_t count) const {
  if (PyList_CheckExact(result.ptr()) != 0) {
    result = Owned(PyList_AsTuple(result.ptr()));
  }
  if (PyTuple_Check(result.ptr()) != 0 &&
      PyTuple_GET_SIZE(result.ptr()) == count) {
    return py::reinterpret_steal<py::tuple>(result.release());
  }
  const bool is_step = count == 5;
  RaiseInvalid(absl::StrCat(
      is_step ? "step" : "reset", " of environment ", options_.first_env + row,
      ": expected ",
      is_step ? "(observation, reward, terminated, truncated, info)"
              : "(observation, info)",
      ", found ",
      PyTuple_Check(result.ptr()) != 0
          ? absl::StrCat("a tuple of ", PyTuple_GET_SIZE(result.ptr()),
                         " items")
          : Described(result.ptr())));
}

double EnvRows::Reward(uint32_t row, PyObject* value) const {
  PyTypeObject* const type = Py_TYPE(value);
  if (type == &PyFloat_Type ||
      type == NumpyTypeOf(FieldType::kFloat64).scalar) {
    return PyFloat_AS_DOUBLE(value);
  }
  if (type == NumpyTypeOf(FieldType::kFloat32).scalar) {
    return *reinterpret_cast<const float*>(ScalarBytes(value));
  }
  if (NumpyApi::get().PyArray_Check_(value) && Proxy(value)->nd > 0) {
    RaiseFound(row, "reward", "a number", value);
  }
  const double reward = PyFloat_AsDouble(value);
  if (reward == -1 && PyErr_Occurred() != nullptr) {
    RaiseFound(row, "reward", "a number", value);
  }
  return reward;
}

bool EnvRows::Flag(uint32_t row, const char* name, PyObject* value) const {
  if (value == Py_False || value == Py_True) return value == Py_True;
  if (Py_TYPE(value) == NumpyTypeOf(FieldType::kBool).scalar) {
    return *ScalarBytes(value) != 0;
  }
  // Gymnasium takes the truth of any object.
  const int truth = PyObject_IsTrue(value);
  if (truth < 0) RaiseFound(row, name, "a bool", value);
  return truth != 0;
}

void EnvRows::RaiseFound(uint32_t row, const char* what, const char* expected,
                         PyObject* found) const {
  std::string reason;
  if (PyErr_Occurred() != nullptr) {
    py::error_already_set error;
    if (!error.matches(PyExc_Exception)) throw error;
    reason = absl::StrCat(": ", std::string(py::str(error.value())));
  }
  RaiseInvalid(absl::StrCat(what, " of environment ", options_.first_env + row,
                            ": expected ", expected, ", found ",
                            Described(found), reason));
}

void EnvRows::SetCurrent(uint32_t env) {
  // relaxed: for display only; publishes no other data.
  std::atomic_ref<uint32_t>(*current_).store(env, std::memory_order_relaxed);
}

}  // namespace tandem
