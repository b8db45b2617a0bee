// A session must not trust data that a peer wrote to the region or left in it.

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <vector>

#include "base/error.h"
#include "schema/layout/field.h"
#include "schema/layout/layout_crc.h"
#include "schema/layout/lrbc.h"
#include "schema/layout/ring_header.h"
#include "transport/client_side.h"
#include "transport/memory/owned_region.h"
#include "transport/region.h"
#include "transport/session/engine_side.h"
#include "transport/session/testing/echo_engine.h"

namespace tandem {
namespace {

using SessionTrust = SessionTest;

TEST_F(SessionTrust, ResetsFlagsBetweenClients) {
  EchoEngine engine(name_, EchoSpec());
  {
    ClientSide client = AttachOrFail(name_);
    client.arrays().resets[1] = kResetRequested;
  }
  ClientSide client = AttachOrFail(name_);
  EXPECT_EQ(client.arrays().resets[1], 0);
  EXPECT_EQ(Step(client, kActions), ErrorCode::kOk);
  EXPECT_EQ(engine.resets(), 0);
}

TEST_F(SessionTrust, ResetsRingsBetweenClients) {
  EchoEngine engine(name_, EchoSpec());
  const auto positions = [&](const ClientSide& client) {
    std::vector<SharedWord<uint32_t>*> words;
    for (const uint64_t offset :
         {client.plan().cmd_s2c_offset, client.plan().cmd_c2s_offset}) {
      auto* ring = client.mapping()->At<RingHeader>(offset);
      words.insert(words.end(), {&ring->write_pos, &ring->read_pos});
    }
    return words;
  };
  {
    ClientSide client = AttachOrFail(name_);
    // relaxed: no other thread reads them.
    for (SharedWord<uint32_t>* word : positions(client)) {
      word->store(24, std::memory_order_relaxed);
    }
  }
  ClientSide client = AttachOrFail(name_);
  for (SharedWord<uint32_t>* word : positions(client)) {
    // relaxed: the welcome ordered it.
    EXPECT_EQ(word->load(std::memory_order_relaxed), 0u);
  }
}

TEST_F(SessionTrust, UnlinkedRegionGetsItsNameBack) {
  EchoEngine engine(name_, EchoSpec());
  ASSERT_EQ(unlink(RegionPath(name_).c_str()), 0);
  ClientSide client = AttachOrFail(name_);
  EXPECT_EQ(Step(client, kActions), ErrorCode::kOk);
}

TEST_F(SessionTrust, NewClientIsServedAfterAnyPreviousCount) {
  EchoEngine engine(name_, EchoSpec());
  {
    ClientSide client = AttachOrFail(name_);
    // relaxed: a peer that overwrites the word.
    client.mapping()->header()->action_seq.store(77, std::memory_order_relaxed);
  }
  ClientSide client = AttachOrFail(name_);
  EXPECT_EQ(Step(client, kActions), ErrorCode::kOk);
  EXPECT_EQ(engine.steps(), 1);
}

TEST_F(SessionTrust, HeaderOnlyClientWithWrongCountIsResynchronised) {
  EchoEngine engine(name_, EchoSpec());
  LrbcHeader* header = engine.side().mapping()->header();
  // relaxed: a peer that overwrites the word.
  header->action_seq.store(500, std::memory_order_relaxed);
  AwaitTrue([&] { return engine.broken() == 1; });
  // relaxed: a test reads only the number.
  EXPECT_EQ(header->frame_seq.load(std::memory_order_relaxed), 500u);
  // SYNC(lockstep.action): release; as a header-only client would.
  header->action_seq.store(501, std::memory_order_release);
  AwaitTrue([&] { return engine.steps() == 1; });
}

TEST_F(SessionTrust, AnEngineThatCountsWronglyIsABrokenPeer) {
  EngineSide side = OpenSide(name_, EchoSpec());
  ClientSide client = AttachTo(side, name_);
  ASSERT_EQ(client.Send(kActions), ErrorCode::kOk);
  // relaxed: a peer that overwrites the word.
  side.mapping()->header()->frame_seq.store(9, std::memory_order_relaxed);
  EXPECT_EQ(client.Recv(Deadline::After(20)), ErrorCode::kBrokenPeer);
  EXPECT_EQ(client.Send(kActions), ErrorCode::kBrokenPeer);
}

TEST_F(SessionTrust, AnUnknownKindOrModeIsRefusedAndNothingIsStepped) {
  EchoEngine engine(name_, EchoSpec());
  {
    ClientSide client = AttachOrFail(name_);
    ASSERT_EQ(Step(client, kActions), ErrorCode::kOk);
  }
  // The engine clears the kind when it sees that the client has left.
  AwaitTrue([&] { return engine.departures() == 1; });
  LrbcHeader* header = engine.side().mapping()->header();
  // relaxed: action_seq publishes it.
  header->exchange_kind.store(9, std::memory_order_relaxed);
  // SYNC(lockstep.action): release; as a header-only client would.
  header->action_seq.store(2, std::memory_order_release);
  // SYNC(lockstep.frame): acquire; as a header-only client would.
  AwaitTrue(
      [&] { return header->frame_seq.load(std::memory_order_acquire) == 2; });
  // relaxed: frame_seq published it.
  EXPECT_EQ(header->exchange_status.load(std::memory_order_relaxed),
            static_cast<uint32_t>(ErrorCode::kUnsupported));
  EXPECT_EQ(engine.steps(), 1);
  ClientSide::Options options;
  options.autoreset = static_cast<AutoresetMode>(7);
  EXPECT_EQ(CodeOf(ClientSide::Attach(name_, options).status()),
            ErrorCode::kUnsupported);
}

TEST_F(SessionTrust, ARefusedClientDoesNotHideADeparture) {
  EngineSide engine = OpenSide(name_, EchoSpec());
  ClientSide client = AttachTo(engine, name_);
  LrbcHeader* const header = client.mapping()->header();
  ASSERT_EQ(client.Close(), ErrorCode::kOk);
  // Before the engine looks, as a foreign client would.
  // relaxed: here and below, this thread acts for both sides.
  header->autoreset_mode.store(7, std::memory_order_relaxed);
  const uint32_t request =
      header->attach_request.fetch_add(1, std::memory_order_relaxed) + 1;
  EXPECT_EQ(engine.Next(Deadline::After(20)), EngineEvent::kClientLeft);
  EXPECT_EQ(header->attach_ack.load(std::memory_order_relaxed), request);
  EXPECT_EQ(header->exchange_status.load(std::memory_order_relaxed),
            static_cast<uint32_t>(ErrorCode::kUnsupported));
  EXPECT_EQ(engine.Next(Deadline::After(0.01)), EngineEvent::kTimedOut);
}

TEST_F(SessionTrust, ActiveClientDelaysAttachRequestByOneExchange) {
  EngineSide engine = OpenSide(name_, EchoSpec());
  ClientSide client = AttachTo(engine, name_);
  // relaxed: here and below, this thread acts for both sides.
  client.mapping()->header()->attach_request.fetch_add(
      1, std::memory_order_relaxed);
  ASSERT_EQ(client.Send(kActions), ErrorCode::kOk);
  ASSERT_EQ(engine.Poll(), EngineEvent::kExchange);
  engine.Publish();
  ASSERT_EQ(client.Recv(Deadline::Now()), ErrorCode::kOk);
  ASSERT_EQ(client.Send(kActions), ErrorCode::kOk);
  EXPECT_EQ(engine.Poll(), EngineEvent::kClientArrived);
  engine.AcknowledgeAttach(absl::OkStatus());
  EXPECT_EQ(engine.Poll(), EngineEvent::kExchange);
  engine.Publish();
  EXPECT_EQ(client.Recv(Deadline::Now()), ErrorCode::kBrokenPeer);
}

RegionSpec SpecWithFields() {
  RegionSpec spec = EchoSpec();
  spec.fields = {
      {.role = FieldRole::kStatus, .type = FieldType::kUint8},
      {.role = FieldRole::kEpisodeLength, .type = FieldType::kInt64}};
  return spec;
}

TEST_F(SessionTrust, AChangedTableOfFieldsIsRefusedBeforeTheAttach) {
  EchoEngine engine(name_, SpecWithFields());
  const auto& mapping = engine.side().mapping();
  const LrbcHeader& header = *mapping->header();
  const size_t bytes = header.field_count * sizeof(FieldRecord);
  std::byte* const table = mapping->At<std::byte>(header.fields_offset);
  for (size_t at = 0; at < bytes; ++at) {
    table[at] ^= std::byte{1};
    EXPECT_EQ(CodeOf(ClientSide::Attach(name_, {}).status()),
              ErrorCode::kLayoutMismatch)
        << at;
    table[at] ^= std::byte{1};
  }
  EXPECT_EQ(engine.arrivals(), 0);
  ClientSide client = AttachOrFail(name_);
  EXPECT_EQ(Step(client, kActions), ErrorCode::kOk);
}

TEST_F(SessionTrust, ASessionDoesNotReadTheTableOfFieldsAgain) {
  EchoEngine engine(name_, SpecWithFields());
  ClientSide client = AttachOrFail(name_);
  const auto& mapping = engine.side().mapping();
  LrbcHeader* const header = mapping->header();
  std::byte* const table = mapping->At<std::byte>(header->fields_offset);
  const FieldArray* const status = client.arrays().Find(FieldRole::kStatus, "");
  ASSERT_NE(status, nullptr);
  const std::byte* const memory = status->data.data();
  std::fill_n(table, header->field_count * sizeof(FieldRecord),
              std::byte{0xFF});
  header->fields_offset = ~uint64_t{0};
  for (int i = 0; i < 10; ++i) {
    ASSERT_EQ(Step(client, kActions), ErrorCode::kOk);
  }
  EXPECT_EQ(client.arrays().Find(FieldRole::kStatus, "")->data.data(), memory);
  EXPECT_EQ(client.arrays().obs[5], 6);
}

TEST_F(SessionTrust, EveryForeignStatusIsAnEngineErrorOrABrokenPeer) {
  EchoEngine engine(name_, EchoSpec());
  LrbcHeader* header = engine.side().mapping()->header();
  for (uint32_t status = 0; status < 40; ++status) {
    ClientSide client = AttachOrFail(name_);
    ASSERT_EQ(client.Send(kActions), ErrorCode::kOk);
    // SYNC(lockstep.frame): acquire; as the client will.
    AwaitTrue([&] {
      return header->frame_seq.load(std::memory_order_acquire) ==
             // relaxed: this side's own number.
             header->action_seq.load(std::memory_order_relaxed);
    });
    // relaxed: a peer that overwrites the word.
    header->exchange_status.store(status, std::memory_order_relaxed);
    const ErrorCode code = client.Recv(Deadline::After(20));
    if (status == 0) {
      EXPECT_EQ(code, ErrorCode::kOk);
    } else {
      EXPECT_TRUE(
          code == ErrorCode::kEngineFailed || code == ErrorCode::kEnvFailed ||
          code == ErrorCode::kUnsupported || code == ErrorCode::kBrokenPeer)
          << status;
    }
    EXPECT_FALSE(client.pending());
    // The next answer is valid, and the engine accepts the next client.
    if (code != ErrorCode::kBrokenPeer) {
      EXPECT_EQ(Step(client, kActions), ErrorCode::kOk);
    }
  }
}

}  // namespace
}  // namespace tandem
