// The RPC rings between both ends of the protocol in one process, with every
// step made by this thread.

#include <gtest/gtest.h>

#include <optional>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "base/error.h"
#include "transport/client_side.h"
#include "transport/memory/region_plan.h"
#include "transport/memory/testing/unique_region_name.h"
#include "transport/ring/ring.h"
#include "transport/session/engine_side.h"
#include "transport/session/rpc_ends.h"
#include "transport/session/testing/echo_engine.h"

namespace tandem {
namespace {

std::span<const std::byte> Bytes(const std::string& text) {
  return std::as_bytes(std::span(text));
}

// An engine driven by this thread, and a client that waits on another thread.
class SessionCommands : public testing::Test {
 protected:
  SessionCommands() : name_(UniqueRegionName("commands")) {
    absl::StatusOr<EngineSide> side = EngineSide::Create(name_, EchoSpec(), {});
    EXPECT_TRUE(side.ok()) << side.status();
    engine_.emplace(*std::move(side));
    EXPECT_TRUE(engine_->Open().ok());
  }

  // Attaches a client; both sides attach to their rings.
  void Meet() {
    std::thread arriving([this] { client_.emplace(AttachOrFail(name_)); });
    while (engine_->Next(Deadline::After(20)) != EngineEvent::kClientArrived) {
    }
    engine_->AcknowledgeAttach(absl::OkStatus());
    arriving.join();
    engine_reader_.emplace(engine_->RpcRingReader().value());
    engine_writer_.emplace(engine_->RpcRingWriter().value());
    client_reader_.emplace(RpcEnds::Reader(&*client_).value());
    client_writer_.emplace(RpcEnds::Writer(&*client_).value());
  }
  // The next event that is not an interruption.
  EngineEvent Next() {
    EngineEvent event = EngineEvent::kTimedOut;
    do {
      event = engine_->Next(Deadline::After(20));
    } while (event == EngineEvent::kInterrupted);
    return event;
  }
  std::string Read(RingReader& reader) {
    std::vector<std::byte> buffer(reader.max_message_bytes());
    size_t bytes = 0;
    if (reader.TryRead(buffer, &bytes) != ErrorCode::kOk) return "nothing";
    return {reinterpret_cast<const char*>(buffer.data()), bytes};
  }

  std::string name_;
  std::optional<EngineSide> engine_;
  std::optional<ClientSide> client_;
  std::optional<RingReader> engine_reader_, client_reader_;
  std::optional<RingWriter> engine_writer_, client_writer_;
};

TEST_F(SessionCommands, GoBothWaysBetweenSteps) {
  Meet();
  ASSERT_EQ(Next(), EngineEvent::kRpcs);  // Reports possible earlier calls.
  EXPECT_EQ(Read(*engine_reader_), "nothing");
  for (int i = 0; i < 100; ++i) {
    ASSERT_EQ(client_writer_->TryWrite(Bytes("how far?")), ErrorCode::kOk);
    ASSERT_EQ(Next(), EngineEvent::kRpcs);
    EXPECT_EQ(Read(*engine_reader_), "how far?");
    ASSERT_EQ(engine_writer_->TryWrite(Bytes("so far")), ErrorCode::kOk);
    EXPECT_EQ(Read(*client_reader_), "so far");
    ASSERT_EQ(client_->Send(kActions), ErrorCode::kOk);
    ASSERT_EQ(Next(), EngineEvent::kExchange);
    engine_->Publish();
    ASSERT_EQ(client_->Recv(Deadline::After(20)), ErrorCode::kOk);
  }
  EXPECT_EQ(engine_->Next(Deadline::Now()), EngineEvent::kTimedOut);
}

TEST_F(SessionCommands, AnExchangeComesFirst) {
  Meet();
  ASSERT_EQ(Next(), EngineEvent::kRpcs);
  ASSERT_EQ(client_writer_->TryWrite(Bytes("a")), ErrorCode::kOk);
  ASSERT_EQ(client_->Send(kActions), ErrorCode::kOk);
  ASSERT_EQ(Next(), EngineEvent::kExchange);
  engine_->Publish();
  EXPECT_EQ(Next(), EngineEvent::kRpcs);
  ASSERT_EQ(client_->Recv(Deadline::After(20)), ErrorCode::kOk);
}

TEST_F(SessionCommands, ReportsRpcsOnceUnlessPolledAgain) {
  Meet();
  ASSERT_EQ(Next(), EngineEvent::kRpcs);
  ASSERT_EQ(client_writer_->TryWrite(Bytes("a")), ErrorCode::kOk);
  ASSERT_EQ(client_writer_->TryWrite(Bytes("b")), ErrorCode::kOk);
  ASSERT_EQ(Next(), EngineEvent::kRpcs);
  EXPECT_EQ(engine_->Next(Deadline::Now()), EngineEvent::kTimedOut);
  EXPECT_EQ(Read(*engine_reader_), "a");
  engine_->PollRpcsAgain();
  EXPECT_EQ(engine_->Poll(), EngineEvent::kRpcs);
  EXPECT_EQ(Read(*engine_reader_), "b");
  EXPECT_EQ(engine_->Poll(), EngineEvent::kTimedOut);
}

TEST_F(SessionCommands, WakeASleepingEngine) {
  Meet();
  ASSERT_EQ(Next(), EngineEvent::kRpcs);
  const LrbcHeader* const header = client_->mapping()->header();
  std::thread client([&] {
    // relaxed: a test reads only the number.
    while (header->engine_sleepers.load(std::memory_order_relaxed) == 0) {
      std::this_thread::yield();
    }
    EXPECT_EQ(client_writer_->TryWrite(Bytes("a")), ErrorCode::kOk);
  });
  EXPECT_EQ(Next(), EngineEvent::kRpcs);
  client.join();
}

TEST_F(SessionCommands, DieWithTheirClient) {
  Meet();
  ASSERT_EQ(Next(), EngineEvent::kRpcs);
  ASSERT_EQ(client_writer_->TryWrite(Bytes("from the first")), ErrorCode::kOk);
  client_.reset();
  EngineEvent event = Next();
  if (event == EngineEvent::kRpcs) event = Next();
  ASSERT_EQ(event, EngineEvent::kClientLeft);
  EXPECT_EQ(engine_->Next(Deadline::Now()), EngineEvent::kTimedOut);
  Meet();
  ASSERT_EQ(Next(), EngineEvent::kRpcs);
  EXPECT_EQ(Read(*engine_reader_), "nothing");
  ASSERT_EQ(client_writer_->TryWrite(Bytes("from the second")), ErrorCode::kOk);
  ASSERT_EQ(Next(), EngineEvent::kRpcs);
  EXPECT_EQ(Read(*engine_reader_), "from the second");
}

TEST_F(SessionCommands, AreNotPolledUnlessTheEngineAsks) {
  Meet();
  ASSERT_EQ(Next(), EngineEvent::kRpcs);
  client_.reset();
  while (Next() != EngineEvent::kClientLeft) {
  }
  std::thread arriving([this] { client_.emplace(AttachOrFail(name_)); });
  while (Next() != EngineEvent::kClientArrived) {
  }
  engine_->AcknowledgeAttach(absl::OkStatus());
  arriving.join();
  RingWriter writer = RpcEnds::Writer(&*client_).value();
  ASSERT_EQ(writer.TryWrite(Bytes("a")), ErrorCode::kOk);
  EXPECT_EQ(engine_->Next(Deadline::Now()), EngineEvent::kTimedOut);
}

}  // namespace
}  // namespace tandem
