// Times one way of asking the daemon, from C++, and prints what it found as a
// line of JSON.
//
//   timed_client --target=127.0.0.1:50055 --call=health --seconds=1
//   timed_client --target=127.0.0.1:50055 --call=batches --run_id=RUN
//
// health, heartbeat, list: calls one after the other, nanoseconds each.
// batches, messages: all steps of a run that has ended, by StreamEvents or
// StreamRunSteps; their numbers are checked.
#include <grpcpp/grpcpp.h>
#include <sys/resource.h>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/flags/parse.h"
#include "absl/flags/usage.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "schema/protos/slow_lane.grpc.pb.h"
#include "schema/protos/trainer.grpc.pb.h"
#include "tests/benchmark/or_exit.h"
#include "tests/benchmark/quantile.h"
#include "transport/base/clock.h"

ABSL_FLAG(std::string, target, "127.0.0.1:50055", "the daemon's address");
ABSL_FLAG(std::string, call, "health",
          "health, heartbeat, list, batches or messages");
ABSL_FLAG(std::string, run_id, "", "of heartbeat, batches and messages");
ABSL_FLAG(double, seconds, 1, "how long to call: health, heartbeat and list");

namespace tandem {
namespace {

constexpr int kWarmUpCalls = 50;

namespace trainer = gymgui::trainer;
namespace v1 = slow_lane::v1;

void RequireOk(const grpc::Status& status) {
  Require(status.ok(),
          absl::StrCat("expected an answer, found: ", status.error_message()));
}

double CpuSeconds() {
  rusage used = {};
  getrusage(RUSAGE_SELF, &used);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) +
           1e-6 * static_cast<double>(time.tv_usec);
  };
  return seconds(used.ru_utime) + seconds(used.ru_stime);
}

template <typename Call>
void TimeCalls(Call call) {
  for (int i = 0; i < kWarmUpCalls; ++i) call();
  std::vector<int64_t> nanos;
  const Deadline end = Deadline::After(absl::GetFlag(FLAGS_seconds));
  int64_t now = MonotonicNanos();
  do {
    const int64_t asked = now;
    call();
    now = MonotonicNanos();
    nanos.push_back(now - asked);
  } while (!end.PassedAt(now));
  std::sort(nanos.begin(), nanos.end());
  absl::PrintF("{\"calls\": %d, \"p50_ns\": %d, \"p99_ns\": %d}\n",
               nanos.size(), Quantile(nanos, 0.5), Quantile(nanos, 0.99));
}

// `read` gets the next message and says how many steps it held; 0 at the end.
template <typename Read>
void TimeStream(Read read) {
  const int64_t begin = MonotonicNanos();
  uint64_t events = 0;
  while (const uint64_t more = read(events)) events += more;
  const double seconds = 1e-9 * static_cast<double>(MonotonicNanos() - begin);
  absl::PrintF("{\"events\": %d, \"seconds\": %.6f, \"cpu_seconds\": %.6f}\n",
               events, seconds, CpuSeconds());
}

void ReadBatches(v1::SlowLane::Stub* stub, const std::string& run_id) {
  constexpr uint64_t kUnwanted = std::numeric_limits<uint64_t>::max();
  v1::StreamEventsRequest request;
  request.set_run_id(run_id);
  request.set_since_episode(kUnwanted);
  request.set_since_lifecycle(kUnwanted);
  request.set_since_malformed(kUnwanted);
  request.set_follow(true);
  grpc::ClientContext context;
  const auto reader = stub->StreamEvents(&context, request);
  v1::EventBatch batch;
  TimeStream([&](uint64_t events) -> uint64_t {
    if (!reader->Read(&batch)) return 0;
    for (const trainer::RunStep& step : batch.steps()) {
      Require(step.seq_id() == ++events, "expected steps without a gap");
    }
    return static_cast<uint64_t>(batch.steps_size());
  });
  RequireOk(reader->Finish());
}

void ReadMessages(trainer::TrainerService::Stub* stub,
                  const std::string& run_id) {
  trainer::StreamStepsRequest request;
  request.set_run_id(run_id);
  grpc::ClientContext context;
  const auto reader = stub->StreamRunSteps(&context, request);
  trainer::RunStep step;
  TimeStream([&](uint64_t events) -> uint64_t {
    if (!reader->Read(&step)) return 0;
    Require(step.seq_id() == events + 1, "expected steps without a gap");
    return 1;
  });
  RequireOk(reader->Finish());
}

int Main() {
  grpc::ChannelArguments arguments;
  arguments.SetMaxReceiveMessageSize(64 << 20);
  const std::shared_ptr<grpc::Channel> channel =
      grpc::CreateCustomChannel(absl::GetFlag(FLAGS_target),
                                grpc::InsecureChannelCredentials(), arguments);
  const auto stub = trainer::TrainerService::NewStub(channel);
  const std::string call = absl::GetFlag(FLAGS_call);
  const std::string run_id = absl::GetFlag(FLAGS_run_id);
  if (call == "health") {
    TimeCalls([&] {
      grpc::ClientContext context;
      trainer::HealthCheckResponse response;
      RequireOk(stub->GetHealth(&context, {}, &response));
      Require(response.healthy(), "expected a healthy daemon");
    });
  } else if (call == "heartbeat") {
    trainer::HeartbeatRequest request;
    request.set_run_id(run_id);
    TimeCalls([&] {
      grpc::ClientContext context;
      trainer::HeartbeatResponse response;
      RequireOk(stub->Heartbeat(&context, request, &response));
    });
  } else if (call == "list") {
    TimeCalls([&] {
      grpc::ClientContext context;
      trainer::ListRunsResponse response;
      RequireOk(stub->ListRuns(&context, {}, &response));
      Require(response.runs_size() > 0, "expected runs");
    });
  } else if (call == "batches") {
    ReadBatches(v1::SlowLane::NewStub(channel).get(), run_id);
  } else if (call == "messages") {
    ReadMessages(stub.get(), run_id);
  } else {
    Fail("--call: expected health, heartbeat, list, batches or messages", 64);
  }
  return 0;
}

}  // namespace
}  // namespace tandem

int main(int argc, char** argv) {
  absl::SetProgramUsageMessage("Times one way of asking the daemon.");
  absl::ParseCommandLine(argc, argv);
  return tandem::Main();
}
