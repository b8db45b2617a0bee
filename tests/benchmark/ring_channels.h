// Messages over Tandem's command ring, as they are and in envelopes.
//
// Data flow and ownership: as in message_channel.h.
//
//   EnvelopeChannel<Message<4096>> channel({.wait = WaitStrategy::kBlock});

#ifndef TANDEM_TESTS_BENCHMARK_RING_CHANNELS_H_
#define TANDEM_TESTS_BENCHMARK_RING_CHANNELS_H_

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "schema/layout/error_codes.h"
#include "schema/layout/ring_header.h"
#include "schema/messages/hazel_rpc_generated.h"
#include "tests/benchmark/message_channel.h"
#include "tests/benchmark/or_exit.h"
#include "transport/base/clock.h"
#include "transport/ring/ring.h"
#include "transport/rpc/envelope_reader.h"
#include "transport/rpc/envelope_writer.h"
#include "transport/wait/wait_strategy.h"
#include "transport/wait/waiter.h"

namespace tandem {

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
  explicit RingChannel(const ChannelOptions& options) : ends_(options.wait) {}
  void Send(const Message& message) {
    const auto bytes = std::as_bytes(std::span(&message, 1));
    ErrorCode code = ErrorCode::kOk;
    ends_.WriterUntil([&] {
      return (code = writer_.TryWrite(bytes)) != ErrorCode::kRingFull;
    });
    Require(code == ErrorCode::kOk,
            "the ring: expected it to take a message, found an error");
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
            "the ring: expected a message of its size, found another or none");
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
  explicit EnvelopeChannel(const ChannelOptions& options)
      : ends_(options.wait) {
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
            "the ring: expected it to take an envelope, found an error");
  }
  void Receive(Message* message) {
    EnvelopeReader::Got got = EnvelopeReader::Got::kNothing;
    ends_.ReaderUntil([&] {
      return (got = reader_.Next()) != EnvelopeReader::Got::kNothing;
    });
    Require(got == EnvelopeReader::Got::kEnvelope,
            "the ring: expected an envelope, found something else");
    const rpc::ImageFrame* const frame =
        reader_.envelope().payload_as_ImageFrame();
    Require(
        frame != nullptr && frame->data() != nullptr &&
            frame->data()->size() == sizeof(Message),
        "an envelope: expected a payload of a message's size, found another");
    std::memcpy(message, frame->data()->data(), sizeof(Message));
  }

 private:
  RingEnds ends_;
  EnvelopeWriter writer_{ends_.Writer()};
  EnvelopeReader reader_{ends_.Reader(), {}};
  rpc::EnvelopeT envelope_;
};

}  // namespace tandem

#endif  // TANDEM_TESTS_BENCHMARK_RING_CHANNELS_H_
