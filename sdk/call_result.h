// What every function of the C interface shares: its result, the text of the
// thread's last error, and the rule that no exception leaves the library.
//
// Data flow: a body that returns absl::Status -> tandem_code and text.
//
//   return Result([&]() -> absl::Status { ... });

#ifndef TANDEM_SDK_CALL_RESULT_H_
#define TANDEM_SDK_CALL_RESULT_H_

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <new>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "base/guarded.h"
#include "schema/layout/error_codes.h"
#include "sdk/tandem.h"

namespace tandem {

// Stores the text of a failed call for tandem_last_error; returns the code.
// Allocates only for an error.
tandem_code CodeAndText(const absl::Status& status);

// Calls the body, and turns its status or exception into a code.
template <typename Body>
tandem_code Result(const Body& body) {
  try {
    const absl::Status status = Guarded(body);
    return status.ok() ? TANDEM_OK : CodeAndText(status);
  } catch (const std::bad_alloc&) {  // of the text
    return TANDEM_OUT_OF_SHARED_MEMORY;
  }
}

// The error for a NULL argument.
absl::Status MissingArgument(absl::string_view name);
// The error for a handle that is closed, or was never one.
absl::Status InvalidHandle(absl::string_view type);

// The error for an object of the parent of this forked process; OK if this
// process made it. `born_in` was its ForkCount().
absl::Status CheckProcess(uint32_t born_in, absl::string_view type);

// Calls `body` with the object of a handle, whether or not other threads do.
// The table is a HandleTable, whose objects have born_in.
template <typename Table, typename Opaque, typename Body>
tandem_code CallOpen(Table& table, Opaque* handle, absl::string_view type,
                     const Body& body) {
  const typename Table::Use use = table.Enter(handle);
  return Result([&]() -> absl::Status {
    if (handle == nullptr) return MissingArgument(type);
    if (!use) return InvalidHandle(type);
    absl::Status status = CheckProcess(use->born_in, type);
    if (!status.ok()) return status;
    return body(*use);
  });
}

// The bytes of a struct in version 1.0, the least that a program may give.
template <typename Struct>
extern const uint32_t kFirstBytes;
template <>
inline constexpr uint32_t kFirstBytes<tandem_array> = 64;
template <>
inline constexpr uint32_t kFirstBytes<tandem_work> = 64;
template <>
inline constexpr uint32_t kFirstBytes<tandem_callbacks> = 32;
template <>
inline constexpr uint32_t kFirstBytes<tandem_engine_options> = 80;
template <>
inline constexpr uint32_t kFirstBytes<tandem_status> = 296;
template <>
inline constexpr uint32_t kFirstBytes<tandem_image> = 32;
template <>
inline constexpr uint32_t kFirstBytes<tandem_services> = 192;
template <>
inline constexpr uint32_t kFirstBytes<tandem_gpu> = 32;
template <>
inline constexpr uint32_t kFirstBytes<tandem_gpu_memory> = 48;
template <>
inline constexpr uint32_t kFirstBytes<tandem_frames> = 32;
template <>
inline constexpr uint32_t kFirstBytes<tandem_server> = 56;
template <>
inline constexpr uint32_t kFirstBytes<tandem_client_options> = 32;
template <>
inline constexpr uint32_t kFirstBytes<tandem_attendant_options> = 32;

// kInvalidArgument: NULL, or a struct_size of no version. kUnsupported: fields
// that this library does not know are not 0.
absl::Status CheckStruct(const void* given, uint32_t first_bytes,
                         size_t known_bytes, absl::string_view name);

// Copies what the program gave; fields that it does not know are 0.
template <typename Struct>
absl::Status ReadStruct(const Struct* given, absl::string_view name,
                        Struct* ours) {
  *ours = {};
  absl::Status status =
      CheckStruct(given, kFirstBytes<Struct>, sizeof(Struct), name);
  if (!status.ok()) return status;
  const size_t bytes = given->struct_size;
  std::memcpy(ours, given, bytes < sizeof(Struct) ? bytes : sizeof(Struct));
  return status;
}

// Checks a struct that the library fills.
template <typename Struct>
absl::Status CheckOutput(const Struct* theirs, absl::string_view name) {
  if (theirs == nullptr) return MissingArgument(name);
  if (theirs->struct_size >= kFirstBytes<Struct>) return absl::OkStatus();
  return CheckStruct(theirs, kFirstBytes<Struct>, sizeof(Struct), name);
}

// Copies the fields that the program knows. CheckOutput has accepted `theirs`.
template <typename Struct>
void WriteStruct(const Struct& ours, Struct* theirs) {
  const uint32_t size = theirs->struct_size;
  std::memcpy(theirs, &ours, size < sizeof(Struct) ? size : sizeof(Struct));
  theirs->struct_size = size;
}

// kInvalidArgument: a time that is not a number. Infinity is no limit.
absl::Status CheckSeconds(double secs);

// Copies a text as tandem_last_error does; returns its bytes.
uint64_t CopyText(absl::string_view text, char* into, uint64_t size);

// The name; NULL: LUCKY_SHM_NAME, else "tandem".
std::string RegionNameOr(const char* name);

}  // namespace tandem

#endif  // TANDEM_SDK_CALL_RESULT_H_
