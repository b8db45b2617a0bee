// ForeignEngine: an engine on the other side of the C interface.
//
// Data flow: EngineHost -> work, calls, clears -> Next -> the program;
// the program -> Done, Answer -> EngineHost.
// Ownership: the handle owns it. One thread at a time calls it, except where
// a method says otherwise.
//
//   absl::StatusOr<std::unique_ptr<ForeignEngine>> engine =
//       ForeignEngine::Create(options, callbacks);
//   tandem_work work;
//   absl::Status status = (*engine)->Next(Deadline::After(1), &work);

#ifndef TANDEM_SDK_FOREIGN_ENGINE_H_
#define TANDEM_SDK_FOREIGN_ENGINE_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "base/clock.h"
#include "base/error.h"
#include "engine_adapter/engine.h"
#include "engine_adapter/engine_host.h"
#include "engine_adapter/engine_ports.h"
#include "engine_adapter/frame_source.h"
#include "schema/messages/hazel_rpc_generated.h"
#include "sdk/foreign_draws.h"
#include "sdk/foreign_services.h"
#include "sdk/named_arrays.h"
#include "sdk/tandem.h"

namespace tandem {

// States: idle, working (Next has returned a RESET or STEP), called. Done:
// working -> idle. Poll and Run: idle -> called. Next is legal in idle and
// working; Poll and Run are legal in idle and called; Answer in all.
class ForeignEngine final : public Engine,
                            private MethodPort,
                            private OwnMethodPort {
 public:
  // An engine with a host of its own. The errors of EngineHost::CreateTicked
  // and of Make.
  static absl::StatusOr<std::unique_ptr<ForeignEngine>> Create(
      const tandem_engine_options& options, const tandem_callbacks& callbacks);
  // An engine without a host. kInvalidArgument: a wrong description, or wrong
  // methods, fields or services.
  static absl::StatusOr<std::unique_ptr<ForeignEngine>> Make(
      const tandem_engine_options& options, const tandem_callbacks& callbacks);
  // Its host ends before it.
  ~ForeignEngine() override;
  // Sets the host, which must outlive all later calls.
  void SetHost(EngineHost* host);
  // The host will end: no image is waited for.
  void Close();

  // Waits for work; `*work` is valid until the next call of Next or Done. An
  // error is that of the region's opening, and permanent; or kInvalidArgument
  // for an illegal call. So are the errors below.
  absl::Status Next(Deadline deadline, tandem_work* work);
  absl::Status Done(const absl::Status& result);
  // Serves pending events by the callback; sets whether there were any.
  absl::Status Poll(bool* served) {
    *served = true;
    if (!called_) return StartCalls();
    TANDEM_RETURN_IF_ERROR(opening_);
    *served = host_->Poll();
    return absl::OkStatus();
  }
  // Serves until the host is stopped.
  absl::Status Run();
  // The text of the failure that the callback will return. It is for the work
  // in progress only.
  void Fail(absl::string_view text);

  // kNoStepPending: no such call is unanswered. As MethodPort::Answer.
  absl::Status Answer(uint64_t call,
                      absl::StatusOr<std::span<const uint8_t>> envelope);

  // For the host.
  const EngineSchema& schema() const override { return schema_; }
  absl::Status Reset(std::span<const ResetRequest> requests,
                     const ResetIo& io) override;
  absl::Status Step(std::span<const uint32_t> envs, const StepIo& io) override;
  void ClearClientState() override;
  FrameSource* frames() override {
    return services_ == nullptr ? nullptr : services_->frames();
  }
  SceneSource* scene() override { return live_scene(); }
  EnginePorts ports() override;
  bool HasOtherWork() const override { return !events_.empty(); }
  double step_secs() const override { return step_secs_; }

  // The error of the region's opening; OK before it.
  const absl::Status& opening() const { return opening_; }

  // Any thread may call the rest.
  EngineHost& host() { return *host_; }
  const NamedArrays& arrays() const { return arrays_; }
  // kUnsupported: there are no arrays on a GPU; the text has the reason.
  absl::StatusOr<const NamedArrays*> gpu_arrays() const;
  ForeignDraws& draws() { return draws_; }
  // nullptr: the engine has none.
  ForeignScene* live_scene() {
    return services_ == nullptr ? nullptr : services_->live_scene();
  }

 private:
  struct Event {
    uint32_t kind = TANDEM_WORK_NONE;
    uint64_t call = 0;
    rpc::MethodId method = rpc::MethodId::NONE;
    std::vector<uint64_t> envelope = {};
    uint64_t envelope_bytes = 0;
    const char* name = nullptr;  // of a method of the engine's own
    tandem_draw draw = {};
  };
  struct Pending {
    std::weak_ptr<const void> wanted;
    MethodPort::Answer answer;
  };

  ForeignEngine(const tandem_engine_options& options,
                const tandem_callbacks& callbacks, EngineSchema schema);
  absl::Status ReadServices(const tandem_engine_options& options);

  const std::vector<rpc::MethodId>& Methods() const override {
    return methods_;
  }
  void Handle(rpc::MethodId method, std::span<const uint8_t> envelope,
              std::weak_ptr<const void> wanted,
              MethodPort::Answer answer) override;
  void CallOwn(size_t method, std::span<const uint8_t> request,
               std::weak_ptr<const void> wanted,
               OwnMethodPort::Answer answer) override;
  void AddCall(Event event, std::span<const uint8_t> bytes,
               std::weak_ptr<const void> wanted, MethodPort::Answer answer);

  absl::Status StartCalls();
  // Calls the program's function for the work after a Fail.
  static int32_t CallWithoutText(void* user, const tandem_work* work);
  absl::Status Called(const tandem_work& work) {
    const int32_t result = callbacks_.work(callbacks_.user, &work);
    if (result == 0 && failure_.empty()) return absl::OkStatus();
    return ResultOf(result);
  }
  absl::Status Failure(int32_t result);
  // The status of one of the program's functions. Discards the text of one that
  // succeeds.
  absl::Status ResultOf(int32_t result);
  void Add(Event event);
  void CallWithEvents();
  // Of the environments without staged states; those of the others are put in
  // place. `work->count` may be 0.
  absl::Status DescribeReset(std::span<const ResetRequest> requests,
                             const ResetIo& io, tandem_work* work);
  const tandem_work& DescribeStep(std::span<const uint32_t> envs,
                                  const StepIo& io) {
    if (step_obs_ != io.obs.data()) SetStepData(io);
    step_.count = static_cast<uint32_t>(envs.size());
    step_.envs = envs.data();
    return step_;
  }
  void SetStepData(const StepIo& io);
  void TakeEvent(tandem_work* work);
  void DropUnwantedDraws();

  const tandem_callbacks given_;  // by the program
  // The same; after Fail, CallWithoutText: so work without failures need not
  // look for an old text.
  tandem_callbacks callbacks_;
  EngineSchema schema_;  // constant after Make
  const double step_secs_;
  std::vector<rpc::MethodId> methods_;
  ForeignDraws draws_;
  std::unique_ptr<ForeignServices> services_;  // nullptr: none
  std::unique_ptr<EngineHost> own_host_;
  EngineHost* host_ = nullptr;
  NamedArrays arrays_;
  NamedArrays gpu_arrays_;

  bool called_ = false;  // the host calls Reset and Step
  absl::Status opening_;
  const EngineWork* held_ = nullptr;  // of the host, returned after events_
  std::deque<Event> events_;
  Event current_;  // whose bytes the program reads
  uint64_t last_call_ = 0;
  std::map<uint64_t, Pending> calls_;  // unanswered
  std::string failure_;                // the text of the work in progress
  tandem_work step_ = {};              // the last STEP
  const void* step_obs_ = this;        // of step_data_; at first no array
  std::vector<void*> step_data_;
  std::vector<tandem_reset> resets_;
  std::vector<const tandem_contract*> contracts_;  // of resets_
  std::vector<void*> data_;
};

}  // namespace tandem

#endif  // TANDEM_SDK_FOREIGN_ENGINE_H_
