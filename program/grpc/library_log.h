// LimitedLog: one kind of lines of a program on stderr, at most one in a
// period. RouteLibraryLog: what gRPC and protobuf write there, as such lines:
// foreign bytes on a port make one for each connection.
//
//   RouteLibraryLog("tandem-daemon");

#ifndef TANDEM_PROGRAM_GRPC_LIBRARY_LOG_H_
#define TANDEM_PROGRAM_GRPC_LIBRARY_LOG_H_

#include <cstdint>
#include <mutex>
#include <string>
#include <utility>

#include "absl/strings/string_view.h"
#include "transport/base/clock.h"

namespace tandem {

// Thread-safe.
class LimitedLog {
 public:
  LimitedLog(std::string program, double secs)
      : program_(std::move(program)), secs_(secs) {}

  // The first line after the period has the number of those left out.
  void Write(absl::string_view text);

 private:
  const std::string program_;
  const double secs_;
  std::mutex mutex_;  // guards what follows
  Deadline next_ = Deadline::Now();
  uint64_t left_out_ = 0;
};

// Call it once, before gRPC's first use. From then on each place in the
// libraries writes at most one line a minute; fatal errors always do.
// `of_certificates`: what a line about a certificate that was not accepted
// means here; gRPC names neither the certificate nor the reason.
void RouteLibraryLog(const std::string& program,
                     const std::string& of_certificates = "");

}  // namespace tandem

#endif  // TANDEM_PROGRAM_GRPC_LIBRARY_LOG_H_
