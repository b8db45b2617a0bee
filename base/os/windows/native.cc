#include "base/os/windows/native.h"

#include <array>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/error.h"

extern "C" int __cxa_thread_atexit(void (*destroy)(void*), void* object,
                                   void* library);

namespace tandem {
namespace {

// Before all other initialisation.
[[gnu::constructor(101)]] void PrepareLibrary() {
  // A thread's end calls the destructors of its thread_locals by one of its
  // keys, and frees their memory by another, in the order in which mingw-w64
  // made the keys. This call makes the first.
  __cxa_thread_atexit([](void*) {}, nullptr, nullptr);
  // A process may close the library while it has an engine, whose region lives
  // on: then the system still calls code of the library.
  HMODULE module = nullptr;
  GetModuleHandleExW(
      GET_MODULE_HANDLE_EX_FLAG_FROM_ADDRESS | GET_MODULE_HANDLE_EX_FLAG_PIN,
      reinterpret_cast<const wchar_t*>(&PrepareLibrary), &module);
}

std::string SidText(TOKEN_INFORMATION_CLASS which) {
  // Each begins with the address of the SID behind it.
  alignas(void*) std::array<std::byte, 256> found;
  DWORD bytes = 0;
  HANDLE token = nullptr;
  OpenProcessToken(GetCurrentProcess(), TOKEN_QUERY, &token);
  const UniqueFd owned = Owned(token);
  wchar_t* text = nullptr;
  if (!GetTokenInformation(token, which, found.data(), found.size(), &bytes) ||
      !ConvertSidToStringSidW(*reinterpret_cast<PSID*>(found.data()), &text)) {
    return "";
  }
  std::string sid = Utf8(text);
  LocalFree(text);
  return sid;
}

}  // namespace

std::wstring Wide(absl::string_view text) {
  std::wstring wide(text.size(), L'\0');
  const int size = MultiByteToWideChar(
      CP_UTF8, MB_ERR_INVALID_CHARS, text.data(), static_cast<int>(text.size()),
      wide.data(), static_cast<int>(wide.size()));
  wide.resize(static_cast<size_t>(size));
  if (size > 0) return wide;
  for (const char c : text) {  // halves of surrogate pairs, as Python has them
    const auto byte = static_cast<unsigned char>(c);
    wide += static_cast<wchar_t>(byte < 0x80 ? byte : 0xDC00 + byte);
  }
  return wide;
}

std::string Utf8(std::wstring_view text) {
  const int length = static_cast<int>(text.size());
  std::string narrow(3 * text.size(), '\0');
  const int size =
      WideCharToMultiByte(CP_UTF8, 0, text.data(), length, narrow.data(),
                          static_cast<int>(narrow.size()), nullptr, nullptr);
  narrow.resize(static_cast<size_t>(size));
  return narrow;
}

absl::Status MakeWindowsError(absl::string_view call, absl::string_view subject,
                              DWORD error) {
  std::array<wchar_t, 256> text = {};
  const DWORD length = FormatMessageW(
      FORMAT_MESSAGE_FROM_SYSTEM | FORMAT_MESSAGE_IGNORE_INSERTS |
          FORMAT_MESSAGE_MAX_WIDTH_MASK,
      nullptr, error, 0, text.data(), text.size(), nullptr);
  ErrorCode code = ErrorCode::kSystemCallFailed;
  if (error == ERROR_ACCESS_DENIED) code = ErrorCode::kAccessDenied;
  if (error == ERROR_COMMITMENT_LIMIT || error == ERROR_DISK_FULL ||
      error == ERROR_NO_SYSTEM_RESOURCES || error == ERROR_NOT_ENOUGH_MEMORY) {
    code = ErrorCode::kOutOfSharedMemory;
  }
  return MakeError(code,
                   absl::StrCat(call, " failed: ", Utf8({text.data(), length}),
                                "(error ", error, "): ", subject));
}

std::string CurrentUserSid() {
  static const auto* const sid = new std::string(SidText(TokenUser));
  return *sid;
}

std::string CurrentGroupSid() {
  static const auto* const sid = new std::string(SidText(TokenPrimaryGroup));
  return *sid;
}

ObjectAccess::ObjectAccess(bool group_access) {
  const std::string user = CurrentUserSid();
  const std::string group = CurrentGroupSid();
  const std::string text = absl::StrCat(
      "O:", user, "G:", group, "D:P(A;;GA;;;SY)(A;;GA;;;", user, ")",
      group_access ? absl::StrCat("(A;;GA;;;", group, ")") : "");
  ConvertStringSecurityDescriptorToSecurityDescriptorW(
      Wide(text).c_str(), SDDL_REVISION_1, &attributes_.lpSecurityDescriptor,
      nullptr);
}

}  // namespace tandem
