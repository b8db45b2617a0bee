// Worker processes that hide, for tests of runs.
//
//   hostile_worker tree FILE      all kinds of descendants; each writes "KIND
//                                 PID" into FILE and waits for its end
//   hostile_worker bomb FILE      all of its processes fork continuously
//   hostile_worker cluster FILE   the same, each in its own session
//   hostile_worker chain FILE     one process that forks and exits, repeatedly
//   hostile_worker flee FILE      the same, each in its own session
//   hostile_worker sleep FILE KIND
//   hostile_worker once FILE      writes its pid into FILE, and exits
//   hostile_worker polite FILE    exits at SIGTERM, with code 7
//   hostile_worker headless FILE  its first thread exits, another stays
//
// After any test, no process lives longer than two minutes.
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <new>
#include <string>

namespace {

constexpr unsigned kLongestLifeSecs = 120;

std::string file;

void Say(const char* kind) {
  const std::string line =
      std::string(kind) + " " + std::to_string(getpid()) + "\n";
  const int fd = open(file.c_str(), O_WRONLY | O_APPEND | O_CREAT, 0600);
  if (fd < 0 || write(fd, line.data(), line.size()) < 0) abort();
  close(fd);
}

[[noreturn]] void Sleep(const char* kind) {
  alarm(kLongestLifeSecs);
  Say(kind);
  for (;;) pause();
}

// Sleeps without the token, with another program image.
[[noreturn]] void SleepWithoutEnvironment(const char* self, const char* kind) {
  char* const nothing[] = {nullptr};
  execle(self, self, "sleep", file.c_str(), kind, nullptr, nothing);
  abort();
}

[[noreturn]] void Tree(const char* self) {
  if (fork() == 0) {
    if (fork() == 0) Sleep("grandchild");
    Sleep("child");
  }
  if (fork() == 0) {
    setsid();
    Sleep("own_session");
  }
  if (fork() == 0) {
    signal(SIGTERM, SIG_IGN);
    signal(SIGHUP, SIG_IGN);
    Sleep("deaf");
  }
  const pid_t daemons_parent = fork();
  if (daemons_parent == 0) {
    // A daemon: no parent, another session, but the run token.
    setsid();
    if (fork() == 0) Sleep("daemon");
    _exit(0);
  }
  if (fork() == 0) SleepWithoutEnvironment(self, "no_token");
  if (fork() == 0) {
    setsid();
    SleepWithoutEnvironment(self, "no_token_own_session");
  }
  const pid_t orphans_parent = fork();
  if (orphans_parent == 0) {
    // No parent and no token, but our session; one also leaves the group.
    if (fork() == 0) SleepWithoutEnvironment(self, "no_token_orphan");
    setpgid(0, 0);
    if (fork() == 0) SleepWithoutEnvironment(self, "no_token_orphan_group");
    _exit(0);
  }
  // When this process reports, only the remaining processes exist.
  waitpid(daemons_parent, nullptr, 0);
  waitpid(orphans_parent, nullptr, 0);
  // Only now: the kernel sends SIGHUP to a group with a stopped process when a
  // parent outside of the group exits.
  if (fork() == 0) {
    Say("stopped");
    alarm(kLongestLifeSecs);
    raise(SIGSTOP);
    for (;;) pause();
  }
  Sleep("worker");
}

// All of these processes end by themselves.
time_t bombs_end = 0;
bool IsOver() { return time(nullptr) >= bombs_end; }

// Each process forks every 20 ms.
[[noreturn]] void Bomb(bool flees) {
  // A limit, for the case that no test stops it.
  constexpr int kMostForks = 1000;
  void* const shared =
      mmap(nullptr, sizeof(std::atomic<int>), PROT_READ | PROT_WRITE,
           MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (shared == MAP_FAILED) abort();
  auto* const forks = new (shared) std::atomic<int>(0);
  while (!IsOver()) {
    // relaxed: a count on which nothing else depends.
    if (forks->fetch_add(1, std::memory_order_relaxed) < kMostForks &&
        fork() == 0) {
      if (flees) setsid();
    }
    usleep(20'000);
  }
  _exit(0);
}

[[noreturn]] void Chain(bool flees) {
  while (!IsOver()) {
    const pid_t child = fork();
    if (child > 0) _exit(0);
    if (child == 0 && flees) setsid();
  }
  _exit(0);
}

void Polite(int) { _exit(7); }

void* StayAlone(void*) {
  // Waits until the first thread is a zombie.
  for (;;) {
    char text[512] = {};
    const int fd = open("/proc/self/stat", O_RDONLY);
    if (read(fd, text, sizeof(text) - 1) < 0) abort();
    close(fd);
    if (strstr(text, ") Z ") != nullptr) break;
    usleep(1000);
  }
  Sleep("headless");
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) return 2;
  const std::string mode = argv[1];
  file = argv[2];
  bombs_end = time(nullptr) + 60;
  if (mode == "tree") Tree(argv[0]);
  const bool is_bomb = mode == "bomb" || mode == "cluster";
  if (is_bomb || mode == "chain" || mode == "flee") {
    Say(argv[1]);
    if (is_bomb) Bomb(mode == "cluster");
    Chain(mode == "flee");
  }
  if (mode == "sleep" && argc > 3) Sleep(argv[3]);
  if (mode == "once") {
    Say("once");
    return 0;
  }
  if (mode == "polite") {
    signal(SIGTERM, Polite);
    Sleep("polite");
  }
  if (mode == "headless") {
    alarm(kLongestLifeSecs);
    pthread_t thread;
    if (pthread_create(&thread, nullptr, StayAlone, nullptr) != 0) abort();
    pthread_exit(nullptr);
  }
  return 2;
}
