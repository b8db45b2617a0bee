#include "transport/memory/field_plan.h"

#include <algorithm>
#include <cstddef>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "base/printable.h"
#include "transport/memory/mismatch.h"
#include "utf8cpp/utf8.h"

namespace tandem {
namespace {

constexpr size_t kMostProblems = 16;

// A role whose field has one number for each environment, and no path.
struct NumberRole {
  FieldRole role;
  FieldType type;
};
constexpr NumberRole kNumberRoles[] = {
    {FieldRole::kReward, FieldType::kFloat64},
    {FieldRole::kStatus, FieldType::kUint8},
    {FieldRole::kEpisodeReturn, FieldType::kFloat64},
    {FieldRole::kEpisodeLength, FieldType::kInt64},
};

FieldRecord RecordOf(FieldRole role, const FieldSpec& spec) {
  FieldRecord record = {};
  record.role = role;
  record.type = spec.type;
  record.dims = static_cast<uint8_t>(spec.shape.size());
  std::ranges::copy(spec.shape, record.shape);
  std::ranges::copy(spec.path, record.path);
  return record;
}

// The record of float32 rows.
FieldRecord RowRecord(FieldRole role, uint32_t size) {
  return RecordOf(role, {.type = FieldType::kFloat32, .shape = {size}});
}

std::string TypeText(const FieldRecord& record) {
  std::string text = absl::StrCat(NameOf(record.type), "[");
  for (uint32_t i = 0; i < std::min<uint32_t>(record.dims, kMaxFieldDims);
       ++i) {
    absl::StrAppend(&text, i == 0 ? "" : ", ", record.shape[i]);
  }
  return absl::StrCat(text, "]");
}

bool SameValues(const FieldRecord& a, const FieldRecord& b) {
  return a.type == b.type && a.dims == b.dims &&
         std::ranges::equal(a.shape, b.shape);
}

bool IsJsonPointer(absl::string_view path) {
  if (!path.empty() && path[0] != '/') return false;
  for (size_t at = 0; at < path.size(); ++at) {
    if (path[at] != '~') continue;
    const char next = at + 1 < path.size() ? path[at + 1] : '\0';
    if (next != '0' && next != '1') return false;
  }
  return true;
}

// The functions below return what is wrong; "": nothing.

std::string ShapeProblem(const FieldRecord& record, absl::string_view name) {
  if (record.dims > kMaxFieldDims) {
    return Mismatch(absl::StrCat("the dimensions of ", name),
                    absl::StrCat("in 0 .. ", kMaxFieldDims),
                    absl::StrCat(uint32_t{record.dims}));
  }
  for (uint32_t i = 0; i < kMaxFieldDims; ++i) {
    const uint32_t size = record.shape[i];
    const bool fits =
        i < record.dims ? size >= 1 && size <= kMaxFieldDim : size == 0;
    if (fits) continue;
    return Mismatch(
        absl::StrCat("shape[", i, "] of ", name),
        i < record.dims ? absl::StrCat("in 1 .. ", kMaxFieldDim) : "0",
        absl::StrCat(size));
  }
  if (FieldValues(record) == 0) {
    return Mismatch(
        absl::StrCat("the values of ", name),
        absl::StrCat("at most ", kMaxFieldValues, " for each environment"),
        absl::StrCat("the shape of ", TypeText(record)));
  }
  return "";
}

std::string PathProblem(const FieldRecord& record, absl::string_view name) {
  const absl::string_view path = PathOf(record);
  const absl::string_view rest(record.path + path.size(),
                               sizeof(record.path) - path.size());
  if (rest.empty() || rest.find_first_not_of('\0') != absl::string_view::npos) {
    return Mismatch(absl::StrCat("the path of ", name),
                    "to end with zeros up to its last byte", "other bytes");
  }
  if (!utf8::is_valid(path.begin(), path.end())) {
    return Mismatch(absl::StrCat("the path of ", name), "in UTF-8",
                    "other bytes");
  }
  if (!IsJsonPointer(path)) {
    return Mismatch(absl::StrCat("the path of ", name),
                    "to be a JSON pointer, such as '/image'", "another text");
  }
  return "";
}

std::string NumberProblem(const FieldRecord& record, absl::string_view name) {
  for (const NumberRole& number : kNumberRoles) {
    if (record.role != number.role) continue;
    if (record.type == number.type && record.dims == 0 &&
        record.path[0] == '\0') {
      return "";
    }
    return Mismatch(
        std::string(name),
        absl::StrCat("with ", NameOf(number.type), "[] and no path"),
        TypeText(record));
  }
  return "";
}

std::string RowsProblem(const LrbcHeader& header, const FieldRecord& record,
                        absl::string_view name) {
  const std::optional<uint64_t> rows = RowsOf(header, record.role);
  if (!rows) return "";
  const FieldRecord expected = RowRecord(
      record.role,
      record.role == FieldRole::kAction ? header.act_size : header.obs_size);
  if (SameValues(record, expected) && record.offset == *rows &&
      record.path[0] == '\0') {
    return "";
  }
  return Mismatch(
      std::string(name),
      absl::StrCat("to be the ", TypeText(expected), " at the header's offset ",
                   *rows, ", without a path"),
      absl::StrCat(TypeText(record), " at ", record.offset));
}

std::string ProblemOf(const LrbcHeader& header, const FieldRecord& record,
                      size_t index) {
  if (!IsKnown(record.role) || record.role > FieldRole::kEpisodeLength) {
    return Mismatch(absl::StrCat("the role of field ", index),
                    absl::StrCat("in 1 .. ", static_cast<uint32_t>(
                                                 FieldRole::kEpisodeLength)),
                    absl::StrCat(static_cast<uint32_t>(record.role)));
  }
  const std::string name = FieldText(record);
  std::string problem = ValueProblem(record, name);
  if (problem.empty()) problem = NumberProblem(record, name);
  if (problem.empty()) problem = RowsProblem(header, record, name);
  return problem;
}

// The records by role and path.
using Index =
    std::map<std::pair<FieldRole, absl::string_view>, const FieldRecord*>;

// An observation needs its final observation, and the reverse.
std::string PairProblem(const FieldRecord& record, const Index& index) {
  const bool is_obs = record.role == FieldRole::kObs;
  if (!is_obs && record.role != FieldRole::kFinalObs) return "";
  const FieldRole other = is_obs ? FieldRole::kFinalObs : FieldRole::kObs;
  const auto found = index.find({other, PathOf(record)});
  if (found != index.end() && SameValues(record, *found->second)) return "";
  return Mismatch(
      FieldText(record),
      absl::StrCat("to have a field ", NameOf(other), " of ", TypeText(record)),
      found == index.end() ? "none" : TypeText(*found->second));
}

bool HasRole(std::span<const FieldRecord> records, FieldRole role) {
  return std::ranges::any_of(records, [role](const FieldRecord& record) {
    return record.role == role;
  });
}

}  // namespace

std::optional<uint64_t> RowsOf(const LrbcHeader& header, FieldRole role) {
  switch (role) {
    case FieldRole::kObs:
      if (header.obs_size != 0) return header.obs_offset;
      break;
    case FieldRole::kFinalObs:
      if (header.obs_size != 0) return header.final_obs_offset;
      break;
    case FieldRole::kAction:
      if (header.act_size != 0) return header.act_offset;
      break;
    default:
      break;
  }
  return std::nullopt;
}

std::string FieldText(const FieldRecord& record) {
  return absl::StrCat("field ", NameOf(record.role), " '",
                      Printable(PathOf(record)), "'");
}

std::string ValueProblem(const FieldRecord& record, const std::string& name) {
  if (!IsKnown(record.type)) {
    return Mismatch(absl::StrCat("the type of ", name),
                    absl::StrCat("in 1 .. ", kFieldTypes.size()),
                    absl::StrCat(static_cast<uint32_t>(record.type)));
  }
  std::string problem = ShapeProblem(record, name);
  return problem.empty() ? PathProblem(record, name) : problem;
}

std::vector<FieldRecord> FieldRecordsOf(std::span<const FieldSpec> specs,
                                        const LrbcHeader& header,
                                        std::vector<std::string>* problems) {
  std::vector<FieldRecord> records;
  if (header.obs_size != 0) {
    records.push_back(RowRecord(FieldRole::kObs, header.obs_size));
    records.push_back(RowRecord(FieldRole::kFinalObs, header.obs_size));
  }
  if (header.act_size != 0) {
    records.push_back(RowRecord(FieldRole::kAction, header.act_size));
  }
  for (const FieldSpec& spec : specs) {
    if (spec.shape.size() > kMaxFieldDims ||
        spec.path.size() > kMaxFieldPathBytes) {
      problems->push_back(Mismatch(
          absl::StrCat("field ", NameOf(spec.role), " '",
                       PrintableHead(spec.path, kMaxFieldPathBytes), "'"),
          absl::StrCat("of at most ", kMaxFieldDims,
                       " dimensions and a path of at most ", kMaxFieldPathBytes,
                       " bytes"),
          absl::StrCat(spec.shape.size(), " and ", spec.path.size())));
      continue;
    }
    records.push_back(RecordOf(spec.role, spec));
    if (spec.role == FieldRole::kObs) {
      records.push_back(RecordOf(FieldRole::kFinalObs, spec));
    }
  }
  return records;
}

void CheckFieldRecords(const LrbcHeader& header,
                       std::span<const FieldRecord> records,
                       std::vector<std::string>* problems) {
  const size_t most = problems->size() + kMostProblems;
  const auto add = [&](std::string problem) {
    if (!problem.empty() && problems->size() < most) {
      problems->push_back(std::move(problem));
    }
  };
  const size_t before = problems->size();
  Index index;
  for (size_t i = 0; i < records.size(); ++i) {
    add(ProblemOf(header, records[i], i));
    const std::pair key(records[i].role, PathOf(records[i]));
    if (!index.emplace(key, &records[i]).second) {
      add(Mismatch(FieldText(records[i]), "once", "it twice"));
    }
  }
  if (problems->size() != before) return;
  for (const FieldRecord& record : records) add(PairProblem(record, index));
  for (const FieldRole role : {FieldRole::kObs, FieldRole::kAction}) {
    if (HasRole(records, role)) continue;
    add(Mismatch(absl::StrCat("a field of the role ", NameOf(role)), "or more",
                 "none"));
  }
}

}  // namespace tandem
