// Field: a row of a table of a struct's fields. A row has the field's key in
// JSON, the key's meaning, and the field's line of a text.
//
// Data flow: a table, a struct -> ObjectOf -> JSON; a table -> KeysOf -> the
// documented keys.
// Ownership: tables are constants.

#pragma once

#include <cstddef>
#include <initializer_list>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "absl/time/time.h"
#include "viz/inspect/inspection.h"

namespace tandem::field_table {

using Json = nlohmann::ordered_json;

struct InspectionAt {
  const Inspection& inspection;
  absl::Time now;
  absl::TimeZone zone;
};
template <typename T>
using TextFunction = std::string (*)(const T&, const InspectionAt&);

struct Key {
  std::string key;
  const char* meaning;
};

// A field of a T.
template <typename T>
struct Field {
  const char* key = nullptr;  // ends with "[]": an array; nullptr: text only
  // "": the next field's meaning explains both; nullptr: another one does.
  const char* meaning = nullptr;
  Json (*value)(const T&) = nullptr;
  std::vector<Key> (*keys)() = nullptr;  // of the object, or of each element
  const char* title = nullptr;           // of the line; nullptr: a block
  TextFunction<T> text = nullptr;        // returns "": no line
};

template <typename T, typename Member>
std::type_identity<T> StructFor(Member T::*);  // not defined
template <auto kMember>
using StructOf = typename decltype(StructFor(kMember))::type;

template <typename T>
void AddFields(std::span<const Field<T>> fields, const T& from, Json* json) {
  for (const Field<T>& field : fields) {
    if (field.key == nullptr) continue;
    (*json)[std::string(absl::StripSuffix(field.key, "[]"))] =
        field.value(from);
  }
}

template <const auto& kFields>
std::vector<Key> KeysOf() {
  std::vector<Key> keys;
  for (const auto& field : kFields) {
    if (field.key != nullptr && field.meaning != nullptr) {
      keys.push_back({field.key, field.meaning});
    }
    if (field.keys == nullptr) continue;
    for (const Key& key : field.keys()) {
      keys.push_back({absl::StrCat(field.key, ".", key.key), key.meaning});
    }
  }
  return keys;
}

// A number, text, list, or the name of an enumeration's value.
template <typename T>
Json ValueOf(const T& value) {
  if constexpr (std::is_enum_v<T>) {
    return Json(NameOf(value));
  } else {
    return Json(value);
  }
}
template <typename T>
Json ValueOf(const std::optional<T>& value) {
  return value ? ValueOf(*value) : Json(nullptr);
}

template <const auto& kFields, typename T>
Json ObjectOf(const T& from) {
  Json json = Json::object();
  AddFields(std::span<const Field<T>>(kFields), from, &json);
  return json;
}
template <const auto& kFields, typename T>
Json ObjectOf(const std::optional<T>& from) {
  return from ? ObjectOf<kFields>(*from) : Json(nullptr);
}
template <const auto& kFields, typename T>
Json ObjectOf(const std::vector<T>& parts) {
  Json json = Json::array();
  for (const T& part : parts) json.push_back(ObjectOf<kFields>(part));
  return json;
}

// The field of a member, or of a member's member.
template <auto kMember, auto... kInIt>
constexpr Field<StructOf<kMember>> Of(
    const char* key, const char* meaning, const char* title = nullptr,
    TextFunction<StructOf<kMember>> text = nullptr) {
  return {key,
          meaning,
          [](const StructOf<kMember>& of) {
            return ValueOf(((of.*kMember).*....*kInIt));
          },
          nullptr,
          title,
          text};
}

// The field of a member that is an object, an array of them, or an optional.
template <const auto& kFields, auto kMember>
constexpr Field<StructOf<kMember>> Part(
    const char* key, const char* title = nullptr,
    TextFunction<StructOf<kMember>> text = nullptr) {
  return {key,
          nullptr,
          [](const StructOf<kMember>& of) {
            return ObjectOf<kFields>(of.*kMember);
          },
          KeysOf<kFields>,
          title,
          text};
}

// A part whose keys are those of another one.
template <const auto& kFields, auto kMember>
constexpr Field<StructOf<kMember>> SamePart(
    const char* key, const char* meaning = nullptr, const char* title = nullptr,
    TextFunction<StructOf<kMember>> text = nullptr) {
  Field<StructOf<kMember>> field = Part<kFields, kMember>(key, title, text);
  field.meaning = meaning;
  field.keys = nullptr;
  return field;
}

// Returns the enum value's name; null if it has none.
template <typename Enum>
Json NameIn(std::initializer_list<const char*> names, Enum value) {
  const auto at = static_cast<size_t>(value);
  return at < names.size() ? Json(names.begin()[at]) : Json(nullptr);
}

}  // namespace tandem::field_table
