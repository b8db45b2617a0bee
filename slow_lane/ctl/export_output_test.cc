#include "slow_lane/ctl/export_output.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace tandem::slow_lane {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

class ExportOutputTest : public testing::Test {
 protected:
  ExportOutputTest()
      : folder_(std::filesystem::path(std::getenv("TEST_TMPDIR")) /
                testing::UnitTest::GetInstance()->current_test_info()->name()) {
    std::filesystem::create_directory(folder_);
  }
  ~ExportOutputTest() override { std::filesystem::remove_all(folder_); }

  std::string At(const std::string& name) const { return folder_ / name; }
  void Make(const std::string& name, const std::string& text) const {
    std::ofstream(At(name)) << text;
  }
  std::string TextOf(const std::string& name) const {
    std::ostringstream text;
    text << std::ifstream(At(name)).rdbuf();
    return text.str();
  }
  std::vector<std::string> Names() const {
    std::vector<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator(folder_)) {
      names.push_back(entry.path().filename());
    }
    std::sort(names.begin(), names.end());
    return names;
  }

  // A whole export.
  absl::Status Export(const std::string& name, const std::string& text) const {
    absl::StatusOr<ExportOutput> output = ExportOutput::Open(At(name));
    if (!output.ok()) return output.status();
    if (absl::Status s = output->Write(text); !s.ok()) return s;
    return output->Close();
  }

  // How a process of its own ends that does this.
  static int WaitFor(const std::function<void()>& body) {
    const pid_t child = fork();
    if (child == 0) {
      body();
      _exit(0);
    }
    int how = 0;
    EXPECT_EQ(waitpid(child, &how, 0), child);
    return how;
  }

  const std::filesystem::path folder_;
};

TEST_F(ExportOutputTest, AFileAppearsWhole) {
  Make("out", "before");
  absl::StatusOr<ExportOutput> output = ExportOutput::Open(At("out"));
  ASSERT_TRUE(output.ok()) << output.status();
  ASSERT_TRUE(output->Write("after").ok());
  EXPECT_EQ(TextOf("out"), "before");
  ASSERT_TRUE(output->Close().ok());
  EXPECT_EQ(TextOf("out"), "after");
  EXPECT_THAT(Names(), ElementsAre("out"));
}

TEST_F(ExportOutputTest, ItsModeIsAsTheUmaskSays) {
  const mode_t before = umask(0027);
  ASSERT_TRUE(Export("out", "").ok());
  umask(before);
  struct stat file;
  ASSERT_EQ(stat(At("out").c_str(), &file), 0);
  EXPECT_EQ(file.st_mode & 07777, 0640u);
}

TEST_F(ExportOutputTest, ItsModeIsThatOfTheFileThatItReplaces) {
  Make("file", "before");
  std::filesystem::create_symlink("file", folder_ / "out");
  for (const mode_t mode : {0600u, 0666u}) {
    ASSERT_EQ(chmod(At("file").c_str(), mode), 0);
    ASSERT_TRUE(Export("out", "").ok());
    struct stat file;
    ASSERT_EQ(stat(At("file").c_str(), &file), 0);
    EXPECT_EQ(file.st_mode & 07777, mode);
  }
}

TEST_F(ExportOutputTest, WhatIsNotClosedIsAsItWas) {
  Make("out", "before");
  {
    absl::StatusOr<ExportOutput> output = ExportOutput::Open(At("out"));
    ASSERT_TRUE(output.ok()) << output.status();
    ASSERT_TRUE(output->Write("after").ok());
  }
  EXPECT_EQ(TextOf("out"), "before");
  EXPECT_THAT(Names(), ElementsAre("out"));
}

TEST_F(ExportOutputTest, AUsersFilesOfThatNameStay) {
  const std::string part = absl::StrCat("out.part-", getpid(), "-0");
  Make("out.part", "mine");
  Make(part, "mine, too");
  ASSERT_TRUE(Export("out", "rows").ok());
  EXPECT_EQ(TextOf("out"), "rows");
  EXPECT_EQ(TextOf("out.part"), "mine");
  EXPECT_EQ(TextOf(part), "mine, too");
}

TEST_F(ExportOutputTest, TwoAtOnceAreBothWhole) {
  absl::StatusOr<ExportOutput> first = ExportOutput::Open(At("out"));
  ASSERT_TRUE(first.ok()) << first.status();
  ASSERT_TRUE(first->Write("first").ok());
  EXPECT_EQ(WaitFor([this] {
              if (!Export("out", "the second, longer").ok()) _exit(1);
            }),
            0);
  EXPECT_EQ(TextOf("out"), "the second, longer");
  ASSERT_TRUE(first->Close().ok());
  EXPECT_EQ(TextOf("out"), "first");
  EXPECT_THAT(Names(), ElementsAre("out"));
}

TEST_F(ExportOutputTest, LinksAreFollowedToTheirEnd) {
  std::filesystem::create_directories(folder_ / "a/b");
  Make("a/b/file", "before");
  std::filesystem::create_symlink("a/link", folder_ / "out");
  std::filesystem::create_symlink(folder_ / "a/b/file", folder_ / "a/link");
  ASSERT_TRUE(Export("out", "after").ok());
  EXPECT_TRUE(std::filesystem::is_symlink(folder_ / "out"));
  EXPECT_TRUE(std::filesystem::is_symlink(folder_ / "a/link"));
  EXPECT_EQ(TextOf("a/b/file"), "after");
  EXPECT_THAT(Names(), ElementsAre("a", "out"));
}

TEST_F(ExportOutputTest, ALinksTargetNeedNotBeThere) {
  std::filesystem::create_symlink("file", folder_ / "out");
  ASSERT_TRUE(Export("out", "rows").ok());
  EXPECT_TRUE(std::filesystem::is_symlink(folder_ / "out"));
  EXPECT_EQ(TextOf("file"), "rows");
}

TEST_F(ExportOutputTest, RefusesWhatIsNoFile) {
  std::filesystem::create_directory(folder_ / "folder");
  std::filesystem::create_symlink("folder", folder_ / "link");
  std::filesystem::create_symlink("circle", folder_ / "circle");
  for (const std::string name : {"folder", "link"}) {
    EXPECT_TRUE(absl::IsInvalidArgument(Export(name, ""))) << name;
  }
  EXPECT_THAT(Export("circle", "").message(), testing::HasSubstr("circle"));
  EXPECT_FALSE(Export("none/out", "").ok());
  EXPECT_THAT(Names(), ElementsAre("circle", "folder", "link"));
}

TEST_F(ExportOutputTest, TakesTheLongestNames) {
  const std::string name(255, 'x');
  ASSERT_TRUE(Export(name, "rows").ok());
  EXPECT_THAT(Names(), ElementsAre(name));
}

TEST_F(ExportOutputTest, ASignalLeavesNothingBehind) {
  for (const int number : {SIGHUP, SIGINT, SIGTERM}) {
    const int how = WaitFor([this, number] {
      absl::StatusOr<ExportOutput> output = ExportOutput::Open(At("out"));
      if (!output.ok() || !output->Write("rows").ok()) _exit(1);
      if (Names().size() != 1) _exit(2);
      raise(number);
    });
    EXPECT_TRUE(WIFSIGNALED(how) && WTERMSIG(how) == number) << how;
    EXPECT_THAT(Names(), IsEmpty());
  }
}

TEST_F(ExportOutputTest, ManySignalsLeaveNothingBehindEither) {
  // The first waits in the other thread for the end of an Open; what the next
  // ones do meanwhile is a matter of chance.
  for (int i = 0; i < 20; ++i) {
    const pid_t child = fork();
    if (child == 0) {
      std::thread([] { pause(); }).detach();
      for (;;) {
        if (!ExportOutput::Open(At("out")).ok()) _exit(1);
      }
    }
    // Not before it has something to leave behind, and so its handler.
    while (Names().empty()) {
    }
    int how = 0;
    while (waitpid(child, &how, WNOHANG) == 0) kill(child, SIGINT);
    EXPECT_TRUE(WIFSIGNALED(how) && WTERMSIG(how) == SIGINT) << how;
    ASSERT_THAT(Names(), IsEmpty()) << i;
  }
}

TEST_F(ExportOutputTest, ASignalBehindTheEndTakesNothingAway) {
  const int how = WaitFor([this] {
    if (!Export("out", "rows").ok()) _exit(1);
    raise(SIGTERM);
  });
  EXPECT_TRUE(WIFSIGNALED(how) && WTERMSIG(how) == SIGTERM) << how;
  EXPECT_EQ(TextOf("out"), "rows");
  EXPECT_THAT(Names(), ElementsAre("out"));
}

TEST_F(ExportOutputTest, AnIgnoredSignalStaysIgnored) {
  EXPECT_EQ(WaitFor([this] {
              signal(SIGHUP, SIG_IGN);
              absl::StatusOr<ExportOutput> output =
                  ExportOutput::Open(At("out"));
              raise(SIGHUP);
              if (!output.ok() || !output->Close().ok()) _exit(1);
            }),
            0);
  EXPECT_THAT(Names(), ElementsAre("out"));
}

TEST_F(ExportOutputTest, AFullDiskIsSaid) {
  // In place of one: a limit. It is given for this process only.
  EXPECT_EQ(WaitFor([this] {
              signal(SIGXFSZ, SIG_IGN);
              const rlimit limit = {4096, 4096};
              setrlimit(RLIMIT_FSIZE, &limit);
              const absl::Status status =
                  Export("out", std::string(100'000, 'x'));
              if (status.ok() || !Names().empty()) _exit(1);
            }),
            0);
}

}  // namespace
}  // namespace tandem::slow_lane
