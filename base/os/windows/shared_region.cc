// A section has its name from its creation on. So each has a random one, which
// contains its identity and its size, and Publish makes symbolic links to it
// among the kernel's objects. A link ends with the process that made it.
#include "base/os/shared_region.h"

#include <array>
#include <atomic>
#include <map>
#include <mutex>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/strip.h"
#include "base/error.h"
#include "base/os/available_memory.h"
#include "base/os/machine.h"
#include "base/os/windows/mapped_words.h"
#include "base/os/windows/native.h"
#include "base/os/windows/objects.h"
#include "base/printable.h"
#include "schema/layout/shared_word.h"

// ntdll's, which no header of mingw-w64 declares.
extern "C" {
NTSTATUS NTAPI NtCreateSymbolicLinkObject(HANDLE* link, ACCESS_MASK access,
                                          OBJECT_ATTRIBUTES* attributes,
                                          UNICODE_STRING* target);
NTSTATUS NTAPI NtOpenDirectoryObject(HANDLE* folder, ACCESS_MASK access,
                                     OBJECT_ATTRIBUTES* attributes);
NTSTATUS NTAPI NtQueryDirectoryObject(HANDLE folder, void* found, ULONG bytes,
                                      BOOLEAN only_one, BOOLEAN restart,
                                      ULONG* context, ULONG* found_bytes);
NTSTATUS NTAPI NtQuerySection(HANDLE section, int which, void* found,
                              SIZE_T bytes, SIZE_T* found_bytes);
}

namespace tandem {
namespace {

using Link = SharedRegion::Link;

constexpr ACCESS_MASK kQuery = SECTION_QUERY | READ_CONTROL;
constexpr char kLocal[] = "Local\\";

// The name of a link. A backslash, as a run's id may have, would name a folder.
std::string LinkName(absl::string_view name, Link link) {
  return absl::StrReplaceAll(link == Link::kName
                                 ? std::string(name)
                                 : absl::StrCat(".", name, ".tandem"),
                             {{"\\", "_"}});
}

// A text as the kernel takes it. Valid as long as the text.
UNICODE_STRING Text(std::wstring& text) {
  const auto bytes = static_cast<USHORT>(text.size() * sizeof(wchar_t));
  return {.Length = bytes, .MaximumLength = bytes, .Buffer = text.data()};
}

// The full name of an object; "": unknown.
std::wstring FullName(HANDLE object) {
  constexpr auto kName = static_cast<OBJECT_INFORMATION_CLASS>(1);
  alignas(UNICODE_STRING) std::array<std::byte, 2048> found;
  ULONG bytes = 0;
  if (NtQueryObject(object, kName, found.data(), found.size(), &bytes) < 0) {
    return L"";
  }
  const auto& text = *reinterpret_cast<const UNICODE_STRING*>(found.data());
  return {text.Buffer, text.Length / sizeof(wchar_t)};
}

// The folder of this session's named objects, with a backslash at its end.
const std::wstring& Folder() {
  static const auto* const folder = [] {
    std::array<std::byte, 8> random;
    FillRandom(random);
    const std::string name = absl::StrCat(
        ".tandem-folder-", absl::Hex(std::bit_cast<uint64_t>(random)));
    const UniqueFd event =
        Owned(CreateEventW(nullptr, TRUE, FALSE, Wide(name).c_str()));
    const std::wstring full = FullName(HandleOf(event.get()));
    return new std::wstring(full.substr(0, full.rfind(L'\\') + 1));
  }();
  return *folder;
}

// The size of a section, a multiple of a page's; -1: the handle is of none.
int64_t SizeOf(HANDLE section) {
  struct {
    void* base;
    ULONG attributes;
    LARGE_INTEGER bytes;
  } found = {};
  return NtQuerySection(section, 0, &found, sizeof(found), nullptr) < 0
             ? -1
             : found.bytes.QuadPart;
}

struct Identity {
  SharedRegion::Id id;
  uint64_t bytes;
};

// What a section's name says: of ours all. One of another program is known by
// its name alone, and its size ends with a page.
Identity IdentityOf(HANDLE section) {
  const std::wstring full = FullName(section);
  const std::string name = Utf8(full.substr(full.rfind(L'\\') + 1));
  constexpr size_t kDigits = 16;
  absl::string_view rest = name;
  Identity found = {};
  if (absl::ConsumePrefix(&rest, ".tandem-") && rest.size() > 2 * kDigits &&
      absl::SimpleHexAtoi(rest.substr(0, kDigits), &found.id.device) &&
      absl::SimpleHexAtoi(rest.substr(kDigits, kDigits), &found.id.inode) &&
      absl::SimpleHexAtoi(rest.substr(2 * kDigits + 1), &found.bytes)) {
    return found;
  }
  constexpr uint64_t kFnvPrime = 0x100000001B3;
  uint64_t hash = 0xCBF29CE484222325;
  for (const char c : name) {
    hash = (hash ^ static_cast<unsigned char>(c)) * kFnvPrime;
  }
  return {
      .id = {.device = 0, .inode = hash},
      .bytes = static_cast<uint64_t>(std::max<int64_t>(SizeOf(section), 0))};
}

std::string SidText(PSID sid) {
  wchar_t* text = nullptr;
  if (sid == nullptr || !ConvertSidToStringSidW(sid, &text)) return "";
  std::string narrow = Utf8(text);
  LocalFree(text);
  return narrow;
}

Owner OwnerOf(HANDLE section) {
  PSID user = nullptr;
  PSID group = nullptr;
  PACL list = nullptr;
  PSECURITY_DESCRIPTOR all = nullptr;
  constexpr SECURITY_INFORMATION kWanted = OWNER_SECURITY_INFORMATION |
                                           GROUP_SECURITY_INFORMATION |
                                           DACL_SECURITY_INFORMATION;
  if (GetSecurityInfo(section, SE_KERNEL_OBJECT, kWanted, &user, &group, &list,
                      nullptr, &all) != ERROR_SUCCESS) {
    return {};
  }
  // Wine's objects with default permissions have no owner, Windows' ones do.
  Owner owner = {.user = user == nullptr ? CurrentUserSid() : SidText(user),
                 .group = SidText(group)};
  const DWORD entries =
      list == nullptr || group == nullptr ? 0 : list->AceCount;
  for (DWORD at = 0; at < entries; ++at) {
    void* found = nullptr;
    GetAce(list, at, &found);
    auto* const entry = static_cast<ACCESS_ALLOWED_ACE*>(found);
    owner.group_access |= entry->Header.AceType == ACCESS_ALLOWED_ACE_TYPE &&
                          EqualSid(&entry->SidStart, group);
  }
  LocalFree(all);
  return owner;
}

UniqueFd OpenSection(absl::string_view name, Link link, ACCESS_MASK access) {
  return Owned(
      OpenFileMappingW(access, FALSE, Wide(LinkName(name, link)).c_str()));
}

// This process's links, each with the memory to which it leads.
struct Links {
  std::mutex mutex;
  struct Held {
    SharedRegion::Id id;
    UniqueFd link;
  };
  std::map<std::string, Held> held;
};

Links& TheLinks() {
  static auto* const links =
      new Links;  // never destroyed: exit handlers use it
  return *links;
}

}  // namespace

UniqueFd MakeMemory(const std::string& name, uint64_t bytes,
                    bool group_access) {
  ObjectAccess access(group_access);
  return Owned(
      CreateFileMappingW(INVALID_HANDLE_VALUE, access.attributes(),
                         PAGE_READWRITE, static_cast<DWORD>(bytes >> 32),
                         static_cast<DWORD>(bytes), Wide(name).c_str()));
}

uint32_t MakeLink(absl::string_view name, int target, bool group_access,
                  UniqueFd* link) {
  constexpr ACCESS_MASK kAll = 0xF0001;  // SYMBOLIC_LINK_ALL_ACCESS
  ObjectAccess access(group_access);
  std::wstring full_target = FullName(HandleOf(target));
  std::wstring full = Folder() + Wide(name);
  UNICODE_STRING target_text = Text(full_target);
  UNICODE_STRING text = Text(full);
  OBJECT_ATTRIBUTES attributes;
  // Case counts, as for Win32's own calls.
  InitializeObjectAttributes(&attributes, &text, 0, nullptr,
                             access.attributes()->lpSecurityDescriptor);
  HANDLE made = nullptr;
  const NTSTATUS status =
      NtCreateSymbolicLinkObject(&made, kAll, &attributes, &target_text);
  if (status < 0) return RtlNtStatusToDosError(status);
  *link = Owned(made);
  return 0;
}

std::string RegionPath(absl::string_view name, Link link) {
  return absl::StrCat(kLocal, LinkName(name, link));
}

absl::Status SharedRegion::CheckRoom(uint64_t bytes, const Texts& texts) {
  return CheckMemory(bytes, absl::StrCat(texts.what, " needs"), texts.smaller);
}

absl::StatusOr<SharedRegion> SharedRegion::Create(uint64_t bytes,
                                                  bool group_access,
                                                  const Texts& texts) {
  TANDEM_RETURN_IF_ERROR(CheckRoom(bytes, texts));
  Id id;
  FillRandom(std::as_writable_bytes(std::span(&id, 1)));
  UniqueFd section = MakeMemory(MemoryName(id, bytes), bytes, group_access);
  if (!section.valid()) {
    return MakeWindowsError("CreateFileMapping", absl::StrCat(bytes, " bytes"));
  }
  return Of(std::move(section));
}

absl::StatusOr<SharedRegion> SharedRegion::Open(absl::string_view name,
                                                Access access, Link link) {
  UniqueFd section =
      OpenSection(name, link,
                  kQuery | SECTION_MAP_READ |
                      (access == Access::kWrite ? SECTION_MAP_WRITE : 0));
  if (section.valid()) return Of(std::move(section));
  const std::string path = Printable(RegionPath(name, link));
  switch (const DWORD error = GetLastError()) {
    case ERROR_FILE_NOT_FOUND:
      return MakeError(
          ErrorCode::kNotReady,
          absl::StrCat("'", Printable(name), "': found no ", path));
    case ERROR_ACCESS_DENIED:
      return NotMine(name, OwnerAt(name, link).value_or(Owner{}));
    case ERROR_INVALID_HANDLE:
      return MakeError(
          ErrorCode::kLayoutMismatch,
          absl::StrCat("'", Printable(name),
                       "': expected shared memory, found an object of another "
                       "kind; choose another name (",
                       path, ")"));
    default:
      return MakeWindowsError("OpenFileMapping", path, error);
  }
}

absl::StatusOr<SharedRegion> SharedRegion::OfHandle(int handle) {
  HANDLE own = nullptr;
  // The negative ones are this process's, and its threads'.
  if (handle < 0 || SizeOf(HandleOf(handle)) < 0 ||
      !DuplicateHandle(GetCurrentProcess(), HandleOf(handle),
                       GetCurrentProcess(), &own, 0, FALSE,
                       DUPLICATE_SAME_ACCESS)) {
    return MakeWindowsError("DuplicateHandle", absl::StrCat(handle),
                            ERROR_INVALID_HANDLE);
  }
  return Of(Owned(own));
}

absl::StatusOr<SharedRegion> SharedRegion::Of(UniqueFd fd) {
  const Identity found = IdentityOf(HandleOf(fd.get()));
  const Owner owner = OwnerOf(HandleOf(fd.get()));
  return SharedRegion(std::move(fd), found.bytes, found.id, owner);
}

std::optional<SharedRegion::Id> SharedRegion::At(absl::string_view name,
                                                 Link link) {
  const UniqueFd section = OpenSection(name, link, SECTION_QUERY);
  if (section.valid()) return IdentityOf(HandleOf(section.get())).id;
  // What this user may not see is no memory that this process knows.
  return GetLastError() == ERROR_ACCESS_DENIED ? std::optional<Id>({})
                                               : std::nullopt;
}

std::optional<Owner> SharedRegion::OwnerAt(absl::string_view name, Link link) {
  const UniqueFd section = OpenSection(name, link, READ_CONTROL);
  if (!section.valid()) return std::nullopt;
  return OwnerOf(HandleOf(section.get()));
}

std::vector<SharedRegion::Listed> SharedRegion::List() {
  std::vector<Listed> listed;
  std::wstring folder_name = Folder().substr(0, Folder().size() - 1);
  UNICODE_STRING text = Text(folder_name);
  OBJECT_ATTRIBUTES attributes;
  InitializeObjectAttributes(&attributes, &text, OBJ_CASE_INSENSITIVE, nullptr,
                             nullptr);
  constexpr ACCESS_MASK kList = 1;  // DIRECTORY_QUERY
  HANDLE folder = nullptr;
  if (NtOpenDirectoryObject(&folder, kList, &attributes) < 0) return listed;
  const UniqueFd owned = Owned(folder);
  alignas(UNICODE_STRING) std::array<std::byte, 4096> found;
  ULONG context = 0;
  const auto* const row = reinterpret_cast<const UNICODE_STRING*>(found.data());
  while (NtQueryDirectoryObject(folder, found.data(), found.size(),
                                /*only_one=*/TRUE, /*restart=*/context == 0,
                                &context, nullptr) >= 0) {
    const std::wstring_view kind(row[1].Buffer,
                                 row[1].Length / sizeof(wchar_t));
    if (kind != L"SymbolicLink" && kind != L"Section") continue;
    const std::string object =
        Utf8({row[0].Buffer, row[0].Length / sizeof(wchar_t)});
    absl::string_view name = object;
    const bool is_hidden = absl::ConsumePrefix(&name, ".");
    const bool is_spare = is_hidden && absl::ConsumeSuffix(&name, ".tandem");
    if (is_hidden && !is_spare) continue;  // the memory itself
    listed.push_back(
        {std::string(name), is_spare ? Link::kSpare : Link::kName});
  }
  return listed;
}

bool SharedRegion::Read(uint64_t offset, void* into, size_t bytes) const {
  if (offset > bytes_ || bytes > bytes_ - offset) return false;
  if (bytes == 0) return true;
  constexpr uint64_t kGranularity = 1 << 16;  // of a view's offset
  const uint64_t begin = offset / kGranularity * kGranularity;
  void* const view = MapViewOfFile(
      HandleOf(fd_.get()), FILE_MAP_READ, static_cast<DWORD>(begin >> 32),
      static_cast<DWORD>(begin), offset - begin + bytes);
  if (view == nullptr) return false;
  std::memcpy(into, static_cast<const std::byte*>(view) + (offset - begin),
              bytes);
  UnmapViewOfFile(view);
  return true;
}

absl::StatusOr<bool> SharedRegion::Publish(absl::string_view name) const {
  Links& links = TheLinks();
  const std::lock_guard<std::mutex> lock(links.mutex);
  for (const Link link : {Link::kSpare, Link::kName}) {
    UniqueFd made;
    const uint32_t error =
        MakeLink(LinkName(name, link), fd_.get(), owner_.group_access, &made);
    if (error == 0) {
      links.held[LinkName(name, link)] = {id_, std::move(made)};
      continue;
    }
    if (link == Link::kName) links.held.erase(LinkName(name, Link::kSpare));
    if (error == ERROR_ALREADY_EXISTS) return false;
    return MakeWindowsError("NtCreateSymbolicLinkObject",
                            Printable(RegionPath(name, link)), error);
  }
  return true;
}

// No other program can remove a link.
void SharedRegion::Restore(absl::string_view) const {}

absl::Status SharedRegion::Unpublish(absl::string_view name) const {
  Links& links = TheLinks();
  const std::lock_guard<std::mutex> lock(links.mutex);
  for (const Link link : {Link::kName, Link::kSpare}) {
    const auto held = links.held.find(LinkName(name, link));
    if (held != links.held.end() && held->second.id == id_) {
      links.held.erase(held);
    } else if (At(name, link) == id_) {  // of a process that is about to end
      return MakeError(ErrorCode::kAlreadyAttached,
                       absl::StrCat("expected no process with the name ",
                                    Printable(RegionPath(name, link)),
                                    ", found one that lives; end it"));
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<std::byte*> SharedRegion::Map(uint64_t bytes,
                                             Access access) const {
  const DWORD views =
      access == Access::kWrite ? FILE_MAP_READ | FILE_MAP_WRITE : FILE_MAP_READ;
  auto* const base = static_cast<std::byte*>(
      MapViewOfFile(HandleOf(fd_.get()), views, 0, 0, bytes));
  if (base == nullptr) {
    return MakeWindowsError("MapViewOfFile",
                            absl::StrCat(bytes, " bytes of a region"));
  }
  constexpr uint64_t kPageBytes = 4096;
  for (uint64_t at = 0; access == Access::kWrite && at < bytes;
       at += kPageBytes) {
    // relaxed: only the fault matters.
    (void)reinterpret_cast<SharedWord<uint32_t>*>(base + at)->load(
        std::memory_order_relaxed);
  }
  AddMapping(base, bytes, ObjectName(id_), owner_.group_access);
  return base;
}

void SharedRegion::Unmap(std::byte* base, uint64_t) {
  RemoveMapping(base);
  UnmapViewOfFile(base);
}

uint64_t SharedRegion::HugePageBytes(const std::byte*) { return 0; }

}  // namespace tandem
