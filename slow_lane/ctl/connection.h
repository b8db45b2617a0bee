// Connection: tandemctl's way to the daemon.
//
// Data flow: requests -> gRPC, with a deadline -> answers, or statuses whose
// messages say where the daemon was looked for and what to do.
// Ownership: main; any thread may call. Calls block until their answer, or
// until the deadline.
//
//   Connection daemon("127.0.0.1:50055", "by default");
//   absl::StatusOr<v1::DescribeRunsResponse> runs = daemon.DescribeRuns({});

#ifndef TANDEM_SLOW_LANE_CTL_CONNECTION_H_
#define TANDEM_SLOW_LANE_CTL_CONNECTION_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
// Of gRPC's own: each callback method hides the synchronous one.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Woverloaded-virtual"
#include "schema/protos/slow_lane.grpc.pb.h"
#include "schema/protos/trainer.grpc.pb.h"
#pragma GCC diagnostic pop

namespace tandem::slow_lane {

// What leaves all events of a run out.
v1::StreamEventsRequest NoEventsOf(const std::string& run_id);

class Connection {
 public:
  static constexpr absl::Duration kDeadline = absl::Seconds(10);
  // All processes of a run get a while to leave by themselves.
  static constexpr absl::Duration kCancelDeadline = absl::Seconds(60);

  // Nothing is said to the daemon yet. `source`: who gave the address, such as
  // "by --daemon".
  // `token`: shown to a daemon that cannot ask the kernel for this client's
  // user; empty: none.
  Connection(const std::string& address, const std::string& source,
             const std::string& token = "");

  const std::string& address() const { return address_; }

  // Every call's statuses are the daemon's own, such as kAborted of one that is
  // stopping, but for kUnavailable (there is none, or none that answers),
  // kDeadlineExceeded and kUnimplemented.

  absl::StatusOr<gymgui::trainer::SubmitRunResponse> SubmitRun(
      const std::string& config_json);
  // No run_ids: all.
  absl::StatusOr<v1::DescribeRunsResponse> DescribeRuns(
      const std::vector<std::string>& run_ids,
      absl::Duration deadline = kDeadline);
  // The answer's `runs` is the one run.
  absl::StatusOr<v1::DescribeRunsResponse> DescribeRun(
      const std::string& run_id, absl::Duration deadline = kDeadline);
  absl::StatusOr<gymgui::trainer::HealthCheckResponse> GetHealth();
  // All at once; a status for each.
  std::vector<absl::Status> CancelRuns(const std::vector<std::string>& run_ids);
  // Pauses or resumes, as the event says.
  absl::Status Control(const gymgui::trainer::ControlEvent& event);
  absl::Status DeleteRun(const std::string& run_id);

  // The newest of a run's episodes, in order; `last` is the newest one's
  // number.
  absl::StatusOr<std::vector<gymgui::trainer::RunEpisode>> LastEpisodes(
      const std::string& run_id, uint64_t last, uint64_t count,
      absl::Duration deadline);

  // Hands each batch to `take` until it returns false, or all are there. When
  // the connection breaks it is made again, and the stream goes on behind what
  // was taken, unless there was no daemon for as long as `patience`.
  absl::Status StreamEvents(
      v1::StreamEventsRequest request, absl::Duration patience,
      const std::function<bool(const v1::EventBatch&)>& take);

 private:
  // The address, and who gave it.
  std::string Where() const;
  void ShowToken(grpc::ClientContext* context) const;
  absl::Status NoAnswer(absl::StatusCode code, absl::string_view more) const;
  absl::Status ToStatus(const grpc::Status& status,
                        absl::Duration deadline) const;
  // One unary call.
  template <typename Stub, typename Request, typename Response>
  absl::StatusOr<Response> Call(
      Stub& stub,
      grpc::Status (Stub::*method)(grpc::ClientContext*, const Request&,
                                   Response*),
      const Request& request, absl::Duration deadline = kDeadline);

  const std::string address_;
  const std::string source_;
  const std::string token_;
  const std::shared_ptr<grpc::Channel> channel_;
  const std::unique_ptr<gymgui::trainer::TrainerService::Stub> trainer_;
  const std::unique_ptr<v1::SlowLane::Stub> slow_lane_;
};

}  // namespace tandem::slow_lane

#endif  // TANDEM_SLOW_LANE_CTL_CONNECTION_H_
