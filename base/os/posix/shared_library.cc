#include "base/os/shared_library.h"

#include <dlfcn.h>

namespace tandem {

void* LoadSharedLibrary(const std::string& name, std::string* reason) {
  void* const library = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    const char* const text = dlerror();
    *reason = text == nullptr ? name : text;
  }
  return library;
}

void* FindSymbol(void* library, const char* symbol) {
  return dlsym(library, symbol);
}

}  // namespace tandem
