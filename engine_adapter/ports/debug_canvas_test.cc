#include "engine_adapter/debug_canvas.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <limits>
#include <memory>
#include <vector>

#include "absl/strings/match.h"
#include "base/error.h"

namespace tandem {
namespace {

using Point = std::array<float, 3>;

std::unique_ptr<rpc::DebugLineT> Line(const rpc::Vec3& start,
                                      const rpc::Vec3& end) {
  auto line = std::make_unique<rpc::DebugLineT>();
  line->start = std::make_unique<rpc::Vec3>(start);
  line->end = std::make_unique<rpc::Vec3>(end);
  return line;
}

std::unique_ptr<rpc::DebugColorT> Colour(float r, float g, float b, float a) {
  auto colour = std::make_unique<rpc::DebugColorT>();
  colour->r = r;
  colour->g = g;
  colour->b = b;
  colour->a = a;
  return colour;
}

rpc::DebugDrawRequestT OneLine(uint32_t env = 0) {
  rpc::DebugDrawRequestT request;
  request.env_id = env;
  request.lines.push_back(Line({1, 2, 3}, {4, 5, 6}));
  return request;
}

size_t Count(const DebugCanvas& canvas, uint32_t env) {
  return canvas.Marks(env) == nullptr ? 0 : canvas.Marks(env)->size();
}

TEST(DebugCanvas, KeepsLinesOfEachEnvironmentUntilCleared) {
  DebugCanvas canvas(2);
  rpc::DebugDrawRequestT request = OneLine();
  request.lines[0]->color = Colour(0.25F, 0.5F, 0.75F, 1);
  ASSERT_TRUE(canvas.Draw(request).ok());
  ASSERT_TRUE(canvas.Draw(OneLine()).ok());
  ASSERT_EQ(Count(canvas, 0), 2U);
  EXPECT_EQ(Count(canvas, 1), 0U);
  const DebugMark& mark = canvas.Marks(0)->front();
  EXPECT_FALSE(mark.is_arrow);
  EXPECT_EQ(mark.from, (Point{1, 2, 3}));
  EXPECT_EQ(mark.to, (Point{4, 5, 6}));
  EXPECT_EQ(mark.rgba, (std::array<float, 4>{0.25F, 0.5F, 0.75F, 1}));

  ASSERT_TRUE(canvas.Draw(OneLine(1)).ok());
  rpc::DebugDrawRequestT clear;
  clear.clear_previous = true;
  ASSERT_TRUE(canvas.Draw(clear).ok());
  EXPECT_EQ(Count(canvas, 0), 0U);
  EXPECT_EQ(Count(canvas, 1), 1U);
  request = OneLine(1);
  request.clear_previous = true;
  ASSERT_TRUE(canvas.Draw(request).ok());
  EXPECT_EQ(Count(canvas, 1), 1U);
}

TEST(DebugCanvas, ShapesUnderRenderingDoNotChange) {
  DebugCanvas canvas(1);
  ASSERT_TRUE(canvas.Draw(OneLine()).ok());
  const std::shared_ptr<const DebugMarks> taken = canvas.Marks(0);
  rpc::DebugDrawRequestT clear;
  clear.clear_previous = true;
  ASSERT_TRUE(canvas.Draw(clear).ok());
  EXPECT_EQ(taken->size(), 1U);
}

TEST(DebugCanvas, ArrowsReachAlongTheirDirectionTimesScale) {
  DebugCanvas canvas(1);
  rpc::DebugDrawRequestT request;
  for (const float scale : {0.0F, 2.0F}) {
    auto arrow = std::make_unique<rpc::DebugArrowT>();
    arrow->origin = std::make_unique<rpc::Vec3>(1, 1, 1);
    arrow->direction = std::make_unique<rpc::Vec3>(0, 3, -1);
    arrow->scale = scale;
    request.arrows.push_back(std::move(arrow));
  }
  ASSERT_TRUE(canvas.Draw(request).ok());
  ASSERT_EQ(Count(canvas, 0), 2U);
  const DebugMarks& marks = *canvas.Marks(0);
  EXPECT_TRUE(marks[0].is_arrow);
  EXPECT_EQ(marks[0].to, (Point{1, 4, 0}));  // scale 0 counts as 1
  EXPECT_EQ(marks[1].to, (Point{1, 7, -1}));
}

TEST(DebugCanvas, AVelocityCommandIsAnArrowForEachPartThatIsNotZero) {
  DebugCanvas canvas(1);
  rpc::DebugDrawRequestT request;
  request.velocity_command = std::make_unique<rpc::DebugVelocityCommandT>();
  rpc::DebugVelocityCommandT& command = *request.velocity_command;
  command.origin = std::make_unique<rpc::Vec3>(0, 0, 1);
  command.lin_vel_x = 2;
  command.lin_vel_y = -1;
  command.ang_vel_z = 0.5F;
  command.scale = 2;
  ASSERT_TRUE(canvas.Draw(request).ok());
  ASSERT_EQ(Count(canvas, 0), 3U);
  const DebugMarks& marks = *canvas.Marks(0);
  EXPECT_EQ(marks[0].to, (Point{4, 0, 1}));
  EXPECT_EQ(marks[1].to, (Point{0, -2, 1}));
  EXPECT_EQ(marks[2].to, (Point{0, 0, 2}));
  EXPECT_NE(marks[2].rgba, marks[0].rgba);

  command.lin_vel_x = command.ang_vel_z = 0;
  request.clear_previous = true;
  ASSERT_TRUE(canvas.Draw(request).ok());
  EXPECT_EQ(Count(canvas, 0), 1U);
}

TEST(DebugCanvas, DropsInvisibleShapes) {
  DebugCanvas canvas(1);
  rpc::DebugDrawRequestT request = OneLine();
  request.lines[0]->color = Colour(1, 1, 1, 0);
  request.lines.push_back(Line({1, 1, 1}, {1, 1, 1}));
  ASSERT_TRUE(canvas.Draw(request).ok());
  EXPECT_EQ(Count(canvas, 0), 0U);
}

TEST(DebugCanvas, RefusesNonFiniteNumbersWithoutChange) {
  const float infinite = std::numeric_limits<float>::infinity();
  const float largest = std::numeric_limits<float>::max();
  std::vector<rpc::DebugDrawRequestT> wrong(5);
  wrong[0].lines.push_back(Line({NAN, 0, 0}, {1, 1, 1}));
  wrong[1].lines.push_back(Line({0, 0, 0}, {1, infinite, 1}));
  wrong[2] = OneLine();
  wrong[2].lines[0]->color = Colour(1, 255, 1, 1);
  auto arrow = std::make_unique<rpc::DebugArrowT>();
  arrow->direction = std::make_unique<rpc::Vec3>(largest, 0, 0);
  arrow->scale = 10;
  wrong[3].arrows.push_back(std::move(arrow));
  wrong[4].velocity_command = std::make_unique<rpc::DebugVelocityCommandT>();
  wrong[4].velocity_command->ang_vel_z = NAN;
  DebugCanvas canvas(1);
  ASSERT_TRUE(canvas.Draw(OneLine()).ok());
  for (rpc::DebugDrawRequestT& request : wrong) {
    request.clear_previous = true;
    const absl::Status status = canvas.Draw(request);
    EXPECT_EQ(CodeOf(status), ErrorCode::kInvalidArgument) << status;
    EXPECT_EQ(Count(canvas, 0), 1U);
  }
}

TEST(DebugCanvas, RefusesMoreShapesThanItsLimit) {
  DebugCanvas canvas(1);
  rpc::DebugDrawRequestT request;
  for (size_t i = 0; i < kMostDebugMarks; ++i) {
    request.lines.push_back(Line({0, 0, 0}, {1, 1, 1}));
  }
  ASSERT_TRUE(canvas.Draw(request).ok());
  const absl::Status status = canvas.Draw(OneLine());
  EXPECT_EQ(CodeOf(status), ErrorCode::kInvalidArgument);
  EXPECT_TRUE(absl::StrContains(status.message(), "clear_previous")) << status;
  EXPECT_EQ(Count(canvas, 0), kMostDebugMarks);
  request.clear_previous = true;
  EXPECT_TRUE(canvas.Draw(request).ok());
  request.lines.push_back(Line({0, 0, 0}, {1, 1, 1}));
  EXPECT_EQ(CodeOf(canvas.Draw(request)), ErrorCode::kInvalidArgument);
}

}  // namespace
}  // namespace tandem
