// Flips every byte of the header while a client attaches and while a client is
// attached. The result is a typed error or no effect, and later sessions work.

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdio>
#include <map>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "base/error.h"
#include "schema/layout/lrbc.h"
#include "tests/faults/counting_peers.h"
#include "tests/faults/fault_test.h"
#include "tests/faults/victim.h"
#include "transport/client_side.h"
#include "transport/memory/attached_region.h"
#include "transport/region.h"

namespace tandem {
namespace {

constexpr ClientSide::Options kPatient = {.timeout_secs = 20};

class HeaderFlip : public FaultTest, public testing::WithParamInterface<int> {
 protected:
  void SetUp() override {
    FaultTest::SetUp();
    engine_ = StartEngine();
    absl::StatusOr<AttachedRegion> region = AttachedRegion::Open(name_);
    ASSERT_TRUE(region.ok()) << region.status();
    mapping_ = region->mapping();
  }
  void TearDown() override {
    engine_->Kill();
    FaultTest::TearDown();
  }

  // Flips atomically: a peer may change the byte at the same time.
  void Flip(size_t offset) {
    std::byte* at = mapping_->base() + offset;
    __atomic_fetch_xor(reinterpret_cast<uint8_t*>(at),
                       static_cast<uint8_t>(GetParam()), __ATOMIC_RELAXED);
  }

  static bool IsIn(size_t offset, size_t begin, size_t bytes) {
    return offset - begin < bytes;
  }

  static ErrorCode StepUnchecked(ClientSide& client) {
    return client.Step(client.arrays().actions, 20);
  }

  void Count(ErrorCode code) {
    ASSERT_TRUE(IsKnown(code)) << static_cast<uint32_t>(code);
    ++outcomes_[std::string(NameOf(code))];
  }

  void ExpectAllIsWell(size_t offset) {
    absl::StatusOr<ClientSide> client = ClientSide::Attach(name_, kPatient);
    ASSERT_TRUE(client.ok()) << client.status() << " after byte " << offset;
    ExpectFreshSession(*client);
    ASSERT_FALSE(HasFailure()) << "after byte " << offset;
  }

  void PrintOutcomes() const {
    for (const auto& [name, count] : outcomes_) {
      std::printf("%6d %s\n", count, name.c_str());
    }
  }

  std::unique_ptr<Victim> engine_;
  std::shared_ptr<const RegionMapping> mapping_;
  std::map<std::string, int> outcomes_;
};

TEST_P(HeaderFlip, UnderAClientThatAttachesIsATypedErrorOrNoEffect) {
  for (size_t offset = 0; offset < kLrbcHeaderBytes && !HasFailure();
       ++offset) {
    Flip(offset);
    {
      absl::StatusOr<ClientSide> client = ClientSide::Attach(name_, kPatient);
      Count(CodeOf(client.status()));
      if (client.ok()) Count(StepAndCheck(*client, 5, 1));
    }
    Flip(offset);
    ExpectAllIsWell(offset);
  }
  PrintOutcomes();
}

TEST_P(HeaderFlip, UnderAnAttachedClientIsATypedErrorOrNoEffect) {
  for (size_t offset = 0; offset < kLrbcHeaderBytes && !HasFailure();
       ++offset) {
    {
      absl::StatusOr<ClientSide> client = ClientSide::Attach(name_, kPatient);
      ASSERT_TRUE(client.ok()) << client.status();
      ASSERT_EQ(StepAndCheck(*client, 4, 1), ErrorCode::kOk);
      Flip(offset);
      if (IsIn(offset, offsetof(LrbcHeader, action_seq), 8)) {
        // The flip may give the next number: the engine takes it for a step
        // with the last actions.
        Count(StepUnchecked(*client));
      } else if (IsIn(offset, offsetof(LrbcHeader, attach_request), 4)) {
        // The engine takes it for another client's hello. It resets before
        // or after this exchange, and this call or the next returns the error.
        const ErrorCode code = StepUnchecked(*client);
        if (code == ErrorCode::kOk) {
          EXPECT_EQ(StepUnchecked(*client), ErrorCode::kBrokenPeer);
        }
        Count(code);
      } else {
        Count(StepAndCheck(*client, 5, 2));
      }
    }
    Flip(offset);
    ExpectAllIsWell(offset);
  }
  PrintOutcomes();
}

INSTANTIATE_TEST_SUITE_P(Masks, HeaderFlip, testing::Values(0x01, 0x80, 0xFF));

}  // namespace
}  // namespace tandem
