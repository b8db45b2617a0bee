// InfoAreaView: one worker's info area as the trainer reads it.
//
// Data flow: the area's bytes after an exchange -> checks -> private copies of
// header, words, columns and patterns; values and pickles stay in the area.
// Ownership: the area outlives the view. The worker may write anything at any
// time: only values and the bytes of pickles can then change.

#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "schema/layout/info_area.h"

namespace tandem {

class InfoAreaView {
 public:
  struct Column {
    InfoPart part;
    InfoValue value;
    FieldType type;  // known if HasValues(value)
    std::vector<ptrdiff_t> shape;
    std::string path;
    std::vector<std::string> keys;  // of the path; at least one
    const std::byte* values;        // of row 0; nullptr without values
    size_t value_bytes;
  };
  struct Pattern {
    InfoPart part;
    std::vector<uint32_t> columns;  // no path twice; a dict before its items
    size_t pickled;                 // columns whose values are in the blob
  };

  // Reads nothing yet. `area` has at least MinInfoAreaBytes(rows).
  InfoAreaView(std::span<const std::byte> area, uint32_t rows);

  // Reads an exchange. BrokenPeer: the bytes are not an area of these rows; the
  // other calls then return an empty exchange. Allocates if the worker has
  // added records, or if there are pickles.
  absl::Status Read();

  // 0: the exchange has no infos, and the words are not read.
  uint32_t rows_with_infos() const { return rows_with_infos_; }
  // Each is kNoInfo, kPickledInfo, or the number of a pattern of this part.
  std::span<const uint32_t> words(InfoPart part) const {
    const std::span<const uint32_t> all(words_);
    return part == InfoPart::kFinal ? all.last(rows_) : all.first(rows_);
  }
  // `word` is the number of a pattern.
  const Pattern& pattern(uint32_t word) const { return patterns_[word - 1]; }
  const std::vector<Column>& columns() const { return columns_; }
  // One for each word that needs one, in the order of rows; kFinal first.
  const std::vector<std::span<const std::byte>>& pickles() const {
    return pickles_;
  }
  // Counts the logs: columns() is new if it has changed.
  uint64_t logs() const { return logs_; }
  uint32_t rows() const { return rows_; }

 private:
  absl::Status ReadHeader(InfoAreaHeader* header);
  absl::Status ReadLog(uint64_t log_bytes);
  absl::Status AddColumn(uint64_t offset, uint64_t bytes);
  absl::Status AddPattern(uint64_t offset, uint64_t bytes);
  absl::Status ReadWords();
  absl::Status ReadPickles(uint64_t blob_bytes);

  const std::span<const std::byte> area_;
  const uint32_t rows_;
  const InfoAreaPlan plan_;
  uint64_t generation_ = 0;
  uint64_t logs_ = 0;
  uint64_t log_read_ = 0;
  uint32_t rows_with_infos_ = 0;
  std::vector<uint32_t> words_;
  std::vector<Column> columns_;
  std::vector<Pattern> patterns_;
  std::vector<std::span<const std::byte>> pickles_;
};

}  // namespace tandem
