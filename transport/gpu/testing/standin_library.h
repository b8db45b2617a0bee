// StandInLibrary: the stand-in for the CUDA driver among a test's runfiles.
//
//   setenv("TANDEM_CUDA_LIBRARY", StandInLibrary().c_str(), 1);

#pragma once

#include <cstdlib>
#include <string>

#include "absl/strings/str_cat.h"

namespace tandem {

inline std::string StandInLibrary() {
  return absl::StrCat(std::getenv("TEST_SRCDIR"), "/",
                      std::getenv("TEST_WORKSPACE"),
                      "/transport/gpu/standin_cuda.so");
}

}  // namespace tandem
