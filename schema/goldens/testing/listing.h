// The annotated listing of the goldens.
//
// Data flow: lrbc_fields.h, flan_fields.h, scene_fields.h + the structs'
// offsets and types + sample bytes -> text, one row for each field.
//
//   for (const FieldRow& row : HeaderRows()) Check(row.offset, row.bytes);
//   std::string text = Listing();  // the content of lrbc_v1.txt

#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace tandem {

struct FieldRow {
  std::string name;
  size_t offset;
  size_t bytes;          // of all elements
  size_t element_bytes;  // the same, but for arrays
  std::string type;      // "u32", "u64 atomic", "u8[64]", "char[64]"
  std::string writer;
  std::string meaning;
  bool reserved;
};

// Rows in the order of their offsets.
std::vector<FieldRow> HeaderRows();  // of LrbcHeader
std::vector<FieldRow> AttendantSlotRows();
std::vector<FieldRow> ImageSlotRows();
std::vector<FieldRow> FieldRecordRows();
std::vector<FieldRow> GpuFileHandleRows();
std::vector<FieldRow> WorkersHeaderRows();
std::vector<FieldRow> WorkerSlotRows();
std::vector<FieldRow> RingHeaderRows();  // of RingHeader
std::vector<FieldRow> RingDataRows();    // of the sample's entries
std::vector<FieldRow> FlanHeaderRows();  // of FlanHeader
std::vector<FieldRow> FlanSlotRows();    // of the sample's slots
std::vector<FieldRow> SceneRows();       // of the sample's segment

// The complete listings, with the samples' values.
std::string Listing();      // of all rows but those of the next two
std::string FlanListing();  // FlanHeader and its slots
std::string SceneListing();

}  // namespace tandem
