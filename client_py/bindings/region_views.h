// RegionViews: a region's arrays as NumPy views, and its constants.
//
// Data flow: ClientSide's mapping and checked header -> NumPy views.
// Ownership: each view's base holds a reference to the mapping. The memory is
// unmapped when the client and all views are destroyed.

#pragma once

#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "schema/layout/lrbc.h"
#include "transport/client_side.h"
#include "transport/region.h"
#include "transport/step_arrays.h"

namespace tandem {

using SharedMapping = std::shared_ptr<const RegionMapping>;

// Returns the base of views: it keeps the mapping.
pybind11::capsule KeeperOf(const SharedMapping& mapping);
template <typename T>
pybind11::array_t<T> View(std::span<T> values,
                          std::vector<pybind11::ssize_t> shape,
                          const pybind11::capsule& keeper) {
  return pybind11::array_t<T>(std::move(shape), values.data(), keeper);
}
// (role, path) -> NumPy view [num_envs, *shape]; empty without fields. Float32
// rows are views of the same memory as obs, final_obs and actions.
pybind11::dict FieldViews(const StepArrays& arrays,
                          const SharedMapping& mapping);
// The arrays of a worker's results and flags, [num_envs], by their names in
// StepArrays.
pybind11::dict ArrayViews(const StepArrays& arrays,
                          const SharedMapping& mapping);

struct RegionViews {
  pybind11::array_t<float> obs;
  pybind11::array_t<float> actions;
  pybind11::array_t<float> rewards;
  pybind11::array_t<uint8_t> dones;
  pybind11::array_t<uint8_t> truncateds;
  pybind11::array_t<uint8_t> terminateds;
  pybind11::array_t<uint8_t> resets;
  pybind11::array_t<float> final_obs;
  pybind11::array_t<double> infos;
  pybind11::array_t<double> final_infos;
  pybind11::object images;        // uint8[num_envs, height, width, 3], or None
  pybind11::object final_images;  // the same
  pybind11::dict fields;          // FieldViews

  // Checked at attach, and not read from the mapping again.
  uint32_t num_envs = 0;
  uint32_t obs_size = 0;
  uint32_t act_size = 0;
  std::string task;
  pybind11::bytes description;  // the engine's JSON; b"": none
  uint32_t engine_pid = 0;      // for display only
  uintptr_t address = 0;
  pybind11::dict offsets;  // str -> int, bytes from `address`

  // Needs the GIL.
  static RegionViews Of(const ClientSide& client);
};

}  // namespace tandem
