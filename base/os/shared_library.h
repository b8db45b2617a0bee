// LoadSharedLibrary, FindSymbol: another program's library, at run time.
//
// Data flow: a library's name -> the system's loader -> addresses of functions.
// Ownership: a loaded library stays for the life of the process.
//
//   std::string reason;
//   void* const library = LoadSharedLibrary("libcuda.so.1", &reason);
//   if (library != nullptr) FindSymbol(library, "cuInit");

#pragma once

#include <string>

namespace tandem {

// Returns nullptr and the system's reason if it cannot be loaded.
void* LoadSharedLibrary(const std::string& name, std::string* reason);

// Returns nullptr if the library has no such symbol.
void* FindSymbol(void* library, const char* symbol);

}  // namespace tandem
