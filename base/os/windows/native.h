// Windows' own calls, for the sources of this folder only.
//
// Data flow: the layer's texts, numbers and permissions <-> those of Win32.
// Ownership: a UniqueFd owns a HANDLE; all of a process's fit into an int.
//
//   UniqueFd event = Owned(CreateEventW(access.attributes(), TRUE, FALSE,
//                                       Wide(name).c_str()));
//   if (!event.valid()) return MakeWindowsError("CreateEvent", name);

#pragma once

// The others need the types of the first.
// clang-format off
#include <windows.h>
#include <aclapi.h>
#include <ntsecapi.h>
#include <psapi.h>
#include <sddl.h>
#include <winternl.h>
// clang-format on

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "base/os/unique_fd.h"

namespace tandem {

// An object's handle, and back. Neither nullptr nor INVALID_HANDLE_VALUE is
// valid.
inline UniqueFd Owned(HANDLE handle) {
  const auto number = static_cast<int>(reinterpret_cast<intptr_t>(handle));
  return UniqueFd(number == 0 ? -1 : number);
}
inline HANDLE HandleOf(int number) {
  return reinterpret_cast<HANDLE>(static_cast<intptr_t>(number));
}

// Text is UTF-8 outside this folder. Bytes that are not give a name that no
// UTF-8 gives.
std::wstring Wide(absl::string_view text);
std::string Utf8(std::wstring_view text);

// As MakeSystemError, for GetLastError()'s number.
absl::Status MakeWindowsError(absl::string_view call, absl::string_view subject,
                              DWORD error = GetLastError());

// A user's or a group's SID as text: that of this process.
std::string CurrentUserSid();
std::string CurrentGroupSid();

// Permissions of a new object: all for this user and the system; with group
// access, also for the user's primary group. After an error: the default ones.
class ObjectAccess {
 public:
  explicit ObjectAccess(bool group_access);
  ~ObjectAccess() { LocalFree(attributes_.lpSecurityDescriptor); }
  ObjectAccess(const ObjectAccess&) = delete;
  ObjectAccess& operator=(const ObjectAccess&) = delete;

  SECURITY_ATTRIBUTES* attributes() { return &attributes_; }

 private:
  SECURITY_ATTRIBUTES attributes_ = {sizeof(attributes_), nullptr, FALSE};
};

}  // namespace tandem
