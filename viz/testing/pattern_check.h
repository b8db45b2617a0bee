// CheckPattern: checks that an image shows the pattern, corner to corner.
//
//   PatternSeen seen = CheckPattern(screen, area, geometry, whole);
//   EXPECT_EQ(seen.wrong, "");

#pragma once

#include <QImage>
#include <QRect>
#include <cstdint>
#include <string>

#include "transport/frame_geometry.h"
#include "viz/core/image_view.h"

namespace tandem {

struct PatternSeen {
  std::string wrong;    // The first wrong pixel; "": none.
  uint8_t step = 0;     // Modulo 256.
  int64_t checked = 0;  // Pixels of the screen.
};

// `area` of the screen must show the part `source` of the image, fitted with
// its aspect ratio and sharp pixel edges. A screen pixel on the edge between
// two image pixels may show either. The screen beside the image must have one
// colour.
PatternSeen CheckPattern(const QImage& screen, const QRect& area,
                         const FrameGeometry& geometry, const ViewRect& source);

}  // namespace tandem
