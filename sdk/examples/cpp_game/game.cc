// The game of ../c_game in C++: a loop of its own, images as observations,
// frames and a live scene for viewers, a contract, telemetry, states, and a
// method of its own. A cart is pushed along a line, to reach its right end.
#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <cstring>
#include <random>
#include <string>
#include <tandem.hpp>
#include <thread>
#include <vector>

#include "cart_scene.h"

class CartGame final : public tandem::Server {
 public:
  CartGame() {
    AddFlag("tick_hz", "turns of the loop a second", &tick_hz_);
    AddFlag("truncate_after", "steps of an episode", &limit_);
  }

 private:
  static constexpr uint32_t kSide = 36;  // the least that the CNN of SB3 takes
  static constexpr tandem_field kImage = {
      "obs/image", TANDEM_UINT8, 3, {kSide, kSide, 3}};

  struct Cart {
    std::mt19937_64 random, draws;  // of the reset's seed, the contract's
    float at = 0, speed = 0, friction = 0;
    double steps = 0;

    // Its image is orange.
    void Paint(std::span<uint8_t> rgb, size_t width, size_t height) const {
      const auto x = static_cast<size_t>((at + 1) / 2 * float(width - 1));
      std::ranges::fill(rgb, uint8_t(30 + int(steps) % 100));
      for (size_t y = height / 2; y < height; ++y) {
        std::ranges::copy(std::vector<uint8_t>{255, 140, 0},
                          rgb.begin() + long(3 * (y * width + x)));
      }
    }
  };

  static float Uniform(std::mt19937_64& random, float low, float high) {
    return std::lerp(low, high, std::generate_canonical<float, 24>(random));
  }

  void Prepare(tandem_engine_options* options) override {
    if (!(tick_hz_ > 0)) throw std::invalid_argument("--tick_hz: above 0");
    options->task = "CartGame";
    options->fields = &kImage;
    options->field_count = 1;
    options->act_size = 1;
    options->description =
        R"({"action_space": {"type": "Box", "low": [-1], "high": [1]}})";
    services.joint_names = {"at", "speed"};
    services.velocity_count = 1;
    services.cameras = {"side"};
    services.draws_frames = true;
    services.contract_fields = {"friction_range"};
    services.has_scene = services.has_states = true;
    services.own_methods = {{"set_wind", "text/plain", "A push."}};
    carts_.resize(options->num_envs);
  }

  void Reset(const tandem::Work& work) override {
    for (size_t i = 0; i < work.resets().size(); ++i) {
      const tandem_reset& reset = work.resets()[i];
      const tandem_contract* const contract = work.contract(i);
      Cart& cart = carts_[reset.env];
      if (reset.has_seed != 0) cart.random.seed(reset.seed);
      if (contract != nullptr && contract->begins != 0) {
        cart.draws.seed(contract->seed);
      }
      const auto range = tandem::Range(contract, "friction_range");
      cart.friction =
          range.empty() ? 0.5F : Uniform(cart.draws, range[0], range[1]);
      cart.at = Uniform(cart.random, -1, 0);
      cart.speed = 0;
      cart.steps = 0;
      Observe(work, reset.env);
    }
  }

  void Step(const tandem::Work& work) override {
    for (const uint32_t env : work.envs()) {
      Cart& cart = carts_[env];
      const float push = work.actions(env)[0];  // may be any value
      const float force = std::isfinite(push) ? std::clamp(push, -1.F, 1.F) : 0;
      cart.speed += (4 * force + wind_ - cart.friction * cart.speed) / 60;
      cart.at += cart.speed / 60;
      if (!(cart.at >= -1)) cart.at = -1, cart.speed = 0;  // NaN, too
      cart.at = std::min(cart.at, 1.F);
      work.reward(env) = cart.at - 1;
      work.terminated(env) = cart.at == 1 ? 1 : 0;
      work.truncated(env) = ++cart.steps >= limit_ ? 1 : 0;
      Observe(work, env);
    }
  }

  void Observe(const tandem::Work& work, uint32_t env) const {
    const std::span<uint8_t> row = work.row<uint8_t>(Array(kImage.name), env);
    carts_[env].Paint(row, kSide, kSide);
  }

  void Draw(uint64_t call, const tandem_draw& draw) override {
    if (draw.depth != 0) return Refuse(call, TANDEM_UNSUPPORTED, "no depth");
    std::vector<uint8_t> rgb(size_t{3} * draw.width * draw.height);
    carts_[draw.env].Paint(rgb, draw.width, draw.height);
    Drawn(call, draw, rgb);
  }

  void Joints(uint32_t env, std::span<float> positions,
              std::span<float> velocities) override {
    positions[0] = carts_[env].at;
    positions[1] = velocities[0] = carts_[env].speed;
  }

  std::span<const uint8_t> Scene() override { return cart_scene; }

  void Poses(uint32_t env, std::span<float> poses) override {
    std::ranges::copy(std::array{carts_[env].at, 0.F, 0.F, 0.F, 0.F, 0.F, 1.F},
                      poses.begin());
  }

  std::vector<uint8_t> SaveState(uint32_t env) override {
    static_assert(std::is_trivially_copyable_v<Cart>);
    std::vector<uint8_t> state(sizeof(Cart));
    std::memcpy(state.data(), &carts_[env], sizeof(Cart));
    return state;
  }

  void LoadState(uint32_t env, std::span<const uint8_t> state) override {
    if (state.size() != sizeof(Cart)) throw std::invalid_argument("no cart");
    std::memcpy(&carts_[env], state.data(), sizeof(Cart));
  }

  std::vector<uint8_t> CallOwn(std::string_view /*set_wind*/,
                               std::span<const uint8_t> request) override {
    const std::string text(request.begin(), request.end());
    char* end = nullptr;
    const float wind = std::strtof(text.c_str(), &end);
    if (end == text.c_str() || !std::isfinite(wind)) {
      throw tandem::Error(TANDEM_INVALID_ARGUMENT, "expected a finite number");
    }
    wind_ = wind;
    return {'o', 'k'};
  }

  void Clear() override { wind_ = 0; }

  // A step in each tick.
  void Loop(const tandem::Engine& engine) override {
    while (!engine.stopping()) {
      bool stepped = false;
      while (!stepped) {
        const tandem_work work = engine.Next(0.001);
        if (work.kind == TANDEM_WORK_NONE) break;
        stepped = work.kind == TANDEM_WORK_STEP;
        if (stepped || work.kind == TANDEM_WORK_RESET) {
          engine.DoneAfter([&] { Do(work); });
        } else {
          Do(work);
        }
      }
      std::this_thread::sleep_for(std::chrono::duration<double>(1 / tick_hz_));
    }
  }

  double tick_hz_ = 60;
  double limit_ = 200;
  float wind_ = 0;
  std::vector<Cart> carts_;
};

int main(int argc, char** argv) {
  return CartGame().Serve(argc, argv, "A cart on a line.");
}
