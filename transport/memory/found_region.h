// FoundRegion: a live engine's region by its name, checked, not yet mapped.
//
// Data flow: a name -> a file of a trusted user -> a valid header -> an engine
// that holds its lock.
// Ownership: the finder's; nothing is left behind in the region.
//
//   absl::StatusOr<FoundRegion> found = FindRegion("demo");
//   RegionMapping::Map(found->fd.get(), found->plan.region_size);

#ifndef TANDEM_TRANSPORT_MEMORY_FOUND_REGION_H_
#define TANDEM_TRANSPORT_MEMORY_FOUND_REGION_H_

#include <sys/stat.h>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "schema/layout/lrbc.h"
#include "transport/base/unique_fd.h"
#include "transport/memory/region_lock.h"

namespace tandem {

struct FoundRegion {
  UniqueFd fd;  // open for reading and writing
  RegionLock lock;
  LrbcHeader plan;  // a copy, checked
};

// Makes system calls; does not wait. Errors:
//   kNotReady        no such region, none with a live engine, or too short to
//                    be one yet
//   kLayoutMismatch  it is not a region that this version understands
//   kAccessDenied    it belongs to another user; the text has the name
absl::StatusOr<FoundRegion> FindRegion(absl::string_view name);

// Whose file this user may depend on: its own, root's, or one that is shared by
// a group it is in. Not what merely can be opened, as root can open all.
bool MayTrust(const struct stat& file);

}  // namespace tandem

#endif  // TANDEM_TRANSPORT_MEMORY_FOUND_REGION_H_
