// StateWriter, StateReader: the values of a saved state as bytes, and back.
//
// Data flow: an environment -> StateWriter -> bytes -> StateReader -> values in
// a copy, which replaces the environment's own if all are valid.
// One template function has the order of the values for both directions:
//
//   template <typename Bytes, typename Cart>
//   static void Transfer(Bytes& bytes, Cart& cart) {  // Cart: maybe const
//     bytes.Values(cart.x_, cart.theta_, cart.has_ended_);
//   }
//
// Numbers are as in memory: all machines of Tandem have little-endian ones.

#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <string>
#include <type_traits>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "base/error.h"

namespace tandem {

// A class with a static Transfer, as above, is written by it; other classes as
// their bytes, which must be without padding.
template <typename Bytes, typename T>
concept Transferred = requires(Bytes& bytes, T& value) {
  T::Transfer(bytes, value);
};

class StateWriter {
 public:
  // Appends to `bytes`, which must outlive the writer.
  explicit StateWriter(std::string* bytes) : bytes_(bytes) {}

  template <typename... T>
  void Values(const T&... values) {
    (Value(values), ...);
  }
  // Without their number.
  template <typename T>
  void Row(std::span<const T> values) {
    static_assert(std::is_trivially_copyable_v<T>);
    bytes_->append(reinterpret_cast<const char*>(values.data()),
                   values.size_bytes());
  }

 private:
  template <typename T>
  void Value(const T& value) {
    if constexpr (Transferred<StateWriter, const T>) {
      T::Transfer(*this, value);
    } else {
      Row(std::span(&value, 1));
    }
  }
  void Value(bool value) { Value(static_cast<uint8_t>(value ? 1 : 0)); }
  template <typename T>
  void Value(const std::optional<T>& value) {
    Value(value.has_value());
    if (value) Value(*value);
  }
  template <typename T, size_t N>
  void Value(const std::array<T, N>& values) {
    for (const T& value : values) Value(value);
  }

  std::string* bytes_;
};

// After invalid bytes all further values stay unchanged, and Finish has the
// error.
class StateReader {
 public:
  // `bytes` must outlive the reader.
  explicit StateReader(absl::string_view bytes) : rest_(bytes) {}

  template <typename... T>
  void Values(T&... values) {
    (Value(values), ...);
  }
  template <typename T>
  void Row(std::span<T> values) {
    static_assert(std::is_trivially_copyable_v<T>);
    if (!valid_ || rest_.size() < values.size_bytes()) {
      valid_ = false;
      return;
    }
    if (values.empty()) return;
    std::memcpy(values.data(), rest_.data(), values.size_bytes());
    rest_.remove_prefix(values.size_bytes());
  }

  // All bytes that were not read yet.
  absl::string_view TakeRest() { return std::exchange(rest_, {}); }
  // The caller has found an invalid value.
  void Refuse() { valid_ = false; }
  // kInvalidArgument: a value was invalid, or the bytes were too few or too
  // many.
  absl::Status Finish() const {
    if (valid_ && rest_.empty()) return absl::OkStatus();
    return MakeError(
        ErrorCode::kInvalidArgument,
        absl::StrCat("state: expected one of this engine, found ",
                     valid_ ? absl::StrCat(rest_.size(), " bytes too many")
                            : "too few bytes, or invalid ones"));
  }

 private:
  template <typename T>
  void Value(T& value) {
    if constexpr (Transferred<StateReader, T>) {
      T::Transfer(*this, value);
    } else {
      Row(std::span(&value, 1));
    }
  }
  void Value(bool& value) {
    uint8_t byte = value ? 1 : 0;
    Value(byte);
    if (byte > 1) valid_ = false;
    value = byte == 1;
  }
  template <typename T>
  void Value(std::optional<T>& value) {
    bool has_value = false;
    Value(has_value);
    if (!valid_) return;
    value.reset();
    if (has_value) Value(value.emplace());
  }
  template <typename T, size_t N>
  void Value(std::array<T, N>& values) {
    for (T& value : values) Value(value);
  }

  absl::string_view rest_;
  bool valid_ = true;
};

}  // namespace tandem
