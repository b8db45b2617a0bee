#include "sdk/named_arrays.h"

#include <algorithm>
#include <type_traits>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "sdk/call_result.h"
#include "transport/base/error.h"
#include "transport/base/printable.h"

namespace tandem {
template <typename T>
void NamedArrays::Add(const char* name, std::span<T> values,
                      std::initializer_list<uint64_t> shape) {
  tandem_array array = {};
  array.struct_size = sizeof(array);
  array.index = static_cast<uint32_t>(items_.size());
  array.dtype = std::is_same_v<T, float>    ? TANDEM_FLOAT32
                : std::is_same_v<T, double> ? TANDEM_FLOAT64
                                            : TANDEM_UINT8;
  array.dimensions = static_cast<uint32_t>(shape.size());
  std::ranges::copy(shape, array.shape);
  array.bytes = values.size_bytes();
  array.data = values.data();
  items_.push_back({name, array});
}

NamedArrays NamedArrays::OfEngine(const StepArrays& arrays) {
  const uint64_t envs = arrays.num_envs;
  NamedArrays named;
  named.Add("obs", arrays.obs, {envs, arrays.obs_size});
  named.Add("actions", arrays.actions, {envs, arrays.act_size});
  named.Add("rewards", arrays.rewards, {envs});
  named.Add("terminateds", arrays.terminateds, {envs});
  named.Add("truncateds", arrays.truncateds, {envs});
  if (!arrays.infos.empty()) {
    named.Add("infos", arrays.infos, {envs, arrays.info_size});
  }
  return named;
}

NamedArrays NamedArrays::OfClient(const StepArrays& arrays,
                                  const LrbcHeader& plan) {
  const uint64_t envs = arrays.num_envs;
  NamedArrays named;
  named.Add("obs", arrays.obs, {envs, arrays.obs_size});
  named.Add("actions", arrays.actions, {envs, arrays.act_size});
  named.Add("rewards", arrays.rewards, {envs});
  named.Add("dones", arrays.dones, {envs});
  named.Add("terminateds", arrays.terminateds, {envs});
  named.Add("truncateds", arrays.truncateds, {envs});
  named.Add("resets", arrays.resets, {envs});
  named.Add("final_obs", arrays.final_obs, {envs, arrays.obs_size});
  if (!arrays.infos.empty()) {
    named.Add("infos", arrays.infos, {envs, arrays.info_size});
    named.Add("final_infos", arrays.final_infos, {envs, arrays.info_size});
  }
  if (!arrays.images.empty()) {
    named.Add("images", arrays.images,
              {envs, plan.image_height, plan.image_width, plan.image_channels});
  }
  return named;
}

absl::Status NamedArrays::Find(const char* name, tandem_array* array) const {
  if (name == nullptr) return MissingArgument("name");
  absl::Status status = CheckOutput(array, "array");
  if (!status.ok()) return status;
  const auto found =
      std::ranges::find(items_, absl::string_view(name),
                        [](const Item& item) { return item.name; });
  if (found == items_.end()) {
    return MakeError(
        ErrorCode::kInvalidArgument,
        absl::StrCat("name: expected one of ",
                     absl::StrJoin(items_, ", ",
                                   [](std::string* out, const Item& item) {
                                     out->append(item.name);
                                   }),
                     ", found '", Printable(name), "'"));
  }
  WriteStruct(found->array, array);
  return status;
}

}  // namespace tandem
