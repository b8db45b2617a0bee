// RpcClient with an engine that answers by the test's handler.
// Length: one engine that serves every request of a client.
#include "transport/rpc_client.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <functional>
#include <future>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/error.h"
#include "schema/messages/hazel_rpc_generated.h"
#include "transport/client_side.h"
#include "transport/envelope.h"
#include "transport/memory/testing/unique_region_name.h"
#include "transport/rpc/envelope_reader.h"
#include "transport/rpc/envelope_writer.h"
#include "transport/session/engine_side.h"
#include "transport/session/rpc_ends.h"

namespace tandem {
namespace {

constexpr std::array<float, 1> kActions = {0};

// Serves steps and calls on its own thread.
class Engine {
 public:
  // Called with each call; may send answers.
  using Handler =
      std::function<void(const rpc::EnvelopeT& call,
                         const std::function<void(rpc::EnvelopeT)>& send)>;

  Engine(const std::string& name, Handler handler)
      : side_(Create(name)),
        handler_(std::move(handler)),
        thread_([this] { Serve(); }) {}
  ~Engine() { Stop(); }
  void Stop() {
    if (!thread_.joinable()) return;
    side_->RequestStop();
    thread_.join();
    side_.reset();
  }

 private:
  static std::optional<EngineSide> Create(const std::string& name) {
    std::optional<EngineSide> side(EngineSide::Create(name,
                                                      {.num_envs = 1,
                                                       .obs_size = 1,
                                                       .act_size = 1,
                                                       .task = "calls",
                                                       .image_slot_bytes = 128},
                                                      {})
                                       .value());
    EXPECT_TRUE(side->Open().ok());
    return side;
  }

  void Serve() {
    for (;;) {
      switch (side_->Next(Deadline::After(0.001))) {
        case EngineEvent::kStopRequested:
          return;
        case EngineEvent::kExchange:
          side_->Publish();
          Answer();
          break;
        case EngineEvent::kClientArrived:
          side_->AcknowledgeAttach(absl::OkStatus());
          reader_.emplace(side_->RpcRingReader().value(),
                          EnvelopeReader::Limits());
          writer_.emplace(side_->RpcRingWriter().value());
          break;
        case EngineEvent::kClientLeft:
          reader_.reset();
          writer_.reset();
          break;
        default:
          Answer();
      }
    }
  }
  void Answer() {
    if (!reader_) return;
    (void)writer_->Pump();
    while (reader_->Next() == EnvelopeReader::Got::kEnvelope) {
      rpc::EnvelopeT call;
      reader_->envelope().UnPackTo(&call);
      handler_(call, [this](const rpc::EnvelopeT& answer) {
        (void)writer_->Post(answer);
      });
    }
  }

  std::optional<EngineSide> side_;
  Handler handler_;
  std::optional<EnvelopeReader> reader_;
  std::optional<EnvelopeWriter> writer_;
  std::thread thread_;
};

// Answers that its image is in a slot.
rpc::EnvelopeT Notice(const rpc::EnvelopeT& call, uint8_t slot, uint64_t seq,
                      uint32_t bytes = 100) {
  rpc::NamedImageFrameT response;
  response.frame = std::make_unique<rpc::ImageFrameT>();
  response.frame->slot = slot;
  response.frame->slot_seq = seq;
  response.frame->slot_bytes = bytes;
  rpc::EnvelopeT answer;
  answer.method = call.method;
  answer.correlation_id = call.correlation_id;
  answer.payload.Set(std::move(response));
  return answer;
}

rpc::EnvelopeT Named(const std::string& name) {
  rpc::GetEntityRequestT request;
  request.name = name;
  rpc::EnvelopeT call;
  call.method = rpc::MethodId::GetEntity;
  call.payload.Set(std::move(request));
  return call;
}

// Answers with the call's name, padded to `bytes`.
rpc::EnvelopeT Echo(const rpc::EnvelopeT& call, size_t bytes = 0) {
  rpc::GetEntityResponseT response;
  response.entity = std::make_unique<rpc::EntityInfoT>();
  response.entity->name = call.payload.AsGetEntityRequest()->name;
  response.entity->components = {std::string(bytes, 'c')};
  rpc::EnvelopeT answer;
  answer.method = call.method;
  answer.correlation_id = call.correlation_id;
  answer.payload.Set(std::move(response));
  return answer;
}

class RpcClientTest : public testing::Test {
 protected:
  void SetUp() override { alarm(60); }
  void TearDown() override { alarm(0); }

  void Start(Engine::Handler handler, RpcClient::Options options = {}) {
    engine_ = std::make_unique<Engine>(name_, std::move(handler));
    side_.emplace(ClientSide::Attach(name_, {}).value());
    client_ = RpcClient::Create(&*side_, options).value();
  }
  std::string NameIn(const absl::StatusOr<RpcMessage>& answer) {
    if (!answer.ok()) return std::string(answer.status().message());
    return answer->envelope()
        .payload_as_GetEntityResponse()
        ->entity()
        ->name()
        ->str();
  }
  void Step() {
    ASSERT_EQ(side_->Send(kActions), ErrorCode::kOk);
    ASSERT_EQ(side_->Recv(Deadline::After(20)), ErrorCode::kOk);
  }

  const std::string name_ = UniqueRegionName("rpc_client");
  std::unique_ptr<Engine> engine_;
  std::optional<ClientSide> side_;
  std::unique_ptr<RpcClient> client_;
};

void AnswerAtOnce(const rpc::EnvelopeT& call,
                  const std::function<void(rpc::EnvelopeT)>& send) {
  send(Echo(call));
}

TEST_F(RpcClientTest, GetsTheAnswerToItsCall) {
  Start(AnswerAtOnce);
  for (int i = 0; i < 100; ++i) {
    const std::string name = std::to_string(i);
    EXPECT_EQ(NameIn(client_->Call(Named(name), Deadline::After(20))), name);
  }
}

TEST_F(RpcClientTest, TakesAnswersThatFillTheRingManyTimes) {
  Start(
      [](const auto& call, const auto& send) { send(Echo(call, 3'000'000)); });
  for (int i = 0; i < 3; ++i) {
    const absl::StatusOr<RpcMessage> answer =
        client_->Call(Named("large"), Deadline::After(20));
    EXPECT_EQ(NameIn(answer), "large");
  }
}

TEST_F(RpcClientTest, ThreadsCallConcurrentlyDuringSteps) {
  Start(AnswerAtOnce);
  std::atomic<bool> stop{false};
  std::vector<std::thread> callers;
  for (int caller = 0; caller < 4; ++caller) {
    callers.emplace_back([&, caller] {
      for (int i = 0; i < 300; ++i) {
        const std::string name = std::to_string(caller * 1000 + i);
        EXPECT_EQ(NameIn(client_->Call(Named(name), Deadline::After(20))),
                  name);
      }
    });
  }
  std::thread joiner([&] {
    for (std::thread& caller : callers) caller.join();
    stop = true;
  });
  while (!stop) Step();
  joiner.join();
}

TEST_F(RpcClientTest, AnswersMayComeInAnyOrder) {
  std::vector<rpc::EnvelopeT> waiting;
  Start([&](const auto& call, const auto& send) {
    waiting.push_back(Echo(call));
    if (waiting.size() < 3) return;
    for (; !waiting.empty(); waiting.pop_back()) send(waiting.back());
  });
  std::vector<std::thread> callers;
  for (int caller = 0; caller < 3; ++caller) {
    callers.emplace_back([&, caller] {
      const std::string name = std::to_string(caller);
      EXPECT_EQ(NameIn(client_->Call(Named(name), Deadline::After(20))), name);
    });
  }
  for (std::thread& caller : callers) caller.join();
  engine_->Stop();  // Ends the handler before its variables.
}

TEST_F(RpcClientTest, TheEnginesErrorsKeepCodeAndText) {
  Start([](const auto& call, const auto& send) {
    rpc::EnvelopeT answer;
    answer.correlation_id = call.correlation_id;
    answer.error_code = static_cast<uint16_t>(ErrorCode::kUnsupported);
    answer.error_message = "no such thing";
    send(answer);
  });
  const absl::Status status =
      client_->Call(Named("a"), Deadline::After(20)).status();
  EXPECT_EQ(CodeOf(status), ErrorCode::kUnsupported);
  EXPECT_EQ(status.message(), "no such thing");
}

TEST_F(RpcClientTest, RefusesARequestBeyondTheLimitAndContinues) {
  Start(AnswerAtOnce);
  const rpc::EnvelopeT large = Named(std::string(kMaxEnvelopeBytes, 'n'));
  EXPECT_EQ(CodeOf(client_->Call(large, Deadline::After(20)).status()),
            ErrorCode::kMessageTooLarge);
  EXPECT_EQ(CodeOf(client_->Open(large).status()), ErrorCode::kMessageTooLarge);
  EXPECT_EQ(NameIn(client_->Call(Named("a"), Deadline::After(20))), "a");
}

TEST_F(RpcClientTest, LateAnswerIsDropped) {
  std::optional<rpc::EnvelopeT> late;
  Start([&](const auto& call, const auto& send) {
    if (call.method == rpc::MethodId::CancelStream) return;
    if (!late) {
      late = Echo(call);
      return;
    }
    send(*late);
    send(Echo(call));
  });
  EXPECT_EQ(
      CodeOf(client_->Call(Named("first"), Deadline::After(0.05)).status()),
      ErrorCode::kStepTimeout);
  EXPECT_EQ(NameIn(client_->Call(Named("second"), Deadline::After(20))),
            "second");
  engine_->Stop();  // Ends the handler before its variables.
}

TEST_F(RpcClientTest, CancelledCallIsReportedToTheEngine) {
  uint64_t asked = 0;
  std::vector<uint64_t> cancelled;
  Start([&](const auto& call, const auto& send) {
    if (call.method == rpc::MethodId::CancelStream) {
      cancelled.push_back(call.payload.AsCancelStreamRequest()->correlation_id);
      return;
    }
    if (call.payload.AsGetEntityRequest()->name == "slow") {
      asked = call.correlation_id;
      return;
    }
    send(Echo(call));
  });
  EXPECT_EQ(
      CodeOf(client_->Call(Named("slow"), Deadline::After(0.05)).status()),
      ErrorCode::kStepTimeout);
  // The engine answers this call after the cancel.
  EXPECT_EQ(NameIn(client_->Call(Named("a"), Deadline::After(20))), "a");
  engine_->Stop();  // Ends the handler before the checks.
  EXPECT_EQ(cancelled, std::vector<uint64_t>{asked});
}

TEST_F(RpcClientTest, CountsAnswersWithoutCall) {
  Start([](const auto& call, const auto& send) {
    const bool twice = call.payload.AsGetEntityRequest()->name == "twice";
    send(Echo(call));
    if (twice) send(Echo(call));
  });
  EXPECT_EQ(NameIn(client_->Call(Named("once"), Deadline::After(20))), "once");
  EXPECT_EQ(NameIn(client_->Call(Named("twice"), Deadline::After(20))),
            "twice");
  // Its answer arrives after the second one.
  EXPECT_EQ(NameIn(client_->Call(Named("once"), Deadline::After(20))), "once");
  EXPECT_EQ(client_->Unclaimed(), 1u);
}

TEST_F(RpcClientTest, AnEngineThatLeavesIsNoticed) {
  Start([](const auto&, const auto&) {});
  std::thread leaving([&] { engine_->Stop(); });
  const absl::Status status =
      client_->Call(Named("a"), Deadline::Infinite()).status();
  leaving.join();
  EXPECT_EQ(CodeOf(status), ErrorCode::kPeerGone);
  EXPECT_EQ(CodeOf(client_->Call(Named("b"), Deadline::Infinite()).status()),
            ErrorCode::kPeerGone);
}

// Item n of a stream, or its end.
rpc::EnvelopeT Item(const rpc::EnvelopeT& call, uint32_t n, bool last = false) {
  rpc::EnvelopeT item;
  item.method = call.method;
  item.correlation_id = call.correlation_id;
  item.end_of_stream = last;
  if (last) return item;
  item.stream_number = n;
  rpc::TelemetryFrameT frame;
  frame.frame_number = n;
  item.payload.Set(std::move(frame));
  return item;
}

rpc::EnvelopeT Stream() {
  rpc::EnvelopeT call;
  call.method = rpc::MethodId::StreamTelemetry;
  call.payload.Set(rpc::StreamTelemetryRequestT());
  return call;
}

TEST_F(RpcClientTest, StreamsInterleaveWithCalls) {
  std::optional<rpc::EnvelopeT> stream;
  uint32_t items = 0;
  Start([&](const auto& call, const auto& send) {
    if (call.method == rpc::MethodId::StreamTelemetry) {
      stream = call;
      return;
    }
    send(Item(*stream, ++items));
    send(Echo(call));
    if (items == 20) send(Item(*stream, 0, /*last=*/true));
  });
  const uint64_t id = client_->Open(Stream()).value();
  for (uint32_t i = 1; i <= 20; ++i) {
    EXPECT_EQ(NameIn(client_->Call(Named("a"), Deadline::After(20))), "a");
    const auto item = client_->Next(id, Deadline::After(20));
    ASSERT_TRUE(item.ok() && item->has_value());
    EXPECT_EQ((*item)->envelope().payload_as_TelemetryFrame()->frame_number(),
              i);
  }
  const auto end = client_->Next(id, Deadline::After(20));
  ASSERT_TRUE(end.ok());
  EXPECT_FALSE(end->has_value());
  client_->Close(id);
  client_->Close(id);
  engine_->Stop();  // Ends the handler before its variables.
}

TEST_F(RpcClientTest, DropsAndCountsUntakenItems) {
  Start(
      [](const auto& call, const auto& send) {
        if (call.method == rpc::MethodId::StreamTelemetry) {
          for (uint32_t i = 1; i <= 10; ++i) send(Item(call, i));
          return;
        }
        send(Echo(call));
      },
      {.stream_items = 4});
  const uint64_t id = client_->Open(Stream()).value();
  // Its answer arrives after the ten items.
  EXPECT_EQ(NameIn(client_->Call(Named("a"), Deadline::After(20))), "a");
  EXPECT_EQ(client_->Dropped(id), 6u);
  EXPECT_EQ(
      (*client_->Next(id, Deadline::After(20)))->envelope().stream_number(),
      7u);
}

TEST_F(RpcClientTest, DropsUntakenItemsBeyondTheByteLimit) {
  Start(
      [](const auto& call, const auto& send) {
        if (call.method != rpc::MethodId::StreamTelemetry) {
          send(Echo(call));
          return;
        }
        for (uint32_t i = 1; i <= 10; ++i) {
          rpc::EnvelopeT item = Item(call, i);
          // The last item alone exceeds the byte limit.
          item.payload.AsTelemetryFrame()->observation_qpos.assign(
              i == 10 ? 10'000 : 1000, 0.5f);
          send(item);
        }
      },
      {.stream_bytes = 10'000});
  const uint64_t id = client_->Open(Stream()).value();
  // Its answer arrives after the ten items.
  EXPECT_EQ(NameIn(client_->Call(Named("a"), Deadline::After(20))), "a");
  EXPECT_EQ(client_->Dropped(id), 9u);
  EXPECT_EQ(
      (*client_->Next(id, Deadline::After(20)))->envelope().stream_number(),
      10u);
}

TEST_F(RpcClientTest, TakenItemsMakeRoomForOthers) {
  std::optional<rpc::EnvelopeT> stream;
  uint32_t items = 0;
  Start(
      [&](const auto& call, const auto& send) {
        if (call.method == rpc::MethodId::StreamTelemetry) {
          stream = call;
          return;
        }
        rpc::EnvelopeT item = Item(*stream, ++items);
        item.payload.AsTelemetryFrame()->observation_qpos.assign(1000, 0.5f);
        send(item);
        send(Echo(call));
      },
      {.stream_bytes = 10'000});
  const uint64_t id = client_->Open(Stream()).value();
  for (int i = 0; i < 10; ++i) {
    EXPECT_EQ(NameIn(client_->Call(Named("a"), Deadline::After(20))), "a");
    EXPECT_TRUE(client_->Next(id, Deadline::Now())->has_value());
  }
  for (int i = 0; i < 3; ++i) {  // At most two items may wait.
    EXPECT_EQ(NameIn(client_->Call(Named("a"), Deadline::After(20))), "a");
  }
  EXPECT_EQ(client_->Dropped(id), 1u);
  engine_->Stop();  // Ends the handler before its variables.
}

TEST_F(RpcClientTest, ClosedStreamIsCancelledAndRemoved) {
  std::atomic<uint64_t> cancelled{0};
  Start([&](const auto& call, const auto& send) {
    if (call.method == rpc::MethodId::StreamTelemetry) {
      send(Item(call, 1));
      return;
    }
    if (call.method == rpc::MethodId::GetEntity) {
      send(Echo(call));
      return;
    }
    cancelled = call.payload.AsCancelStreamRequest()->correlation_id;
    rpc::EnvelopeT answer;
    answer.correlation_id = call.correlation_id;
    answer.payload.Set(rpc::CancelStreamResponseT());
    send(answer);
  });
  const uint64_t id = client_->Open(Stream()).value();
  client_->Close(id);
  // The engine answers this call after the cancel.
  EXPECT_EQ(NameIn(client_->Call(Named("a"), Deadline::After(20))), "a");
  EXPECT_EQ(cancelled, id);
  const auto next = client_->Next(id, Deadline::After(20));
  EXPECT_TRUE(next.ok() && !next->has_value());
  engine_->Stop();  // Ends the handler before its variables.
}

TEST_F(RpcClientTest, CancelsWaitForRoomAndAreNotLost) {
  std::promise<void> read_on;
  std::vector<uint64_t> cancelled;
  Start([&, reads = read_on.get_future().share()](const auto& call,
                                                  const auto& send) {
    reads.wait();
    if (call.method == rpc::MethodId::GetEntity) send(Echo(call));
    if (call.method != rpc::MethodId::CancelStream) return;
    cancelled.push_back(call.payload.AsCancelStreamRequest()->correlation_id);
  });
  rpc::EnvelopeT large = Stream();
  large.payload.AsStreamTelemetryRequest()->env_ids.assign(100'000, 0);
  std::vector<uint64_t> streams;
  absl::StatusOr<uint64_t> id = client_->Open(large);
  for (; id.ok(); id = client_->Open(large)) streams.push_back(*id);
  EXPECT_EQ(CodeOf(id.status()), ErrorCode::kRingFull);
  ASSERT_FALSE(streams.empty());
  for (const uint64_t stream : streams) client_->Close(stream);
  read_on.set_value();
  // The engine answers this call after the cancels.
  EXPECT_EQ(NameIn(client_->Call(Named("a"), Deadline::After(20))), "a");
  engine_->Stop();  // Ends the handler before the checks.
  EXPECT_EQ(cancelled, streams);
}

TEST_F(RpcClientTest, RefusedStreamGivesTheReason) {
  Start([](const auto& call, const auto& send) {
    rpc::EnvelopeT answer;
    answer.correlation_id = call.correlation_id;
    answer.error_code = static_cast<uint16_t>(ErrorCode::kUnsupported);
    answer.error_message = "no telemetry";
    send(answer);
  });
  const uint64_t id = client_->Open(Stream()).value();
  EXPECT_EQ(client_->Next(id, Deadline::After(20)).status().message(),
            "no telemetry");
}

TEST_F(RpcClientTest, PassedDeadlinePollsOnce) {
  Start([](const auto& call, const auto& send) {
    if (call.method == rpc::MethodId::StreamTelemetry) send(Item(call, 1));
    if (call.method == rpc::MethodId::GetEntity) send(Echo(call));
  });
  const uint64_t id = client_->Open(Stream()).value();
  // Its answer arrives after the item.
  EXPECT_EQ(NameIn(client_->Call(Named("a"), Deadline::After(20))), "a");
  EXPECT_TRUE(client_->Next(id, Deadline::Now())->has_value());
  EXPECT_EQ(CodeOf(client_->Next(id, Deadline::Now()).status()),
            ErrorCode::kStepTimeout);
  const uint64_t other = client_->Open(Stream()).value();
  absl::StatusOr<std::optional<RpcMessage>> item(std::nullopt);
  do {  // Until the engine has sent it: no other thread reads the ring.
    item = client_->Next(other, Deadline::Now());
  } while (CodeOf(item.status()) == ErrorCode::kStepTimeout);
  EXPECT_TRUE(item.ok() && item->has_value());
}

TEST_F(RpcClientTest, SessionEndFailsPendingCalls) {
  std::atomic<int> calls{0};
  Start([&](const auto&, const auto&) { ++calls; });
  const uint64_t id = client_->Open(Stream()).value();
  std::vector<std::thread> waiting;
  for (int i = 0; i < 2; ++i) {
    waiting.emplace_back([&] {
      EXPECT_EQ(
          CodeOf(client_->Call(Named("a"), Deadline::Infinite()).status()),
          ErrorCode::kClientClosed);
    });
  }
  waiting.emplace_back([&] {
    EXPECT_EQ(CodeOf(client_->Next(id, Deadline::Infinite()).status()),
              ErrorCode::kClientClosed);
  });
  while (calls < 3) std::this_thread::yield();
  client_->End();
  client_->End();
  for (std::thread& thread : waiting) thread.join();
  EXPECT_EQ(CodeOf(client_->Open(Stream()).status()), ErrorCode::kClientClosed);
  client_->Close(id);
  engine_->Stop();  // Ends the handler before its variables.
}

// Like Python's hook: only one of the threads is interrupted.
std::atomic<std::thread::id> interrupted_thread;

TEST_F(RpcClientTest, InterruptEndsItsThreadsWaitWhicheverThreadReads) {
  std::atomic<int> calls{0};
  std::atomic<bool> answer{false};
  Start(
      [&](const auto& call, const auto& send) {
        if (call.method == rpc::MethodId::CancelStream) return;
        if (++calls < 3) return;
        if (answer) send(Echo(call));
      },
      {.interrupted = [] {
        // relaxed: the flag carries no other data.
        return interrupted_thread.load(std::memory_order_relaxed) ==
               std::this_thread::get_id();
      }});
  std::atomic<int> interrupted{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < 2; ++i) {
    threads.emplace_back([&] {
      EXPECT_EQ(
          CodeOf(client_->Call(Named("a"), Deadline::Infinite()).status()),
          ErrorCode::kInterrupted);
      ++interrupted;
    });
  }
  while (calls < 2) std::this_thread::yield();
  for (int i = 1; i >= 0; --i) {  // One thread reads, the other does not.
    interrupted_thread = threads[static_cast<size_t>(i)].get_id();
    threads[static_cast<size_t>(i)].join();
  }
  EXPECT_EQ(interrupted, 2);
  answer = true;
  EXPECT_EQ(NameIn(client_->Call(Named("b"), Deadline::After(20))), "b");
  engine_->Stop();  // Ends the handler before its variables.
}

TEST_F(RpcClientTest, AForkedChildIsRefused) {
  Start(AnswerAtOnce);
  const pid_t child = fork();
  if (child == 0) {
    _exit(CodeOf(client_->Call(Named("a"), Deadline::After(1)).status()) ==
                  ErrorCode::kForkedChild
              ? 0
              : 1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(NameIn(client_->Call(Named("b"), Deadline::After(20))), "b");
}

TEST_F(RpcClientTest, MessageHoldsItsImageUntilItsEnd) {
  Start([](const rpc::EnvelopeT& call, const auto& send) {
    send(Notice(call, 0, 4));
  });
  const ImagePlace place = RpcEnds::Images(*side_);
  const auto released = [&](size_t slot) {
    return place.slot(slot)->released.load(std::memory_order_acquire);
  };
  {
    absl::StatusOr<RpcMessage> answer =
        client_->Call(Named("image"), Deadline::After(20));
    ASSERT_TRUE(answer.ok());
    const ImageLease image = answer->TakeImage();
    ASSERT_TRUE(image);
    EXPECT_EQ(image.bytes().data(), place.image(0).data());
    EXPECT_EQ(image.bytes().size(), 100u);
    EXPECT_EQ(released(0), 0u);
  }
  EXPECT_EQ(released(0), 4u);
}

TEST_F(RpcClientTest, ImageOfADroppedMessageIsReleased) {
  Start([](const rpc::EnvelopeT& call, const auto& send) {
    send(Notice(call, 1, 6));
    send(Notice(call, 0, 8));  // a second answer is dropped
  });
  const ImagePlace place = RpcEnds::Images(*side_);
  const absl::StatusOr<RpcMessage> answer =
      client_->Call(Named("image"), Deadline::After(20));
  ASSERT_TRUE(answer.ok());
  while (client_->Unclaimed() == 0) {
    (void)client_->Call(Named("again"), Deadline::After(20));
  }
  EXPECT_EQ(place.slot(0)->released.load(std::memory_order_acquire), 8u);
}

TEST_F(RpcClientTest, InvalidNoticeGivesNoImage) {
  Start([](const rpc::EnvelopeT& call, const auto& send) {
    send(Notice(call, 2, 4, 1 << 20));
  });
  absl::StatusOr<RpcMessage> answer =
      client_->Call(Named("image"), Deadline::After(20));
  ASSERT_TRUE(answer.ok());
  EXPECT_FALSE(answer->TakeImage());
}

}  // namespace
}  // namespace tandem
