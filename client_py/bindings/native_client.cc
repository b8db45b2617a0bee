#include "client_py/bindings/native_client.h"

#include <algorithm>
#include <cstddef>
#include <iterator>

#include "absl/strings/str_cat.h"
#include "base/clock.h"
#include "base/error.h"
#include "client_py/bindings/cuda_array.h"
#include "client_py/bindings/errors.h"
#include "client_py/bindings/waiting.h"
#include "schema/layout/field.h"
#include "transport/cuda.h"
#include "transport/frame_geometry.h"
#include "transport/frame_reader.h"
#include "transport/wait_strategy.h"

namespace tandem {
namespace py = pybind11;
namespace {

ClientSide AttachOrRaise(const std::string& name, double timeout_secs,
                         const std::string& wait, bool share_core,
                         uint32_t autoreset) {
  const ClientSide::Options options = {
      .timeout_secs = timeout_secs,
      .wait = WaitStrategyNamed(wait).value(),
      .share_core = share_core,
      .autoreset = static_cast<AutoresetMode>(autoreset),
      .interrupted = PythonInterrupts};
  absl::StatusOr<ClientSide> client =
      WithoutGil([&] { return ClientSide::Attach(name, options); });
  RaiseWhatPythonRaised();
  if (!client.ok()) Raise(client.status(), name);
  return *std::move(client);
}

}  // namespace

// Marks a call in progress, which refuses calls of other threads.
class NativeClient::InCall {
 public:
  explicit InCall(NativeClient* client) : client_(client) {
    if (client->in_call_) client->RaiseCode(client->client_.Refusal());
    client->in_call_ = true;
  }
  InCall(const InCall&) = delete;
  InCall& operator=(const InCall&) = delete;
  ~InCall() { client_->in_call_ = false; }

 private:
  NativeClient* client_;
};

NativeClient::NativeClient(const std::string& name, double timeout_secs,
                           const std::string& wait, bool share_core,
                           uint32_t autoreset)
    : name_(name),
      timeout_secs_(timeout_secs),
      client_(AttachOrRaise(name, timeout_secs, wait, share_core, autoreset)),
      rpc_(&client_, timeout_secs),
      views_(RegionViews::Of(client_)),
      results_(py::make_tuple(views_.obs, views_.rewards, views_.dones)) {}

NativeClient::~NativeClient() {
  (void)GpuReadersDone();  // keeps the GIL: the interpreter may be ending
  EndGpuSession();
}

void NativeClient::AwaitCopies(const std::shared_ptr<RegionCopies>& copies) {
  const InCall in_call(this);
  std::erase_if(copies_, [](const auto& each) { return each.expired(); });
  copies_.push_back(copies);
}

void NativeClient::Within(absl::FunctionRef<void()> body) {
  const InCall in_call(this);
  const ErrorCode code = client_.MayRead();
  if (code != ErrorCode::kOk) RaiseCode(code);
  body();
}

py::dict NativeClient::CudaArrays() {
  Within([&] {
    if (gpu_ != nullptr) return;
    auto opened = WithoutGil([&] { return ImportedArrays::Open(client_); });
    if (!opened.ok()) Raise(opened.status(), name_);
    gpu_ = std::make_shared<GpuSession>(
        GpuSession{.arrays = *std::move(opened), .client = this});
  });
  const std::shared_ptr<GpuSession> session = gpu_;
  const auto prepare = [session](std::optional<CudaStream> stream) {
    NativeClient* const client = session->client;
    if (client == nullptr) {
      Raise(MakeError(ErrorCode::kClientClosed,
                      "array on a GPU: expected a client in the session of the "
                      "array, found one that was closed or reconnected; read "
                      "obs_cuda again"),
            "");
    }
    client->Within([&] {
      if (!stream) return;
      const absl::Status status = session->arrays->WaitOn(*stream);
      if (!status.ok()) Raise(status, client->name_);
    });
  };
  py::dict arrays;
  for (const FieldRecord& record : session->arrays->arrays()) {
    arrays[py::make_tuple(NameOf(record.role), std::string(PathOf(record)))] =
        CudaArray(CudaArray::PlaceOf(record, session->arrays->num_envs(),
                                     session->arrays->At(record),
                                     session->arrays->device()),
                  session->arrays, prepare);
  }
  return arrays;
}

void NativeClient::AwaitGpuReadersNow() {
  const absl::Status status = WithoutGil([&] { return GpuReadersDone(); });
  if (!status.ok()) Raise(status, name_);
}

absl::Status NativeClient::GpuReadersDone() {
  absl::Status status;
  for (const std::weak_ptr<RegionCopies>& each : copies_) {
    if (const auto copies = each.lock()) status.Update(copies->AwaitRead());
  }
  if (gpu_ != nullptr && gpu_->arrays->HasReaders()) {
    status.Update(gpu_->arrays->AwaitReaders());
  }
  return status;
}

void NativeClient::LeaveGpu() {
  // An error keeps no client from leaving.
  if (HasGpuReaders()) (void)WithoutGil([&] { return GpuReadersDone(); });
  EndGpuSession();
}

void NativeClient::EndGpuSession() {
  if (gpu_ != nullptr) gpu_->client = nullptr;
  gpu_.reset();
}

PyObject* NativeClient::Step(py::handle actions) {
  const InCall in_call(this);
  ExpectNoLanes();
  AwaitGpuReaders();
  const std::span<const float> checked = Checked(actions);
  const ErrorCode code =
      KeepingGil([&](absl::FunctionRef<void()> on_long_wait) {
        return client_.Step(checked, timeout_secs_, on_long_wait);
      });
  if (code != ErrorCode::kOk) RaiseCode(code);
  return Py_NewRef(results_.ptr());
}

void NativeClient::Send(py::handle actions) {
  Post(Checked(actions), AfterSend::kComputes);
}

void NativeClient::Post(std::span<const float> actions, AfterSend after) {
  const InCall in_call(this);
  ExpectNoLanes();
  AwaitGpuReaders();
  const ErrorCode code = client_.Send(actions, after);
  if (code != ErrorCode::kOk) RaiseCode(code);
}

py::tuple NativeClient::Recv(std::optional<double> timeout_secs) {
  Await(timeout_secs.value_or(timeout_secs_));
  return results_;
}

void NativeClient::Await(double timeout_secs) {
  const InCall in_call(this);
  const ErrorCode code =
      KeepingGil([&](absl::FunctionRef<void()> on_long_wait) {
        return client_.Recv(Deadline::After(timeout_secs), on_long_wait);
      });
  if (code != ErrorCode::kOk) RaiseCode(code);
}

void NativeClient::PostChosen(std::span<const int64_t> env_ids) {
  const InCall in_call(this);
  ExpectNoLanes();
  AwaitGpuReaders();
  const ErrorCode code = client_.Send(client_.arrays().actions, env_ids);
  if (code != ErrorCode::kOk) RaiseCode(code);
}

void NativeClient::PostLanes(const std::vector<uint32_t>& workers) {
  const InCall in_call(this);
  AwaitGpuReaders();
  const ErrorCode code =
      client_.lanes().Send(workers, client_.arrays().actions);
  if (code != ErrorCode::kOk) RaiseCode(code);
}

void NativeClient::PostLaneResets(
    const std::vector<uint32_t>& workers, const std::vector<int64_t>& env_ids,
    const std::vector<std::optional<uint64_t>>& seeds) {
  const InCall in_call(this);
  AwaitGpuReaders();
  const ErrorCode code = client_.lanes().SendResets(workers, env_ids, seeds);
  if (code != ErrorCode::kOk) RaiseCode(code);
}

void NativeClient::AwaitLanes(size_t min_count,
                              std::optional<double> timeout_secs) {
  const InCall in_call(this);
  std::vector<uint32_t> received;
  const Deadline deadline =
      Deadline::After(timeout_secs.value_or(timeout_secs_));
  const ErrorCode code =
      KeepingGil([&](absl::FunctionRef<void()> on_long_wait) {
        const ErrorCode result =
            client_.lanes().Recv(min_count, deadline, &received, on_long_wait);
        // Before a signal handler's exception is raised. Of a worker that only
        // reset environments, earlier results may not have been taken.
        std::ranges::copy_if(received, std::back_inserter(ready_lanes_),
                             [&](uint32_t worker) {
                               return std::ranges::find(ready_lanes_, worker) ==
                                      ready_lanes_.end();
                             });
        return result == ErrorCode::kEnvFailed ? ErrorCode::kOk : result;
      });
  if (code != ErrorCode::kOk) RaiseCode(code);
}

void NativeClient::CheckLanes(const std::vector<uint32_t>& workers) {
  const InCall in_call(this);
  const ErrorCode code = client_.lanes().Failure(workers);
  if (code != ErrorCode::kOk) RaiseCode(code);
}

void NativeClient::TakeLanes(const std::vector<uint32_t>& workers) {
  std::erase_if(ready_lanes_, [&](uint32_t worker) {
    return std::ranges::find(workers, worker) != workers.end();
  });
}

void NativeClient::ShowOwnRun(uint64_t episodes, double last_reward,
                              double rolling_return, double episode_length) {
  const InCall in_call(this);
  const ErrorCode code = client_.ShowOwnRun({.last_reward = last_reward,
                                             .rolling_return = rolling_return,
                                             .episodes = episodes,
                                             .episode_length = episode_length});
  if (code != ErrorCode::kOk) RaiseCode(code);
}

std::vector<std::pair<uint32_t, uint32_t>> NativeClient::WorkerRowsOf() const {
  std::vector<std::pair<uint32_t, uint32_t>> rows;
  for (const WorkerRows& each : client_.workers()) {
    rows.emplace_back(each.first_env, each.num_envs);
  }
  return rows;
}

void NativeClient::SendReset(
    const std::vector<int64_t>& env_ids,
    const std::vector<std::optional<uint64_t>>& seeds) {
  const InCall in_call(this);
  ExpectNoLanes();
  AwaitGpuReaders();
  const ErrorCode code = client_.SendReset(env_ids, seeds);
  if (code != ErrorCode::kOk) RaiseCode(code);
}

void NativeClient::SetTimeout(double timeout_secs) {
  timeout_secs_ = timeout_secs;
  rpc_.SetTimeout(timeout_secs);
}

py::tuple NativeClient::DrawnFrame(std::optional<double> timeout_secs) {
  const InCall in_call(this);
  const double secs = timeout_secs.value_or(timeout_secs_);
  if (!client_.has_frames()) {
    Raise(MakeError(ErrorCode::kUnsupported,
                    absl::StrCat("region '", name_,
                                 "': expected an engine that draws, found one "
                                 "started without frames; start it with "
                                 "frames=(WIDTH, HEIGHT) in Python, or by the "
                                 "flag --frames WIDTHxHEIGHT")),
          name_);
  }
  const ErrorCode code =
      WithoutGil([&] { return client_.AwaitFrame(Deadline::After(secs)); });
  if (code != ErrorCode::kOk) RaiseCode(code);
  RaiseWhatPythonRaised();
  const LrbcHeader& plan = client_.plan();
  absl::StatusOr<FrameReader> reader = FrameReader::Attach(
      {client_.mapping()->At<std::byte>(plan.flan_offset), plan.flan_size});
  if (!reader.ok()) Raise(reader.status(), name_);
  const FrameGeometry& geometry = reader->geometry();
  py::array_t<uint8_t> pixels(
      {geometry.height, geometry.width, geometry.channels});
  const std::span<std::byte> room = std::as_writable_bytes(
      std::span(pixels.mutable_data(), static_cast<size_t>(pixels.size())));
  Frame frame;
  const FrameReader::Found found =
      WithoutGil([&] { return reader->NewestTo(room, &frame); });
  if (found != FrameReader::Found::kFrame) RaiseCode(ErrorCode::kBrokenPeer);
  return py::make_tuple(std::move(pixels), py::bytes(frame.metadata));
}

void NativeClient::Reconnect(std::optional<double> timeout_secs) {
  const InCall in_call(this);
  const double secs = timeout_secs.value_or(timeout_secs_);
  ready_lanes_.clear();
  LeaveGpu();
  reconnecting_ = true;
  rpc_.EndSession();
  const absl::Status status =
      WithoutGil([&] { return client_.Reconnect(secs); });
  if (status.ok()) rpc_.BeginSession();
  reconnecting_ = false;
  if (!status.ok()) Raise(status, name_);
  {
    const py::error_scope interrupt;  // saves a pending exception meanwhile
    views_ = RegionViews::Of(client_);
    results_ = py::make_tuple(views_.obs, views_.rewards, views_.dones);
  }
  RaiseWhatPythonRaised();
}

void NativeClient::Close() {
  const InCall in_call(this);
  ready_lanes_.clear();
  LeaveGpu();
  rpc_.EndSession();
  const ErrorCode code = client_.Close();
  if (code != ErrorCode::kOk) RaiseCode(code);
}

uint64_t NativeClient::ImageStep() const {
  if (reconnecting_) RaiseCode(ErrorCode::kConcurrentUse);
  return client_.image_step();
}

ClientStats NativeClient::Stats() const {
  if (reconnecting_) RaiseCode(ErrorCode::kConcurrentUse);
  return client_.Stats();
}

std::span<const float> NativeClient::Checked(py::handle actions) const {
  using Api = py::detail::npy_api;
  const Api& api = Api::get();
  if (!api.PyArray_Check_(actions.ptr())) RaiseInvalidAction(actions);
  const auto* const array = py::detail::array_proxy(actions.ptr());
  constexpr int kFlags = Api::NPY_ARRAY_C_CONTIGUOUS_ | Api::NPY_ARRAY_ALIGNED_;
  PyObject* const float32 =
      py::detail::array_proxy(views_.actions.ptr())->descr;
  // The descriptor of native float32 is nearly always the same object.
  if ((array->flags & kFlags) != kFlags || array->nd != 2 ||
      array->dimensions[0] != static_cast<py::ssize_t>(views_.num_envs) ||
      array->dimensions[1] != static_cast<py::ssize_t>(views_.act_size) ||
      (array->descr != float32 &&
       !api.PyArray_EquivTypes_(array->descr, float32))) {
    RaiseInvalidAction(actions);
  }
  return {reinterpret_cast<const float*>(array->data),
          size_t{views_.num_envs} * views_.act_size};
}

template <typename Wait>
ErrorCode NativeClient::KeepingGil(Wait wait) {
  // Short waits keep the GIL. Release and acquisition take longer than a quick
  // answer, and up to sys.getswitchinterval() (5 ms) if another thread runs
  // Python code meanwhile.
  PyThreadState* without_gil = nullptr;
  const ErrorCode code = wait([&] { without_gil = PyEval_SaveThread(); });
  if (without_gil == nullptr) return code;
  PyEval_RestoreThread(without_gil);
  if (code == ErrorCode::kOk) RaiseWhatPythonRaised();
  return code;
}

void NativeClient::RaiseInvalidAction(py::handle actions) const {
  // Plain pointers: see Raise.
  PyObject* const module = PyImport_ImportModule("tandem.arguments.arrays");
  if (module != nullptr) {
    Py_XDECREF(PyObject_CallMethod(module, "refuse_actions", "OII",
                                   actions.ptr(), views_.num_envs,
                                   views_.act_size));
    Py_DECREF(module);
  }
  throw py::error_already_set();
}

void NativeClient::RaiseCode(ErrorCode code) const {
  Raise(client_.Explain(code), name_);
}

}  // namespace tandem
