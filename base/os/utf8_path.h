#pragma once

#include <filesystem>
#include <string>

namespace tandem {

// On Linux any bytes; on Windows, where `path` takes a std::string for another
// code page, it must be UTF-8.
inline std::filesystem::path Utf8Path(const std::string& text) {
  return std::u8string(text.begin(), text.end());
}

}  // namespace tandem
