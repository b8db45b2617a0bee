#include <gtest/gtest.h>
#include <unistd.h>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "program/grpc/peer_owner.h"

namespace tandem {
namespace {

constexpr uid_t kOther = 4242;

TEST(AllowedUsers, DefaultToTheServersUser) {
  const absl::StatusOr<AllowedUsers> users = AllowedUsers::Parse("");
  ASSERT_TRUE(users.ok()) << users.status();
  EXPECT_TRUE(users->Has(geteuid()));
  EXPECT_FALSE(users->Has(geteuid() + 1));
  EXPECT_FALSE(users->Has(kOther));
  EXPECT_TRUE(absl::StrContains(users->own(), absl::StrCat("uid ", geteuid())));
}

TEST(AllowedUsers, IncludeTheNamedUsers) {
  const absl::StatusOr<AllowedUsers> users =
      AllowedUsers::Parse(absl::StrCat("root,", kOther));
  ASSERT_TRUE(users.ok()) << users.status();
  EXPECT_TRUE(users->Has(0));
  EXPECT_TRUE(users->Has(kOther));
  EXPECT_TRUE(users->Has(geteuid()));
  EXPECT_FALSE(users->Has(kOther + 1));
}

TEST(AllowedUsers, RefusesUnknownUsers) {
  for (const char* const more : {"no-such-user", "root,", ",", "root, daemon",
                                 "-1", "4294967295", "4294967296", "0x10"}) {
    const absl::Status status = AllowedUsers::Parse(more).status();
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << more << ": " << status;
  }
}

}  // namespace
}  // namespace tandem
