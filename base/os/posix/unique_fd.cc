#include "base/os/unique_fd.h"

#include <unistd.h>

namespace tandem {

void CloseDescriptor(int fd) { close(fd); }

}  // namespace tandem
