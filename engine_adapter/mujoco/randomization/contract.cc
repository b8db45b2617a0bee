#include "engine_adapter/mujoco/randomization/contract.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/error.h"
#include "base/quoted.h"

namespace tandem {
namespace {

constexpr double kAny = std::numeric_limits<double>::infinity();

// The permitted values of a field; `text` describes them in errors.
struct Bounds {
  double least;
  double most;
  const char* text;

  bool Hold(double value) const {
    return std::isfinite(value) && least <= value && value <= most;
  }
};

constexpr Bounds kFinite = {-kAny, kAny, "finite"};
constexpr Bounds kFromZero = {0, kAny, "finite, from 0"};
constexpr Bounds kZeroToOne = {0, 1, "from 0 to 1"};
// A body without mass cannot be simulated.
constexpr Bounds kAboveZero = {std::numeric_limits<double>::min(), kAny,
                               "finite, above 0"};

class ContractReader {
 public:
  std::optional<DrawRange> Range(const char* field,
                                 const std::vector<float>& found,
                                 const Bounds& bounds) {
    if (found.empty()) return {};
    if (found.size() != 2 || !bounds.Hold(double{found[0]}) ||
        !bounds.Hold(double{found[1]}) || found[0] > found[1]) {
      Refuse(field, absl::StrCat("[min, max], min <= max, both ", bounds.text,
                                 "; found [", absl::StrJoin(found, ", "), "]"));
      return {};
    }
    return DrawRange{.low = double{found[0]}, .high = double{found[1]}};
  }

  double Number(const char* field, float found, const Bounds& bounds) {
    if (!bounds.Hold(double{found})) {
      Refuse(field, absl::StrCat("a number, ", bounds.text, "; found ", found));
    }
    return double{found};
  }

  std::array<double, 3> Noise(const char* field,
                              const std::vector<float>& found,
                              const Bounds& bounds) {
    std::array<double, 3> noise = {};
    if (found.empty()) return noise;
    const bool all_hold = std::ranges::all_of(
        found, [&](float value) { return bounds.Hold(double{value}); });
    if (found.size() != noise.size() || !all_hold) {
      Refuse(field, absl::StrCat("[x, y, z], each ", bounds.text, "; found ",
                                 Quoted(absl::StrCat(
                                     "[", absl::StrJoin(found, ", "), "]"))));
      return noise;
    }
    std::ranges::copy(found, noise.begin());
    return noise;
  }

  std::optional<Terrain> TerrainType(const char* field,
                                     const std::string& found) {
    if (found.empty()) return {};
    const std::optional<Terrain> terrain = TerrainNamed(found);
    if (!terrain) {
      Refuse(field, absl::StrCat("one of ", absl::StrJoin(TerrainNames(), ", "),
                                 "; found ", Quoted(found)));
    }
    return terrain;
  }

  const absl::Status& status() const { return status_; }

 private:
  void Refuse(const char* field, const std::string& text) {
    if (!status_.ok()) return;
    status_ = MakeError(ErrorCode::kInvalidArgument,
                        absl::StrCat(field, ": expected ", text,
                                     "; fix the "
                                     "contract"));
  }

  absl::Status status_;
};

}  // namespace

// Reads a field. Errors contain its name.
#define READ(type, field, bounds) reader.type(#field, message.field, bounds)

absl::StatusOr<Contract> ReadContract(const rpc::SimulationContractT& message) {
  ContractReader reader;
  Contract contract = {
      .pose_position_noise = READ(Noise, pose_position_noise, kFromZero),
      .pose_orientation_noise = READ(Number, pose_orientation_noise, kFromZero),
      .joint_position_noise = READ(Number, joint_position_noise, kFromZero),
      .joint_velocity_noise = READ(Number, joint_velocity_noise, kFromZero),
      .friction = READ(Range, friction_range, kFromZero),
      .restitution = READ(Range, restitution_range, kZeroToOne),
      .mass_scale = READ(Range, mass_scale_range, kAboveZero),
      .com_offset = READ(Range, com_offset_range, kFinite),
      .motor_strength = READ(Range, motor_strength_range, kFromZero),
      .motor_offset = READ(Range, motor_offset_range, kFinite),
      .push_interval = READ(Range, push_interval_range, kFromZero),
      .push_velocity = READ(Range, push_velocity_range, kFromZero),
      .terrain = reader.TerrainType("terrain_type", message.terrain_type),
      .terrain_difficulty = READ(Number, terrain_difficulty, kZeroToOne),
      .velocity_command = {READ(Range, vel_command_x_range, kFinite),
                           READ(Range, vel_command_y_range, kFinite),
                           READ(Range, vel_command_yaw_range, kFinite)},
      .command_resampling_time =
          READ(Range, vel_command_resampling_time_range, kFromZero),
      .standing_probability =
          READ(Number, vel_command_standing_probability, kZeroToOne),
  };
  if (!reader.status().ok()) return reader.status();
  return contract;
}

#undef READ

}  // namespace tandem
