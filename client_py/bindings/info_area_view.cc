#include "client_py/bindings/info_area_view.h"

#include <algorithm>
#include <cstring>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "base/error.h"

namespace tandem {
namespace {

template <typename Expected, typename Found>
absl::Status Broken(absl::string_view what, const Expected& expected,
                    const Found& found) {
  return MakeError(
      ErrorCode::kBrokenPeer,
      absl::StrCat("info area: ", what, ": expected ", expected, ", found ",
                   found, "; another program may write to the region"));
}

template <typename T>
T Copied(std::span<const std::byte> area, uint64_t offset) {
  T copy;
  std::memcpy(&copy, area.data() + offset, sizeof(copy));
  return copy;
}

// The path of the dict that a path is in; "" at the top.
absl::string_view ParentOf(absl::string_view path) {
  return path.substr(0, path.rfind('/'));
}

}  // namespace

InfoAreaView::InfoAreaView(std::span<const std::byte> area, uint32_t rows)
    : area_(area),
      rows_(rows),
      plan_(PlanInfoArea(area.size(), rows)),
      words_(size_t{2} * rows, kNoInfo) {}

absl::Status InfoAreaView::Read() {
  rows_with_infos_ = 0;
  pickles_.clear();
  InfoAreaHeader header;
  TANDEM_RETURN_IF_ERROR(ReadHeader(&header));
  if (header.generation != generation_) {
    columns_.clear();
    patterns_.clear();
    log_read_ = 0;
    generation_ = header.generation;
    ++logs_;
  }
  if (header.rows_with_infos == 0) return absl::OkStatus();
  TANDEM_RETURN_IF_ERROR(ReadLog(header.log_bytes));
  TANDEM_RETURN_IF_ERROR(ReadWords());
  TANDEM_RETURN_IF_ERROR(ReadPickles(header.blob_bytes));
  rows_with_infos_ = header.rows_with_infos;
  return absl::OkStatus();
}

absl::Status InfoAreaView::ReadHeader(InfoAreaHeader* header) {
  *header = Copied<InfoAreaHeader>(area_, 0);
  if (header->magic != kInfoAreaMagic) {
    return Broken("magic", kInfoAreaMagic, header->magic);
  }
  if (header->version != kInfoAreaVersion) {
    return Broken("version", kInfoAreaVersion, header->version);
  }
  if (header->header_bytes != sizeof(InfoAreaHeader)) {
    return Broken("header_bytes", sizeof(InfoAreaHeader), header->header_bytes);
  }
  if (header->rows != rows_) return Broken("rows", rows_, header->rows);
  if (header->log_bytes > plan_.blob - plan_.log) {
    return Broken("log", absl::StrCat("at most ", plan_.blob - plan_.log),
                  header->log_bytes);
  }
  if (header->blob_bytes > plan_.end - plan_.blob) {
    return Broken("blob", absl::StrCat("at most ", plan_.end - plan_.blob),
                  header->blob_bytes);
  }
  return absl::OkStatus();
}

absl::Status InfoAreaView::ReadLog(uint64_t log_bytes) {
  while (log_read_ < log_bytes) {
    const uint64_t offset = plan_.log + log_read_;
    const uint64_t left = log_bytes - log_read_;
    if (left < sizeof(InfoPattern)) {
      return Broken("record", absl::StrCat("at least ", sizeof(InfoPattern)),
                    left);
    }
    // Both kinds of record begin with these members.
    const auto head = Copied<InfoPattern>(area_, offset);
    if (head.bytes < sizeof(head) || head.bytes > left ||
        head.bytes % kInfoAlign != 0) {
      return Broken("record", absl::StrCat(sizeof(head), " .. ", left),
                    head.bytes);
    }
    TANDEM_RETURN_IF_ERROR(head.kind == InfoRecordKind::kColumn
                               ? AddColumn(offset, head.bytes)
                               : AddPattern(offset, head.bytes));
    log_read_ += head.bytes;
  }
  return absl::OkStatus();
}

absl::Status InfoAreaView::AddColumn(uint64_t offset, uint64_t bytes) {
  if (bytes < sizeof(InfoColumn)) {
    return Broken("column", absl::StrCat("at least ", sizeof(InfoColumn)),
                  bytes);
  }
  const auto record = Copied<InfoColumn>(area_, offset);
  const bool typed = HasValues(record.value);
  if (!IsKnown(record.value) || record.part > InfoPart::kFinal ||
      (typed && !IsKnown(record.type)) || record.dims > kMaxFieldDims ||
      (record.dims > 0 && record.value != InfoValue::kArray)) {
    return Broken("column", "a known part, value, type and dims",
                  absl::StrCat(static_cast<int>(record.part), ", ",
                               static_cast<int>(record.value), ", ",
                               static_cast<int>(record.type), ", ",
                               static_cast<int>(record.dims)));
  }
  if (record.path_bytes >
      std::min<uint64_t>(kMaxInfoPathBytes, bytes - sizeof(InfoColumn))) {
    return Broken("path", absl::StrCat("at most ", bytes - sizeof(InfoColumn)),
                  record.path_bytes);
  }
  Column column = {.part = record.part,
                   .value = record.value,
                   .type = record.type,
                   .shape = {record.shape, record.shape + record.dims},
                   .path = std::string(record.path_bytes, '\0'),
                   .keys = {},
                   .values = nullptr,
                   .value_bytes = 0};
  std::memcpy(column.path.data(), area_.data() + offset + sizeof(InfoColumn),
              column.path.size());
  if (!column.path.starts_with('/')) {
    return Broken("path", "a JSON pointer", column.path);
  }
  for (absl::string_view key :
       absl::StrSplit(absl::string_view(column.path).substr(1), '/')) {
    column.keys.push_back(absl::StrReplaceAll(key, {{"~1", "/"}, {"~0", "~"}}));
  }
  if (typed) {
    uint64_t size = ElementBytes(record.type);
    for (const ptrdiff_t length : column.shape) {
      // Saturates: each factor is below 2^32, and the area at most 2^30.
      size = std::min(size * static_cast<uint64_t>(length), kMaxInfoAreaBytes);
    }
    const uint64_t head = InfoAligned(sizeof(InfoColumn) + record.path_bytes);
    if (head > bytes || size * rows_ > bytes - head) {
      return Broken("values", absl::StrCat("at most ", bytes), size * rows_);
    }
    column.values = area_.data() + offset + head;
    column.value_bytes = size;
  }
  columns_.push_back(std::move(column));
  return absl::OkStatus();
}

absl::Status InfoAreaView::AddPattern(uint64_t offset, uint64_t bytes) {
  const auto record = Copied<InfoPattern>(area_, offset);
  if (record.kind != InfoRecordKind::kPattern ||
      record.part > InfoPart::kFinal) {
    return Broken("record", "a column or pattern",
                  static_cast<int>(record.kind));
  }
  const uint64_t room = (bytes - sizeof(InfoPattern)) / sizeof(uint32_t);
  if (record.columns > room) {
    return Broken("pattern", absl::StrCat("at most ", room, " columns"),
                  record.columns);
  }
  Pattern pattern = {.part = record.part,
                     .columns = std::vector<uint32_t>(record.columns),
                     .pickled = 0};
  if (!pattern.columns.empty()) {
    std::memcpy(pattern.columns.data(),
                area_.data() + offset + sizeof(InfoPattern),
                pattern.columns.size() * sizeof(uint32_t));
  }
  std::set<absl::string_view> paths;
  std::set<absl::string_view> dicts = {""};
  for (const uint32_t number : pattern.columns) {
    if (number >= columns_.size() || columns_[number].part != record.part) {
      return Broken("pattern", "earlier columns of its part", number);
    }
    const Column& column = columns_[number];
    if (!paths.insert(column.path).second ||
        !dicts.contains(ParentOf(column.path))) {
      return Broken("pattern", "each path once, a dict before its items",
                    column.path);
    }
    if (column.value == InfoValue::kDict) dicts.insert(column.path);
    if (IsPickled(column.value)) ++pattern.pickled;
  }
  patterns_.push_back(std::move(pattern));
  return absl::OkStatus();
}

absl::Status InfoAreaView::ReadWords() {
  std::memcpy(words_.data(), area_.data() + plan_.words,
              words_.size() * sizeof(uint32_t));
  for (const InfoPart part : {InfoPart::kInfo, InfoPart::kFinal}) {
    for (const uint32_t word : words(part)) {
      if (word == kNoInfo || word == kPickledInfo) continue;
      if (word > patterns_.size() || pattern(word).part != part) {
        return Broken("word",
                      absl::StrCat("one of ", patterns_.size(), " patterns"),
                      word);
      }
    }
  }
  return absl::OkStatus();
}

absl::Status InfoAreaView::ReadPickles(uint64_t blob_bytes) {
  uint64_t offset = plan_.blob;
  const uint64_t end = plan_.blob + blob_bytes;
  for (uint32_t row = 0; row < rows_; ++row) {
    for (const InfoPart part : {InfoPart::kFinal, InfoPart::kInfo}) {
      const uint32_t word = words(part)[row];
      if (word == kNoInfo ||
          (word != kPickledInfo && pattern(word).pickled == 0)) {
        continue;
      }
      if (end - offset < sizeof(InfoPickle)) {
        return Broken("blob", "a pickle for each row that needs one",
                      absl::StrCat("none for row ", row));
      }
      const auto entry = Copied<InfoPickle>(area_, offset);
      offset += sizeof(InfoPickle);
      if (entry.row != row || entry.part != part ||
          entry.bytes > end - offset ||
          InfoAligned(entry.bytes) > end - offset) {
        return Broken(
            "pickle",
            absl::StrCat("row ", row, ", at most ", end - offset, " bytes"),
            absl::StrCat("row ", entry.row, ", ", entry.bytes, " bytes"));
      }
      pickles_.push_back(area_.subspan(offset, entry.bytes));
      offset += InfoAligned(entry.bytes);
    }
  }
  return absl::OkStatus();
}

}  // namespace tandem
