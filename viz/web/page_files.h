// PageFiles: the files of the page, which are part of the program: those of
// page/, and three.js, which stays compressed.

#pragma once

#include "absl/strings/string_view.h"

namespace tandem {

// The path of a scene's GLB: before and behind its number.
inline constexpr absl::string_view kScenePath = "/scene/";
inline constexpr absl::string_view kSceneEnding = ".glb";

struct PageFile {
  absl::string_view path;  // such as "/app.js"; "/" for index.html
  absl::string_view type;  // for Content-Type
  absl::string_view content;
  bool is_gzip = false;  // the content is compressed
};

// Returns nullptr if the page has no such file. Compares the path with a table,
// so that no path leads out of it.
const PageFile* FindPageFile(absl::string_view path);

}  // namespace tandem
