// FieldRecord: a row of the region's table of fields. A field is an array of
// one type, [num_envs, *shape]: a part of the observation or of the action, or
// results of the environments.
//
// Data flow: the engine writes the table before the region has a name; a client
// copies it once, checks the copy, and uses the arrays at the records' offsets.
// Ownership: a region with kFeatureFields has field_count records at
// fields_offset; one with kFeatureGpuArrays has gpu_array_count records of
// arrays in its GPU allocation at gpu_arrays_offset. They are constant. The
// arrays belong to the two sides in turn, as all arrays do. Elements are
// little-endian, in C order. `schema/goldens/lrbc_v1.txt` lists every member of
// a record.
//
//   FieldRecord record = {.role = FieldRole::kObs, .type = FieldType::kUint8};
//   uint64_t bytes = FieldBytes(record, header.num_envs);

#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "absl/strings/string_view.h"

namespace tandem {

inline constexpr uint32_t kMaxFields = 4096;
inline constexpr uint32_t kMaxFieldDims = 8;
inline constexpr uint32_t kMaxFieldDim = 1u << 24;
// Of one environment, in one field.
inline constexpr uint64_t kMaxFieldValues = 1u << 24;

// What a field holds. A released number keeps its meaning; new ones are
// appended.
enum class FieldRole : uint8_t {
  kObs = 1,       // writer engine, as the row of obs
  kFinalObs = 2,  // writer engine, as the row of final_obs
  kAction = 3,    // writer client, before it sends the step
  kReward = 4,    // writer engine: the reward without rounding to float32
  kStatus = 5,    // writer engine: an EnvStatus
  // Writer engine, of an episode in the step that ends it; where dones is 1.
  kEpisodeReturn = 6,  // the sum of its rewards
  kEpisodeLength = 7,  // the number of its steps
  // Writer engine, with obs: images of the environments, RGB; in memory that
  // the engine has exported itself also RGBA. Only in the table of arrays on a
  // GPU.
  kImages = 8,
};

// The names for users.
inline constexpr std::array kFieldRoleNames = {
    "obs",    "final_obs",      "action",         "reward",
    "status", "episode_return", "episode_length", "images"};

constexpr bool IsKnown(FieldRole role) {
  const auto number = static_cast<size_t>(role);
  return number >= 1 && number <= kFieldRoleNames.size();
}
// "unknown" for a number without a role.
constexpr const char* NameOf(FieldRole role) {
  return IsKnown(role) ? kFieldRoleNames[static_cast<size_t>(role) - 1]
                       : "unknown";
}

// The type of a field's elements. A released number keeps its meaning; new ones
// are appended.
enum class FieldType : uint8_t {
  kBool = 1,  // one byte, 0 or 1
  kUint8 = 2,
  kInt8 = 3,
  kUint16 = 4,
  kInt16 = 5,
  kUint32 = 6,
  kInt32 = 7,
  kUint64 = 8,
  kInt64 = 9,
  kFloat16 = 10,
  kFloat32 = 11,
  kFloat64 = 12,
};

struct FieldTypeTraits {
  const char* name;  // NumPy's
  uint32_t bytes;    // of an element
};
inline constexpr std::array<FieldTypeTraits, 12> kFieldTypes = {
    {{"bool", 1},
     {"uint8", 1},
     {"int8", 1},
     {"uint16", 2},
     {"int16", 2},
     {"uint32", 4},
     {"int32", 4},
     {"uint64", 8},
     {"int64", 8},
     {"float16", 2},
     {"float32", 4},
     {"float64", 8}}};

constexpr bool IsKnown(FieldType type) {
  const auto number = static_cast<size_t>(type);
  return number >= 1 && number <= kFieldTypes.size();
}
// NumPy's name; "unknown" for a number without a type.
constexpr const char* NameOf(FieldType type) {
  return IsKnown(type) ? kFieldTypes[static_cast<size_t>(type) - 1].name
                       : "unknown";
}
// The bytes of one element; 0 for a number without a type.
constexpr uint32_t ElementBytes(FieldType type) {
  return IsKnown(type) ? kFieldTypes[static_cast<size_t>(type) - 1].bytes : 0;
}

// The values of a kStatus field, after a step or reset of the environment.
enum class EnvStatus : uint8_t {
  kOk = 0,
  // It raised an exception: its row is invalid until its next reset.
  kRaised = 1,
  // Its worker process was started again, which cut the episode.
  kRestarted = 2,
};

struct FieldRecord {
  // Of the array: bytes from the start of the region; in the table of arrays on
  // a GPU, from the start of the GPU allocation.
  uint64_t offset;
  FieldRole role;
  FieldType type;
  uint8_t dims;  // used elements of shape; 0: one number for each environment
  uint8_t reserved_11[5];
  uint32_t shape[kMaxFieldDims];  // of one environment's value; the rest zero
  // A JSON pointer (RFC 6901) into the space of observations or actions, UTF-8,
  // NUL-terminated, the rest zero. "": the whole space; "/image": a Dict's key;
  // "/0": a Tuple's item. Empty for the roles from kReward on.
  char path[192];
  uint8_t reserved_240[16];
};

static_assert(offsetof(FieldRecord, offset) == 0);
static_assert(offsetof(FieldRecord, role) == 8);
static_assert(offsetof(FieldRecord, type) == 9);
static_assert(offsetof(FieldRecord, dims) == 10);
static_assert(offsetof(FieldRecord, shape) == 16);
static_assert(offsetof(FieldRecord, path) == 48);
static_assert(sizeof(FieldRecord) == 256);
static_assert(alignof(FieldRecord) == 8);
static_assert(std::is_trivially_copyable_v<FieldRecord>);
static_assert(std::is_standard_layout_v<FieldRecord>);

// Of a path, without its NUL.
inline constexpr size_t kMaxFieldPathBytes = sizeof(FieldRecord::path) - 1;

// The path, up to its NUL or the end of its bytes. Valid as long as `record`.
inline absl::string_view PathOf(const FieldRecord& record) {
  return {record.path, strnlen(record.path, sizeof(record.path))};
}

// The number of values of one environment; 0 if the shape is beyond the limits.
// Safe for any bytes.
constexpr uint64_t FieldValues(const FieldRecord& record) {
  if (record.dims > kMaxFieldDims) return 0;
  uint64_t values = 1;
  for (uint32_t i = 0; i < record.dims; ++i) {
    values *= record.shape[i];  // at most 2^24 times 2^32
    if (values == 0 || values > kMaxFieldValues) return 0;
  }
  return values;
}

// The bytes of one environment's value. Safe for any bytes.
constexpr uint64_t FieldRowBytes(const FieldRecord& record) {
  return FieldValues(record) * ElementBytes(record.type);
}

// The bytes of the array, at most 2^59. Safe for any bytes.
constexpr uint64_t FieldBytes(const FieldRecord& record, uint32_t num_envs) {
  return FieldRowBytes(record) * num_envs;
}

}  // namespace tandem
