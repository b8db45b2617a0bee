// OpenSharedFile: opens a file of /dev/shm that another process made.
//
// Data flow: a name or path -> open(2), which follows no link and does not
// block -> a regular file's descriptor and status.
// Ownership: the caller's descriptor. Nothing in the file is changed.
//
//   ASSIGN_OR_RETURN(const SharedFile file,
//                    OpenSharedFile(name, RegionPath(name), O_RDONLY));
//   RETURN_IF_ERROR(CheckTrust(name, file.status));

#ifndef TANDEM_TRANSPORT_MEMORY_SHARED_FILE_H_
#define TANDEM_TRANSPORT_MEMORY_SHARED_FILE_H_

#include <sys/stat.h>

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "transport/base/unique_fd.h"

namespace tandem {

struct SharedFile {
  UniqueFd fd;
  struct stat status = {};
};

// `flags` are O_RDONLY or O_RDWR. Makes system calls; does not wait. Errors:
//   kNotReady        no such file
//   kAccessDenied    this user may not open it; the text names its owner
//   kLayoutMismatch  it is a link, a folder, a FIFO or a device
absl::StatusOr<SharedFile> OpenSharedFile(absl::string_view name,
                                          const std::string& path, int flags);

// OK if this user may depend on the file: it is the user's own, root's, or
// shared by a group that the user is in. Else kAccessDenied, which names the
// owner: that user could truncate the file while it is mapped. It does not
// matter whether the file can be opened, as root can open all.
absl::Status CheckTrust(absl::string_view name, const struct stat& status);

// "alice (uid 1001)", for error texts.
std::string OwnerOf(const struct stat& status);

}  // namespace tandem

#endif  // TANDEM_TRANSPORT_MEMORY_SHARED_FILE_H_
