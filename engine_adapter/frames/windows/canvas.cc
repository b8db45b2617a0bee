// Debian has no AGG for Windows: drawings are refused before they begin.
#include "engine_adapter/frames/canvas.h"

#include "base/error.h"

namespace tandem {

absl::Status Canvas::Available() {
  return MakeError(
      ErrorCode::kUnsupported,
      "frames: expected a system with images, found Windows, where "
      "Tandem draws none; use Linux or WSL 2");
}

Canvas::Canvas(const FrameTile&, CanvasSize) {}
void Canvas::Polygon(std::span<const Point>, Color) {}
void Canvas::Circle(Point, double, Color) {}
void Canvas::FillBlack(std::span<const Point>) {}

}  // namespace tandem
