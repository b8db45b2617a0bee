// FileRelay: writes files of runs on other machines into the runs' folders on
// this machine, where viewers look for them.
//
// Data flow: RelayFile -> the supervisor admits it -> this object's thread ->
// the file. Ownership: the daemon owns it.
//
//   FileRelay relay(data_dir, &runs);
//   relay.Take(&request, std::move(answer));
//
// What it gets is untrusted: IsRelayedFile and kMaxRelayedFile limit it.

#pragma once

#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "program/grpc/event_loop.h"
#include "schema/protos/slow_lane.pb.h"
#include "slow_lane/daemon/run_supervisor.h"

namespace tandem::slow_lane {

class FileRelay {
 public:
  using Answer = RunSupervisor::Answer<v1::RelayFileResponse>;

  // `runs` must outlive this object, which must outlive the thread of `runs`,
  // and all calls.
  FileRelay(std::string data_dir, RunSupervisor* runs)
      : data_dir_(std::move(data_dir)), runs_(runs), loop_("files") {}
  FileRelay(const FileRelay&) = delete;
  FileRelay& operator=(const FileRelay&) = delete;

  // Writes a part: at offset 0 it replaces the file, elsewhere it follows what
  // is there. `request` must live until the answer. Any thread; does not block.
  // Answers on the supervisor's thread or on this object's:
  //   those of RunSupervisor::Relay
  //   kInvalidArgument    no such name, or a part that is too large
  //   kOutOfRange         the part does not follow what is there
  //   kUnknown            the system's error, such as a full disk
  void Take(const v1::RelayFileRequest* request, Answer answer) {
    runs_->Relay(request, &loop_, std::move(answer),
                 [this](const auto& part) { return Write(part); });
  }

 private:
  absl::StatusOr<v1::RelayFileResponse> Write(
      const v1::RelayFileRequest& request) const;

  const std::string data_dir_;
  RunSupervisor* const runs_;
  EventLoop loop_;  // last: its thread uses the others
};

}  // namespace tandem::slow_lane
