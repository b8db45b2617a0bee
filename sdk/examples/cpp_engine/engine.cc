// An engine that is called for each step: points that a force moves along a
// line. The reward is the negative distance from 0.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <random>
#include <stdexcept>
#include <tandem.hpp>
#include <thread>
#include <vector>

class Points final : public tandem::Server {
 public:
  Points() {
    AddFlag("truncate_after", "steps of an episode; 0: no limit", &limit_);
    AddFlag("tick_hz", "turns of the loop a second; 0: no loop", &tick_hz_);
  }

 private:
  struct Point {
    std::mt19937_64 random{std::random_device{}()};
    float at = 0, speed = 0;
    double steps = 0;
  };

  void Prepare(tandem_engine_options* options) override {
    if (limit_ < 0)
      throw std::invalid_argument("--truncate_after: expected 0 or more");
    options->task = "Points";
    options->obs_size = 2;
    options->act_size = 1;
    options->step_secs = 0.02;
    options->description =
        R"({"action_space": {"type": "Box", "low": [-1], "high": [1]}})";
    points_.resize(options->num_envs);
  }

  void Reset(const tandem::Work& work) override {
    for (const tandem_reset& reset : work.resets()) {
      Point& point = points_[reset.env];
      if (reset.has_seed != 0) point.random.seed(reset.seed);
      point.at = std::uniform_real_distribution<float>(-1, 1)(point.random);
      point.speed = 0;
      point.steps = 0;
      Observe(work, reset.env);
    }
  }

  void Step(const tandem::Work& work) override {
    for (const uint32_t env : work.envs()) {
      Point& point = points_[env];
      const float force = work.actions(env)[0];
      // A client that is not ours may send anything.
      point.speed +=
          0.02F * (std::isfinite(force) ? std::clamp(force, -1.0F, 1.0F) : 0);
      point.at += 0.02F * point.speed;
      work.reward(env) = -std::abs(point.at);
      work.terminated(env) = 0;
      work.truncated(env) = ++point.steps == limit_ ? 1 : 0;
      Observe(work, env);
    }
  }

  // With a loop: a step is done in the turn after it was taken.
  void Loop(const tandem::Engine& engine) override {
    if (tick_hz_ == 0) return engine.Run();
    tandem_work work = {};
    while (!engine.stopping()) {
      if (work.kind == TANDEM_WORK_STEP || work.kind == TANDEM_WORK_RESET) {
        engine.DoneAfter([&] { Do(work); });
      }
      work = engine.Next();
      std::this_thread::sleep_for(std::chrono::duration<double>(1 / tick_hz_));
    }
  }

  void Observe(const tandem::Work& work, uint32_t env) const {
    work.obs(env)[0] = points_[env].at;
    work.obs(env)[1] = points_[env].speed;
  }

  double limit_ = 0;
  double tick_hz_ = 0;
  std::vector<Point> points_;
};

int main(int argc, char** argv) {
  return Points().Serve(argc, argv, "Points on a line.");
}
