// The rows without Tandem and without a library: spin, futex, socket.
#include <linux/futex.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <cstring>
#include <new>
#include <vector>

#include "tests/benchmark/or_exit.h"
#include "tests/benchmark/payload.h"
#include "tests/benchmark/row.h"
#include "transport/wait/relax.h"

namespace tandem {
namespace {

// The two words of a bare hand-over, each on its own pair of cache lines.
//  word      writer  reader  publishes    initially
//  asked     client  engine  the actions  0
//  answered  engine  client  the results  0
// Both count exchanges and wrap.
struct Words {
  alignas(128) std::atomic<uint32_t> asked{0};
  alignas(128) std::atomic<uint32_t> answered{0};
};

enum class Waiting { kSpin, kFutex };

// A hand-over through shared memory, with nothing else.
template <Waiting kWaiting>
class SharedMemoryRow final : public Row {
 public:
  explicit SharedMemoryRow(const Size& size)
      : size_(size),
        bytes_(sizeof(Words) + Payload::Bytes(size)),
        memory_(mmap(nullptr, bytes_, PROT_READ | PROT_WRITE,
                     MAP_SHARED | MAP_ANONYMOUS | MAP_POPULATE, -1, 0)),
        words_(new (Mapped(memory_)) Words),
        payload_(size, words_ + 1) {}
  ~SharedMemoryRow() override { munmap(memory_, bytes_); }

  void Serve() override {
    for (uint32_t seq = 0;;) {
      seq = Await(words_->asked, seq);
      TrivialWork(size_, payload_.actions, payload_.obs, payload_.rewards,
                  payload_.dones);
      Tell(words_->answered, seq);
    }
  }

  Results Exchange(const float* actions) override {
    std::memcpy(payload_.actions, actions, size_.action_floats() * 4);
    Tell(words_->asked, seq_ + 1);
    seq_ = Await(words_->answered, seq_);
    return payload_.results();
  }

 private:
  static void* Mapped(void* memory) {
    RequireCall(memory != MAP_FAILED, "mmap");
    return memory;
  }
  // Waits until `word` is no longer `old`, and returns its value.
  static uint32_t Await(std::atomic<uint32_t>& word, uint32_t old) {
    for (;;) {
      // SYNC(words.told): acquire; the number, then the partner's data.
      const uint32_t now = word.load(std::memory_order_acquire);
      if (now != old) return now;
      if (kWaiting == Waiting::kSpin) {
        Relax();
      } else {
        syscall(SYS_futex, &word, FUTEX_WAIT, old, nullptr, nullptr, 0);
      }
    }
  }
  static void Tell(std::atomic<uint32_t>& word, uint32_t value) {
    // SYNC(words.told): release; our data before the number.
    word.store(value, std::memory_order_release);
    if (kWaiting == Waiting::kFutex) {
      syscall(SYS_futex, &word, FUTEX_WAKE, 1, nullptr, nullptr, 0);
    }
  }

  Size size_;
  size_t bytes_;
  void* memory_;
  Words* words_;
  Payload payload_;
  uint32_t seq_ = 0;
};

// Returns false if the other end was closed before the first byte.
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

// Results as a socket carries them: obs, rewards and dones without gaps, for
// one read and one write on each side.
struct Message {
  explicit Message(const Size& size)
      : memory(size.obs_floats() + size.envs + (size.envs + 3) / 4),
        bytes((size.obs_floats() + size.envs) * 4 + size.envs),
        obs(memory.data()),
        rewards(obs + size.obs_floats()),
        dones(reinterpret_cast<uint8_t*>(rewards + size.envs)) {}

  std::vector<float> memory;
  size_t bytes;
  float* obs;
  float* rewards;
  uint8_t* dones;
};

class SocketRow final : public Row {
 public:
  explicit SocketRow(const Size& size) : size_(size), message_(size) {
    RequireCall(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends_) == 0,
                "socketpair");
  }
  ~SocketRow() override {
    for (const int end : ends_) close(end);
  }

  void Serve() override { ServeSocket(ends_[1], size_); }
  Results Exchange(const float* actions) override {
    WriteAll(ends_[0], actions, size_.action_floats() * 4);
    Require(ReadAll(ends_[0], message_.obs, message_.bytes),
            "socket: expected results, found that the engine closed it");
    return {message_.obs, message_.rewards, message_.dones};
  }

 private:
  Size size_;
  Message message_;
  int ends_[2];  // client's, engine's
};

}  // namespace

void ServeSocket(int socket, const Size& size) {
  std::vector<float> actions(size.action_floats());
  Message message(size);
  while (ReadAll(socket, actions.data(), actions.size() * 4)) {
    TrivialWork(size, actions.data(), message.obs, message.rewards,
                message.dones);
    WriteAll(socket, message.obs, message.bytes);
  }
}

std::unique_ptr<Row> MakePlainRow(absl::string_view name, const Size& size) {
  if (name == "spin") {
    return std::make_unique<SharedMemoryRow<Waiting::kSpin>>(size);
  }
  if (name == "futex") {
    return std::make_unique<SharedMemoryRow<Waiting::kFutex>>(size);
  }
  if (name == "socket") return std::make_unique<SocketRow>(size);
  return nullptr;
}

}  // namespace tandem
