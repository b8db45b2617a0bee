// The plots on the screen: the positions of their curves by published numbers.
#include <gtest/gtest.h>

#include <QColor>
#include <QImage>
#include <QQuickItem>
#include <QRect>
#include <QString>
#include <QStringList>
#include <array>
#include <cmath>
#include <cstdlib>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "base/clock.h"
#include "transport/frames/frame_writer.h"
#include "transport/frames/owned_frame_segment.h"
#include "viz/core/viewer_options.h"
#include "viz/testing/pattern.h"
#include "viz/viewer/testing/viewer_fixture.h"

namespace tandem {
namespace {

// Of a channel. Lines are antialiased; the band around them is much fainter.
constexpr int kNear = 96;

bool Resembles(QRgb pixel, const QColor& colour) {
  return std::abs(qRed(pixel) - colour.red()) <= kNear &&
         std::abs(qGreen(pixel) - colour.green()) <= kNear &&
         std::abs(qBlue(pixel) - colour.blue()) <= kNear;
}

class PlotsTest : public ViewerTest {
 protected:
  void SetUp() override {
    absl::StatusOr<OwnedFrameSegment> segment =
        OwnedFrameSegment::Create(run_, PatternRun().geometry);
    ASSERT_TRUE(segment.ok());
    segment_.emplace(*std::move(segment));
  }

  // Returns once the viewer has received it.
  void Publish(const FrameMetrics& metrics, const char* metadata) {
    const uint64_t before = tab()->consumer().watch().frames();
    segment_->writer().Loan();
    segment_->writer().Commit(metrics, metadata);
    Await([&] { return tab()->consumer().watch().frames() > before; });
  }

  // The height of a series' curve at a part of the plot's width: 0 at its
  // bottom, 1 at its top. Nothing if no curve is there, or several heights.
  std::optional<double> HeightAt(const char* series, double part) const {
    const QQuickItem* plot = Item(QString::fromLatin1(series));
    const auto colour = plot->property("lineColor").value<QColor>();
    const QRect area = plot->mapRectToScene(plot->boundingRect()).toRect();
    const QImage screen = GrabScreen();
    const int x = area.left() + static_cast<int>(part * area.width());
    int first = -1;
    int last = -1;
    for (int y = area.top(); y <= area.bottom(); ++y) {
      if (!Resembles(screen.pixel(x, y), colour)) continue;
      if (first < 0) first = y;
      last = y;
    }
    if (first < 0 || last - first > 3) return std::nullopt;
    const double middle = (first + last + 1) / 2.0;
    return (area.y() + area.height() - middle) / area.height();
  }

  // Checks a curve that should be at `before` to the left of the part `step`
  // of the width, and at `after` to the right. Returns the error.
  std::string WrongWith(const char* series, double step, double before,
                        double after) const {
    constexpr double kOff = 0.08;  // margins, and half of the line
    for (const double part : {0.05, 0.5 * step, 0.85 * step, 0.15 + 0.85 * step,
                              0.5 + 0.5 * step, 0.95}) {
      const double expected = part < step ? before : after;
      const std::optional<double> found = HeightAt(series, part);
      if (!found.has_value() || std::abs(*found - expected) > kOff) {
        return std::string(series) + " at " + std::to_string(part) +
               ": expected " + std::to_string(expected) + ", found " +
               (found.has_value() ? std::to_string(*found) : "nothing") + "\n";
      }
    }
    return "";
  }

  std::optional<OwnedFrameSegment> segment_;
};

TEST_F(PlotsTest, DrawTheNumbersAtTheirPositions) {
  ViewerOptions options;
  options.runs = {run_};
  Open(options);
  const std::array<const char*, 3> all = {"reward", "return", "step rate"};
  for (const char* series : all) {
    // The plot has a grid and no curve.
    const QQuickItem* plot = Item(QString::fromLatin1(series));
    ASSERT_NE(plot, nullptr);
    const QPoint grid =
        plot->mapToScene(QPointF(plot->width() / 2, plot->height() / 2))
            .toPoint();
    const auto colour = plot->property("gridColor").value<QColor>();
    Await([&] {
      const QImage screen = GrabScreen();
      return screen.pixelColor(grid.x(), grid.y()) == colour ||
             screen.pixelColor(grid.x(), grid.y() - 1) == colour;
    });
    for (double part = 0; part < 1; part += 0.01) {
      EXPECT_FALSE(HeightAt(series, part).has_value()) << series << part;
    }
  }

  EXPECT_EQ(Item(QStringLiteral("episode length")), nullptr);

  // A step up, a constant and two steps down.
  const int64_t begin_ns = MonotonicNanos();
  for (int i = 0; i < 40; ++i) Publish({1, 5, 400}, R"({"episode_length": 9})");
  const int64_t step_ns = MonotonicNanos();
  for (int i = 0; i < 40; ++i)
    Publish({3, 5, -400}, R"({"episode_length": 7.5})");
  const double step = static_cast<double>(step_ns - begin_ns) /
                      static_cast<double>(MonotonicNanos() - begin_ns);
  std::string wrong;
  const auto is_right = [&] {
    wrong.clear();
    for (const auto& [series, before, after] : {std::tuple{"reward", 0.0, 1.0},
                                                {"return", 0.5, 0.5},
                                                {"step rate", 1.0, 0.0},
                                                {"episode length", 1.0, 0.0}}) {
      wrong += WrongWith(series, step, before, after);
    }
    return wrong.empty();
  };
  const int64_t grace_ns = MonotonicNanos() + 15'000'000'000;
  Await([&] { return is_right() || MonotonicNanos() > grace_ns; });
  EXPECT_EQ(wrong, "");
  const QQuickItem* plot = Item(QStringLiteral("reward"));
  EXPECT_EQ(plot->property("minText").toString().toStdString(), "1.00");
  EXPECT_EQ(plot->property("maxText").toString().toStdString(), "3.00");
  EXPECT_EQ(plot->property("lastText").toString().toStdString(), "3.00");
}

}  // namespace
}  // namespace tandem
