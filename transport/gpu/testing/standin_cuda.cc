// A stand-in for libcuda.so.1, for tests on machines without a GPU.
//
// Length: one library, each of the driver's functions that Tandem calls.
//
// Data flow: TANDEM_CUDA_LIBRARY names it -> CudaDriver loads it. The memory of
// a device is a memfd, and its pointers are addresses of the mapping, so a test
// can compare bytes. An IPC handle names the exporter's descriptor, which
// another process opens through /proc. External memory is a memfd, too. A
// stream is a thread; an event is a pair of counters in a memfd, on which
// streams of any process wait by futex.
// Ownership: state of the process, never destroyed. Any thread may call.
// As the driver, it refuses calls in a forked child and calls without a
// current context, opens no handle of its own process, registers no page twice,
// and copies memory that is not registered before the call returns.
//
// Variables, with their defaults:
//  - TANDEM_STANDIN_DEVICES (1): the number of devices.
//  - TANDEM_STANDIN_FIRST (0): the number in the first device's UUID.
//  - TANDEM_STANDIN_VERSION (13000): the driver's version.
//  - TANDEM_STANDIN_COPY_MS (0): milliseconds that each copy to the device
//    takes.
//  - TANDEM_STANDIN_INLINE (0): after each task that a stream's thread does, so
//    many are done in their calls, if no other task is before them. Processes
//    change threads less often then, which is ten times faster.
//  - TANDEM_STANDIN_TAG (none): ends the names of its memfds.
//  - TANDEM_STANDIN_FAIL (none): results, as "cuInit=100,cuMemAlloc_v2=2".
//  - TANDEM_STANDIN_KILL_AT (0: never): the moment that kills the process. Call
//    n begins at 2n - 1 and ends at 2n.
//
// standin_fail sets such a result while the process runs; standin_count says
// how many objects of a kind exist, and standin_calls how many calls there
// were.

#include <fcntl.h>
#include <linux/futex.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <climits>
#include <condition_variable>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "transport/gpu/cuda_prototypes.h"

namespace {

using tandem::CudaContext;
using tandem::CudaDevice;
using tandem::CudaEvent;
using tandem::CudaEventHandle;
using tandem::CudaExternalMemory;
using tandem::CudaMemoryHandle;
using tandem::CudaPointer;
using tandem::CudaResult;
using tandem::CudaStream;
using tandem::CudaUuid;

constexpr CudaResult kSuccess = tandem::kCudaSuccess;
constexpr CudaResult kInvalidValue = tandem::kCudaInvalidValue;
constexpr CudaResult kNotInitialized = tandem::kCudaNotInitialized;
constexpr CudaResult kNoDevice = tandem::kCudaNoDevice;
constexpr CudaResult kAlreadyRegistered = tandem::kCudaAlreadyRegistered;
// Those that Tandem does not name.
constexpr CudaResult kOutOfMemory = 2;
constexpr CudaResult kInvalidDevice = 101;
constexpr CudaResult kInvalidContext = 201;
constexpr CudaResult kOperatingSystem = 304;
constexpr CudaResult kNotRegistered = 713;
constexpr uint64_t kMagic = 0x6e69646e61747321;

int Number(const char* variable, int otherwise) {
  const char* const text = std::getenv(variable);
  return text == nullptr ? otherwise : std::atoi(text);
}

// What an event's memfd holds: the number of records so far, and the number of
// the newest whose stream has reached it. The low half of the latter is the
// futex. Writers: the process that records; readers: all that wait.
class EventWords {
 public:
  uint64_t Recorded() const {
    // SYNC(standin.recorded): acquire; a waiter sees the record that it counts.
    return recorded_.load(std::memory_order_acquire);
  }
  uint64_t Record() {
    // SYNC(standin.recorded): release; what came before the record.
    return recorded_.fetch_add(1, std::memory_order_release) + 1;
  }
  uint64_t Completed() const {
    // SYNC(standin.completed): acquire; the stream's copies before the number.
    return completed_.load(std::memory_order_acquire);
  }
  void Complete(uint64_t number) {
    // relaxed: the exchange below checks it. A later record may have completed
    // on another stream.
    uint64_t completed = completed_.load(std::memory_order_relaxed);
    // SYNC(standin.completed): acq_rel; the stream's copies before the number.
    while (completed < number &&
           !completed_.compare_exchange_weak(completed, number,
                                             std::memory_order_acq_rel)) {
    }
    Futex(FUTEX_WAKE, INT_MAX, nullptr);
  }
  // Sleeps for up to 20 ms while the completed number is this one.
  void Sleep(uint64_t completed) {
    const timespec timeout = {.tv_sec = 0, .tv_nsec = 20'000'000};
    Futex(FUTEX_WAIT, static_cast<uint32_t>(completed), &timeout);
  }

 private:
  void Futex(int operation, uint32_t value, const timespec* timeout) {
    syscall(SYS_futex, reinterpret_cast<uint32_t*>(&completed_), operation,
            value, timeout, nullptr, 0);
  }

  std::atomic<uint64_t> recorded_;
  std::atomic<uint64_t> completed_;
};
static_assert(std::atomic<uint64_t>::is_always_lock_free);

// A memfd of this process or, imported, of another.
struct Block {
  int fd = -1;
  char* base = nullptr;
  size_t bytes = 0;
  std::string exported = {};  // where the exporter has it; "": it is this one's

  bool imported() const { return !exported.empty(); }
  // Whether the exporter has freed it, or has ended.
  bool IsStale() const {
    struct stat theirs = {};
    struct stat ours = {};
    if (!imported()) return false;
    if (stat(exported.c_str(), &theirs) != 0) return true;
    return fstat(fd, &ours) != 0 || theirs.st_ino != ours.st_ino;
  }

  static std::shared_ptr<Block> Map(int fd, size_t bytes) {
    void* const base =
        mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (base == MAP_FAILED) {
      close(fd);
      return nullptr;
    }
    auto block = std::make_shared<Block>();
    block->fd = fd;
    block->base = static_cast<char*>(base);
    block->bytes = bytes;
    return block;
  }
  static std::shared_ptr<Block> Make(size_t bytes) {
    std::string name = "tandem-standin";
    if (const char* tag = std::getenv("TANDEM_STANDIN_TAG")) name += tag;
    const int fd = memfd_create(name.c_str(), MFD_CLOEXEC);
    if (fd < 0) return nullptr;
    if (ftruncate(fd, static_cast<off_t>(bytes)) != 0) {
      close(fd);
      return nullptr;
    }
    return Map(fd, bytes);
  }
  ~Block() {
    if (base != nullptr) munmap(base, bytes);
    if (fd >= 0) close(fd);
  }
  Block() = default;
  Block(const Block&) = delete;
  Block& operator=(const Block&) = delete;
};

// The bytes of both kinds of IPC handle.
struct Handle {
  uint64_t magic;
  int32_t pid;
  int32_t fd;
  uint64_t inode;
  uint64_t bytes;
  char rest[32];
};
static_assert(sizeof(Handle) == sizeof(CudaMemoryHandle));
static_assert(sizeof(Handle) == sizeof(CudaEventHandle));

template <typename Bytes>
CudaResult Export(const Block& block, Bytes* to) {
  struct stat file;
  if (fstat(block.fd, &file) != 0) return kOperatingSystem;
  const Handle handle = {.magic = kMagic,
                         .pid = getpid(),
                         .fd = block.fd,
                         .inode = file.st_ino,
                         .bytes = block.bytes,
                         .rest = {}};
  std::memcpy(to, &handle, sizeof(handle));
  return kSuccess;
}

template <typename Bytes>
CudaResult Import(const Bytes& from, std::shared_ptr<Block>* block) {
  Handle handle;
  std::memcpy(&handle, &from, sizeof(handle));
  if (handle.magic != kMagic || handle.bytes == 0) return kInvalidValue;
  if (handle.pid == getpid()) return kInvalidContext;
  const std::string path = "/proc/" + std::to_string(handle.pid) + "/fd/" +
                           std::to_string(handle.fd);
  const int fd = open(path.c_str(), O_RDWR | O_CLOEXEC);
  if (fd < 0) return kInvalidValue;
  struct stat file;
  if (fstat(fd, &file) != 0 || file.st_ino != handle.inode ||
      static_cast<uint64_t>(file.st_size) < handle.bytes) {
    close(fd);
    return kInvalidValue;
  }
  *block = Block::Map(fd, handle.bytes);
  if (*block == nullptr) return kOutOfMemory;
  (*block)->exported = path;
  return kSuccess;
}

}  // namespace

namespace tandem {

struct CudaContextOf {
  CudaDevice device = 0;
  int retained = 0;
};

struct CudaEventOf {
  std::shared_ptr<Block> block;
  bool interprocess = false;
  EventWords& words() const {
    return *reinterpret_cast<EventWords*>(block->base);
  }
};

struct CudaStreamOf {
  struct Task {
    std::vector<std::pair<CudaStreamOf*, uint64_t>> after;
    std::function<void()> work;
  };
  bool blocking = true;
  bool has_thread = false;
  std::deque<Task> tasks;
  uint64_t issued = 0;
  uint64_t done = 0;
  bool ends = false;
};

}  // namespace tandem

namespace {

using Stream = tandem::CudaStreamOf;

struct State {
  std::mutex mutex;  // guards all below
  std::condition_variable changed;
  pid_t pid = 0;  // that called cuInit
  std::map<CudaDevice, tandem::CudaContextOf> primary;
  std::map<CudaPointer, std::shared_ptr<Block>> blocks;
  std::map<CudaEvent, std::shared_ptr<Block>> events;
  std::vector<Stream*> streams;
  std::map<char*, size_t> registered;
  std::map<std::string, std::pair<CudaResult, int>> failures;  // after n calls
  Stream* legacy = nullptr;
  Stream* per_thread = nullptr;
};

State& The() {
  static State* const state = [] {
    auto* made = new State;
    std::string text;
    if (const char* given = std::getenv("TANDEM_STANDIN_FAIL")) text = given;
    for (size_t at = 0; at < text.size();) {
      const size_t end = std::min(text.find(',', at), text.size());
      const size_t equals = text.find('=', at);
      made->failures[text.substr(at, equals - at)] = {
          std::atoi(text.c_str() + equals + 1), 0};
      at = end + 1;
    }
    return made;
  }();
  return *state;
}

thread_local std::vector<CudaContext> contexts;

std::atomic<int> calls{0};

// A call of the driver: its begin and its end are moments at which a test may
// kill the process.
class Call {
 public:
  // relaxed: a count, which publishes nothing.
  Call() : number_(calls.fetch_add(1, std::memory_order_relaxed) + 1) {
    KillAt(2 * number_ - 1);
  }
  Call(const Call&) = delete;
  Call& operator=(const Call&) = delete;
  ~Call() { KillAt(2 * number_); }

 private:
  static void KillAt(int moment) {
    static const int kill_at = Number("TANDEM_STANDIN_KILL_AT", 0);
    if (moment == kill_at) kill(getpid(), SIGKILL);
  }
  const int number_;
};

// The result that a test has set for a function; 0: none.
CudaResult Injected(const char* function) {
  State& state = The();
  const std::lock_guard lock(state.mutex);
  const auto found = state.failures.find(function);
  if (found == state.failures.end()) return 0;
  if (found->second.second-- > 0) return 0;
  return found->second.first;
}

CudaResult Begin(const char* function, bool needs_context) {
  if (const CudaResult result = Injected(function)) return result;
  if (The().pid != getpid()) return kNotInitialized;
  if (needs_context && contexts.empty()) return kInvalidContext;
  return kSuccess;
}

#define TANDEM_BEGIN(needs_context) \
  const Call call;                  \
  if (const CudaResult begun = Begin(__func__, needs_context)) return begun

// With the lock.
bool AreDone(const std::vector<std::pair<Stream*, uint64_t>>& work) {
  return std::ranges::all_of(
      work, [](const auto& each) { return each.first->done >= each.second; });
}

void Serve(Stream* stream) {
  State& state = The();
  std::unique_lock lock(state.mutex);
  for (;;) {
    state.changed.wait(lock,
                       [&] { return stream->ends || !stream->tasks.empty(); });
    if (stream->tasks.empty()) break;
    Stream::Task task = std::move(stream->tasks.front());
    stream->tasks.pop_front();
    state.changed.wait(lock, [&] { return AreDone(task.after); });
    lock.unlock();
    task.work();
    task.work = nullptr;
    lock.lock();
    ++stream->done;
    state.changed.notify_all();
  }
}

Stream* NewStream(bool blocking) {
  auto* const stream = new Stream;  // never freed: tasks may name it
  stream->blocking = blocking;
  return stream;
}

// With the lock.
Stream* Resolve(CudaStream stream) {
  State& state = The();
  const auto number = reinterpret_cast<uintptr_t>(stream);
  if (number <= 1) {
    if (state.legacy == nullptr) state.legacy = NewStream(true);
    return state.legacy;
  }
  if (number == 2) {
    if (state.per_thread == nullptr) state.per_thread = NewStream(true);
    return state.per_thread;
  }
  return stream;
}

// With the lock. The legacy stream waits for all work before, and all later
// work of blocking streams waits for it.
std::vector<std::pair<Stream*, uint64_t>> WorkBefore(const Stream* stream) {
  const State& state = The();
  std::vector<std::pair<Stream*, uint64_t>> after;
  if (stream == state.legacy) {
    for (Stream* other : state.streams) {
      if (other->blocking) after.emplace_back(other, other->issued);
    }
    if (state.per_thread != nullptr) {
      after.emplace_back(state.per_thread, state.per_thread->issued);
    }
  } else if (stream->blocking && state.legacy != nullptr) {
    after.emplace_back(state.legacy, state.legacy->issued);
  }
  return after;
}

// Whether it is the turn of a task to be done in the call.
bool IsForTheCall() {
  static const int inlined = Number("TANDEM_STANDIN_INLINE", 0);
  static int turn = 0;  // with the lock
  return inlined != 0 && ++turn % (inlined + 1) != 0;
}

// `waits`: whether the work may wait for something.
void Enqueue(CudaStream handle, std::function<void()> work, bool waits) {
  State& state = The();
  const std::lock_guard lock(state.mutex);
  Stream* const stream = Resolve(handle);
  Stream::Task task = {.after = WorkBefore(stream), .work = std::move(work)};
  ++stream->issued;
  if (IsForTheCall() && !waits && stream->done + 1 == stream->issued &&
      AreDone(task.after)) {
    task.work();
    ++stream->done;
    return;
  }
  stream->tasks.push_back(std::move(task));
  if (!std::exchange(stream->has_thread, true)) {
    std::thread(Serve, stream).detach();
  }
  state.changed.notify_all();
}

void Await(CudaStream handle) {
  State& state = The();
  std::unique_lock lock(state.mutex);
  Stream* const stream = Resolve(handle);
  std::vector<std::pair<Stream*, uint64_t>> all = {{stream, stream->issued}};
  if (stream == state.legacy) {
    for (Stream* other : state.streams) {
      if (other->blocking) all.emplace_back(other, other->issued);
    }
  }
  state.changed.wait(lock, [&] { return AreDone(all); });
}

void AwaitAll() {
  State& state = The();
  std::unique_lock lock(state.mutex);
  std::vector<Stream*> all = state.streams;
  for (Stream* each : {state.legacy, state.per_thread}) {
    if (each != nullptr) all.push_back(each);
  }
  state.changed.wait(lock, [&] {
    for (const Stream* each : all) {
      if (each->done < each->issued) return false;
    }
    return true;
  });
}

// Waits until the event's stream has reached its record of this number, or the
// event is stale.
void AwaitRecord(const Block& block, uint64_t number) {
  auto& words = *reinterpret_cast<EventWords*>(block.base);
  for (;;) {
    const uint64_t completed = words.Completed();
    if (completed >= number) return;
    words.Sleep(completed);
    if (block.IsStale()) return;
  }
}

// The block with all these bytes; nullptr: none.
std::shared_ptr<Block> BlockOf(CudaPointer pointer, size_t bytes) {
  State& state = The();
  const std::lock_guard lock(state.mutex);
  auto found = state.blocks.upper_bound(pointer);
  if (found == state.blocks.begin()) return nullptr;
  --found;
  const uint64_t offset = pointer - found->first;
  const Block& block = *found->second;
  return offset <= block.bytes && bytes <= block.bytes - offset ? found->second
                                                                : nullptr;
}

bool IsRegistered(const void* address, size_t bytes) {
  State& state = The();
  const std::lock_guard lock(state.mutex);
  auto* const first = static_cast<char*>(const_cast<void*>(address));
  auto found = state.registered.upper_bound(first);
  if (found == state.registered.begin()) return false;
  --found;
  return first + bytes <= found->first + found->second;
}

// Both ends stay in place until the copy is done: `keep` are the blocks of it.
CudaResult Copy(void* to, const void* from, size_t bytes, CudaStream stream,
                bool waits, std::vector<std::shared_ptr<Block>> keep,
                int milliseconds = 0) {
  Enqueue(
      stream,
      [=, keep = std::move(keep)] {
        if (milliseconds != 0) {
          std::this_thread::sleep_for(std::chrono::milliseconds(milliseconds));
        }
        std::memcpy(to, from, bytes);
      },
      milliseconds != 0);
  if (waits) Await(stream);
  return kSuccess;
}

char* Address(CudaPointer pointer) { return reinterpret_cast<char*>(pointer); }

CudaPointer Keep(std::shared_ptr<Block> block) {
  State& state = The();
  const std::lock_guard lock(state.mutex);
  const auto pointer = reinterpret_cast<CudaPointer>(block->base);
  state.blocks[pointer] = std::move(block);
  return pointer;
}

CudaResult Forget(CudaPointer pointer, bool imported) {
  AwaitAll();
  State& state = The();
  const std::lock_guard lock(state.mutex);
  const auto found = state.blocks.find(pointer);
  if (found == state.blocks.end() || found->second->imported() != imported) {
    return kInvalidValue;
  }
  state.blocks.erase(found);
  return kSuccess;
}

CudaResult KeepEvent(std::shared_ptr<Block> block, bool interprocess,
                     CudaEvent* event) {
  *event =
      new tandem::CudaEventOf{.block = block, .interprocess = interprocess};
  State& state = The();
  const std::lock_guard lock(state.mutex);
  state.events[*event] = std::move(block);
  return kSuccess;
}

bool IsEvent(CudaEvent event) {
  State& state = The();
  const std::lock_guard lock(state.mutex);
  return state.events.contains(event);
}

uintptr_t PageOf(const char* address) {
  return reinterpret_cast<uintptr_t>(address) / 4096;
}

bool IsDevice(int ordinal) {
  return ordinal >= 0 && ordinal < Number("TANDEM_STANDIN_DEVICES", 1);
}

}  // namespace

#define TANDEM_EXPORT extern "C" __attribute__((visibility("default")))

TANDEM_EXPORT CudaResult cuInit(unsigned flags) {
  const Call call;
  if (const CudaResult result = Injected(__func__)) return result;
  if (flags != 0) return kInvalidValue;
  if (!IsDevice(0)) return kNoDevice;
  State& state = The();
  const std::lock_guard lock(state.mutex);
  if (state.pid == 0) state.pid = getpid();
  return state.pid == getpid() ? kSuccess : kNotInitialized;
}

TANDEM_EXPORT CudaResult cuDriverGetVersion(int* version) {
  *version = Number("TANDEM_STANDIN_VERSION", 13'000);
  return Injected(__func__);
}

TANDEM_EXPORT CudaResult cuGetErrorName(CudaResult result, const char** name) {
  switch (result) {
    case kInvalidValue:
      *name = "CUDA_ERROR_INVALID_VALUE";
      break;
    case kOutOfMemory:
      *name = "CUDA_ERROR_OUT_OF_MEMORY";
      break;
    case kNotInitialized:
      *name = "CUDA_ERROR_NOT_INITIALIZED";
      break;
    case kNoDevice:
      *name = "CUDA_ERROR_NO_DEVICE";
      break;
    case kInvalidDevice:
      *name = "CUDA_ERROR_INVALID_DEVICE";
      break;
    case kInvalidContext:
      *name = "CUDA_ERROR_INVALID_CONTEXT";
      break;
    case kOperatingSystem:
      *name = "CUDA_ERROR_OPERATING_SYSTEM";
      break;
    default:
      *name = nullptr;
      return kInvalidValue;
  }
  return kSuccess;
}

TANDEM_EXPORT CudaResult cuDeviceGetCount(int* count) {
  TANDEM_BEGIN(false);
  *count = Number("TANDEM_STANDIN_DEVICES", 1);
  return kSuccess;
}

TANDEM_EXPORT CudaResult cuDeviceGet(CudaDevice* device, int ordinal) {
  TANDEM_BEGIN(false);
  if (!IsDevice(ordinal)) return kInvalidDevice;
  *device = ordinal;
  return kSuccess;
}

TANDEM_EXPORT CudaResult cuDeviceGetName(char* name, int bytes,
                                         CudaDevice device) {
  TANDEM_BEGIN(false);
  if (!IsDevice(device)) return kInvalidDevice;
  std::strncpy(name, "stand-in", static_cast<size_t>(bytes));
  return kSuccess;
}

TANDEM_EXPORT CudaResult cuDeviceGetUuid_v2(CudaUuid* uuid, CudaDevice device) {
  TANDEM_BEGIN(false);
  if (!IsDevice(device)) return kInvalidDevice;
  std::memcpy(uuid->bytes, "tandem-stand-in", 15);
  uuid->bytes[15] =
      static_cast<char>('0' + device + Number("TANDEM_STANDIN_FIRST", 0));
  return kSuccess;
}

TANDEM_EXPORT CudaResult cuDevicePrimaryCtxRetain(CudaContext* context,
                                                  CudaDevice device) {
  TANDEM_BEGIN(false);
  if (!IsDevice(device)) return kInvalidDevice;
  State& state = The();
  const std::lock_guard lock(state.mutex);
  tandem::CudaContextOf& primary = state.primary[device];
  primary.device = device;
  ++primary.retained;
  *context = &primary;
  return kSuccess;
}

TANDEM_EXPORT CudaResult cuDevicePrimaryCtxRelease_v2(CudaDevice device) {
  TANDEM_BEGIN(false);
  State& state = The();
  const std::lock_guard lock(state.mutex);
  const auto found = state.primary.find(device);
  if (found == state.primary.end() || found->second.retained == 0) {
    return kInvalidContext;
  }
  --found->second.retained;
  return kSuccess;
}

// For tests of a second context; Tandem does not call it.
TANDEM_EXPORT CudaResult cuCtxCreate_v2(CudaContext* context, unsigned,
                                        CudaDevice device) {
  TANDEM_BEGIN(false);
  if (!IsDevice(device)) return kInvalidDevice;
  *context = new tandem::CudaContextOf{.device = device};
  contexts.push_back(*context);
  return kSuccess;
}

TANDEM_EXPORT CudaResult cuCtxPushCurrent_v2(CudaContext context) {
  TANDEM_BEGIN(false);
  if (context == nullptr) return kInvalidContext;
  contexts.push_back(context);
  return kSuccess;
}

TANDEM_EXPORT CudaResult cuCtxPopCurrent_v2(CudaContext* context) {
  TANDEM_BEGIN(true);
  *context = contexts.back();
  contexts.pop_back();
  return kSuccess;
}

TANDEM_EXPORT CudaResult cuCtxGetCurrent(CudaContext* context) {
  TANDEM_BEGIN(false);
  *context = contexts.empty() ? nullptr : contexts.back();
  return kSuccess;
}

TANDEM_EXPORT CudaResult cuCtxGetDevice(CudaDevice* device) {
  TANDEM_BEGIN(true);
  *device = contexts.back()->device;
  return kSuccess;
}

TANDEM_EXPORT CudaResult cuMemAlloc_v2(CudaPointer* pointer, size_t bytes) {
  TANDEM_BEGIN(true);
  if (bytes == 0) return kInvalidValue;
  std::shared_ptr<Block> block = Block::Make(bytes);
  if (block == nullptr) return kOutOfMemory;
  *pointer = Keep(std::move(block));
  return kSuccess;
}

TANDEM_EXPORT CudaResult cuMemFree_v2(CudaPointer pointer) {
  TANDEM_BEGIN(true);
  return Forget(pointer, false);
}

TANDEM_EXPORT CudaResult cuMemsetD8Async(CudaPointer pointer,
                                         unsigned char value, size_t bytes,
                                         CudaStream stream) {
  TANDEM_BEGIN(true);
  const std::shared_ptr<Block> block = BlockOf(pointer, bytes);
  if (block == nullptr) return kInvalidValue;
  Enqueue(
      stream,
      [=, keep = block] { std::memset(Address(pointer), value, bytes); },
      false);
  return kSuccess;
}

TANDEM_EXPORT CudaResult cuMemHostRegister_v2(void* address, size_t bytes,
                                              unsigned) {
  TANDEM_BEGIN(true);
  State& state = The();
  const std::lock_guard lock(state.mutex);
  auto* const first = static_cast<char*>(address);
  for (const auto& [other, size] : state.registered) {
    if (PageOf(first) <= PageOf(other + size - 1) &&
        PageOf(other) <= PageOf(first + bytes - 1)) {
      return kAlreadyRegistered;
    }
  }
  state.registered[first] = bytes;
  return kSuccess;
}

TANDEM_EXPORT CudaResult cuMemHostUnregister(void* address) {
  TANDEM_BEGIN(true);
  AwaitAll();
  State& state = The();
  const std::lock_guard lock(state.mutex);
  return state.registered.erase(static_cast<char*>(address)) == 1
             ? kSuccess
             : kNotRegistered;
}

TANDEM_EXPORT CudaResult cuMemcpyHtoDAsync_v2(CudaPointer to, const void* from,
                                              size_t bytes, CudaStream stream) {
  TANDEM_BEGIN(true);
  std::shared_ptr<Block> block = BlockOf(to, bytes);
  if (block == nullptr) return kInvalidValue;
  static const int milliseconds = Number("TANDEM_STANDIN_COPY_MS", 0);
  return Copy(Address(to), from, bytes, stream, !IsRegistered(from, bytes),
              {std::move(block)}, milliseconds);
}

TANDEM_EXPORT CudaResult cuMemcpyDtoHAsync_v2(void* to, CudaPointer from,
                                              size_t bytes, CudaStream stream) {
  TANDEM_BEGIN(true);
  std::shared_ptr<Block> block = BlockOf(from, bytes);
  if (block == nullptr) return kInvalidValue;
  return Copy(to, Address(from), bytes, stream, !IsRegistered(to, bytes),
              {std::move(block)});
}

TANDEM_EXPORT CudaResult cuMemcpyDtoDAsync_v2(CudaPointer to, CudaPointer from,
                                              size_t bytes, CudaStream stream) {
  TANDEM_BEGIN(true);
  std::shared_ptr<Block> target = BlockOf(to, bytes);
  std::shared_ptr<Block> source = BlockOf(from, bytes);
  if (target == nullptr || source == nullptr) return kInvalidValue;
  return Copy(Address(to), Address(from), bytes, stream, false,
              {std::move(target), std::move(source)});
}

TANDEM_EXPORT CudaResult cuIpcGetMemHandle(CudaMemoryHandle* handle,
                                           CudaPointer pointer) {
  TANDEM_BEGIN(true);
  const std::shared_ptr<Block> block = BlockOf(pointer, 1);
  if (block == nullptr || block->imported()) return kInvalidValue;
  return Export(*block, handle);
}

TANDEM_EXPORT CudaResult cuIpcOpenMemHandle_v2(CudaPointer* pointer,
                                               CudaMemoryHandle handle,
                                               unsigned) {
  TANDEM_BEGIN(true);
  std::shared_ptr<Block> block;
  if (const CudaResult result = Import(handle, &block)) return result;
  *pointer = Keep(std::move(block));
  return kSuccess;
}

TANDEM_EXPORT CudaResult cuIpcCloseMemHandle(CudaPointer pointer) {
  TANDEM_BEGIN(true);
  return Forget(pointer, true);
}

// The handle is the address of a mapping; cuMemFree removes the mapping.
TANDEM_EXPORT CudaResult cuImportExternalMemory(
    CudaExternalMemory* memory, const tandem::CudaMemoryDesc* desc) {
  TANDEM_BEGIN(true);
  struct stat file;
  if (desc->type != tandem::kCudaOpaqueFd || fstat(desc->fd, &file) != 0 ||
      static_cast<uint64_t>(file.st_size) < desc->bytes) {
    return kInvalidValue;
  }
  std::shared_ptr<Block> block = Block::Map(desc->fd, desc->bytes);
  if (block == nullptr) return kOutOfMemory;
  *memory = reinterpret_cast<CudaExternalMemory>(Keep(std::move(block)));
  return kSuccess;
}

TANDEM_EXPORT CudaResult
cuExternalMemoryGetMappedBuffer(CudaPointer* pointer, CudaExternalMemory memory,
                                const tandem::CudaBufferDesc* desc) {
  TANDEM_BEGIN(true);
  *pointer = reinterpret_cast<CudaPointer>(memory);
  const bool whole = desc->offset == 0 && BlockOf(*pointer, desc->bytes);
  return whole ? kSuccess : kInvalidValue;
}

// As the driver has it, the caller has freed the buffer by cuMemFree before.
TANDEM_EXPORT CudaResult cuDestroyExternalMemory(CudaExternalMemory memory) {
  TANDEM_BEGIN(true);
  const auto pointer = reinterpret_cast<CudaPointer>(memory);
  return BlockOf(pointer, 1) == nullptr ? kSuccess : kInvalidValue;
}

TANDEM_EXPORT CudaResult cuEventCreate(CudaEvent* event, unsigned flags) {
  TANDEM_BEGIN(true);
  std::shared_ptr<Block> block = Block::Make(sizeof(EventWords));
  if (block == nullptr) return kOutOfMemory;
  return KeepEvent(std::move(block),
                   (flags & tandem::kCudaEventInterprocess) != 0, event);
}

TANDEM_EXPORT CudaResult cuEventDestroy_v2(CudaEvent event) {
  TANDEM_BEGIN(true);
  State& state = The();
  const std::lock_guard lock(state.mutex);
  if (state.events.erase(event) == 0) return kInvalidValue;
  delete event;
  return kSuccess;
}

TANDEM_EXPORT CudaResult cuIpcGetEventHandle(CudaEventHandle* handle,
                                             CudaEvent event) {
  TANDEM_BEGIN(true);
  if (!IsEvent(event) || !event->interprocess || event->block->imported()) {
    return kInvalidValue;
  }
  return Export(*event->block, handle);
}

TANDEM_EXPORT CudaResult cuIpcOpenEventHandle(CudaEvent* event,
                                              CudaEventHandle handle) {
  TANDEM_BEGIN(true);
  std::shared_ptr<Block> block;
  if (const CudaResult result = Import(handle, &block)) return result;
  return KeepEvent(std::move(block), true, event);
}

TANDEM_EXPORT CudaResult cuEventRecord(CudaEvent event, CudaStream stream) {
  TANDEM_BEGIN(true);
  if (!IsEvent(event)) return kInvalidValue;
  const std::shared_ptr<Block> block = event->block;
  const uint64_t number = event->words().Record();
  Enqueue(
      stream,
      [block, number] {
        reinterpret_cast<EventWords*>(block->base)->Complete(number);
      },
      false);
  return kSuccess;
}

TANDEM_EXPORT CudaResult cuEventSynchronize(CudaEvent event) {
  TANDEM_BEGIN(true);
  if (!IsEvent(event)) return kInvalidValue;
  AwaitRecord(*event->block, event->words().Recorded());
  return kSuccess;
}

TANDEM_EXPORT CudaResult cuStreamCreate(CudaStream* stream, unsigned flags) {
  TANDEM_BEGIN(true);
  *stream = NewStream((flags & tandem::kCudaStreamNonBlocking) == 0);
  State& state = The();
  const std::lock_guard lock(state.mutex);
  state.streams.push_back(*stream);
  return kSuccess;
}

TANDEM_EXPORT CudaResult cuStreamDestroy_v2(CudaStream stream) {
  TANDEM_BEGIN(true);
  State& state = The();
  const std::lock_guard lock(state.mutex);
  if (std::erase(state.streams, stream) == 0) return kInvalidValue;
  stream->ends = true;
  state.changed.notify_all();
  return kSuccess;
}

TANDEM_EXPORT CudaResult cuStreamSynchronize(CudaStream stream) {
  TANDEM_BEGIN(true);
  Await(stream);
  return kSuccess;
}

TANDEM_EXPORT CudaResult cuStreamWaitEvent(CudaStream stream, CudaEvent event,
                                           unsigned) {
  TANDEM_BEGIN(true);
  if (!IsEvent(event)) return kInvalidValue;
  const std::shared_ptr<Block> block = event->block;
  const uint64_t number = event->words().Recorded();
  // An event that is complete stays so.
  if (event->words().Completed() >= number) return kSuccess;
  Enqueue(
      stream, [block, number] { AwaitRecord(*block, number); }, true);
  return kSuccess;
}

// After `after` more calls, each call of this function returns `result`; 0:
// none does.
TANDEM_EXPORT void standin_fail(const char* function, CudaResult result,
                                int after) {
  State& state = The();
  const std::lock_guard lock(state.mutex);
  state.failures[function] = {result, after};
}

TANDEM_EXPORT int standin_calls() {
  // relaxed: as above.
  return calls.load(std::memory_order_relaxed);
}

// The number of objects of a kind that this process has; -1: no such kind.
TANDEM_EXPORT int standin_count(const char* kind) {
  State& state = The();
  const std::lock_guard lock(state.mutex);
  const std::string name = kind;
  const auto count = [](const auto& blocks, bool imported) {
    int found = 0;
    for (const auto& [key, block] : blocks) {
      found += block->imported() == imported;
    }
    return found;
  };
  if (name == "allocations") return count(state.blocks, false);
  if (name == "imports") return count(state.blocks, true);
  if (name == "events") return count(state.events, false);
  if (name == "imported events") return count(state.events, true);
  if (name == "streams") return static_cast<int>(state.streams.size());
  if (name == "registrations") return static_cast<int>(state.registered.size());
  if (name == "contexts") {
    int retained = 0;
    for (const auto& [device, context] : state.primary) {
      retained += context.retained;
    }
    return retained;
  }
  return -1;
}
