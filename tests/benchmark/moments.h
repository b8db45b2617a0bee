// Moments: joints of HalfCheetah-v5 after each exchange, to hold against what
// calls and streams say of them.
//
// Data flow: observations -> Add; what others saw -> RequireInOrder.
// Ownership: the thread that steps adds; asked when it has ended.
//
//   Moments moments(steps + 1);
//   moments.Add(client_side);  // after each exchange
//   moments.RequireInOrder(env, joints_seen);

#ifndef TANDEM_TESTS_BENCHMARK_MOMENTS_H_
#define TANDEM_TESTS_BENCHMARK_MOMENTS_H_

#include <algorithm>
#include <array>
#include <cstddef>
#include <vector>

#include "flatbuffers/flatbuffers.h"
#include "tests/benchmark/or_exit.h"
#include "transport/session/client_side.h"

namespace tandem {

constexpr size_t kJoints = 8;  // qpos without x begins the observations
using Joints = std::array<float, kJoints>;

inline Joints JointsOf(const flatbuffers::Vector<float>* positions) {
  Require(positions != nullptr && positions->size() == 1 + kJoints,
          "joints: expected 9 positions");
  Joints joints;
  std::copy(positions->begin() + 1, positions->end(), joints.begin());
  return joints;
}

// What the stepping thread saw after each exchange; moment 0 is the one before
// its first.
class Moments {
 public:
  static constexpr size_t kEnvs = 2;

  explicit Moments(size_t count) { rows_.reserve(count); }

  void Add(const ClientSide& side) {
    const size_t obs_size = side.plan().obs_size;
    auto& row = rows_.emplace_back();
    for (size_t env = 0; env < kEnvs; ++env) {
      std::copy_n(
          side.arrays().obs.begin() + static_cast<ptrdiff_t>(env * obs_size),
          kJoints, row[env].begin());
    }
  }

  const Joints& At(size_t env, size_t moment) const {
    return rows_.at(moment)[env];
  }

  // Joints that one thread saw one after the other: all are some moment's, and
  // none is earlier than the one before.
  void RequireInOrder(size_t env, const std::vector<Joints>& seen) const {
    size_t moment = 0;
    for (const Joints& joints : seen) {
      while (moment < rows_.size() && rows_[moment][env] != joints) ++moment;
      Require(moment < rows_.size(),
              "joints: expected those of a step's observations, in order; "
              "found others");
    }
  }

 private:
  std::vector<std::array<Joints, kEnvs>> rows_;
};

}  // namespace tandem

#endif  // TANDEM_TESTS_BENCHMARK_MOMENTS_H_
