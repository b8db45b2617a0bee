#include "schema/goldens/testing/listing.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <span>
#include <type_traits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "schema/goldens/testing/flan_fields.h"
#include "schema/goldens/testing/lrbc_fields.h"
#include "schema/goldens/testing/samples.h"
#include "schema/goldens/testing/scene_fields.h"
#include "schema/layout/attendant_slot.h"
#include "schema/layout/field.h"
#include "schema/layout/flan.h"
#include "schema/layout/image_slot.h"
#include "schema/layout/lrbc.h"
#include "schema/layout/ring_header.h"
#include "schema/layout/scene.h"
#include "schema/layout/shared_word.h"
#include "schema/layout/worker_slot.h"

namespace tandem {
namespace {

template <typename T>
struct TypeName {
  static std::string Get() {
    if constexpr (std::is_enum_v<T>) {
      return TypeName<std::underlying_type_t<T>>::Get();
    } else if constexpr (std::is_same_v<T, char>) {
      return "char";
    } else if constexpr (std::is_floating_point_v<T>) {
      return absl::StrCat("f", 8 * sizeof(T));
    } else {
      static_assert(std::is_unsigned_v<T>, "the layout has no such type yet");
      return absl::StrCat("u", 8 * sizeof(T));
    }
  }
};
template <>
struct TypeName<SharedDouble> {
  static std::string Get() { return "f64 atomic"; }
};
template <typename T>
struct TypeName<SharedWord<T>> {
  static std::string Get() { return TypeName<T>::Get() + " atomic"; }
};
template <typename T, size_t kSize>
struct TypeName<T[kSize]> {
  static std::string Get() {
    return absl::StrCat(TypeName<T>::Get(), "[", kSize, "]");
  }
};

template <typename T>
FieldRow Describe(const char* name, size_t offset, const char* writer,
                  const char* meaning) {
  const bool reserved = *writer == '\0';
  return {.name = reserved ? "reserved" : name,
          .offset = offset,
          .bytes = sizeof(T),
          .element_bytes = sizeof(std::remove_extent_t<T>),
          .type = TypeName<T>::Get(),
          .writer = reserved ? "nobody" : writer,
          .meaning = meaning,
          .reserved = reserved};
}

uint64_t IntegerAt(std::span<const uint8_t> sample, size_t offset,
                   size_t bytes) {
  uint64_t value = 0;
  std::memcpy(&value, &sample[offset], bytes);  // little endian, as the layout
  return value;
}

// "41 42 43 44 .. 50": up to 8 bytes, or the first four and the last.
std::string BytesOf(std::span<const uint8_t> bytes) {
  std::string text;
  for (size_t i = 0; i < bytes.size(); ++i) {
    if (bytes.size() > 8 && i >= 4 && i + 1 < bytes.size()) {
      if (i == 4) text += " ..";
      continue;
    }
    absl::StrAppendFormat(&text, "%s%02x", i == 0 ? "" : " ", bytes[i]);
  }
  return text;
}

std::string ValueOf(const FieldRow& row, std::span<const uint8_t> sample) {
  if (row.type.starts_with("char")) {
    const auto* text = reinterpret_cast<const char*>(&sample[row.offset]);
    return absl::StrCat("\"", std::string(text, strnlen(text, row.bytes)),
                        "\"");
  }
  if (row.type.starts_with("f64")) {
    double value = 0;
    std::memcpy(&value, &sample[row.offset], sizeof(value));
    return absl::StrCat(value);
  }
  if (row.type.starts_with("f32")) {
    float value = 0;
    std::memcpy(&value, &sample[row.offset], sizeof(value));
    return absl::StrCat(value);
  }
  const auto at = [&](size_t index) {
    return absl::StrCat(IntegerAt(
        sample, row.offset + index * row.element_bytes, row.element_bytes));
  };
  const size_t count = row.bytes / row.element_bytes;
  if (count == 0) return "none";
  if (row.reserved || count == 1) return at(0);
  return absl::StrCat(at(0), ", ", at(1), " .. ", at(count - 1));
}

std::string Table(const std::vector<FieldRow>& rows,
                  std::span<const uint8_t> sample) {
  std::vector<std::vector<std::string>> cells = {{"offset", "size", "type",
                                                  "name", "writer", "bytes",
                                                  "value", "meaning"}};
  for (const FieldRow& row : rows) {
    cells.push_back({absl::StrCat(row.offset), absl::StrCat(row.bytes),
                     row.type, row.name, row.writer,
                     BytesOf(sample.subspan(row.offset, row.bytes)),
                     ValueOf(row, sample), row.meaning});
  }
  std::vector<size_t> widths(cells.front().size());
  for (const auto& line : cells) {
    for (size_t i = 0; i < line.size(); ++i) {
      widths[i] = std::max(widths[i], line[i].size());
    }
  }
  std::string text;
  for (const auto& line : cells) {
    for (size_t i = 0; i + 1 < line.size(); ++i) {
      absl::StrAppendFormat(&text, i < 2 ? "%*s  " : "%-*s  ",
                            static_cast<int>(widths[i]), line[i]);
    }
    absl::StrAppend(&text, line.back(), "\n");
  }
  return text;
}

}  // namespace

std::vector<FieldRow> HeaderRows() {
  using Struct = LrbcHeader;
#define TANDEM_FIELD(name, writer, meaning)                                    \
  Describe<std::remove_reference_t<decltype((std::declval<Struct&>().name))>>( \
      #name, offsetof(Struct, name), writer, meaning),
#define TANDEM_RESERVED(name) TANDEM_FIELD(name, "", "zero")
  return {TANDEM_LRBC_FIELDS(TANDEM_FIELD, TANDEM_RESERVED)};
}

std::vector<FieldRow> AttendantSlotRows() {
  using Struct = AttendantSlot;
  return {TANDEM_ATTENDANT_FIELDS(TANDEM_FIELD, TANDEM_RESERVED)};
}

std::vector<FieldRow> ImageSlotRows() {
  using Struct = ImageSlot;
  return {TANDEM_IMAGE_SLOT_FIELDS(TANDEM_FIELD, TANDEM_RESERVED)};
}

std::vector<FieldRow> FieldRecordRows() {
  using Struct = FieldRecord;
  return {TANDEM_FIELD_RECORD_FIELDS(TANDEM_FIELD, TANDEM_RESERVED)};
}

std::vector<FieldRow> GpuFileHandleRows() {
  using Struct = GpuFileHandle;
  return {TANDEM_GPU_FILE_HANDLE_FIELDS(TANDEM_FIELD, TANDEM_RESERVED)};
}

std::vector<FieldRow> WorkersHeaderRows() {
  using Struct = WorkersHeader;
  return {TANDEM_WORKERS_HEADER_FIELDS(TANDEM_FIELD, TANDEM_RESERVED)};
}

std::vector<FieldRow> WorkerSlotRows() {
  using Struct = WorkerSlot;
  return {TANDEM_WORKER_SLOT_FIELDS(TANDEM_FIELD, TANDEM_RESERVED)};
}

std::vector<FieldRow> RingHeaderRows() {
  using Struct = RingHeader;
  return {TANDEM_RING_FIELDS(TANDEM_FIELD, TANDEM_RESERVED)};
}

std::vector<FieldRow> FlanHeaderRows() {
  using Struct = FlanHeader;
  return {TANDEM_FLAN_FIELDS(TANDEM_FIELD)};
}

std::vector<FieldRow> FlanSlotRows() {
  using Struct = FlanSlot;
  std::vector<FieldRow> rows;
  size_t offset = sizeof(FlanHeader);
  for (uint32_t slot = 0; slot < kSampleFlanSlots; ++slot) {
    for (FieldRow row : {TANDEM_FLAN_SLOT_FIELDS(TANDEM_FIELD)}) {
      row.offset += offset;
      rows.push_back(std::move(row));
    }
    offset += sizeof(FlanSlot);
    rows.push_back({.name = "pixels",
                    .offset = offset,
                    .bytes = kSampleFlanFrameBytes,
                    .element_bytes = 1,
                    .type = absl::StrCat("u8[", kSampleFlanFrameBytes, "]"),
                    .writer = "writer",
                    .meaning = "rows from the top, R, G, B",
                    .reserved = false});
    offset += kSampleFlanFrameBytes;
  }
  return rows;
}

std::vector<FieldRow> SceneRows() {
  std::vector<FieldRow> rows;
  const auto end = [&rows] { return rows.back().offset + rows.back().bytes; };
  const auto add = [&rows](size_t offset, std::vector<FieldRow> part) {
    for (FieldRow& row : part) {
      row.offset += offset;
      rows.push_back(std::move(row));
    }
  };
  const auto add_bytes = [&](const char* name, size_t bytes, const char* writer,
                             const char* meaning) {
    add(end(), {{.name = name,
                 .offset = 0,
                 .bytes = bytes,
                 .element_bytes = 1,
                 .type = absl::StrCat("u8[", bytes, "]"),
                 .writer = writer,
                 .meaning = meaning,
                 .reserved = false}});
  };
  {
    using Struct = SceneHeader;
    add(0, {TANDEM_SCENE_FIELDS(TANDEM_FIELD)});
  }
  add_bytes("glb", kSampleGlbBytes, "engine",
            "glTF 2.0, binary form; here its first 12 bytes only");
  add_bytes("padding", kSceneAlignment - kSampleGlbBytes, "nobody",
            "to the next multiple of 64");
  add(end(), FlanHeaderRows());
  {
    using Struct = FlanSlot;
    add(end(), {TANDEM_FLAN_SLOT_FIELDS(TANDEM_FIELD)});
  }
  {
    using Struct = SnapshotHead;
    add(end(), {TANDEM_SNAPSHOT_HEAD_FIELDS(TANDEM_FIELD, TANDEM_RESERVED)});
  }
  {
    using Struct = SceneRow;
    add(end(), {TANDEM_SCENE_ROW_FIELDS(TANDEM_FIELD)});
  }
  for (const char* const part : {"x", "y", "z", "qx", "qy", "qz", "qw"}) {
    add(end(), {Describe<float>(part, 0, "engine",
                                "of the first moving node, in the world")});
  }
  add_bytes("padding", 4, "nobody", "to the next multiple of 8");
  add_bytes("slots", SampleScene().size() - end(), "engine", "empty");
  return rows;
#undef TANDEM_RESERVED
#undef TANDEM_FIELD
}

std::vector<FieldRow> RingDataRows() {
  std::vector<FieldRow> rows;
  const auto add = [&rows](const char* name, size_t bytes, const char* meaning,
                           bool is_length) {
    const size_t offset = rows.empty() ? sizeof(RingHeader)
                                       : rows.back().offset + rows.back().bytes;
    rows.push_back({.name = name,
                    .offset = offset,
                    .bytes = bytes,
                    .element_bytes = is_length ? bytes : 1,
                    .type = is_length ? "u32" : absl::StrCat("u8[", bytes, "]"),
                    .writer = "ring's writer",
                    .meaning = meaning,
                    .reserved = false});
  };
  add("length", 4, "third entry: bytes of its message", true);
  add("message", 44, "fills the entry to a multiple of 8: no padding", false);
  add("length", 4, "first entry, where read_pos points, modulo the size", true);
  add("message", 27, "a FlatBuffer in real rings", false);
  add("padding", 1, "zero, to the next multiple of 8", false);
  add("length", 4, "second entry: an empty message", true);
  add("padding", 4, "zero, to the next multiple of 8", false);
  add("length", 4, "skip: what follows would not fit before the end", true);
  add("skipped", 36, "anything, up to the end of the data", false);
  return rows;
}

std::string FlanListing() {
  const std::vector<uint8_t> ring = SampleFlan();
  std::vector<FieldRow> rows = FlanHeaderRows();
  for (FieldRow& row : FlanSlotRows()) rows.push_back(std::move(row));
  return absl::StrCat(
      "The FLAN layout, version 1. Generated; README.md says how.\n"
      "Numbers are little-endian. Offsets and sizes are bytes. Of more than 8 "
      "bytes, the first four and the last are shown.\n\n"
      "flan_v1.bin: a ring of two slots for frames of 2x2 RGB pixels and no "
      "metadata, after three frames: the third has overwritten the first, and "
      "the second slot is misaligned\n\n",
      Table(rows, ring));
}

std::string SceneListing() {
  return absl::StrCat(
      "The layout of a live scene, version 1. Generated; README.md says how.\n"
      "Numbers are little-endian. Offsets and sizes are bytes. Of more than 8 "
      "bytes, the first four and the last are shown.\n\n"
      "scene_v1.bin: a segment of one environment with one moving node, after "
      "a "
      "snapshot\n\n",
      Table(SceneRows(), SampleScene()));
}

std::string Listing() {
  const LrbcHeader header = SampleHeader();
  const AttendantSlot slot = SampleAttendantSlot();
  const ImageSlot image_slot = SampleImageSlot();
  const FieldRecord field = SampleField();
  const LrbcHeader gpu_memory = SampleGpuMemoryHeader();
  const WorkersHeader workers_head = SampleWorkersHead();
  const WorkerSlot worker_slot = SampleWorkerSlot();
  const std::vector<uint8_t> ring = SampleRing();
  std::vector<FieldRow> ring_rows = RingHeaderRows();
  for (FieldRow& row : RingDataRows()) ring_rows.push_back(std::move(row));
  return absl::StrCat(
      "The LRBC layout, version 1. Generated; README.md says how.\n"
      "Numbers are little-endian. Offsets and sizes are bytes. Of more than 8 "
      "bytes, the first four and the last are shown.\n\n"
      "lrbc_v1.bin: a region's header\n\n",
      Table(HeaderRows(),
            {reinterpret_cast<const uint8_t*>(&header), sizeof(header)}),
      "\nattendant_slot_v1.bin: an attendant's slot, without its two rings\n\n",
      Table(AttendantSlotRows(),
            {reinterpret_cast<const uint8_t*>(&slot), sizeof(slot)}),
      "\nimage_slot_v1.bin: a slot of a requested image, without the image\n\n",
      Table(ImageSlotRows(), {reinterpret_cast<const uint8_t*>(&image_slot),
                              sizeof(image_slot)}),
      "\nfield_v1.bin: a record of the table of fields\n\n",
      Table(FieldRecordRows(),
            {reinterpret_cast<const uint8_t*>(&field), sizeof(field)}),
      "\nlrbc_v1_gpu_memory.bin: gpu_obs_handle, with gpu_obs_mode 2\n\n",
      Table(GpuFileHandleRows(), gpu_memory.gpu_obs_handle),
      "\nworkers_header_v1.bin: the first part of the workers' section\n\n",
      Table(WorkersHeaderRows(),
            {reinterpret_cast<const uint8_t*>(&workers_head),
             sizeof(workers_head)}),
      "\nworker_slot_v1.bin: a worker's slot\n\n",
      Table(WorkerSlotRows(), {reinterpret_cast<const uint8_t*>(&worker_slot),
                               sizeof(worker_slot)}),
      "\nring_v1.bin: a command ring of ", kSampleRingBytes,
      " bytes of data, exactly full; its positions have wrapped modulo 2^32, "
      "and its third entry lies at the start\n\n",
      Table(ring_rows, ring));
}

}  // namespace tandem
