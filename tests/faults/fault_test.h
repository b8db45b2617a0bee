// FaultTest: the common fixture of the tests that kill peers.
//
// Data flow: a region's name, engines that serve it, and clients. Clients must
// be served after any peer's death; at the end no file of the name is left.
//
//   class LockStepFaults : public FaultTest {};
//   const std::unique_ptr<Victim> engine = StartEngine();
//   ... kill a side ...
//   ExpectANewClientIsServed();

#ifndef TANDEM_TESTS_FAULTS_FAULT_TEST_H_
#define TANDEM_TESTS_FAULTS_FAULT_TEST_H_

#include <gtest/gtest.h>
#include <unistd.h>

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "tests/faults/counting_peers.h"
#include "tests/faults/victim.h"
#include "transport/memory/testing/unique_region_name.h"
#include "transport/session/client_side.h"

namespace tandem {

class FaultTest : public testing::Test {
 protected:
  void SetUp() override { alarm(900); }  // A hang is a failure.
  void TearDown() override {
    // Starting another engine removes the killed engines' regions.
    { const CountingServer next(UniqueRegionName("faults")); }
    ExpectNothingLeft(name_);
    alarm(0);
  }

  // Serves until the test kills it.
  std::unique_ptr<Victim> StartEngine() {
    auto engine = std::make_unique<Victim>([this] {
      CountingServer side(name_);
      Victim::Mark();
      side.Serve();
    });
    EXPECT_TRUE(engine->RunToMark());
    engine->Release();
    return engine;
  }

  void ExpectANewClientIsServed() {
    absl::StatusOr<ClientSide> client = ClientSide::Attach(name_, {});
    ASSERT_TRUE(client.ok()) << client.status();
    ExpectFreshSession(*client);
  }

  const std::string name_ = UniqueRegionName("faults");
};

}  // namespace tandem

#endif  // TANDEM_TESTS_FAULTS_FAULT_TEST_H_
