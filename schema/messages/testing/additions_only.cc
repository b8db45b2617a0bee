#include "schema/messages/testing/additions_only.h"

#include <string>
#include <vector>

#include "flatbuffers/idl.h"

namespace tandem {
namespace {

using flatbuffers::EnumDef;
using flatbuffers::EnumVal;
using flatbuffers::FieldDef;
using flatbuffers::Parser;
using flatbuffers::StructDef;
using Problems = std::vector<std::string>;

std::string FullName(const flatbuffers::Definition& definition) {
  return definition.defined_namespace->GetFullyQualifiedName(definition.name);
}

void CompareFields(const StructDef& older, const StructDef& newer,
                   Problems& problems) {
  for (const FieldDef* field : older.fields.vec) {
    const std::string name = FullName(older) + "." + field->name;
    const FieldDef* now = newer.fields.Lookup(field->name);
    if (now == nullptr) {
      problems.push_back(name + " was removed or renamed");
    } else if (now->deprecated && !field->deprecated) {
      problems.push_back(name + " was deprecated: no code can reach it");
    } else if (now->presence != field->presence) {
      problems.push_back(name + " changed whether it may be absent");
    }
  }
  for (const FieldDef* field : newer.fields.vec) {
    if (field->IsRequired() && older.fields.Lookup(field->name) == nullptr) {
      problems.push_back(FullName(newer) + "." + field->name +
                         " is new and required: older messages lack it");
    }
  }
}

void CompareStructs(Parser& older, Parser& newer, Problems& problems) {
  for (const StructDef* before : older.structs_.vec) {
    const StructDef* now = newer.LookupStruct(FullName(*before));
    if (now == nullptr) {
      problems.push_back(FullName(*before) + " was removed or renamed");
    } else if (now->fixed != before->fixed) {
      problems.push_back(FullName(*before) +
                         " is a struct on one side and a table on the other");
    } else if (now->fixed &&
               now->fields.vec.size() > before->fields.vec.size()) {
      problems.push_back(FullName(*before) +
                         " grew: a struct's size never changes");
    } else {
      CompareFields(*before, *now, problems);
    }
  }
}

void CompareEnums(const Parser& older, const Parser& newer,
                  Problems& problems) {
  for (const EnumDef* before : older.enums_.vec) {
    const EnumDef* now = newer.enums_.Lookup(FullName(*before));
    if (now == nullptr) {
      problems.push_back(FullName(*before) + " was removed or renamed");
      continue;
    }
    if (now->underlying_type.base_type != before->underlying_type.base_type ||
        now->is_union != before->is_union) {
      problems.push_back(FullName(*before) + " changed its type");
    }
    for (const EnumVal* value : before->Vals()) {
      if (now->Lookup(value->name) == nullptr) {
        problems.push_back(FullName(*before) + "." + value->name +
                           " was removed or renamed");
      }
    }
  }
}

}  // namespace

Problems NotAdditions(Parser& older, Parser& newer) {
  Problems problems;
  // Does what `flatc --conform` does: offsets, types, defaults, enum values.
  if (const std::string moved = newer.ConformTo(older); !moved.empty()) {
    problems.push_back(moved);
  }
  CompareStructs(older, newer, problems);
  CompareEnums(older, newer, problems);
  if (newer.root_struct_def_ == nullptr || older.root_struct_def_ == nullptr ||
      FullName(*newer.root_struct_def_) != FullName(*older.root_struct_def_)) {
    problems.push_back("the root type changed");
  }
  if (newer.file_identifier_ != older.file_identifier_) {
    problems.push_back("the file identifier changed");
  }
  return problems;
}

}  // namespace tandem
