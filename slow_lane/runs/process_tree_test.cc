#include "slow_lane/runs/process_tree.h"

#include <grp.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <map>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/os/unique_fd.h"
#include "slow_lane/runs/process_identity.h"
#include "slow_lane/runs/run_token.h"
#include "slow_lane/runs/testing/test_processes.h"

namespace tandem::slow_lane {
namespace {

constexpr double kNoGrace = 0;
constexpr double kLongGrace = 100;

// A worker of a run, in its own session as LaunchWorker starts it; this process
// is its subreaper.
class ProcessTree : public testing::Test {
 protected:
  ProcessTree() {
    prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
    const auto self = IdentityOf(getpid());
    EXPECT_TRUE(self.ok()) << self.status();
    self_ = *self;
  }

  ~ProcessTree() override {
    // Ends the processes that a failed test left, with or without the token.
    const auto end =
        EndTree({.token = token_, .roots = {self_}, .excluded = {}}, kNoGrace);
    EXPECT_TRUE(end.ok() && end->left.empty());
    while (waitpid(-1, nullptr, WNOHANG) > 0) {
    }
  }

  pid_t StartWorker(const std::string& mode) {
    int ends[2];
    EXPECT_EQ(pipe(ends), 0);
    const pid_t pid = fork();
    if (pid == 0) {
      setsid();
      close(ends[0]);
      const std::string entry = absl::StrCat(kRunTokenVariable, "=", token_);
      execle(
          worker_.c_str(), worker_.c_str(), mode.c_str(), said_.c_str(),
          "sleeper", nullptr,
          std::vector<char*>{const_cast<char*>(entry.c_str()), nullptr}.data());
      _exit(1);
    }
    close(ends[1]);
    tree_ = UniqueFd(ends[0]);
    const auto identity = IdentityOf(pid);
    EXPECT_TRUE(identity.ok()) << identity.status();
    worker_identity_ = *identity;
    return pid;
  }

  // Whether no process has the pipe's other end, which the worker and all its
  // descendants inherit: this holds also for hidden processes.
  bool AllAreGone() const {
    pollfd polled = {.fd = tree_.get(), .events = 0, .revents = 0};
    return poll(&polled, 1, 0) == 1 && (polled.revents & POLLHUP) != 0;
  }

  // The processes that reported, by kind; waits for `count` of them.
  std::map<std::string, pid_t> WaitForKinds(size_t count) {
    WaitUntil(absl::StrCat(count, " lines in ", said_),
              [&] { return ReadLines(said_).size() >= count; });
    std::map<std::string, pid_t> kinds;
    for (const std::string& line : ReadLines(said_)) {
      const std::vector<std::string> parts = absl::StrSplit(line, ' ');
      EXPECT_TRUE(absl::SimpleAtoi(parts[1], &kinds[parts[0]]));
    }
    return kinds;
  }

  // A query by token only.
  TreeQuery ByToken() const {
    return {.token = token_, .roots = {}, .excluded = {}};
  }
  // The query of a run's proxy.
  TreeQuery AsProxy() const {
    return {.token = token_,
            .roots = {self_, worker_identity_},
            .excluded = {getpid()}};
  }

  const TestFolder folder_;
  const std::string said_ = folder_.File("said");
  const std::string token_ = absl::StrCat("token-", folder_.path());
  const std::string worker_ = HostileWorker();
  ProcessIdentity self_;
  ProcessIdentity worker_identity_;
  UniqueFd tree_;
};

constexpr size_t kTreeSize = 11;

std::set<pid_t> PidsOf(const std::vector<TreeMember>& members) {
  std::set<pid_t> pids;
  for (const TreeMember& member : members) pids.insert(member.identity.pid);
  return pids;
}

TEST_F(ProcessTree, FindsEveryKindOfDescendant) {
  StartWorker("tree");
  const auto kinds = WaitForKinds(kTreeSize);
  ASSERT_EQ(kinds.size(), kTreeSize);
  EXPECT_FALSE(AllAreGone());
  const auto found = FindTree(AsProxy());
  ASSERT_TRUE(found.ok()) << found.status();
  std::set<pid_t> expected;
  for (const auto& [kind, pid] : kinds) expected.insert(pid);
  EXPECT_EQ(PidsOf(*found), expected);
}

TEST_F(ProcessTree, FindsProcessesByTokenAndTheirGroups) {
  StartWorker("tree");
  auto kinds = WaitForKinds(kTreeSize);
  const auto found = FindTree(ByToken());
  ASSERT_TRUE(found.ok()) << found.status();
  EXPECT_EQ(found->size(), kTreeSize);
  EXPECT_TRUE(PidsOf(*found).contains(kinds["no_token_orphan_group"]));
}

TEST_F(ProcessTree, EndsEveryKindOfDescendant) {
  for (const TreeQuery& query : {AsProxy(), ByToken()}) {
    unlink(said_.c_str());
    StartWorker("tree");
    const auto kinds = WaitForKinds(kTreeSize);
    TreeQuery with_worker = query;
    with_worker.roots.push_back(worker_identity_);
    const auto end = EndTree(with_worker, 0.2);
    ASSERT_TRUE(end.ok()) << end.status();
    EXPECT_TRUE(end->left.empty()) << end->Describe();
    EXPECT_EQ(end->ended, kTreeSize) << end->Describe();
    for (const auto& [kind, pid] : kinds) EXPECT_TRUE(IsGone(pid)) << kind;
    EXPECT_TRUE(AllAreGone());
  }
}

TEST_F(ProcessTree, EndsProcessesLeftByADeadWorker) {
  const pid_t worker = StartWorker("tree");
  const auto kinds = WaitForKinds(kTreeSize);
  kill(worker, SIGKILL);
  WaitUntil("the worker's end", [&] { return IsGone(worker); });
  // The worker's zombie identifies the session, also without a token.
  const TreeQuery by_worker{
      .token = "", .roots = {self_, worker_identity_}, .excluded = {getpid()}};
  const auto end = EndTree(by_worker, kNoGrace);
  ASSERT_TRUE(end.ok()) << end.status();
  EXPECT_TRUE(end->left.empty()) << end->Describe();
  for (const auto& [kind, pid] : kinds) EXPECT_TRUE(IsGone(pid)) << kind;
}

TEST_F(ProcessTree, GivesProcessesTimeToExit) {
  const pid_t worker = StartWorker("polite");
  WaitForKinds(1);
  const auto end = EndTree(AsProxy(), kLongGrace);
  ASSERT_TRUE(end.ok()) << end.status();
  EXPECT_EQ(end->ended, 1u);
  int status = 0;
  ASSERT_EQ(waitpid(worker, &status, 0), worker);
  EXPECT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 7);
}

TEST_F(ProcessTree, TerminatesStoppedProcesses) {
  const pid_t worker = StartWorker("polite");
  WaitForKinds(1);
  kill(worker, SIGSTOP);
  const auto end = EndTree(AsProxy(), kLongGrace);
  ASSERT_TRUE(end.ok()) << end.status();
  int status = 0;
  ASSERT_EQ(waitpid(worker, &status, 0), worker);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 7) << status;
}

TEST_F(ProcessTree, EndsProcessesWhoseFirstThreadHasGone) {
  StartWorker("headless");
  const auto kinds = WaitForKinds(1);
  const auto found = FindTree(ByToken());
  ASSERT_TRUE(found.ok()) << found.status();
  EXPECT_TRUE(PidsOf(*found).contains(worker_identity_.pid));
  const auto end = EndTree(ByToken(), kNoGrace);
  ASSERT_TRUE(end.ok()) << end.status();
  EXPECT_TRUE(end->left.empty()) << end->Describe();
  EXPECT_TRUE(IsGone(worker_identity_.pid));
}

class ForkingTree : public ProcessTree,
                    public testing::WithParamInterface<const char*> {};

TEST_P(ForkingTree, IsEnded) {
  StartWorker(GetParam());
  WaitForKinds(1);
  if (GetParam() == std::string("bomb") ||
      GetParam() == std::string("cluster")) {
    WaitUntil("50 processes", [&] {
      const auto found = FindTree(AsProxy());
      return found.ok() && found->size() >= 50;
    });
  }
  const auto end = EndTree(AsProxy(), kNoGrace);
  ASSERT_TRUE(end.ok()) << end.status();
  EXPECT_TRUE(end->left.empty()) << end->Describe();
  EXPECT_TRUE(AllAreGone());
}

INSTANTIATE_TEST_SUITE_P(Kinds, ForkingTree,
                         testing::Values("bomb", "cluster", "chain", "flee"),
                         [](const auto& kind) {
                           return std::string(kind.param);
                         });

TEST_F(ProcessTree, IgnoresOtherProcesses) {
  const pid_t stranger = fork();
  if (stranger == 0) {
    alarm(120);
    // One token is a prefix of the other.
    const std::string longer =
        absl::StrCat(kRunTokenVariable, "=", token_, "x");
    const std::string shorter =
        absl::StrCat(kRunTokenVariable, "=", token_.substr(1));
    const std::string other_name =
        absl::StrCat("X", kRunTokenVariable, "=", token_);
    execle(worker_.c_str(), worker_.c_str(), "sleep", said_.c_str(), "stranger",
           nullptr,
           std::vector<char*>{const_cast<char*>(longer.c_str()),
                              const_cast<char*>(shorter.c_str()),
                              const_cast<char*>(other_name.c_str()), nullptr}
               .data());
    _exit(1);
  }
  WaitForKinds(1);
  const auto none = EndTree(ByToken(), kNoGrace);
  ASSERT_TRUE(none.ok()) << none.status();
  EXPECT_EQ(none->ended, 0u);

  // A root's pid, but another process: the pid was reused.
  auto earlier = IdentityOf(stranger);
  ASSERT_TRUE(earlier.ok());
  --earlier->start_time;
  const auto reused =
      EndTree({.token = "", .roots = {*earlier}, .excluded = {}}, kNoGrace);
  ASSERT_TRUE(reused.ok()) << reused.status();
  EXPECT_EQ(reused->ended, 0u);
  EXPECT_FALSE(IsGone(stranger));

  const auto excluded = EndTree(
      {.token = "", .roots = {self_}, .excluded = {stranger}}, kNoGrace);
  ASSERT_TRUE(excluded.ok()) << excluded.status();
  EXPECT_EQ(excluded->ended, 0u);
  EXPECT_FALSE(IsGone(stranger));
}

TEST_F(ProcessTree, NeverFindsProcessOneOrTheCaller) {
  const auto first = IdentityOf(1);
  ASSERT_TRUE(first.ok()) << first.status();
  const auto found = FindTree({.token = "", .roots = {self_}, .excluded = {}});
  ASSERT_TRUE(found.ok()) << found.status();
  EXPECT_FALSE(PidsOf(*found).contains(getpid()));
}

TEST_F(ProcessTree, StopsAndContinuesAll) {
  StartWorker("tree");
  auto kinds = WaitForKinds(kTreeSize);
  const auto state_of = [](pid_t pid) {
    std::string buffer;
    const auto stat = ReadProcessStat(pid, &buffer);
    return stat.ok() ? stat->state : '?';
  };
  const auto all_are = [&](bool stopped) {
    return std::ranges::all_of(kinds, [&](const auto& each) {
      return (state_of(each.second) == 'T') == stopped;
    });
  };
  const auto stopped = SignalTree(AsProxy(), SIGSTOP);
  ASSERT_TRUE(stopped.ok()) << stopped.status();
  EXPECT_EQ(*stopped, kTreeSize);
  WaitUntil("all stopped", [&] { return all_are(true); });
  const auto continued = SignalTree(AsProxy(), SIGCONT);
  ASSERT_TRUE(continued.ok()) << continued.status();
  EXPECT_EQ(*continued, kTreeSize);
  WaitUntil("all continued", [&] { return all_are(false); });
}

// Another thread repeatedly uses the last free descriptor.
TEST_F(ProcessTree, FailsWithoutDescriptorsInsteadOfFindingNone) {
  const pid_t worker = StartWorker("sleep");
  WaitForKinds(1);
  rlimit before;
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
  rlimit limit = before;
  limit.rlim_cur = 64;
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &limit), 0);
  std::vector<UniqueFd> taken;
  do {
    taken.emplace_back(dup(STDIN_FILENO));
  } while (taken.back().valid());
  taken.resize(taken.size() - 2);
  std::atomic<bool> done = false;
  std::thread taker([&done] {
    while (!done) {
      const UniqueFd last(dup(STDIN_FILENO));
    }
  });
  int refused = 0;
  int missed = 0;
  // On a busy machine the thread may not be scheduled for a while.
  for (int i = 0; i < 300 || (refused == 0 && i < 100'000); ++i) {
    const auto found = FindTree(ByToken());
    if (!found.ok()) {
      refused += absl::IsUnavailable(found.status()) ? 1 : 0;
    } else if (!PidsOf(*found).contains(worker)) {
      ++missed;
    }
  }
  done = true;
  taker.join();
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &before), 0);
  EXPECT_EQ(missed, 0);
  EXPECT_GT(refused, 0);
}

// The caller is another user, who may not read or end the processes.
TEST_F(ProcessTree, NamesProcessesThatItMayNotEnd) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can start another's process";
  constexpr int kNoOtherUser = 10;
  const pid_t worker = StartWorker("sleep");
  WaitForKinds(1);
  // A user without rights makes the query, in a new process.
  const TreeQuery query = AsProxy();
  const pid_t asker = fork();
  if (asker == 0) {
    alarm(120);
    if (setgroups(0, nullptr) != 0 || setgid(65534) != 0 ||
        setuid(65534) != 0) {
      _exit(kNoOtherUser);
    }
    // The query by token fails, since the environment is not readable.
    const auto by_token = EndTree(ByToken(), kNoGrace, 0);
    if (!by_token.ok() || by_token->ended != 0) _exit(11);
    const auto end = EndTree(query, kNoGrace, 0.05);
    if (!end.ok() || end->left.size() != 1 || end->problems.size() != 1) {
      _exit(12);
    }
    const std::string text = end->Describe();
    if (text.find(absl::StrCat(worker)) == text.npos ||
        text.find("hostile_worker") == text.npos ||
        text.find("Operation not permitted") == text.npos) {
      _exit(13);
    }
    _exit(0);
  }
  int status = 0;
  ASSERT_EQ(waitpid(asker, &status, 0), asker);
  if (WEXITSTATUS(status) == kNoOtherUser) {
    GTEST_SKIP() << "this user namespace has no other user";
  }
  EXPECT_EQ(WEXITSTATUS(status), 0);
  EXPECT_FALSE(IsGone(worker));
}

}  // namespace
}  // namespace tandem::slow_lane
