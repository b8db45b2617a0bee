// LimitedLog: lines of one kind on a program's stderr, at most one in a period.
// RouteLibraryLog: passes the lines of gRPC and protobuf through such logs.
// gRPC writes one for each connection with foreign bytes.

#pragma once

#include <cstdint>
#include <string>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/strings/string_view.h"
#include "base/clock.h"
#include "base/mutex.h"

namespace tandem {

// Thread-safe.
class LimitedLog {
 public:
  LimitedLog(std::string program, double secs)
      : program_(std::move(program)), secs_(secs) {}

  // The first line after the period has the number of omitted lines.
  void Write(absl::string_view text);

 private:
  const std::string program_;
  const double secs_;
  Mutex mutex_;
  Deadline next_ ABSL_GUARDED_BY(mutex_) = Deadline::Now();
  uint64_t left_out_ ABSL_GUARDED_BY(mutex_) = 0;
};

// Call it once, before gRPC's first use. From then on each place in the
// libraries writes at most one line a minute; fatal errors are always written.
// `certificate_advice` is appended to lines about a refused certificate: gRPC
// names neither the certificate nor the reason.
void RouteLibraryLog(const std::string& program,
                     const std::string& certificate_advice = "");

}  // namespace tandem
