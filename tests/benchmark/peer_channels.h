// What Tandem's command ring is compared with: the textbook queue, with and
// without what the ring has beside it, Boost's, and the kernel's.
//
// Data flow and ownership: as in message_channel.h.
//
//   BoostChannel<Message<64>> channel({.name = "tandem-queue"});

#ifndef TANDEM_TESTS_BENCHMARK_PEER_CHANNELS_H_
#define TANDEM_TESTS_BENCHMARK_PEER_CHANNELS_H_

#include <unistd.h>

#include <boost/interprocess/ipc/message_queue.hpp>

#include "tests/benchmark/message_channel.h"
#include "tests/benchmark/or_exit.h"
#include "tests/benchmark/spsc_queue.h"
#include "transport/base/clock.h"
#include "transport/wait/doorbell.h"
#include "transport/wait/relax.h"
#include "transport/wait/waiter.h"

namespace tandem {

// The textbook queue, given what the ring has: each side looks for a sleeper
// after each store, and waits by a Waiter.
template <typename Message>
class SpscChannel {
 public:
  explicit SpscChannel(const ChannelOptions& options)
      : writing_(shared_->bells.OfWriter(), options.wait),
        reading_(shared_->bells.OfReader(), options.wait) {}
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
  explicit BareSpscChannel(const ChannelOptions&) {}
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
  explicit BoostChannel(const ChannelOptions& options)
      : queue_(boost::interprocess::create_only, options.name.c_str(),
               kMessagesThatWait<Message>, sizeof(Message)) {
    // Both processes have it: the name is not needed any more.
    boost::interprocess::message_queue::remove(options.name.c_str());
  }
  void Send(const Message& message) {
    queue_.send(&message, sizeof(message), 0);
  }
  void Receive(Message* message) {
    boost::interprocess::message_queue::size_type bytes = 0;
    unsigned int priority = 0;
    queue_.receive(message, sizeof(*message), bytes, priority);
    Require(bytes == sizeof(*message),
            "Boost's queue: expected a message of its size, found another");
  }

 private:
  boost::interprocess::message_queue queue_;
};

class Pipe {
 public:
  Pipe() { RequireCall(pipe(ends_) == 0, "pipe"); }
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
  explicit PipeChannel(const ChannelOptions&) {
    static_assert(sizeof(Message) <= 4096, "or a write may be cut in two");
  }
  void Send(const Message& message) {
    RequireCall(
        write(pipe_.writing(), &message, sizeof(message)) == sizeof(message),
        "write to the pipe");
  }
  void Receive(Message* message) {
    RequireCall(
        read(pipe_.reading(), message, sizeof(*message)) == sizeof(*message),
        "read from the pipe");
  }

 private:
  Pipe pipe_;
};

}  // namespace tandem

#endif  // TANDEM_TESTS_BENCHMARK_PEER_CHANNELS_H_
