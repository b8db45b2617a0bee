// Messages for the ring's tests, and short functions to send and receive them.
//
// Data flow: none.
//
//   ASSERT_EQ(writer.TryWrite(Message(5)), ErrorCode::kOk);
//   ExpectRead(reader, Message(5));

#pragma once

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <vector>

#include "schema/layout/error_codes.h"
#include "transport/ring/ring.h"

namespace tandem {

using Bytes = std::vector<std::byte>;

// `size` bytes, different for each `seed`, none of them zero.
inline Bytes Message(size_t size, int seed = 1) {
  Bytes message(size);
  for (size_t i = 0; i < size; ++i) {
    message[i] =
        static_cast<std::byte>(1 + (i + 37 * static_cast<size_t>(seed)) % 255);
  }
  return message;
}

// A result code and, if it is kOk, the message.
struct Received {
  ErrorCode code;
  Bytes message;
};

inline Received TryReadOne(RingReader& reader) {
  Bytes buffer(reader.max_message_bytes(), std::byte{0xEE});
  size_t bytes = 0;
  const ErrorCode code = reader.TryRead(buffer, &bytes);
  buffer.resize(code == ErrorCode::kOk ? bytes : 0);
  return {code, buffer};
}

inline void ExpectRead(RingReader& reader, const Bytes& expected) {
  const Received received = TryReadOne(reader);
  EXPECT_EQ(received.code, ErrorCode::kOk);
  EXPECT_EQ(received.message, expected);
}

// Advances both positions of an empty ring by `bytes`.
inline void Advance(RingWriter& writer, RingReader& reader, uint32_t bytes) {
  for (; bytes >= 8; bytes -= 8) {
    ASSERT_EQ(writer.TryWrite({}), ErrorCode::kOk);
    ASSERT_EQ(TryReadOne(reader).code, ErrorCode::kOk);
  }
}

}  // namespace tandem
