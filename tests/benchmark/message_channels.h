// The ways of sending messages from one process to another that the benchmark
// of messages compares: each a class with the same two functions.
//
// Data flow: Channel made -> fork -> Send in one process, Receive in the other.
// Ownership: the caller's; shared memory is gone with the last process.
//
//   RingChannel<Message<64>> channel(WaitStrategy::kAdaptive);
//   if (fork() == 0) for (;;) channel.Send(message);
//   channel.Receive(&message);
//
// Both wait as long as it takes. A failure ends the process with a line on
// stderr: there is nothing else that a benchmark could do about it.

#ifndef TANDEM_TESTS_BENCHMARK_MESSAGE_CHANNELS_H_
#define TANDEM_TESTS_BENCHMARK_MESSAGE_CHANNELS_H_

#include <sys/mman.h>
#include <unistd.h>

#include <boost/interprocess/ipc/message_queue.hpp>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>
#include <span>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "schema/layout/error_codes.h"
#include "schema/layout/ring_header.h"
#include "schema/layout/shared_word.h"
#include "schema/messages/hazel_rpc_generated.h"
#include "tests/benchmark/spsc_queue.h"
#include "transport/base/clock.h"
#include "transport/ring/ring.h"
#include "transport/rpc/envelope_reader.h"
#include "transport/rpc/envelope_writer.h"
#include "transport/wait/doorbell.h"
#include "transport/wait/relax.h"
#include "transport/wait/waiter.h"

namespace tandem {

template <size_t kBytes>
struct Message {
  uint64_t number;
  int64_t sent_ns;
  std::byte rest[kBytes - 16];
};
static_assert(sizeof(Message<64>) == 64);

// Every channel holds as many bytes of messages as a command ring does.
template <typename Message>
inline constexpr uint64_t kMessagesThatWait = kDefaultRingBytes /
                                              sizeof(Message);

inline void Require(bool holds, const char* what) {
  if (holds) return;
  std::perror(what);
  std::exit(1);
}

class NoWatch final : public WaitWatch {
  ErrorCode Check(int64_t, bool) override { return ErrorCode::kOk; }
};

// A T in memory that a forked child shares.
template <typename T>
class Shared {
 public:
  Shared()
      : memory_(mmap(nullptr, sizeof(T), PROT_READ | PROT_WRITE,
                     MAP_SHARED | MAP_ANONYMOUS | MAP_POPULATE, -1, 0)) {
    Require(memory_ != MAP_FAILED, "mmap");
    new (memory_) T;
  }
  Shared(const Shared&) = delete;
  Shared& operator=(const Shared&) = delete;
  ~Shared() { munmap(memory_, sizeof(T)); }
  T* operator->() const { return static_cast<T*>(memory_); }

 private:
  void* memory_;
};

// The bells of both sides, as far apart as in a region's header.
struct Bells {
  alignas(128) SharedWord<uint32_t> writer_bell;
  alignas(128) SharedWord<uint32_t> writer_sleepers;
  alignas(128) SharedWord<uint32_t> reader_bell;
  alignas(128) SharedWord<uint32_t> reader_sleepers;

  Doorbell OfWriter() { return Doorbell(&writer_bell, &writer_sleepers); }
  Doorbell OfReader() { return Doorbell(&reader_bell, &reader_sleepers); }
};

// A ring between two processes, and how each of them waits.
class RingEnds {
 public:
  explicit RingEnds(WaitStrategy strategy)
      : writing_(shared_->bells.OfWriter(), strategy),
        reading_(shared_->bells.OfReader(), strategy) {}

  RingWriter Writer() {
    return RingWriter::Attach(&shared_->header, shared_->data,
                              shared_->bells.OfReader())
        .value();
  }
  RingReader Reader() {
    return RingReader::Attach(&shared_->header, shared_->data,
                              shared_->bells.OfWriter())
        .value();
  }
  // Until the condition holds, as the process that writes, or reads.
  template <typename Ready>
  void WriterUntil(Ready ready) {
    (void)writing_.Until(ready, Deadline::Infinite(), watch_);
  }
  template <typename Ready>
  void ReaderUntil(Ready ready) {
    (void)reading_.Until(ready, Deadline::Infinite(), watch_);
  }

 private:
  struct Memory {
    Bells bells;
    alignas(128) RingHeader header;
    std::byte data[kDefaultRingBytes];
  };
  Shared<Memory> shared_;
  Waiter writing_;
  Waiter reading_;
  NoWatch watch_;
};

// Entries of a command ring, as they are.
template <typename Message>
class RingChannel {
 public:
  explicit RingChannel(WaitStrategy strategy) : ends_(strategy) {}
  void Send(const Message& message) {
    const auto bytes = std::as_bytes(std::span(&message, 1));
    ErrorCode code = ErrorCode::kOk;
    ends_.WriterUntil([&] {
      return (code = writer_.TryWrite(bytes)) != ErrorCode::kRingFull;
    });
    Require(code == ErrorCode::kOk, "write to the ring");
  }
  void Receive(Message* message) {
    const auto buffer = std::as_writable_bytes(std::span(message, 1));
    size_t bytes = 0;
    ErrorCode code = ErrorCode::kOk;
    ends_.ReaderUntil([&] {
      code = reader_.TryRead(buffer, &bytes);
      return code != ErrorCode::kRingEmpty;
    });
    Require(code == ErrorCode::kOk && bytes == sizeof(Message),
            "read from the ring");
  }

 private:
  RingEnds ends_;
  RingWriter writer_ = ends_.Writer();
  RingReader reader_ = ends_.Reader();
};

// Envelopes over a command ring: packed, and verified. The message is their
// payload's bytes.
template <typename Message>
class EnvelopeChannel {
 public:
  explicit EnvelopeChannel(WaitStrategy strategy) : ends_(strategy) {
    envelope_.method = rpc::MethodId::StreamCamera;
    envelope_.payload.Set(rpc::ImageFrameT());
    envelope_.payload.AsImageFrame()->data.resize(sizeof(Message));
  }
  void Send(const Message& message) {
    envelope_.correlation_id = message.number;
    std::memcpy(envelope_.payload.AsImageFrame()->data.data(), &message,
                sizeof(message));
    ErrorCode code = writer_.Post(envelope_);
    if (code == ErrorCode::kRingFull) {
      ends_.WriterUntil(
          [&] { return (code = writer_.Pump()) != ErrorCode::kRingFull; });
    }
    Require(code == ErrorCode::kOk, "post an envelope");
  }
  void Receive(Message* message) {
    EnvelopeReader::Got got = EnvelopeReader::Got::kNothing;
    ends_.ReaderUntil([&] {
      return (got = reader_.Next()) != EnvelopeReader::Got::kNothing;
    });
    Require(got == EnvelopeReader::Got::kEnvelope, "read an envelope");
    const rpc::ImageFrame* const frame =
        reader_.envelope().payload_as_ImageFrame();
    Require(frame != nullptr && frame->data() != nullptr &&
                frame->data()->size() == sizeof(Message),
            "an envelope's payload");
    std::memcpy(message, frame->data()->data(), sizeof(Message));
  }

 private:
  RingEnds ends_;
  EnvelopeWriter writer_{ends_.Writer()};
  EnvelopeReader reader_{ends_.Reader(), {}};
  rpc::EnvelopeT envelope_;
};

// The textbook queue, given what the ring has: each side looks for a sleeper
// after each store, and waits by a Waiter.
template <typename Message>
class SpscChannel {
 public:
  explicit SpscChannel(WaitStrategy strategy)
      : writing_(shared_->bells.OfWriter(), strategy),
        reading_(shared_->bells.OfReader(), strategy) {}
  void Send(const Message& message) {
    (void)writing_.Until([&] { return queue_.TryPush(message); },
                         Deadline::Infinite(), watch_);
    reader_bell_.RingIfAwaited();
  }
  void Receive(Message* message) {
    (void)reading_.Until([&] { return queue_.TryPop(message); },
                         Deadline::Infinite(), watch_);
    writer_bell_.RingIfAwaited();
  }

 private:
  using Queue = SpscQueue<Message, kMessagesThatWait<Message>>;
  struct Memory {
    Bells bells;
    typename Queue::Shared queue;
  };
  Shared<Memory> shared_;
  Queue queue_{&shared_->queue};
  Doorbell writer_bell_ = shared_->bells.OfWriter();
  Doorbell reader_bell_ = shared_->bells.OfReader();
  Waiter writing_;
  Waiter reading_;
  NoWatch watch_;
};

// The textbook queue alone: who waits spins.
template <typename Message>
class BareSpscChannel {
 public:
  explicit BareSpscChannel(WaitStrategy) {}
  void Send(const Message& message) {
    while (!queue_.TryPush(message)) Relax();
  }
  void Receive(Message* message) {
    while (!queue_.TryPop(message)) Relax();
  }

 private:
  using Queue = SpscQueue<Message, kMessagesThatWait<Message>>;
  struct Memory {
    typename Queue::Shared queue;
  };
  Shared<Memory> shared_;
  Queue queue_{&shared_->queue};
};

// Boost.Interprocess: a mutex and conditions of both processes.
template <typename Message>
class BoostChannel {
 public:
  explicit BoostChannel(WaitStrategy)
      : name_(
            absl::StrCat("tandem-benchmark-", getpid(), "-", MonotonicNanos())),
        queue_(boost::interprocess::create_only, name_.c_str(),
               kMessagesThatWait<Message>, sizeof(Message)) {
    // Both processes have it: the name is not needed any more.
    boost::interprocess::message_queue::remove(name_.c_str());
  }
  void Send(const Message& message) {
    queue_.send(&message, sizeof(message), 0);
  }
  void Receive(Message* message) {
    boost::interprocess::message_queue::size_type bytes = 0;
    unsigned int priority = 0;
    queue_.receive(message, sizeof(*message), bytes, priority);
    Require(bytes == sizeof(*message), "read from Boost's queue");
  }

 private:
  std::string name_;
  boost::interprocess::message_queue queue_;
};

class Pipe {
 public:
  Pipe() { Require(pipe(ends_) == 0, "pipe"); }
  Pipe(const Pipe&) = delete;
  Pipe& operator=(const Pipe&) = delete;
  ~Pipe() {
    close(ends_[0]);
    close(ends_[1]);
  }
  int reading() const { return ends_[0]; }
  int writing() const { return ends_[1]; }

 private:
  int ends_[2];
};

// The kernel's.
template <typename Message>
class PipeChannel {
 public:
  explicit PipeChannel(WaitStrategy) {
    static_assert(sizeof(Message) <= 4096, "or a write may be cut in two");
  }
  void Send(const Message& message) {
    Require(
        write(pipe_.writing(), &message, sizeof(message)) == sizeof(message),
        "write to the pipe");
  }
  void Receive(Message* message) {
    Require(
        read(pipe_.reading(), message, sizeof(*message)) == sizeof(*message),
        "read from the pipe");
  }

 private:
  Pipe pipe_;
};

}  // namespace tandem

#endif  // TANDEM_TESTS_BENCHMARK_MESSAGE_CHANNELS_H_
