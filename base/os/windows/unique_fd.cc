#include "base/os/unique_fd.h"

#include "base/os/windows/native.h"

namespace tandem {

void CloseDescriptor(int fd) { CloseHandle(HandleOf(fd)); }

}  // namespace tandem
