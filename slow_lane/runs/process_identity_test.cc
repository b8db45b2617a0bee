#include "slow_lane/runs/process_identity.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/os/unique_fd.h"

namespace tandem::slow_lane {
namespace {

// Starts a child that waits for SIGKILL; it does not outlive the test.
pid_t StartChild(const char* name = "a child") {
  int ends[2];
  EXPECT_EQ(pipe(ends), 0);
  const pid_t pid = fork();
  if (pid == 0) {
    alarm(120);
    prctl(PR_SET_NAME, name);
    (void)!write(ends[1], "x", 1);
    for (;;) pause();
  }
  char byte = 0;
  EXPECT_EQ(read(ends[0], &byte, 1), 1);
  close(ends[0]);
  close(ends[1]);
  return pid;
}

// Kills a process, and leaves its zombie.
void Kill(pid_t pid) {
  kill(pid, SIGKILL);
  siginfo_t info;
  ASSERT_EQ(waitid(P_PID, static_cast<id_t>(pid), &info, WEXITED | WNOWAIT), 0);
}

constexpr char kNumbers[] =
    " S 7 30 31 34816 -1 4194304 103 0 0 0 1 2 -3 4 20 -5 6 0 123456789 4096 "
    "212 18446744073709551615 1\n";

TEST(ParseProcessStat, ReadsTheFieldsOfAPlainName) {
  const std::string text = absl::StrCat("4711 (worker)", kNumbers);
  const auto stat = ParseProcessStat(text);
  ASSERT_TRUE(stat.has_value());
  EXPECT_EQ(stat->pid, 4711);
  EXPECT_EQ(stat->name, "worker");
  EXPECT_EQ(stat->state, 'S');
  EXPECT_EQ(stat->parent, 7);
  EXPECT_EQ(stat->group, 30);
  EXPECT_EQ(stat->session, 31);
  EXPECT_EQ(stat->threads, 6);
  EXPECT_EQ(stat->start_time, 123456789u);
}

TEST(ParseProcessStat, ReadsNamesWithBlanksParenthesesAndNewlines) {
  for (const char* name :
       {"a b", ") S 1 1 1", "((", "))", ") (", "", "\n", "x) Z 1 2 3 (y"}) {
    const std::string text = absl::StrCat("1 (", name, ")", kNumbers);
    const auto stat = ParseProcessStat(text);
    ASSERT_TRUE(stat.has_value()) << name;
    EXPECT_EQ(stat->name, name);
    EXPECT_EQ(stat->parent, 7) << name;
    EXPECT_EQ(stat->start_time, 123456789u) << name;
  }
}

TEST(ParseProcessStat, RefusesEveryCutText) {
  const std::string text = "1 (x)" + std::string(kNumbers);
  const size_t needed = text.find(" 123456789");
  for (size_t size = 0; size <= needed; ++size) {
    EXPECT_FALSE(ParseProcessStat(text.substr(0, size)).has_value()) << size;
  }
}

TEST(ProcessStat, IsAliveWhileAnyThreadIs) {
  ProcessStat stat;
  stat.threads = 1;
  for (const char state : {'R', 'S', 'D', 'T', 't', 'I'}) {
    stat.state = state;
    EXPECT_TRUE(stat.IsAlive()) << state;
  }
  for (const char state : {'Z', 'X'}) {
    stat.state = state;
    EXPECT_FALSE(stat.IsAlive()) << state;
  }
  stat.state = 'Z';
  stat.threads = 2;
  EXPECT_TRUE(stat.IsAlive());
}

TEST(ReadProcessStat, ReadsAProcessWithAHostileName) {
  const pid_t child = StartChild(") Z 1 (");
  std::string buffer;
  const auto stat = ReadProcessStat(child, &buffer);
  ASSERT_TRUE(stat.ok()) << stat.status();
  EXPECT_EQ(stat->name, ") Z 1 (");
  EXPECT_EQ(stat->parent, getpid());
  Kill(child);
  waitpid(child, nullptr, 0);
  EXPECT_TRUE(absl::IsNotFound(ReadProcessStat(child, &buffer).status()));
}

TEST(IsAlive, IsFalseForAZombie) {
  const pid_t child = StartChild();
  const auto identity = IdentityOf(child);
  ASSERT_TRUE(identity.ok()) << identity.status();
  EXPECT_TRUE(IsAlive(*identity));
  Kill(child);
  EXPECT_FALSE(IsAlive(*identity));
  EXPECT_TRUE(OpenProcess(*identity).ok());  // opens the zombie
  waitpid(child, nullptr, 0);
  EXPECT_FALSE(IsAlive(*identity));
  EXPECT_TRUE(absl::IsNotFound(OpenProcess(*identity).status()));
}

TEST(OpenProcess, RefusesAnotherProcessOfThatNumber) {
  const pid_t child = StartChild();
  const auto identity = IdentityOf(child);
  ASSERT_TRUE(identity.ok()) << identity.status();

  ProcessIdentity earlier = *identity;
  --earlier.start_time;
  EXPECT_FALSE(IsAlive(earlier));
  EXPECT_TRUE(absl::IsNotFound(OpenProcess(earlier).status()));

  ProcessIdentity other_boot = *identity;
  other_boot.boot_id = "00000000-0000-0000-0000-000000000000";
  EXPECT_FALSE(IsAlive(other_boot));
  EXPECT_TRUE(absl::IsNotFound(OpenProcess(other_boot).status()));

  for (const pid_t no_process : {0, -1}) {
    ProcessIdentity none = *identity;
    none.pid = no_process;
    EXPECT_FALSE(IsAlive(none));
    EXPECT_TRUE(absl::IsNotFound(OpenProcess(none).status()));
  }
  Kill(child);
  waitpid(child, nullptr, 0);
}

TEST(SignalProcess, IsNotFoundForAProcessThatIsGone) {
  const pid_t child = StartChild();
  const auto identity = IdentityOf(child);
  ASSERT_TRUE(identity.ok()) << identity.status();
  const auto process = OpenProcess(*identity);
  ASSERT_TRUE(process.ok()) << process.status();
  EXPECT_TRUE(SignalProcess(process->get(), SIGTERM).ok());
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(WTERMSIG(status), SIGTERM);
  EXPECT_TRUE(absl::IsNotFound(SignalProcess(process->get(), SIGTERM)));
}

TEST(ProcessIdentity, IsTheSameAfterItsProto) {
  const auto identity = IdentityOf(getpid());
  ASSERT_TRUE(identity.ok()) << identity.status();
  EXPECT_EQ(identity->boot_id.size(), 36u);
  EXPECT_EQ(FromProto(ToProto(*identity)), *identity);
}

TEST(ProcessIdentity, SecondsSinceStartIsZeroForAnotherBoot) {
  absl::StatusOr<ProcessIdentity> self = IdentityOf(getpid());
  ASSERT_TRUE(self.ok()) << self.status();
  const double age = SecondsSinceStart(*self);
  EXPECT_GE(age, 0);
  --self->start_time;
  EXPECT_GT(SecondsSinceStart(*self), age);
  self->boot_id = "another";
  EXPECT_EQ(SecondsSinceStart(*self), 0);
}

}  // namespace
}  // namespace tandem::slow_lane
