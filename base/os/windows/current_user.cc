#include "base/os/current_user.h"

#include <io.h>

#include <array>

#include "absl/strings/str_cat.h"
#include "base/os/process_handle.h"
#include "base/os/windows/native.h"

namespace tandem {
namespace {

constexpr char kSystem[] = "S-1-5-18";
constexpr char kAdministrators[] = "S-1-5-32-544";

// An owner's text as a SID; the system frees it.
class Sid {
 public:
  explicit Sid(const std::string& text) {
    ConvertStringSidToSidW(Wide(text).c_str(), &sid_);
  }
  ~Sid() { LocalFree(sid_); }
  Sid(const Sid&) = delete;
  Sid& operator=(const Sid&) = delete;
  PSID get() const { return sid_; }  // nullptr: not a SID

 private:
  PSID sid_ = nullptr;
};

}  // namespace

bool IsCurrentUser(const Owner& owner) {
  return !owner.user.empty() && owner.user == CurrentUserSid();
}

bool IsTrusted(const Owner& owner) {
  if (IsCurrentUser(owner) || owner.user == kSystem ||
      owner.user == kAdministrators) {
    return true;
  }
  if (!owner.group_access) return false;
  const Sid group(owner.group);
  BOOL member = FALSE;
  return group.get() != nullptr &&
         CheckTokenMembership(nullptr, group.get(), &member) && member;
}

std::string DescribeUser(const Owner& owner) {
  if (owner.user.empty()) return "another user";
  const Sid user(owner.user);
  std::array<wchar_t, 257> name = {};
  std::array<wchar_t, 257> domain = {};
  DWORD name_size = name.size();
  DWORD domain_size = domain.size();
  SID_NAME_USE use;
  if (user.get() != nullptr &&
      LookupAccountSidW(nullptr, user.get(), name.data(), &name_size,
                        domain.data(), &domain_size, &use)) {
    return absl::StrCat(Utf8(name.data()), " (", owner.user, ")");
  }
  return owner.user;
}

std::optional<std::string> HomeFolder(const std::string& user) {
  const std::string path = EnvironmentVariable("USERPROFILE");
  return user.empty() && !path.empty() ? std::optional(path) : std::nullopt;
}

bool MayRead(const std::string& path) {
  return _waccess(Wide(path).c_str(), R_OK) == 0;
}

bool MayRun(const std::string& path) {
  return _waccess(Wide(path).c_str(), F_OK) == 0;
}

}  // namespace tandem
