// FdOffer: gives a file descriptor to other processes of this user, by an
// abstract Unix socket. TakeFd: the other end.
//
// Data flow: an allocation's descriptor -> FdOffer, whose name is in the
// region's header -> TakeFd -> a descriptor of the same allocation.
// Ownership: the engine's process owns the offer and its thread. The name ends
// with the process, so nothing remains after a death. Each taken descriptor
// belongs to its taker.
//
//   TANDEM_ASSIGN_OR_RETURN(auto offer, FdOffer::Start(std::move(fd)));
//   ... offer->name() in the header ...
//   TANDEM_ASSIGN_OR_RETURN(UniqueFd mine, TakeFd(name, /*timeout_secs=*/1));

#ifndef TANDEM_TRANSPORT_GPU_FD_OFFER_H_
#define TANDEM_TRANSPORT_GPU_FD_OFFER_H_

#include <memory>
#include <string>
#include <thread>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "base/os/unique_fd.h"

namespace tandem {

class FdOffer {
 public:
  // Listens under a new, random name. kSystemCallFailed.
  static absl::StatusOr<std::unique_ptr<FdOffer>> Start(UniqueFd fd);
  FdOffer(const FdOffer&) = delete;
  FdOffer& operator=(const FdOffer&) = delete;
  // Ends the thread, and with it the name.
  ~FdOffer();

  // At most 63 bytes of text, without the NUL before an abstract name.
  const std::string& name() const { return name_; }

 private:
  FdOffer(std::string name, UniqueFd fd, UniqueFd listener, UniqueFd end);
  void Serve() const;

  const std::string name_;
  const UniqueFd fd_;
  const UniqueFd listener_;
  const UniqueFd end_;  // an eventfd: readable at the end
  std::thread thread_;
};

// Returns a descriptor of the offer with this name. Errors:
//  - kGpuStaleHandle: no process offers it any more, or another program has
//    the name.
//  - kAccessDenied: the process belongs to another user.
//  - kStepTimeout, kSystemCallFailed.
absl::StatusOr<UniqueFd> TakeFd(absl::string_view name, double timeout_secs);

}  // namespace tandem

#endif  // TANDEM_TRANSPORT_GPU_FD_OFFER_H_
