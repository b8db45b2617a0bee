#include "base/os/shared_library.h"

namespace tandem {

// The only one is CUDA's, whose arrays cross processes on Linux alone.
void* LoadSharedLibrary(const std::string&, std::string* reason) {
  *reason = "Windows has no arrays on a GPU here; use Linux, or WSL 2";
  return nullptr;
}

void* FindSymbol(void*, const char*) { return nullptr; }

}  // namespace tandem
