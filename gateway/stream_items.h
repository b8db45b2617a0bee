// StreamItems: where a stream's items come from.
//
// Data flow: an engine's stream, or the gateway's own steps -> Next ->
// RelayStream.
// Ownership: the stream owns it. One thread calls it.

#pragma once

#include <google/protobuf/message.h>

#include <memory>

#include "absl/status/statusor.h"
#include "base/clock.h"

namespace tandem::gateway {

class StreamItems {
 public:
  StreamItems() = default;
  StreamItems(const StreamItems&) = delete;
  StreamItems& operator=(const StreamItems&) = delete;
  virtual ~StreamItems() = default;

  // Blocks until an item; nullptr: the stream has ended. kStepTimeout: no item
  // before the deadline; the next call goes on. Other errors end the stream.
  virtual absl::StatusOr<std::unique_ptr<google::protobuf::Message>> Next(
      Deadline deadline) = 0;
};

}  // namespace tandem::gateway
