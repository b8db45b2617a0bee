// InfoAreaHeader: the start of an info area, the bytes by which one worker
// process sends the infos of its environments to the trainer.
//
// Data flow: in each exchange the worker writes the values of its rows' infos
// into columns, and into each row's word the number of the info's pattern. A
// pattern lists columns, in the order of the info's keys. Columns and patterns
// are records of a log. The log only grows. Values without a column are pickled
// into the blob, which each exchange replaces.
// Ownership: only the worker writes; the trainer reads after the exchange. The
// exchange publishes all bytes of the area, so nothing here is atomic. A reader
// checks all numbers and lengths. Numbers are little-endian.
//
//   header | words [2][rows] | log: columns, patterns -> | blob
//
//   const InfoAreaPlan plan = PlanInfoArea(area_bytes, rows);
//   const uint32_t* infos = area + plan.words, *finals = infos + rows;

#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "schema/layout/field.h"

namespace tandem {

// "TNDMINFO" as little-endian bytes.
inline constexpr uint64_t kInfoAreaMagic = 0x4f464e494d444e54;
inline constexpr uint32_t kInfoAreaVersion = 1;
// Of an area's address, and of each record and blob entry from its start.
inline constexpr uint64_t kInfoAlign = 16;
inline constexpr uint64_t kMaxInfoAreaBytes = 1u << 30;
// Deeper dicts and longer paths are pickled.
inline constexpr uint32_t kMaxInfoDepth = 16;
inline constexpr uint32_t kMaxInfoPathBytes = 1024;

// The parts of a row's infos. Released numbers keep their meaning, here and
// below; new ones are appended.
enum class InfoPart : uint8_t {
  kInfo = 0,   // of the row's reset, or else of its step
  kFinal = 1,  // SAME_STEP: of the step that ended the episode
};

// A row's word: the number of a pattern, from 1 in the order of the log, or one
// of these.
inline constexpr uint32_t kNoInfo = 0;  // none, or an empty dict of kInfo
inline constexpr uint32_t kPickledInfo = 0xffffffff;  // the whole info

struct InfoAreaHeader {
  uint64_t magic;         // kInfoAreaMagic
  uint32_t version;       // kInfoAreaVersion
  uint32_t header_bytes;  // sizeof(InfoAreaHeader)
  // A new writer of the area draws another number, and begins a new log.
  uint64_t generation;
  uint32_t rows;
  uint32_t rows_with_infos;  // in this exchange: rows with a word but kNoInfo
  uint64_t log_bytes;        // used
  uint64_t blob_bytes;       // of this exchange
  uint8_t reserved_48[16];
};

static_assert(offsetof(InfoAreaHeader, magic) == 0);
static_assert(offsetof(InfoAreaHeader, version) == 8);
static_assert(offsetof(InfoAreaHeader, header_bytes) == 12);
static_assert(offsetof(InfoAreaHeader, generation) == 16);
static_assert(offsetof(InfoAreaHeader, rows) == 24);
static_assert(offsetof(InfoAreaHeader, rows_with_infos) == 28);
static_assert(offsetof(InfoAreaHeader, log_bytes) == 32);
static_assert(offsetof(InfoAreaHeader, blob_bytes) == 40);
static_assert(sizeof(InfoAreaHeader) == 64);
static_assert(alignof(InfoAreaHeader) == 8);
static_assert(std::is_trivially_copyable_v<InfoAreaHeader>);
static_assert(std::is_standard_layout_v<InfoAreaHeader>);

enum class InfoRecordKind : uint8_t { kColumn = 1, kPattern = 2 };

// What a column's values are in Python. The type counts: Gymnasium makes an
// array of a number, but an object array of a numpy.bool, and None is no text.
enum class InfoValue : uint8_t {
  kDict = 1,     // a dict: its items have columns of their own
  kPython = 2,   // float, int or bool
  kNumpy = 3,    // a scalar of NumPy
  kArray = 4,    // numpy.ndarray
  kNone = 5,     // None
  kObject = 6,   // pickled: for Gymnasium an object, such as a text
  kUnusual = 7,  // pickled: a number or array of another type, or a large int
};

constexpr bool IsKnown(InfoValue value) {
  return value >= InfoValue::kDict && value <= InfoValue::kUnusual;
}
// Whether the column has an array of values.
constexpr bool HasValues(InfoValue value) {
  return value == InfoValue::kPython || value == InfoValue::kNumpy ||
         value == InfoValue::kArray;
}
// Whether the values are in the blob.
constexpr bool IsPickled(InfoValue value) {
  return value == InfoValue::kObject || value == InfoValue::kUnusual;
}

// The values of one key. Columns have numbers, from 0 in the order of the log.
// After the struct: the path, zeros up to a multiple of kInfoAlign, then the
// values, [rows, *shape] in C order. A row's value is valid if the pattern of
// the row's word lists the column.
struct InfoColumn {
  uint32_t bytes;       // of the record; a multiple of kInfoAlign
  InfoRecordKind kind;  // kColumn
  InfoPart part;
  InfoValue value;
  FieldType type;  // if HasValues(value), else 0
  uint8_t dims;    // used elements of shape
  uint8_t reserved_9[3];
  // A JSON pointer (RFC 6901) into the info, UTF-8, not empty.
  uint32_t path_bytes;
  uint32_t shape[kMaxFieldDims];  // of one row's value; an element may be 0
};

static_assert(offsetof(InfoColumn, bytes) == 0);
static_assert(offsetof(InfoColumn, kind) == 4);
static_assert(offsetof(InfoColumn, part) == 5);
static_assert(offsetof(InfoColumn, value) == 6);
static_assert(offsetof(InfoColumn, type) == 7);
static_assert(offsetof(InfoColumn, dims) == 8);
static_assert(offsetof(InfoColumn, path_bytes) == 12);
static_assert(offsetof(InfoColumn, shape) == 16);
static_assert(sizeof(InfoColumn) == 48);
static_assert(alignof(InfoColumn) == 4);
static_assert(std::is_trivially_copyable_v<InfoColumn>);
static_assert(std::is_standard_layout_v<InfoColumn>);

// The keys of an info and the types of their values. After the struct:
// uint32[columns], the columns' numbers in the order of the info's keys, a
// dict before its items. Earlier records have the columns.
struct InfoPattern {
  uint32_t bytes;       // of the record; a multiple of kInfoAlign
  InfoRecordKind kind;  // kPattern
  InfoPart part;
  uint8_t reserved_6[2];
  uint32_t columns;
  uint8_t reserved_12[4];
};

static_assert(offsetof(InfoPattern, bytes) == 0);
static_assert(offsetof(InfoPattern, kind) == 4);
static_assert(offsetof(InfoPattern, part) == 5);
static_assert(offsetof(InfoPattern, columns) == 8);
static_assert(sizeof(InfoPattern) == 16);
static_assert(alignof(InfoPattern) == 4);
static_assert(std::is_trivially_copyable_v<InfoPattern>);
static_assert(std::is_standard_layout_v<InfoPattern>);

// An entry of the blob, for a row whose info has pickled values. After the
// struct: a pickle of protocol 5. It holds the list of these values in the
// pattern's order; or the info itself, if the row's word is kPickledInfo. The
// entries have the order of the rows, and of one row kFinal comes first.
struct InfoPickle {
  uint64_t bytes;  // of the pickle; the entry ends at a multiple of kInfoAlign
  uint32_t row;
  InfoPart part;
  uint8_t reserved_13[3];
};

static_assert(offsetof(InfoPickle, bytes) == 0);
static_assert(offsetof(InfoPickle, row) == 8);
static_assert(offsetof(InfoPickle, part) == 12);
static_assert(sizeof(InfoPickle) == 16);
static_assert(alignof(InfoPickle) == 8);
static_assert(std::is_trivially_copyable_v<InfoPickle>);
static_assert(std::is_standard_layout_v<InfoPickle>);

// Rounds up to a multiple of kInfoAlign.
constexpr uint64_t InfoAligned(uint64_t bytes) {
  return (bytes + kInfoAlign - 1) / kInfoAlign * kInfoAlign;
}

// Where an area's parts begin and end, in bytes from its start.
struct InfoAreaPlan {
  uint64_t words;  // uint32[2][rows]: first of kInfo, then of kFinal
  uint64_t log;
  uint64_t blob;  // the log's end
  uint64_t end;   // the blob's
};

// Half of what the words leave is for the log, half for the blob. The result is
// useful if MinInfoAreaBytes(rows) <= area_bytes <= kMaxInfoAreaBytes.
constexpr InfoAreaPlan PlanInfoArea(uint64_t area_bytes, uint32_t rows) {
  const uint64_t words = sizeof(InfoAreaHeader);
  const uint64_t log = InfoAligned(words + 2 * sizeof(uint32_t) * rows);
  const uint64_t end = area_bytes / kInfoAlign * kInfoAlign;
  const uint64_t half = end > log ? (end - log) / 2 : 0;
  return {.words = words,
          .log = log,
          .blob = log + half / kInfoAlign * kInfoAlign,
          .end = end};
}

// An area without room for a column or a pickled value.
constexpr uint64_t MinInfoAreaBytes(uint32_t rows) {
  return InfoAligned(sizeof(InfoAreaHeader) + 2 * sizeof(uint32_t) * rows);
}

}  // namespace tandem
