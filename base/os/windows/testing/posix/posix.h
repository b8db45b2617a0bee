// What tests call of POSIX, on Windows. tools/build/windows_ninja.py includes
// it at the top of every test.
//
// Data flow: a test's call -> Win32's. What Windows lacks ends the program:
// such tests are left out by name (tools/build/windows_tests.txt).

#pragma once

#include <errno.h>
#include <fcntl.h>
#include <io.h>
#include <malloc.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/types.h>
#include <unistd.h>

#include <cstddef>

// base/os/windows/testing/posix/posix.cc

// Ends the program after `seconds`; 0: no longer.
unsigned alarm(unsigned seconds);
int setenv(const char* name, const char* value, int overwrite);
int unsetenv(const char* name);

// Anonymous memory alone.
inline constexpr int PROT_NONE = 0;
inline constexpr int PROT_READ = 1;
inline constexpr int PROT_WRITE = 2;
inline constexpr int MAP_SHARED = 1;
inline constexpr int MAP_PRIVATE = 2;
inline constexpr int MAP_ANONYMOUS = 4;
inline void* const MAP_FAILED = reinterpret_cast<void*>(-1);
void* mmap(void* address, size_t bytes, int protection, int flags, int fd,
           off_t offset);
int munmap(void* address, size_t bytes);
int mprotect(void* address, size_t bytes, int protection);

// Of the calling thread; up to 64 cores.
struct cpu_set_t {
  unsigned long long cores;
};
inline constexpr int CPU_SETSIZE = 64;
inline void CPU_ZERO(cpu_set_t* set) { set->cores = 0; }
inline void CPU_SET(int core, cpu_set_t* set) { set->cores |= 1ull << core; }
inline int CPU_COUNT(const cpu_set_t* set) {
  return __builtin_popcountll(set->cores);
}
inline bool CPU_ISSET(int core, const cpu_set_t* set) {
  return (set->cores >> core & 1) != 0;
}
int sched_getaffinity(int thread, size_t bytes, cpu_set_t* set);
int sched_setaffinity(int thread, size_t bytes, const cpu_set_t* set);
int sched_getcpu();

// Not on Windows.

[[noreturn]] inline void NotOnWindows(const char* call) {
  fprintf(stderr, "tandem: Windows has no %s; leave this test out by name\n",
          call);
  fflush(stderr);
  _exit(3);
}
inline constexpr int SIGKILL = 9;
inline constexpr int SIGUSR1 = 10;
inline constexpr int SA_RESTART = 0;
struct sigaction {
  void (*sa_handler)(int);
  int sa_flags;
};
inline int sigaction(int, const struct sigaction*, struct sigaction*) {
  NotOnWindows("sigaction");
}
inline pid_t fork() { NotOnWindows("fork"); }
inline int kill(pid_t, int) { NotOnWindows("kill"); }
inline pid_t waitpid(pid_t, int*, int) { NotOnWindows("waitpid"); }
inline int WIFEXITED(int) { return 0; }
inline int WEXITSTATUS(int) { return 0; }
inline int WIFSIGNALED(int) { return 0; }
inline void pause() { NotOnWindows("pause"); }
inline constexpr int O_CLOEXEC = 0;
inline int mkdir(const char*, int) { NotOnWindows("mkdir in shared memory"); }
inline int mkfifo(const char*, int) { NotOnWindows("mkfifo"); }
inline int symlink(const char*, const char*) { NotOnWindows("symlink"); }
struct mallinfo2 {
  size_t uordblks;
  size_t hblkhd;
};
inline struct mallinfo2 mallinfo2() { NotOnWindows("mallinfo2"); }
inline int pipe(int*) { NotOnWindows("pipe"); }
