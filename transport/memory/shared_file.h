// OpenSharedFile: opens a file in /dev/shm that another process made.
//
// Data flow: a name or path -> open(2), which follows no link and does not
// block -> a regular file's descriptor and status.
// Ownership: the caller owns the descriptor. Nothing in the file is changed.
//
//   TANDEM_ASSIGN_OR_RETURN(const SharedFile file,
//                           OpenSharedFile(name, RegionPath(name), O_RDONLY));
//   TANDEM_RETURN_IF_ERROR(CheckTrust(name, file.status));

#ifndef TANDEM_TRANSPORT_MEMORY_SHARED_FILE_H_
#define TANDEM_TRANSPORT_MEMORY_SHARED_FILE_H_

#include <sys/stat.h>

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "base/os/unique_fd.h"

namespace tandem {

struct SharedFile {
  UniqueFd fd;
  struct stat status = {};
};

// `flags` are O_RDONLY or O_RDWR. Makes system calls; does not wait. Errors:
//   kNotReady        no such file
//   kAccessDenied    this user may not open it; the text names its owner
//   kLayoutMismatch  a link, a folder, a FIFO or a device
absl::StatusOr<SharedFile> OpenSharedFile(absl::string_view name,
                                          const std::string& path, int flags);

// OK if this user may trust the file's owner: the file belongs to the user, to
// root, or to a group of the user that may access it. Otherwise kAccessDenied
// with the owner's name: that user could truncate the file while it is mapped.
// The check ignores whether this process can open the file, since root can open
// all.
absl::Status CheckTrust(absl::string_view name, const struct stat& status);

// Whether `path` itself, not a link's target, is the file with this status.
bool LeadsTo(const std::string& path, const struct stat& file);

// Returns "alice (uid 1001)", for error texts.
std::string OwnerOf(const struct stat& status);

}  // namespace tandem

#endif  // TANDEM_TRANSPORT_MEMORY_SHARED_FILE_H_
