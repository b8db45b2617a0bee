#include <gtest/gtest.h>
#include <mujoco/mujoco.h>

#include <array>
#include <cmath>
#include <fstream>
#include <string>

#include "absl/strings/str_cat.h"
#include "engine_adapter/mujoco/model/model_file.h"
#include "engine_adapter/mujoco/randomization/model_draws.h"

namespace tandem {
namespace {

// A ball of radius 0.1 m, `height` above the ground, with contact `solref`.
ModelPtr Ball(double height, double timestep, const std::string& solref) {
  const std::string path = absl::StrCat(testing::TempDir(), "/ball.xml");
  std::ofstream(path) << absl::StrCat(
      "<mujoco><option timestep='", timestep, "'/><default><geom solref='",
      solref, "'/></default><worldbody><geom type='plane' size='5 5 1'/>",
      "<body pos='0 0 ", height + 0.1,
      "'><freejoint/><geom size='.1' mass='1'/></body></worldbody></mujoco>");
  return LoadModel({.path = path}).value();
}

// Returns the ratio of the speeds after and before the first bounce.
double Bounce(double height, double timestep, double restitution,
              const std::string& solref = "0.02 1") {
  const ModelPtr model = Ball(height, timestep, solref);
  for (int i = 0; i < model->ngeom; ++i) {
    SetRestitution(restitution, timestep, model->geom_solref + mjNREF * i);
  }
  const DataPtr data = MakeData(*model).value();
  double before = 0;
  for (int step = 0; step < 5 / timestep; ++step) {
    const double speed = data->qvel[2];
    mj_step(model.get(), data.get());
    const bool touches = data->nefc > 0 && data->efc_force[0] > 0;
    if (touches && before == 0) before = speed;
    if (!touches && before != 0) return data->qvel[2] / -before;
  }
  return 0;  // the ball stays on the ground
}

TEST(Restitution, IsThatOfAContactThatCannotPull) {
  // Integrates spring and damper until their force would pull.
  for (const double ratio : {0.05, 0.3, 0.7, 0.72, 1.0, 1.5}) {
    constexpr double kStep = 1e-5;
    double x = 0;
    double v = 1;
    while (2 * ratio * v + x > 0) {
      v -= kStep * (2 * ratio * v + x);
      x += kStep * v;
    }
    EXPECT_NEAR(RestitutionOf(ratio), -v, 1e-3) << ratio;
  }
}

TEST(Restitution, HasAnInverse) {
  for (const double restitution : {0.01, 0.1, std::exp(-2.0), 0.5, 0.9, 0.99}) {
    EXPECT_NEAR(RestitutionOf(DampingRatioFor(restitution)), restitution, 1e-9);
  }
  EXPECT_LT(DampingRatioFor(1), 2e-4);
  EXPECT_GT(DampingRatioFor(0), 5e3);
}

// docs/randomization.md states these tolerances.
TEST(Restitution, IsTheReboundOfADroppedBall) {
  for (const std::string solref : {"0.02 1", "-2500 -100"}) {
    for (const double restitution : {0.2, 0.3, 0.5, 0.7, 0.9, 1.0}) {
      EXPECT_NEAR(Bounce(1, 0.002, restitution, solref), restitution, 0.02)
          << solref << ", " << restitution;
    }
  }
  for (const double restitution : {0.2, 0.5, 0.9}) {
    EXPECT_NEAR(Bounce(1, 0.005, restitution), restitution, 0.07);
    EXPECT_NEAR(Bounce(1, 0.01, restitution), restitution, 0.12);
  }
}

TEST(Restitution, OfZeroKeepsABallOnTheGround) {
  EXPECT_LT(std::abs(Bounce(1, 0.002, 0)), 0.01);
  EXPECT_LT(std::abs(Bounce(1, 0.002, 0, "-2500 -100")), 0.01);
  EXPECT_LT(std::abs(Bounce(1, 0.01, 0)), 0.01);
}

TEST(Restitution, LeavesTheStiffness) {
  std::array<mjtNum, 2> solref = {0.03, 0.8};
  SetRestitution(0.6, 0.002, solref.data());
  EXPECT_NEAR(solref[0] * solref[1], 0.03 * 0.8, 1e-12);
  EXPECT_NEAR(RestitutionOf(solref[1]), 0.6, 1e-9);
  std::array<mjtNum, 2> direct = {-900, -10};
  SetRestitution(0.6, 0.002, direct.data());
  EXPECT_EQ(direct[0], -900);
  EXPECT_NEAR(RestitutionOf(-direct[1] / 2 / std::sqrt(900.0)), 0.6, 1e-9);
}

}  // namespace
}  // namespace tandem
