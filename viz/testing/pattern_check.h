// CheckPattern: is it the pattern that an image shows, corner to corner?
//
//   PatternSeen seen = CheckPattern(screen, area, geometry, whole);
//   EXPECT_EQ(seen.wrong, "");

#ifndef TANDEM_VIZ_TESTING_PATTERN_CHECK_H_
#define TANDEM_VIZ_TESTING_PATTERN_CHECK_H_

#include <QImage>
#include <QRect>
#include <cstdint>
#include <string>

#include "transport/base/frame_geometry.h"
#include "viz/core/image_view.h"

namespace tandem {

struct PatternSeen {
  std::string wrong;    // the first pixel that is not as it should; "": none
  uint8_t step = 0;     // modulo 256
  int64_t checked = 0;  // pixels of the screen
};

// `area` of the screen holds the part `source` of the image, fitted, its
// aspect ratio kept, each pixel with sharp edges. Pixels of the screen that lie
// on the edge between two of the image may be either. What is beside the
// image must be of one colour.
PatternSeen CheckPattern(const QImage& screen, const QRect& area,
                         const FrameGeometry& geometry, const ViewRect& source);

}  // namespace tandem

#endif  // TANDEM_VIZ_TESTING_PATTERN_CHECK_H_
