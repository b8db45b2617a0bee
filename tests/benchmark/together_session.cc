// Steps an engine of HalfCheetah-v5, alone or while two threads call it and
// three read streams, checks every answer and item, and prints what it took as
// a line of JSON.
//
//   together_session --region=NAME --steps=100000
//   together_session --region=NAME --steps=100000 --calls=5000 --pictures
//
// The twin in Python is together.py, which runs both.
//
// What is checked: each answer is that to its caller's own question; what a
// caller sets it reads back; no answer or item comes twice, or for nobody;
// joints that are read or streamed are those of a step's observations, of none
// earlier than those before; streams' numbers rise, and those that are missing
// are counted as dropped.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/flags/parse.h"
#include "absl/flags/usage.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "schema/layout/error_codes.h"
#include "schema/messages/hazel_rpc_generated.h"
#include "tests/benchmark/moments.h"
#include "tests/benchmark/or_exit.h"
#include "tests/benchmark/quantile.h"
#include "transport/base/clock.h"
#include "transport/base/error.h"
#include "transport/rpc/rpc_client.h"
#include "transport/session/client_side.h"

ABSL_FLAG(std::string, region, "", "the engine's");
ABSL_FLAG(int, steps, 1000, "how many to measure");
ABSL_FLAG(int, calls, 0, "of each of two threads; 0: none, and no streams");
ABSL_FLAG(bool, pictures, false,
          "one of the streams is of pictures; else it is telemetry as well");

namespace tandem {
namespace {

// Each with an environment of its own.
constexpr size_t kCallers = Moments::kEnvs;
constexpr int kWarmUpSteps = 500;
constexpr int kActionSets = 16;  // taken in turn
constexpr uint32_t kPicturesHz = 5;
constexpr uint32_t kPixels = 64;
constexpr double kTimeoutSecs = 30;
// A stream that brought nothing for so long has nothing new.
constexpr double kSilenceSecs = 0.5;

template <typename Request>
rpc::EnvelopeT Envelope(rpc::MethodId method, Request request) {
  rpc::EnvelopeT call;
  call.method = method;
  call.payload.Set(std::move(request));
  return call;
}

// How far the stepping thread is.
// Writer: it; readers: who call. It paces them, and publishes nothing.
std::atomic<int> steps_done{0};

// One of the two threads that call.
class Caller {
 public:
  Caller(RpcClient* client, uint32_t env, uint32_t num_envs, uint64_t light)
      : client_(client), env_(env), num_envs_(num_envs), light_(light) {}

  // Spreads its calls over the steps.
  void Run(int calls, int steps, double secs_per_step) {
    for (int k = 0; k < calls; ++k) {
      const int due = static_cast<int>(int64_t{k} * steps / calls);
      // relaxed: paces only.
      for (int done; (done = steps_done.load(std::memory_order_relaxed)) < due;)
        std::this_thread::sleep_for(
            std::chrono::duration<double>((due - done) * secs_per_step));
      Ask(k);
    }
  }

  uint32_t env() const { return env_; }
  const std::vector<int64_t>& nanos() const { return nanos_; }
  const std::vector<Joints>& seen() const { return seen_; }

 private:
  template <typename Response, typename Request>
  RpcMessage Call(rpc::MethodId method, Request request) {
    rpc::EnvelopeT call = Envelope(method, std::move(request));
    const int64_t begin = MonotonicNanos();
    RpcMessage answer =
        Got(client_->Call(std::move(call), Deadline::After(kTimeoutSecs)));
    nanos_.push_back(MonotonicNanos() - begin);
    Require(answer.envelope().payload_as<Response>() != nullptr,
            "expected the answer to the call, found another's");
    return answer;
  }

  void Ask(int k) {
    const auto turn = static_cast<uint32_t>(k);
    switch (k % 6) {
      case 0: {
        rpc::SetEntityTransformRequestT request;
        request.id = light_;
        request.env_id = env_;
        request.transform = std::make_unique<rpc::TransformT>();
        height_ = static_cast<float>(1 + k);
        request.transform->position =
            std::make_unique<rpc::Vec3>(0.0F, 0.0F, height_);
        const RpcMessage answer = Call<rpc::SetEntityTransformResponse>(
            rpc::MethodId::SetEntityTransform, std::move(request));
        Require(answer.envelope()
                    .payload_as_SetEntityTransformResponse()
                    ->success(),
                "the light was not moved");
        return;
      }
      case 1:
        Require(HeightOf(light_) == height_,
                "expected the light where it was put last");
        return;
      case 2: {
        rpc::GetAgentSchemaRequestT request;
        request.env_ids = {turn % num_envs_};
        const RpcMessage answer = Call<rpc::GetAgentSchemaResponse>(
            rpc::MethodId::GetAgentSchema, std::move(request));
        const auto* schemas =
            answer.envelope().payload_as_GetAgentSchemaResponse()->schemas();
        Require(schemas != nullptr && schemas->size() == 1 &&
                    schemas->Get(0)->agent_name()->str() ==
                        absl::StrCat("agent_", turn % num_envs_),
                "expected the schema of the agent that was asked for");
        return;
      }
      case 3: {
        rpc::GetJointStateRequestT request;
        request.env_ids = {env_};
        const RpcMessage answer = Call<rpc::GetJointStateResponse>(
            rpc::MethodId::GetJointState, std::move(request));
        const auto* state =
            answer.envelope().payload_as_GetJointStateResponse()->state();
        Require(state != nullptr && state->env_id() == env_,
                "expected the joints of the environment that was asked for");
        seen_.push_back(JointsOf(state->positions()));
        return;
      }
      case 4: {
        const RpcMessage answer = Call<rpc::GetTelemetrySchemaResponse>(
            rpc::MethodId::GetTelemetrySchema,
            rpc::GetTelemetrySchemaRequestT());
        const auto* schema =
            answer.envelope().payload_as_GetTelemetrySchemaResponse()->schema();
        Require(schema->nq() == 9 && schema->nu() == 6,
                "expected telemetry of 9 joints and 6 controls");
        return;
      }
      default:
        HeightOf(1 + turn % light_);
    }
  }

  float HeightOf(uint64_t entity) {
    rpc::GetEntityRequestT request;
    request.id = entity;
    request.env_id = env_;
    const RpcMessage answer = Call<rpc::GetEntityResponse>(
        rpc::MethodId::GetEntity, std::move(request));
    const auto* found =
        answer.envelope().payload_as_GetEntityResponse()->entity();
    Require(found != nullptr && found->id() == entity,
            "expected the entity that was asked for");
    return found->transform()->position()->z();
  }

  RpcClient* const client_;
  const uint32_t env_;
  const uint32_t num_envs_;
  const uint64_t light_;
  float height_ = 0;
  std::vector<int64_t> nanos_;
  std::vector<Joints> seen_;
};

// One of the three streams.
class Reader {
 public:
  Reader(RpcClient* client, rpc::EnvelopeT call)
      : client_(client), id_(Got(client->Open(std::move(call)))) {}

  void TakeNext(double timeout_secs) {
    Take(Present(client_->Next(id_, Deadline::After(timeout_secs))));
  }

  // Until nothing is new any more after `finished`.
  void Run(const std::atomic<bool>& finished) {
    for (bool was_finished = false;;) {
      absl::StatusOr<std::optional<RpcMessage>> item =
          client_->Next(id_, Deadline::After(kSilenceSecs));
      if (CodeOf(item.status()) != ErrorCode::kStepTimeout) {
        Take(Present(std::move(item)));
        continue;
      }
      if (was_finished) break;
      // relaxed: only the silence after it counts.
      was_finished = finished.load(std::memory_order_relaxed);
    }
    // One that came since may have told of others that were lost.
    while (items_ + dropped() != number_) TakeNext(kTimeoutSecs);
  }

  void RequireMoments(const Moments& moments, uint64_t first_seq) const {
    for (const auto& [frame_seq, joints] : frames_) {
      Require(moments.At(0, frame_seq - first_seq) == joints,
              "telemetry: expected the joints of its frame_seq");
    }
    moments.RequireInOrder(0, seen_);
  }

  void Close() const { client_->Close(id_); }

  uint64_t items() const { return items_; }
  uint64_t dropped() const { return client_->Dropped(id_); }
  uint64_t last_frame_seq() const { return last_frame_seq_; }

 private:
  static RpcMessage Present(absl::StatusOr<std::optional<RpcMessage>> item) {
    std::optional<RpcMessage> message = Got(std::move(item));
    Require(message.has_value(), "a stream ended early");
    return *std::move(message);
  }

  void Take(const RpcMessage& message) {
    const rpc::Envelope& item = message.envelope();
    Require(item.stream_number() > number_,
            "a stream: expected a number above the last");
    number_ = item.stream_number();
    ++items_;
    uint64_t frame_seq = last_frame_seq_;
    if (const auto* frame = item.payload_as_TelemetryFrame()) {
      frame_seq = frame->frame_seq();
      frames_.emplace_back(frame_seq, JointsOf(frame->observation_qpos()));
    } else if (const auto* joints = item.payload_as_GetJointStateResponse()) {
      seen_.push_back(JointsOf(joints->state()->positions()));
    } else if (const auto* image = item.payload_as_ImageFrame()) {
      frame_seq = image->frame_seq();
      Require(image->data()->size() == size_t{3} * kPixels * kPixels,
              "expected a picture of the size that was asked for");
    } else {
      Fail("a stream: expected its kind of item, found another");
    }
    Require(frame_seq >= last_frame_seq_,
            "a stream: expected no earlier moment than before");
    last_frame_seq_ = frame_seq;
  }

  RpcClient* const client_;
  const uint64_t id_;
  uint64_t items_ = 0;
  uint64_t number_ = 0;  // of the item taken last
  uint64_t last_frame_seq_ = 0;
  std::vector<std::pair<uint64_t, Joints>> frames_;
  std::vector<Joints> seen_;
};

// The session as a whole.
class Together {
 public:
  Together(ClientSide side, RpcClient::Options options)
      : side_(std::move(side)),
        client_(Got(RpcClient::Create(&side_, options))) {
    for (int i = 0; i < kActionSets; ++i) {
      std::vector<float>& actions = actions_.emplace_back();
      for (size_t k = 0; k < side_.arrays().actions.size(); ++k) {
        actions.push_back(
            static_cast<float>((i * 7 + static_cast<int>(k) * 5) % 11 - 5) / 5);
      }
    }
  }

  void Measure(int steps, int calls, bool pictures) {
    const int64_t cold = MonotonicNanos();
    for (int i = 0; i < kWarmUpSteps; ++i) Step(i);
    secs_per_step_ =
        1e-9 * static_cast<double>(MonotonicNanos() - cold) / kWarmUpSteps;
    Moments moments(static_cast<size_t>(steps) + 1);
    moments.Add(side_);
    std::vector<Caller> callers;
    std::vector<Reader> readers;
    if (calls > 0) Prepare(pictures, &callers, &readers);
    // The engine has stepped nothing since, and this is moment 0.
    const uint64_t first_seq =
        readers.empty() ? 0 : readers[0].last_frame_seq();

    // Writer: this thread; readers: who read. It publishes nothing.
    std::atomic<bool> finished{false};
    std::vector<std::thread> reading;
    std::vector<std::thread> calling;
    for (Reader& reader : readers) {
      reading.emplace_back([&] { reader.Run(finished); });
    }
    for (Caller& caller : callers) {
      calling.emplace_back([&] { caller.Run(calls, steps, secs_per_step_); });
    }
    nanos_.clear();
    const int64_t begin = MonotonicNanos();
    for (int i = 0; i < steps; ++i) {
      Step(i);
      moments.Add(side_);
      // relaxed: see steps_done.
      steps_done.store(i + 1, std::memory_order_relaxed);
    }
    const double secs = static_cast<double>(MonotonicNanos() - begin) / 1e9;
    for (std::thread& thread : calling) thread.join();
    // relaxed: see its declaration.
    finished.store(true, std::memory_order_relaxed);
    for (std::thread& thread : reading) thread.join();

    if (calls > 0) {
      // Its answer stands behind whatever came for nobody.
      Got(client_->Call(
          Envelope(rpc::MethodId::GetServices, rpc::GetServicesRequestT()),
          Deadline::After(kTimeoutSecs)));
      Require(client_->Unclaimed() == 0,
              "expected one answer to each call, found more");
    }
    for (const Caller& caller : callers) {
      moments.RequireInOrder(caller.env(), caller.seen());
    }
    for (const Reader& reader : readers) {
      reader.RequireMoments(moments, first_seq);
    }
    Print(steps / secs, callers, readers);
    for (const Reader& reader : readers) reader.Close();
  }

 private:
  void Step(int i) {
    const std::vector<float>& actions =
        actions_[static_cast<size_t>(i % kActionSets)];
    const int64_t begin = MonotonicNanos();
    const ErrorCode code = side_.Step(actions, kTimeoutSecs);
    const int64_t nanos = MonotonicNanos() - begin;
    if (code != ErrorCode::kOk) Fail(side_.Explain(code).message());
    nanos_.push_back(nanos);
  }

  void Prepare(bool pictures, std::vector<Caller>* callers,
               std::vector<Reader>* readers) {
    const RpcMessage scene = Got(client_->Call(
        Envelope(rpc::MethodId::GetSceneInfo, rpc::GetSceneInfoRequestT()),
        Deadline::After(kTimeoutSecs)));
    // Entities are bodies, geoms, cameras, lights: the last is a light.
    const uint64_t light =
        scene.envelope().payload_as_GetSceneInfoResponse()->entity_count();
    for (uint32_t env = 0; env < kCallers; ++env) {
      callers->emplace_back(client_.get(), env, side_.plan().num_envs, light);
    }
    readers->emplace_back(client_.get(),
                          Envelope(rpc::MethodId::StreamTelemetry,
                                   rpc::StreamTelemetryRequestT()));
    readers->emplace_back(client_.get(),
                          Envelope(rpc::MethodId::StreamJointState,
                                   rpc::GetJointStateRequestT()));
    if (pictures) {
      rpc::StartViewportStreamRequestT request;
      request.target_fps = kPicturesHz;
      request.width = request.height = kPixels;
      readers->emplace_back(
          client_.get(),
          Envelope(rpc::MethodId::StreamViewport, std::move(request)));
    } else {
      readers->emplace_back(client_.get(),
                            Envelope(rpc::MethodId::StreamTelemetry,
                                     rpc::StreamTelemetryRequestT()));
    }
    for (Reader& reader : *readers) reader.TakeNext(kTimeoutSecs);
  }

  void Print(double steps_per_sec, const std::vector<Caller>& callers,
             const std::vector<Reader>& readers) {
    std::vector<int64_t> calls;
    for (const Caller& caller : callers) {
      calls.insert(calls.end(), caller.nanos().begin(), caller.nanos().end());
    }
    std::sort(calls.begin(), calls.end());
    std::sort(nanos_.begin(), nanos_.end());
    std::vector<std::string> streams;
    for (const Reader& reader : readers) {
      streams.push_back(absl::StrFormat("{\"items\": %d, \"dropped\": %d}",
                                        reader.items(), reader.dropped()));
    }
    absl::PrintF(
        "{\"steps_per_sec\": %.1f, \"step_p50_ns\": %d, \"step_p99_ns\": %d, "
        "\"step_max_ns\": %d, \"calls\": %d, \"call_p50_ns\": %d, "
        "\"call_p99_ns\": %d, \"streams\": [%s]}\n",
        steps_per_sec, Quantile(nanos_, 0.5), Quantile(nanos_, 0.99),
        *std::max_element(nanos_.begin(), nanos_.end()), calls.size(),
        Quantile(calls, 0.5), Quantile(calls, 0.99),
        absl::StrJoin(streams, ", "));
  }

  ClientSide side_;
  const std::unique_ptr<RpcClient> client_;
  std::vector<std::vector<float>> actions_;
  std::vector<int64_t> nanos_;  // of each step
  double secs_per_step_ = 0;
};

int Main() {
  ClientSide side = Got(ClientSide::Attach(absl::GetFlag(FLAGS_region), {}));
  Require(side.plan().num_envs >= kCallers,
          "expected an engine of two environments or more");
  Together(std::move(side), {})
      .Measure(absl::GetFlag(FLAGS_steps), absl::GetFlag(FLAGS_calls),
               absl::GetFlag(FLAGS_pictures));
  return 0;
}

}  // namespace
}  // namespace tandem

int main(int argc, char** argv) {
  absl::SetProgramUsageMessage("Measures steps beside calls and streams.");
  absl::ParseCommandLine(argc, argv);
  return tandem::Main();
}
