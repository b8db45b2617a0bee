#include "slow_lane/daemon/failure_line.h"

#include "gtest/gtest.h"

namespace tandem::slow_lane {
namespace {

constexpr char kBegin[] =
    "the worker exited with code 1; the last it wrote to stderr:\n";

TEST(FailureLine, IsTheExceptionNotItsNotesAndFrames) {
  EXPECT_EQ(FailureLine(std::string(kBegin) +
                        "Traceback (most recent call last):\n"
                        "  File \"train.py\", line 3, in <module>\n"
                        "    solve(x)\n    ^^^^^^^^\n"
                        "courier.Diverged: at step 3: 1e9\n"
                        "in environment 2, courier.Courier\n"
                        "INFO: closing\n"),
            "courier.Diverged: at step 3: 1e9");
}

TEST(FailureLine, IsTheLastOfAChain) {
  EXPECT_EQ(FailureLine("  a\nKeyError: 'a'\n\nDuring handling of the above "
                        "exception, another exception occurred:\n  b\n"
                        "KeyboardInterrupt\n"),
            "KeyboardInterrupt");
}

TEST(FailureLine, NeedsNoTracebackForAnError) {
  EXPECT_EQ(FailureLine("ValueError: expected 1\n"), "ValueError: expected 1");
}

TEST(FailureLine, IsTheWhatOfCpp) {
  EXPECT_EQ(FailureLine("terminate called after throwing an instance of "
                        "'std::runtime_error'\n  what():  diverged\n"),
            "diverged");
}

TEST(FailureLine, IsEmptyWithoutAnException) {
  for (const char* reason :
       {"", "the worker ended by signal 9 (Killed)", kBegin,
        "WARNING: low memory\nEpoch: 3\n", ": x\n.\n..: y\n"}) {
    EXPECT_EQ(FailureLine(reason), "") << reason;
  }
}

}  // namespace
}  // namespace tandem::slow_lane
