// The files of shared regions.
//
// Data flow: a file's name -> the region's name. RegionPath has the paths.

#pragma once

#include <string>

#include "absl/strings/string_view.h"

namespace tandem {

extern const char kSharedMemoryDir[];  // Linux: "/dev/shm"

// If a file in kSharedMemoryDir is named as the spare link of a name, returns
// that name; else "".
std::string NameOfSpareLink(absl::string_view file_name);

}  // namespace tandem
