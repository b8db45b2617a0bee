#include "base/os/stop_signals.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

namespace tandem {
namespace {

using ::testing::UnorderedElementsAre;

TEST(StopSignals, AnIgnoredHangupStaysIgnored) {
  EXPECT_THAT(StopSignals(), UnorderedElementsAre(SIGINT, SIGTERM, SIGHUP));
  signal(SIGHUP, SIG_IGN);
  EXPECT_THAT(StopSignals(), UnorderedElementsAre(SIGINT, SIGTERM));
  signal(SIGHUP, SIG_DFL);
}

}  // namespace
}  // namespace tandem
