// Messages from one process to another: through Tandem's RPC ring, and through
// the usual alternatives.
//
//   messages_benchmark --benchmark_filter='^ring/spin/64$'
//
// Each benchmark NAME/BYTES is a flood: one process writes as fast as the other
// reads. NAME/BYTES/paced writes a message each 100 us; its counters are the
// microseconds from before the write until after the read. Every message is
// copied in and out, and its number checked. All channels but the pipe hold as
// many bytes of messages as an RPC ring does. Each benchmark forks a writer;
// a failure ends the process with a line on stderr.
#include <benchmark/benchmark.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <new>
#include <span>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/clock.h"
#include "base/os/end_with_parent.h"
#include "schema/layout/error_codes.h"
#include "schema/layout/ring_header.h"
#include "schema/layout/shared_word.h"
#include "schema/messages/hazel_rpc_generated.h"
#include "tests/benchmark/or_exit.h"
#include "transport/ring/ring.h"
#include "transport/rpc/envelope_reader.h"
#include "transport/rpc/envelope_writer.h"
#include "transport/wait/doorbell.h"
#include "transport/wait/relax.h"
#include "transport/wait/waiter.h"
#include "transport/wait_strategy.h"

namespace tandem {
namespace {

constexpr int64_t kPeriodNs = 100'000;
// The time that the scheduler needs to place two processes on separate cores.
constexpr double kWarmUpSecs = 0.05;

template <size_t kBytes>
struct Message {
  uint64_t number;
  int64_t sent_ns;
  std::byte rest[kBytes - 16];
};
static_assert(sizeof(Message<64>) == 64);

// A T in memory shared with a forked child.
template <typename T>
class Shared {
 public:
  Shared()
      : memory_(mmap(nullptr, sizeof(T), PROT_READ | PROT_WRITE,
                     MAP_SHARED | MAP_ANONYMOUS | MAP_POPULATE, -1, 0)) {
    RequireCall(memory_ != MAP_FAILED, "mmap");
    new (memory_) T;
  }
  Shared(const Shared&) = delete;
  Shared& operator=(const Shared&) = delete;
  ~Shared() { munmap(memory_, sizeof(T)); }
  T* operator->() const { return static_cast<T*>(memory_); }

 private:
  void* memory_;
};

class NoWatch final : public WaitWatch {
  ErrorCode Check(int64_t, bool) override { return ErrorCode::kOk; }
};

// A ring between two processes, and the waiter of each.
class RingEnds {
 public:
  explicit RingEnds(WaitStrategy strategy)
      : writing_(OfWriter(), strategy), reading_(OfReader(), strategy) {}

  RingWriter Writer() {
    return Got(RingWriter::Attach(&shared_->header, shared_->data, OfReader()));
  }
  RingReader Reader() {
    return Got(RingReader::Attach(&shared_->header, shared_->data, OfWriter()));
  }
  template <typename Ready>
  void WriterUntil(Ready ready) {
    (void)writing_.Until(ready, Deadline::Infinite(), watch_);
  }
  template <typename Ready>
  void ReaderUntil(Ready ready) {
    (void)reading_.Until(ready, Deadline::Infinite(), watch_);
  }

 private:
  // The bells' distance is that in a region's header.
  struct Memory {
    alignas(128) SharedWord<uint32_t> writer_bell;
    alignas(128) SharedWord<uint32_t> writer_sleepers;
    alignas(128) SharedWord<uint32_t> reader_bell;
    alignas(128) SharedWord<uint32_t> reader_sleepers;
    alignas(128) RingHeader header;
    std::byte data[kDefaultRingBytes];
  };
  Doorbell OfWriter() {
    return Doorbell(&shared_->writer_bell, &shared_->writer_sleepers);
  }
  Doorbell OfReader() {
    return Doorbell(&shared_->reader_bell, &shared_->reader_sleepers);
  }

  Shared<Memory> shared_;
  Waiter writing_;
  Waiter reading_;
  NoWatch watch_;
};

// Entries of an RPC ring.
template <typename Message, WaitStrategy kWait>
class RingChannel {
 public:
  void Send(const Message& message) {
    const auto bytes = std::as_bytes(std::span(&message, 1));
    ErrorCode code = ErrorCode::kOk;
    ends_.WriterUntil([&] {
      return (code = writer_.TryWrite(bytes)) != ErrorCode::kRingFull;
    });
    Require(code == ErrorCode::kOk, "the ring: expected it to take a message");
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
            "the ring: expected a message of its size");
  }

 private:
  RingEnds ends_{kWait};
  RingWriter writer_ = ends_.Writer();
  RingReader reader_ = ends_.Reader();
};

// Envelopes over an RPC ring, packed and verified: the format of an RPC. The
// message is the bytes of their payload.
template <typename Message>
class EnvelopeChannel {
 public:
  EnvelopeChannel() {
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
    Require(code == ErrorCode::kOk,
            "the ring: expected it to take an envelope");
  }
  void Receive(Message* message) {
    EnvelopeReader::Got got = EnvelopeReader::Got::kNothing;
    ends_.ReaderUntil([&] {
      return (got = reader_.Next()) != EnvelopeReader::Got::kNothing;
    });
    Require(got == EnvelopeReader::Got::kEnvelope,
            "the ring: expected an envelope");
    const rpc::ImageFrame* const frame =
        reader_.envelope().payload_as_ImageFrame();
    Require(frame != nullptr && frame->data() != nullptr &&
                frame->data()->size() == sizeof(Message),
            "an envelope: expected a payload of a message's size");
    std::memcpy(message, frame->data()->data(), sizeof(Message));
  }

 private:
  RingEnds ends_{WaitStrategy::kAdaptive};
  EnvelopeWriter writer_{ends_.Writer()};
  EnvelopeReader reader_{ends_.Reader(), {}};
  rpc::EnvelopeT envelope_;
};

// The textbook queue of one writer and one reader: equal slots, a trusted peer,
// and both sides spin. Each side loads the other's index again only when the
// queue appears full or empty.
//
//  word  writer  reader  publishes   initially
//  tail  writer  reader  messages    0
//  head  reader  writer  free slots  0
//
// Indices count messages and do not wrap.
template <typename Message>
class SpscChannel {
 public:
  void Send(const Message& message) {
    while (tail_ - head_ == kSlots) {
      // SYNC(spsc.free): acquire; the reader's copies before we overwrite.
      head_ = shared_->head.load(std::memory_order_acquire);
      if (tail_ - head_ == kSlots) Relax();
    }
    shared_->slots[tail_ % kSlots] = message;
    // SYNC(spsc.commit): release; the message before the index.
    shared_->tail.store(++tail_, std::memory_order_release);
  }
  void Receive(Message* message) {
    while (head_ == tail_) {
      // SYNC(spsc.commit): acquire; the index before the messages.
      tail_ = shared_->tail.load(std::memory_order_acquire);
      if (head_ == tail_) Relax();
    }
    *message = shared_->slots[head_ % kSlots];
    // SYNC(spsc.free): release; our copy before the slot is reused.
    shared_->head.store(++head_, std::memory_order_release);
  }

 private:
  static constexpr uint64_t kSlots = kDefaultRingBytes / sizeof(Message);
  struct Memory {
    alignas(128) std::atomic<uint64_t> tail{0};
    alignas(128) std::atomic<uint64_t> head{0};
    alignas(128) Message slots[kSlots];
  };
  Shared<Memory> shared_;
  uint64_t tail_ = 0;  // the writer's own index; in the reader, a copy
  uint64_t head_ = 0;  // the reader's own index; in the writer, a copy
};

// The kernel's pipe.
template <typename Message>
class PipeChannel {
 public:
  static_assert(sizeof(Message) <= 4096, "larger writes are not atomic");
  PipeChannel() { RequireCall(pipe(ends_) == 0, "pipe"); }
  PipeChannel(const PipeChannel&) = delete;
  PipeChannel& operator=(const PipeChannel&) = delete;
  ~PipeChannel() {
    close(ends_[0]);
    close(ends_[1]);
  }
  void Send(const Message& message) {
    RequireCall(write(ends_[1], &message, sizeof(message)) == sizeof(message),
                "write to the pipe");
  }
  void Receive(Message* message) {
    RequireCall(read(ends_[0], message, sizeof(*message)) == sizeof(*message),
                "read from the pipe");
  }

 private:
  int ends_[2];
};

// The reader would wait forever for a dead writer.
void OnWriterEnd(int) {
  constexpr char kText[] = "the writer's process ended early\n";
  (void)!write(STDERR_FILENO, kText, sizeof(kText) - 1);
  _exit(1);
}

template <typename Message, typename Channel>
[[noreturn]] void WriteForever(Channel& channel, bool paced) {
  Message message{};
  for (int64_t due_ns = MonotonicNanos();; ++message.number) {
    if (paced) {
      while ((message.sent_ns = MonotonicNanos()) < due_ns) Relax();
      due_ns = std::max(due_ns + kPeriodNs, message.sent_ns);
    }
    channel.Send(message);
  }
}

template <typename Message, typename Channel>
void Measure(benchmark::State& state, bool paced) {
  Channel channel;
  signal(SIGCHLD, OnWriterEnd);
  const pid_t reader = getpid();
  const pid_t writer = fork();
  RequireCall(writer >= 0, "fork");
  if (writer == 0) {
    EndWithParent(SIGKILL, reader);
    WriteForever<Message>(channel, paced);
  }
  Message message;
  uint64_t number = 0;
  bool in_order = true;
  const auto receive = [&] {
    channel.Receive(&message);
    in_order = in_order && message.number == number++;
  };
  const Deadline warm = Deadline::After(kWarmUpSecs);
  while (!warm.PassedAt(MonotonicNanos())) receive();
  std::vector<int64_t> latencies;
  for ([[maybe_unused]] const auto _ : state) {
    receive();
    if (paced) latencies.push_back(MonotonicNanos() - message.sent_ns);
  }
  Require(in_order, "expected each message once, in order");
  state.SetItemsProcessed(state.iterations());
  std::sort(latencies.begin(), latencies.end());
  for (const size_t percent : {size_t{50}, size_t{99}}) {
    if (latencies.empty()) break;
    const int64_t nanos = latencies[(latencies.size() - 1) * percent / 100];
    state.counters[absl::StrCat("p", percent, " us")] =
        static_cast<double>(nanos) / 1e3;
  }
  signal(SIGCHLD, SIG_DFL);
  kill(writer, SIGKILL);
  waitpid(writer, nullptr, 0);
}

template <typename Message>
void RegisterSize() {
  using enum WaitStrategy;
  const std::pair<const char*, void (*)(benchmark::State&, bool)> channels[] = {
      {"ring/spin", Measure<Message, RingChannel<Message, kSpin>>},
      {"ring/adaptive", Measure<Message, RingChannel<Message, kAdaptive>>},
      {"ring/block", Measure<Message, RingChannel<Message, kBlock>>},
      {"envelopes", Measure<Message, EnvelopeChannel<Message>>},
      {"spsc", Measure<Message, SpscChannel<Message>>},
      {"pipe", Measure<Message, PipeChannel<Message>>},
  };
  for (const auto& [name, measure] : channels) {
    for (const bool paced : {false, true}) {
      benchmark::RegisterBenchmark(
          absl::StrCat(name, "/", sizeof(Message), paced ? "/paced" : "")
              .c_str(),
          [measure, paced](benchmark::State& state) { measure(state, paced); })
          ->UseRealTime();
    }
  }
}

}  // namespace
}  // namespace tandem

int main(int argc, char** argv) {
  tandem::RegisterSize<tandem::Message<64>>();
  tandem::RegisterSize<tandem::Message<4096>>();
  benchmark::Initialize(&argc, argv);
  benchmark::RunSpecifiedBenchmarks();
}
