#include "program/tls/tls_flags.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "base/error.h"

namespace tandem {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

TEST(CheckTlsFlags, TakesAllFilesOrNone) {
  for (const bool remote : {false, true}) {
    EXPECT_TRUE(CheckTlsFlags({.files = {"c", "k", "a"},
                               .knows_clients = true,
                               .listens = true,
                               .allow_remote = remote})
                    .ok());
    EXPECT_TRUE(
        CheckTlsFlags(
            {.files = {"c", "k", ""}, .listens = true, .allow_remote = remote})
            .ok());
  }
  EXPECT_TRUE(CheckTlsFlags({.knows_clients = true}).ok());
}

TEST(CheckTlsFlags, CountsTheMissingFiles) {
  for (const TlsFiles& files : {TlsFiles{"c", "k", ""}, TlsFiles{"c", "", "a"},
                                TlsFiles{"", "k", "a"}}) {
    const absl::Status status =
        CheckTlsFlags({.files = files, .knows_clients = true, .listens = true});
    EXPECT_EQ(CodeOf(status), ErrorCode::kInvalidArgument);
    EXPECT_THAT(std::string(status.message()),
                AllOf(HasSubstr("--tls_client_ca"), HasSubstr("found 2")));
  }
  EXPECT_FALSE(CheckTlsFlags({.files = {"c", "", ""}, .listens = true}).ok());
}

TEST(CheckTlsFlags, OtherMachinesNeedTheFiles) {
  const absl::Status status = CheckTlsFlags(
      {.knows_clients = true, .listens = true, .allow_remote = true});
  EXPECT_THAT(std::string(status.message()), HasSubstr("--allow_remote"));
  EXPECT_FALSE(CheckTlsFlags({.listens = true, .allow_remote = true}).ok());
}

TEST(CheckTlsFlags, TheFilesNeedAPort) {
  const absl::Status status =
      CheckTlsFlags({.files = {"c", "k", "a"}, .knows_clients = true});
  EXPECT_THAT(std::string(status.message()), HasSubstr("--listen"));
}

}  // namespace
}  // namespace tandem
