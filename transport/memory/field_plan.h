// The records of a region's fields: the engine makes them, the client checks
// them.
//
// Data flow: FieldSpecs -> FieldRecordsOf -> records, which region_plan.cc
// places -> the region's table -> a client's copy -> CheckFieldRecords.
//
//   auto records = FieldRecordsOf(specs, header, &problems);
//   ... set each record's offset ...
//   CheckFieldRecords(header, records, &problems);

#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "schema/layout/field.h"
#include "schema/layout/lrbc.h"
#include "transport/region_spec.h"

namespace tandem {

// Whether the header's members of the table of fields are in use.
inline bool HasFields(const LrbcHeader& header) {
  return (header.feature_bits & kFeatureFields) != 0;
}

inline uint64_t FieldTableBytes(const LrbcHeader& header) {
  return uint64_t{header.field_count} * sizeof(FieldRecord);
}

// Returns the offset of the float32 rows that are this role's one field;
// nullopt: the role's fields have arrays of their own.
std::optional<uint64_t> RowsOf(const LrbcHeader& header, FieldRole role);

// Returns "field obs '/image'", for any bytes.
std::string FieldText(const FieldRecord& record);

// Returns what is wrong with the type, the shape or the path of a record, which
// texts call `name`; "": nothing. For any bytes.
std::string ValueProblem(const FieldRecord& record, const std::string& name);

// Returns the records of a region, without offsets: of the float32 rows, if
// obs_size or act_size is not 0, then of `specs` in their order. Each record of
// an observation is followed by that of its final observation. Appends a
// sentence to `problems` if a spec does not fit a record; CheckFieldRecords
// finds all other problems.
std::vector<FieldRecord> FieldRecordsOf(std::span<const FieldSpec> specs,
                                        const LrbcHeader& header,
                                        std::vector<std::string>* problems);

// Checks each record alone and the table as a whole, for any bytes: role, type,
// shape and path; the float32 rows; a final observation for each observation.
// Does not check whether an array is inside the region, or overlaps another
// one. Appends sentences, at most 16 of them.
void CheckFieldRecords(const LrbcHeader& header,
                       std::span<const FieldRecord> records,
                       std::vector<std::string>* problems);

}  // namespace tandem
