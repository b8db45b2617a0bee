// CheckMembers: the rules for the members of a run's configuration. FindMember
// and others: the members of a checked one.
//
// Data flow: JSON of a client -> CheckMembers -> all problems at once; or
// ParseRunConfig, which reads it by the other functions.

#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace tandem::slow_lane {

inline constexpr absl::string_view kRay = "metadata.tandem.ray";
inline constexpr absl::string_view kRestart = "metadata.tandem.restart";
inline constexpr absl::string_view kParameters = "metadata.tandem.parameters";
// The values of metadata.tandem.restart.on.
inline constexpr absl::string_view kRestartCauses[] = {"killed", "fault",
                                                       "machine"};

// Checks an object against all rules. Converts integers such as 4.0, except in
// metadata, which do not change. kInvalidArgument with every problem found, at
// most 20 in words.
absl::Status CheckMembers(nlohmann::json& root);

// The next four take a path such as "resources.cpus"; IntegerAt and the later
// ones need a checked object.

// Returns nullptr if there is no such member.
nlohmann::json* FindMember(nlohmann::json& root, absl::string_view path);
std::optional<uint64_t> IntegerAt(nlohmann::json& root, absl::string_view path);
// Returns nullopt for null and for an empty text, too.
std::optional<std::string> TextAt(nlohmann::json& root, absl::string_view path);
// Returns false if there is no such member.
bool FlagAt(nlohmann::json& root, absl::string_view path);

// Returns the value as shown in a problem's text.
std::string Shown(const nlohmann::json& value);

}  // namespace tandem::slow_lane
