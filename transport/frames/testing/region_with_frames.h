// RegionWithFrames: a region with a frame ring and without an engine, for tests
// of programs that watch frames.
//
// Data flow: a spec -> a region in shared memory -> its frame ring's writer.
// Ownership: the test owns it; its end removes the region.
//
//   auto region = RegionWithFrames::Create("demo", spec);
//   region->writer().Publish(pixels, {}, "");

#pragma once

#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "base/error.h"
#include "transport/frame_writer.h"
#include "transport/memory/owned_region.h"
#include "transport/region_spec.h"

namespace tandem {

class RegionWithFrames {
 public:
  // `spec` has frames. Errors: those of OwnedRegion and FrameWriter.
  static absl::StatusOr<RegionWithFrames> Create(absl::string_view name,
                                                 const RegionSpec& spec) {
    TANDEM_ASSIGN_OR_RETURN(auto region, OwnedRegion::Create(name, spec, {}));
    TANDEM_ASSIGN_OR_RETURN(
        auto writer,
        FrameWriter::Create(region.frame_ring(), region.frame_geometry()));
    TANDEM_RETURN_IF_ERROR(region.Link());
    return RegionWithFrames(std::move(region), std::move(writer));
  }

  FrameWriter& writer() { return writer_; }

 private:
  RegionWithFrames(OwnedRegion region, FrameWriter writer)
      : region_(std::move(region)), writer_(std::move(writer)) {}

  OwnedRegion region_;
  FrameWriter writer_;
};

}  // namespace tandem
