#include "tests/benchmark/peer_rows.h"

#include <linux/futex.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <climits>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "tests/benchmark/or_exit.h"
#include "tests/benchmark/payload.h"
#include "tests/benchmark/shared_block.h"
#include "transport/wait/relax.h"

namespace tandem {
namespace {

class AloneRow final : public Row {
 public:
  explicit AloneRow(const Size& size)
      : size_(size),
        memory_(std::aligned_alloc(Payload::kAlignment, Payload::Bytes(size))),
        payload_(size, memory_) {}
  ~AloneRow() override { std::free(memory_); }

  void Serve() override {
    for (;;) pause();
  }
  Results Exchange(const float* actions) override {
    TrivialWork(size_, actions, payload_.obs, payload_.rewards, payload_.dones);
    return payload_.results();
  }

 private:
  Size size_;
  void* memory_;
  Payload payload_;
};

// Waits until `word` is no longer `old`, and returns what it is.
uint32_t SpinWhile(const std::atomic<uint32_t>& word, uint32_t old) {
  for (;;) {
    // SYNC(words.told): acquire; the number, then the partner's data.
    const uint32_t now = word.load(std::memory_order_acquire);
    if (now != old) return now;
    Relax();
  }
}

// Between processes: std::atomic's own wait and notify are not.
uint32_t SleepWhile(std::atomic<uint32_t>& word, uint32_t old) {
  for (;;) {
    // SYNC(words.told): acquire; the number, then the partner's data.
    const uint32_t now = word.load(std::memory_order_acquire);
    if (now != old) return now;
    syscall(SYS_futex, &word, FUTEX_WAIT, old, nullptr, nullptr, 0);
  }
}

enum class Waiting { kSpin, kFutex };
enum class Placing { kInPlace, kCopied };

// A hand-over through shared memory, with as little around it as can be.
template <Waiting kWaiting, Placing kPlacing>
class SharedMemoryRow final : public Row {
 public:
  explicit SharedMemoryRow(const Size& size)
      : size_(size), block_(size), shared_(size, block_.payload()) {
    if (kPlacing == Placing::kInPlace) return;
    copy_.resize(Payload::Bytes(size) / sizeof(Line));
  }

  void Serve() override {
    Words& words = block_.words();
    Payload own = shared_;
    if (kPlacing == Placing::kCopied) own = Payload(size_, copy_.data());
    for (uint32_t seq = 0;;) {
      seq = Await(words.asked, seq);
      if (kPlacing == Placing::kCopied) {
        std::memcpy(own.actions, shared_.actions, size_.action_floats() * 4);
      }
      TrivialWork(size_, own.actions, own.obs, own.rewards, own.dones);
      if (kPlacing == Placing::kCopied) CopyResults(own, shared_);
      Tell(words.answered, seq);
    }
  }

  Results Exchange(const float* actions) override {
    Words& words = block_.words();
    std::memcpy(shared_.actions, actions, size_.action_floats() * 4);
    Tell(words.asked, seq_ + 1);
    seq_ = Await(words.answered, seq_);
    if (kPlacing == Placing::kInPlace) return shared_.results();
    const Payload own(size_, copy_.data());
    CopyResults(shared_, own);
    return own.results();
  }

 private:
  struct alignas(Payload::kAlignment) Line {
    std::byte bytes[Payload::kAlignment];
  };

  void CopyResults(const Payload& from, const Payload& to) const {
    std::memcpy(to.obs, from.obs, size_.obs_floats() * 4);
    std::memcpy(to.rewards, from.rewards, size_t{size_.envs} * 4);
    std::memcpy(to.dones, from.dones, size_.envs);
  }
  static uint32_t Await(std::atomic<uint32_t>& word, uint32_t old) {
    return kWaiting == Waiting::kSpin ? SpinWhile(word, old)
                                      : SleepWhile(word, old);
  }
  static void Tell(std::atomic<uint32_t>& word, uint32_t value) {
    // SYNC(words.told): release; our data before the number.
    word.store(value, std::memory_order_release);
    if (kWaiting == Waiting::kFutex) {
      syscall(SYS_futex, &word, FUTEX_WAKE, 1, nullptr, nullptr, 0);
    }
  }

  Size size_;
  SharedBlock block_;
  Payload shared_;
  std::vector<Line> copy_;
  uint32_t seq_ = 0;
};

// False when the other end was closed before the first byte.
bool ReadAll(int socket, void* to, size_t bytes) {
  auto* at = static_cast<std::byte*>(to);
  for (size_t got = 0; got < bytes;) {
    const ssize_t now = read(socket, at + got, bytes - got);
    RequireCall(now >= 0, "read");
    if (now == 0) return false;
    got += static_cast<size_t>(now);
  }
  return true;
}

void WriteAll(int socket, const void* from, size_t bytes) {
  const auto* at = static_cast<const std::byte*>(from);
  for (size_t sent = 0; sent < bytes;) {
    const ssize_t now = send(socket, at + sent, bytes - sent, MSG_NOSIGNAL);
    RequireCall(now >= 0, "send");
    sent += static_cast<size_t>(now);
  }
}

// Results as they travel: obs, rewards, dones without gaps, so that one read
// and one write do for each side.
struct Message {
  explicit Message(const Size& size)
      : obs_bytes(size.obs_floats() * 4),
        rewards_bytes(size_t{size.envs} * 4),
        memory((obs_bytes + rewards_bytes + size.envs + 3) / 4),
        bytes(obs_bytes + rewards_bytes + size.envs) {}

  float* obs() { return memory.data(); }
  float* rewards() { return memory.data() + obs_bytes / 4; }
  uint8_t* dones() {
    return reinterpret_cast<uint8_t*>(rewards() + rewards_bytes / 4);
  }

  size_t obs_bytes;
  size_t rewards_bytes;
  std::vector<float> memory;
  size_t bytes;
};

class SocketRow final : public Row {
 public:
  explicit SocketRow(const Size& size) : size_(size), message_(size) {
    RequireCall(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends_) == 0,
                "socketpair");
  }
  ~SocketRow() override {
    for (const int end : ends_) {
      if (end >= 0) close(end);
    }
  }

  void Serve() override {
    CloseEnd(0);
    ServeSocket(ends_[1], size_);
  }
  void Connect() override { CloseEnd(1); }
  Results Exchange(const float* actions) override {
    WriteAll(ends_[0], actions, size_.action_floats() * 4);
    Require(ReadAll(ends_[0], message_.obs(), message_.bytes),
            "socket: expected results, found that the engine closed it. Next: "
            "see what the engine said above");
    return {message_.obs(), message_.rewards(), message_.dones()};
  }

 private:
  void CloseEnd(int end) {
    close(ends_[end]);
    ends_[end] = -1;
  }

  Size size_;
  Message message_;
  int ends_[2];  // client's, engine's
};

}  // namespace

void ServeSocket(int socket, const Size& size) {
  std::vector<float> actions(size.action_floats());
  Message message(size);
  while (ReadAll(socket, actions.data(), actions.size() * 4)) {
    TrivialWork(size, actions.data(), message.obs(), message.rewards(),
                message.dones());
    WriteAll(socket, message.obs(), message.bytes);
  }
}

std::unique_ptr<Row> MakePeerRow(absl::string_view name,
                                 const RowOptions& options) {
  using enum Waiting;
  using enum Placing;
  const Size& size = options.size;
  if (name == "alone") return std::make_unique<AloneRow>(size);
  if (name == "spin") {
    return std::make_unique<SharedMemoryRow<kSpin, kInPlace>>(size);
  }
  if (name == "spin_copied") {
    return std::make_unique<SharedMemoryRow<kSpin, kCopied>>(size);
  }
  if (name == "futex") {
    return std::make_unique<SharedMemoryRow<kFutex, kInPlace>>(size);
  }
  if (name == "socket") return std::make_unique<SocketRow>(size);
  return nullptr;
}

}  // namespace tandem
