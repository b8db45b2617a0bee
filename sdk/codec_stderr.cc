// The variable `stderr` of libtandem.so.1 itself.
//
// Debian's archives of libpng and libjpeg are compiled for executables: they
// address `stderr`, where they print warnings, without the table of the dynamic
// linker. In a shared library that is possible only for a variable of its own.
// This file does not include <cstdio>, whose declaration is another one.
#include <dlfcn.h>

extern "C" {
// NOLINTNEXTLINE(cppcoreguidelines-avoid-non-const-global-variables)
[[gnu::visibility("hidden")]] struct _IO_FILE* stderr = nullptr;
}

namespace {

// Before all other initialisation: some of it may print.
[[gnu::constructor(101)]] void TakeStderrOfTheProcess() {
  // Not this one, which is no dynamic symbol.
  if (void* const of_process = dlsym(RTLD_DEFAULT, "stderr")) {
    stderr = *static_cast<struct _IO_FILE**>(of_process);
  }
}

}  // namespace
