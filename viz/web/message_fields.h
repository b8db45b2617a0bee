// MessageFields: the fields of a browser's message, which is untrusted.
//
// Data flow: the text of a WebSocket message -> JSON -> checked values.
// Ownership: one message.

#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace tandem {

// A field that is missing, of another type, out of range or too long makes ok()
// false, for good; its value is then the least, "" or false.
class MessageFields {
 public:
  static constexpr size_t kMaxTextBytes = 4096;  // of a name

  explicit MessageFields(absl::string_view text)
      : json_(nlohmann::json::parse(text.begin(), text.end(), nullptr,
                                    /*allow_exceptions=*/false)),
        ok_(json_.is_object()) {}

  // Whether the text is a JSON object, and every field so far was as asked.
  bool ok() const { return ok_; }

  int64_t Integer(const char* name, int64_t least, int64_t most) {
    const auto found = Find(name);
    if (!ok_ || !found->is_number_integer()) return Bad(least);
    const auto number = found->get<int64_t>();
    return number >= least && number <= most ? number : Bad(least);
  }
  std::optional<int64_t> IntegerIfThere(const char* name, int64_t least,
                                        int64_t most) {
    if (!ok_ || !json_.contains(name)) return std::nullopt;
    return Integer(name, least, most);
  }
  std::string Text(const char* name, size_t most = kMaxTextBytes) {
    const auto found = Find(name);
    if (!ok_ || !found->is_string()) return Bad(std::string());
    std::string text = found->get<std::string>();
    return text.size() <= most ? text : Bad(std::string());
  }
  std::string TextIfThere(const char* name, size_t most = kMaxTextBytes) {
    return ok_ && json_.contains(name) ? Text(name, most) : "";
  }
  // At most `count` numbers; {} if there is no such field.
  std::vector<uint32_t> IntegersIfThere(const char* name, size_t count) {
    std::vector<uint32_t> numbers;
    if (!ok_ || !json_.contains(name)) return numbers;
    const nlohmann::json& list = json_[name];
    if (!list.is_array() || list.size() > count) return Bad(numbers);
    for (const nlohmann::json& item : list) {
      if (!item.is_number_unsigned() ||
          item.get<uint64_t>() > std::numeric_limits<uint32_t>::max()) {
        return Bad(std::vector<uint32_t>());
      }
      numbers.push_back(item.get<uint32_t>());
    }
    return numbers;
  }
  bool Bool(const char* name) {
    const auto found = Find(name);
    return ok_ && found->is_boolean() ? found->get<bool>() : Bad(false);
  }
  double NumberIfThere(const char* name, double otherwise) {
    if (!ok_ || !json_.contains(name)) return otherwise;
    const auto found = Find(name);
    return found->is_number() ? found->get<double>() : Bad(otherwise);
  }
  bool BoolIfThere(const char* name) {
    return ok_ && json_.contains(name) && Bool(name);
  }

 private:
  nlohmann::json::const_iterator Find(const char* name) {
    if (!ok_) return {};
    const auto found = json_.find(name);
    ok_ = found != json_.end();
    return found;
  }
  template <typename T>
  T Bad(T otherwise) {
    ok_ = false;
    return otherwise;
  }

  nlohmann::json json_;
  bool ok_;
};

}  // namespace tandem
