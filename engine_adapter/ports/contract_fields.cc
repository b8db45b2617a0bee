#include "engine_adapter/contract_fields.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/error.h"
#include "flatbuffers/flatbuffers.h"

namespace tandem {
namespace {

// What is expected of the values; "": they are that.
std::string Expected(const ContractField& field) {
  const std::vector<float>& values = field.values;
  const bool finite = std::ranges::all_of(
      values, [](float value) { return std::isfinite(value); });
  if (absl::EndsWith(field.name, "_range")) {
    if (finite && values.size() == 2 && values[0] <= values[1]) return "";
    return "[min, max], min <= max, both finite";
  }
  if (finite && std::ranges::all_of(values, [](float v) { return v >= 0; })) {
    return "";
  }
  return "finite numbers, 0 or more";
}

}  // namespace

absl::StatusOr<std::vector<ContractField>> ContractFields(
    const rpc::SimulationContractT& contract) {
  // Packed, fields that are 0 are absent. An empty list is not.
  flatbuffers::FlatBufferBuilder packed;
  packed.Finish(rpc::SimulationContract::Pack(packed, &contract));
  const auto& table =
      *flatbuffers::GetRoot<flatbuffers::Table>(packed.GetBufferPointer());
  const flatbuffers::TypeTable& type = *rpc::SimulationContractTypeTable();
  std::vector<ContractField> fields;
  for (size_t i = 0; i < type.num_elems; ++i) {
    const auto place =
        flatbuffers::FieldIndexToOffset(static_cast<flatbuffers::voffset_t>(i));
    if (!table.CheckField(place)) continue;
    ContractField field = {.name = type.names[i], .values = {}, .text = {}};
    const flatbuffers::TypeCode& code = type.type_codes[i];
    if (code.base_type == flatbuffers::ET_STRING) {
      field.text = table.GetPointer<const flatbuffers::String*>(place)->str();
    } else if (code.is_repeating != 0) {
      const auto& list =
          *table.GetPointer<const flatbuffers::Vector<float>*>(place);
      field.values.assign(list.begin(), list.end());
    } else {
      field.values = {table.GetField<float>(place, 0)};
    }
    if (field.values.empty() && field.text.empty()) continue;
    const std::string expected = Expected(field);
    if (!expected.empty()) {
      return MakeError(
          ErrorCode::kInvalidArgument,
          absl::StrCat(field.name, ": expected ", expected, "; found [",
                       absl::StrJoin(field.values, ", "),
                       "]; fix the contract"));
    }
    fields.push_back(std::move(field));
  }
  return fields;
}

}  // namespace tandem
