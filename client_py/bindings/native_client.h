// NativeClient: the Python interface of ClientSide.
//
// Data flow: NumPy array -> checked, not converted -> ClientSide::Send;
// ClientSide::Recv -> the same three NumPy views in each call.
// Ownership: the Python object tandem.SharedMemoryClient holds one. The views
// share the mapping and may outlive the client. All calls need the GIL; calls
// that wait release it.

#pragma once

#include <pybind11/pybind11.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "client_py/bindings/native_rpc.h"
#include "client_py/bindings/region_views.h"
#include "schema/layout/lrbc.h"
#include "transport/client_side.h"
#include "transport/imported_arrays.h"
#include "transport/region.h"
#include "transport/region_copies.h"

namespace tandem {

// Legal call order: ClientSide's. All calls except the views raise by the error
// table (errors.h). A second thread inside a call gets ConcurrentUse.
class NativeClient {
 public:
  ~NativeClient();
  // Attaches; blocks for up to `timeout_secs`.
  NativeClient(const std::string& name, double timeout_secs,
               const std::string& wait, bool share_core, uint32_t autoreset);

  // Does Send, then Recv. Returns a new reference, not a pybind11 type: those
  // check for the GIL, which is an eighth of a step's instructions. Allocates
  // nothing on success.
  PyObject* Step(pybind11::handle actions);
  void Send(pybind11::handle actions);
  pybind11::tuple Recv(std::optional<double> timeout_secs);
  // The two halves of Step, for float32[num_envs * act_size], without a tuple.
  void Post(std::span<const float> actions, AfterSend after);
  void Await(double timeout_secs);
  // Sends the region's own actions, of these environments only.
  void PostChosen(std::span<const int64_t> env_ids);
  // Sends the region's own actions, of these workers.
  void PostLanes(const std::vector<uint32_t>& workers);
  // As LaneSide::SendResets.
  void PostLaneResets(const std::vector<uint32_t>& workers,
                      const std::vector<int64_t>& env_ids,
                      const std::vector<std::optional<uint64_t>>& seeds);
  // Waits for the results of at least so many open lanes, and adds their
  // workers to ReadyLanes(). Raises no EnvFailed: CheckLanes does.
  void AwaitLanes(size_t min_count, std::optional<double> timeout_secs);
  std::vector<uint32_t> OpenLanes() { return client_.lanes().Open(); }
  // Raises EnvFailed if an environment of one of these workers raised an
  // exception in its last lane, which AwaitLanes has received.
  void CheckLanes(const std::vector<uint32_t>& workers);
  // Workers whose lanes were received and not taken, the first one first.
  // Until they are taken, exchanges raise StepPending.
  const std::vector<uint32_t>& ReadyLanes() const { return ready_lanes_; }
  // Removes workers from ReadyLanes().
  void TakeLanes(const std::vector<uint32_t>& workers);
  // As ClientSide; the failure as (worker, environment).
  std::vector<uint32_t> AwaitedWorkers() const {
    return client_.AwaitedWorkers();
  }
  std::optional<std::pair<uint32_t, uint32_t>> LastFailure() const {
    const auto failure = client_.LastFailure();
    if (!failure) return std::nullopt;
    return std::pair(failure->worker, failure->env);
  }
  // The first environment and the number of environments of each worker; empty
  // without workers.
  std::vector<std::pair<uint32_t, uint32_t>> WorkerRowsOf() const;
  void SendReset(const std::vector<int64_t>& env_ids,
                 const std::vector<std::optional<uint64_t>>& seeds);
  // Requests a frame of the current state and waits for it. Returns a copy:
  // (uint8[height, width, channels], metadata as bytes). Unsupported: the
  // engine was started without frames.
  pybind11::tuple DrawnFrame(std::optional<double> timeout_secs);
  // The arrays that the engine has on a GPU: (role, path) -> CudaArray. The
  // first call opens them. They raise ClientClosed after Reconnect and Close,
  // and the errors of Send while the results of the last exchange are not
  // there. Raises the errors of ImportedArrays::Open.
  pybind11::dict CudaArrays();
  // Before each send, Reconnect and Close the client waits until these copies
  // have read the region, while they exist.
  void AwaitCopies(const std::shared_ptr<RegionCopies>& copies);
  // Calls `body`, which reads the results of the last exchange, as a call of
  // this client: meanwhile another thread's call gets ConcurrentUse. Raises
  // that, and the errors of Send.
  void Within(absl::FunctionRef<void()> body);
  // The engine's path to a GPU, as GpuPathText has it.
  std::string GpuPath() const { return GpuPathText(client_.plan()); }
  // Whether the engine writes the region's observations and images.
  bool HasCpuObs() const {
    return !HasGpuArrays(client_.plan()) ||
           (client_.plan().gpu_flags & kGpuFillsCpu) != 0;
  }

  // On success views() returns the views of the new mapping.
  void Reconnect(std::optional<double> timeout_secs);
  void Close();

  // Legal while another thread is inside a call, except Reconnect.
  ClientStats Stats() const;

  // The default timeout; initially the constructor's.
  void SetTimeout(double timeout_secs);
  double timeout_secs() const { return timeout_secs_; }

  // RPCs to the same engine. Any thread may use it, also while another thread
  // is inside a call.
  NativeRpc& rpc() { return rpc_; }

  void WakeEngine() { client_.WakeEngine(); }
  // Shows observers these statistics in place of the engine's.
  void ShowOwnRun(uint64_t episodes, double last_reward, double rolling_return,
                  double episode_length);
  void ServeEnvironments() { client_.ServeEnvironments(); }

  bool has_frames() const { return client_.has_frames(); }
  uint64_t ImageStep() const;
  bool pending() const { return client_.pending(); }
  bool closed() const { return client_.closed(); }
  const RegionViews& views() const { return views_; }
  const ClientSide& side() const { return client_; }

 private:
  class InCall;
  // What arrays on a GPU share with their client, which may end before them.
  struct GpuSession {
    std::shared_ptr<ImportedArrays> arrays;
    NativeClient* client;  // nullptr: the session has ended
  };
  // Raises InvalidAction if dtype, shape or layout do not match.
  std::span<const float> Checked(pybind11::handle actions) const;
  // Calls `wait` with a function that it must call before it sleeps.
  template <typename Wait>
  static ErrorCode KeepingGil(Wait wait);
  [[noreturn]] void RaiseInvalidAction(pybind11::handle actions) const;
  [[noreturn]] void RaiseCode(ErrorCode code) const;
  // Before each exchange. StepPending: it would overwrite the results of lanes.
  void ExpectNoLanes() {
    if (!ready_lanes_.empty()) RaiseCode(ErrorCode::kStepPending);
  }
  // Before the engine may overwrite arrays: waits for their readers on this
  // process's streams.
  void AwaitGpuReaders() {
    if (HasGpuReaders()) AwaitGpuReadersNow();
  }
  bool HasGpuReaders() const { return gpu_ != nullptr || !copies_.empty(); }
  void AwaitGpuReadersNow();
  absl::Status GpuReadersDone();
  // Before the client leaves: the next one's reset overwrites the arrays.
  void LeaveGpu();
  void EndGpuSession();

  std::string name_;
  double timeout_secs_;
  ClientSide client_;
  NativeRpc rpc_;
  std::shared_ptr<GpuSession> gpu_;  // from the first CudaArrays on
  std::vector<std::weak_ptr<RegionCopies>> copies_;
  RegionViews views_;
  pybind11::tuple results_;  // (obs, rewards, dones)
  // Guarded by the GIL. ClientSide refuses a second thread during its own
  // calls; in_call_ also covers the end of the RPC session in Reconnect and
  // Close.
  std::vector<uint32_t> ready_lanes_;
  bool in_call_ = false;
  bool reconnecting_ = false;
};

// Returns the base class of SharedMemoryClient: StepMethod(native), which keeps
// its NativeClient alive and has step(actions) only. A method of a C type costs
// about 20 ns; a Python method that calls a pybind11 method costs 100 ns, a
// third of a small step. Raises Python's errors of the type's creation.
pybind11::object MakeStepMethodType();  // step_method.cc

}  // namespace tandem
