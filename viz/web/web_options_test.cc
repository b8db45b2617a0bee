#include "viz/web/web_options.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/error.h"

namespace tandem {
namespace {

using ::testing::HasSubstr;

// Flags keep their values between calls, so each call sets all.
absl::StatusOr<WebOptions> Parse(std::vector<absl::string_view> words) {
  std::vector<absl::string_view> all = {
      "--listen=",        "--socket=",  "--nocontrol", "--daemon_target=auto",
      "--noallow_remote", "--nodaemon", "--tls_cert=", "--tls_key="};
  all.insert(all.end(), words.begin(), words.end());
  return ParseWebOptions(all);
}

TEST(WebOptions, OnlyShowsRunsUnlessAskedFor) {
  const absl::StatusOr<WebOptions> options = Parse({});
  ASSERT_TRUE(options.ok()) << options.status();
  EXPECT_FALSE(options->control);
  EXPECT_EQ(options->listen, "");
  EXPECT_TRUE(Parse({"--control"})->control);
}

TEST(WebOptions, TheDaemonIsTheVariablesOrTheGivenOne) {
  setenv("TANDEM_DAEMON", "unix:/tmp/d.sock", 1);
  EXPECT_EQ(Parse({})->daemon.target, "unix:/tmp/d.sock");
  EXPECT_EQ(Parse({"--daemon_target=127.0.0.1:1"})->daemon.target,
            "127.0.0.1:1");
  EXPECT_EQ(Parse({"--daemon_target="})->daemon.target, "");
  unsetenv("TANDEM_DAEMON");
}

TEST(WebOptions, StartsADaemonWithControlUnlessToldOtherwise) {
  EXPECT_FALSE(Parse({"--daemon="})->daemon.by_default);
  EXPECT_TRUE(Parse({"--daemon=", "--control"})->daemon.by_default);
  EXPECT_EQ(Parse({"--daemon=", "--control"})->daemon.flag, std::nullopt);
  EXPECT_EQ(Parse({"--nodaemon", "--control"})->daemon.flag, false);
  EXPECT_EQ(Parse({"--daemon"})->daemon.flag, true);
}

TEST(WebOptions, RefusesContradictionsAndUnknownFlags) {
  for (const std::vector<absl::string_view>& words :
       {std::vector<absl::string_view>{"--listen=127.0.0.1:1", "--socket=/s"},
        {"--listen=8900"},
        {"--daemon", "--daemon_target="},
        {"--listen=0.0.0.0:1", "--allow_remote"},
        {"--listen=127.0.0.1:1", "--tls_cert=c.pem"},
        {"--listen=127.0.0.1:1", "--tls_key=k.pem"},
        {"--tls_cert=c.pem", "--tls_key=k.pem"},
        {"--allow_remote", "--tls_cert=c.pem", "--tls_key=k.pem"},
        {"--no_such_flag"},
        {"word"}}) {
    EXPECT_EQ(CodeOf(Parse(words).status()), ErrorCode::kInvalidArgument)
        << words[0];
  }
}

TEST(WebOptions, OtherMachinesNeedEncryption) {
  const absl::StatusOr<WebOptions> options =
      Parse({"--listen=0.0.0.0:1", "--allow_remote", "--tls_cert=c.pem",
             "--tls_key=k.pem"});
  ASSERT_TRUE(options.ok()) << options.status();
  EXPECT_TRUE(options->allow_remote);
  EXPECT_EQ(options->tls_cert, "c.pem");
  EXPECT_EQ(options->tls_key, "k.pem");
}

TEST(WebOptions, HelpNamesEachFlag) {
  EXPECT_TRUE(Parse({"--help"})->help_wanted);
  for (const char* const flag :
       {"--listen", "--allow_remote", "--tls_cert", "--tls_key", "--socket",
        "--control", "--daemon_target", "--daemon", "--data_dir",
        "--recordings"}) {
    EXPECT_THAT(WebHelp(), HasSubstr(flag));
  }
}

TEST(DefaultSocketPath, IsInTheRuntimeFolder) {
  setenv("XDG_RUNTIME_DIR", ::testing::TempDir().c_str(), 1);
  EXPECT_EQ(*DefaultSocketPath(),
            absl::StrCat(::testing::TempDir(), "/tandem-view.sock"));
}

TEST(DefaultSocketPath, IsInAFolderThatOnlyItsUserCanOpen) {
  setenv("XDG_RUNTIME_DIR", "/nonexistent", 1);
  const absl::StatusOr<std::string> path = DefaultSocketPath();
  ASSERT_TRUE(path.ok()) << path.status();
  const std::string folder = path->substr(0, path->rfind('/'));
  struct stat info;
  ASSERT_EQ(stat(folder.c_str(), &info), 0);
  EXPECT_EQ(info.st_uid, geteuid());
  EXPECT_EQ(info.st_mode & 0777, 0700U);
  ASSERT_EQ(chmod(folder.c_str(), 0755), 0);
  EXPECT_EQ(CodeOf(DefaultSocketPath().status()), ErrorCode::kAccessDenied);
  ASSERT_EQ(chmod(folder.c_str(), 0700), 0);
}

}  // namespace
}  // namespace tandem
