// CounterCamera: images of CounterEngine's environments, drawn without a
// graphics card.
//
// Data flow: Draw (stepping thread) -> a copy of the count and the marks ->
// ImageQueue's render thread -> Canvas -> an Image -> done.
// Ownership: the engine owns it, beside its state and marks.
//
//   CounterCamera camera(&state, &marks);
//   absl::Status status = camera.Draw({.env = 3}, wanted, done);

#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "engine_adapter/conformance/reference/counter_state.h"
#include "engine_adapter/debug_canvas.h"
#include "engine_adapter/engine_ports.h"
#include "engine_adapter/image_queue.h"
#include "schema/messages/hazel_rpc_generated.h"

namespace tandem {

// The image shows 100 x 75 metres of the plane z = 0: a bar from the counter's
// start to its place, and the debug marks without their z. An arrow ends in a
// dot. The only viewport has the camera's view.
class CounterCamera final : public CameraPort {
 public:
  // Both must outlive this object.
  CounterCamera(const CounterState* state, const DebugCanvas* marks);

  const std::vector<rpc::CameraInfoT>& Cameras() const override {
    return cameras_;
  }
  const std::vector<std::string>& Viewports() const override {
    return viewports_;
  }
  // The default size is 320x240. kUnsupported for depth. Limits: ImageQueue's.
  absl::Status Draw(const ImageRequest& request,
                    std::weak_ptr<const void> wanted, Done done) override;

 private:
  const CounterState* state_;
  const DebugCanvas* marks_;
  std::vector<rpc::CameraInfoT> cameras_;
  std::vector<std::string> viewports_ = {"main"};
  ImageQueue queue_;
};

}  // namespace tandem
