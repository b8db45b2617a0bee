#include "engine_adapter/debug_canvas.h"

#include <cmath>
#include <span>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "base/error.h"

namespace tandem {
namespace {

using Point = std::array<float, 3>;
using Colour = std::array<float, 4>;

constexpr Colour kYellow = {1, 0.9F, 0, 1};
constexpr Colour kRed = {1, 0.2F, 0.1F, 1};
constexpr Colour kGreen = {0.1F, 0.9F, 0.2F, 1};
constexpr Colour kBlue = {0.2F, 0.4F, 1, 1};

absl::Status Refuse(absl::string_view what, absl::string_view expected,
                    absl::string_view found) {
  return MakeError(ErrorCode::kInvalidArgument,
                   absl::StrCat(what, ": expected ", expected, ", found ",
                                found, "; nothing was drawn"));
}

// Checks each added mark; status() is the first error.
class MarkList {
 public:
  explicit MarkList(const DebugMarks* before) {
    if (before != nullptr) marks_ = *before;
  }

  const absl::Status& status() const { return status_; }
  DebugMarks Take() { return std::move(marks_); }

  void Add(absl::string_view what, bool is_arrow, const Point& from,
           const Point& to, const Colour& rgba) {
    CheckFinite(what, from);
    CheckFinite(what, to);
    for (const float part : rgba) {
      if (!(part >= 0 && part <= 1)) {
        status_.Update(Refuse(absl::StrCat(what, ".color"), "parts of 0 to 1",
                              absl::StrCat(part)));
      }
    }
    if (from == to || rgba[3] == 0) return;
    marks_.push_back(
        {.is_arrow = is_arrow, .from = from, .to = to, .rgba = rgba});
  }

  void CheckFinite(absl::string_view what, std::span<const float> numbers) {
    for (const float number : numbers) {
      if (std::isfinite(number)) continue;
      status_.Update(Refuse(what, "finite numbers", absl::StrCat(number)));
    }
  }

 private:
  DebugMarks marks_;
  absl::Status status_;
};

Point PointOf(const rpc::Vec3* at) {
  return at == nullptr ? Point{} : Point{at->x(), at->y(), at->z()};
}

Point Along(const Point& from, const Point& direction, float scale) {
  Point to;
  for (size_t axis = 0; axis < to.size(); ++axis) {
    to[axis] = from[axis] + direction[axis] * scale;
  }
  return to;
}

Colour ColourOf(const rpc::DebugColorT* colour, const Colour& otherwise) {
  if (colour == nullptr) return otherwise;
  return {colour->r, colour->g, colour->b, colour->a};
}

float ScaleOf(float scale) { return scale == 0 ? 1 : scale; }

void AddCommand(const rpc::DebugVelocityCommandT& command, MarkList* marks) {
  const Point from = PointOf(command.origin.get());
  const float scale = ScaleOf(command.scale);
  const auto add = [&](const Point& direction, const Colour& colour) {
    marks->Add("velocity_command", /*is_arrow=*/true, from,
               Along(from, direction, scale), colour);
  };
  add({command.lin_vel_x, 0, 0}, kGreen);
  add({0, command.lin_vel_y, 0}, kGreen);
  add({0, 0, command.ang_vel_z}, kBlue);
}

}  // namespace

absl::Status DebugCanvas::Draw(const rpc::DebugDrawRequestT& request) {
  std::shared_ptr<const DebugMarks>& mine = marks_[request.env_id];
  const size_t asked = request.lines.size() + request.arrows.size();
  MarkList marks(request.clear_previous ? nullptr : mine.get());
  // Checks the count before the contents: a request may have many megabytes.
  if (asked > kMostDebugMarks) {
    return Refuse("lines, arrows", absl::StrCat("at most ", kMostDebugMarks),
                  absl::StrCat(asked));
  }
  for (const auto& line : request.lines) {
    if (line == nullptr) continue;
    marks.Add("lines", /*is_arrow=*/false, PointOf(line->start.get()),
              PointOf(line->end.get()), ColourOf(line->color.get(), kYellow));
  }
  for (const auto& arrow : request.arrows) {
    if (arrow == nullptr) continue;
    const Point from = PointOf(arrow->origin.get());
    marks.Add(
        "arrows", /*is_arrow=*/true, from,
        Along(from, PointOf(arrow->direction.get()), ScaleOf(arrow->scale)),
        ColourOf(arrow->color.get(), kRed));
  }
  if (request.velocity_command != nullptr) {
    AddCommand(*request.velocity_command, &marks);
  }
  if (!marks.status().ok()) return marks.status();
  DebugMarks all = marks.Take();
  if (all.size() > kMostDebugMarks) {
    return Refuse(
        "lines, arrows",
        absl::StrCat("at most ", kMostDebugMarks, " in an environment"),
        absl::StrCat(all.size(),
                     " with those drawn before; draw with clear_previous"));
  }
  mine = all.empty() ? nullptr
                     : std::make_shared<const DebugMarks>(std::move(all));
  return absl::OkStatus();
}

}  // namespace tandem
