#include "viz/web/page_files.h"

#include <span>

#include "absl/strings/match.h"
#include "viz/web/page_contents.h"

namespace tandem {
namespace {

absl::string_view TypeOf(absl::string_view path) {
  if (absl::EndsWith(path, ".js")) return "text/javascript; charset=utf-8";
  if (absl::EndsWith(path, ".css")) return "text/css; charset=utf-8";
  if (absl::EndsWith(path, ".svg")) return "image/svg+xml";
  return "text/html; charset=utf-8";
}

}  // namespace

const PageFile* FindPageFile(absl::string_view path) {
  static const std::span<const PageFile> files = [] {
    static PageFile table[std::size(kPageContents)];
    for (size_t i = 0; i < std::size(kPageContents); ++i) {
      const absl::string_view name = kPageContents[i].name;
      table[i] = {
          .path = name == "/index.html" ? "/" : name,
          .type = TypeOf(name),
          .content = kPageContents[i].content,
          .is_gzip = absl::StartsWith(kPageContents[i].content, "\x1f\x8b")};
    }
    return std::span<const PageFile>(table);
  }();
  for (const PageFile& file : files) {
    if (file.path == path) return &file;
  }
  return nullptr;
}

}  // namespace tandem
