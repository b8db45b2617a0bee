#include "sdk/named_arrays.h"

#include <algorithm>
#include <cstddef>
#include <type_traits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/error.h"
#include "base/printable.h"
#include "sdk/call_result.h"
#include "sdk/dtypes.h"

namespace tandem {
namespace {

// Of the names in an error text.
constexpr size_t kMostNames = 40;

// "obs/image" for the path "/image"; "obs/" for the whole observation.
std::string NameOfField(const FieldArray& field) {
  switch (field.role) {
    case FieldRole::kObs:
    case FieldRole::kFinalObs:
    case FieldRole::kAction:
      return absl::StrCat(NameOf(field.role),
                          field.path.empty() ? "/" : field.path);
    case FieldRole::kReward:
      return "reward64";
    default:
      return NameOf(field.role);
  }
}

// Writes the memory of actions, or of all other fields.
void FillFields(std::span<const FieldArray> fields, bool actions,
                std::span<void*> data) {
  for (size_t i = 0; i < fields.size(); ++i) {
    if ((fields[i].role == FieldRole::kAction) != actions) continue;
    data[NamedArrays::kFirstField + i] = fields[i].data.data();
  }
}

}  // namespace

void NamedArrays::Fill(const ResetIo& io, std::span<void*> data) {
  std::ranges::fill(data, nullptr);
  data[0] = io.obs.data();
  data[5] = io.infos.data();
  data[kImages] = io.images.data();
  FillFields(io.fields, /*actions=*/false, data);
}

void NamedArrays::Fill(const StepIo& io, std::span<void*> data) {
  Fill(ResetIo{.obs = io.obs,
               .infos = io.infos,
               .fields = io.fields,
               .images = io.images},
       data);
  // An engine only reads actions; one type serves all arrays.
  FillFields(io.fields, /*actions=*/true, data);
  data[1] = const_cast<float*>(io.actions.data());
  data[2] = io.rewards.data();
  data[3] = io.terminateds.data();
  data[4] = io.truncateds.data();
}

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

void NamedArrays::AddField(const FieldArray& field, uint64_t num_envs,
                           std::string name) {
  tandem_array array = {};
  array.struct_size = sizeof(array);
  array.index = static_cast<uint32_t>(items_.size());
  array.dtype = DtypeOf(field.type);
  array.dimensions = static_cast<uint32_t>(1 + field.shape.size());
  if (array.dimensions <= TANDEM_MAX_DIMENSIONS) {
    array.shape[0] = num_envs;
    std::ranges::copy(field.shape, array.shape + 1);
  }
  array.bytes = field.data.size();
  array.data = field.data.data();
  items_.push_back({std::move(name), array});
}

NamedArrays NamedArrays::OfEngine(const StepArrays& arrays,
                                  const ImageSize& images) {
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
  if (images.width != 0) {
    named.Add("images", arrays.images,
              {envs, images.height, images.width, ImageSize::kChannels});
    named.items_.back().array.index = kImages;
  }
  for (uint32_t i = 0; i < arrays.fields.size(); ++i) {
    const FieldArray& field = arrays.fields[i];
    if (field.role == FieldRole::kFinalObs) continue;  // the host writes it
    named.AddField(field, envs, NameOfField(field));
    named.items_.back().array.index = kFirstField + i;
  }
  return named;
}

NamedArrays NamedArrays::OfGpu(const ExportedArrays& arrays,
                               uint32_t num_envs) {
  NamedArrays named;
  for (const FieldRecord& record : arrays.spec().arrays) {
    if (record.role == FieldRole::kFinalObs) continue;  // the host writes it
    const FieldArray field = {
        .role = record.role,
        .type = record.type,
        .shape = {record.shape, record.shape + record.dims},
        .path = std::string(PathOf(record)),
        .data = {reinterpret_cast<std::byte*>(arrays.At(record)),
                 FieldBytes(record, num_envs)}};
    named.AddField(field, num_envs,
                   record.role == FieldRole::kReward   ? "rewards"
                   : record.role == FieldRole::kImages ? "images"
                   : field.path.empty()                ? "obs"
                                                       : NameOfField(field));
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
  for (const FieldArray& field : arrays.fields) {
    named.AddField(field, envs, NameOfField(field));
  }
  return named;
}

absl::Status NamedArrays::Find(const char* name, tandem_array* array) const {
  if (name == nullptr) return MissingArgument("name");
  absl::Status status = CheckOutput(array, "array");
  if (!status.ok()) return status;
  const auto found = std::ranges::find_if(
      items_, [name](const Item& item) { return item.name == name; });
  if (found == items_.end()) {
    const std::span<const Item> shown =
        std::span(items_).first(std::min(items_.size(), kMostNames));
    return MakeError(
        ErrorCode::kInvalidArgument,
        absl::StrCat("name: expected one of ",
                     absl::StrJoin(shown, ", ",
                                   [](std::string* out, const Item& item) {
                                     out->append(item.name);
                                   }),
                     shown.size() < items_.size() ? ", ..." : "", ", found '",
                     Printable(name), "'"));
  }
  if (found->array.dimensions > TANDEM_MAX_DIMENSIONS) {
    return MakeError(
        ErrorCode::kUnsupported,
        absl::StrCat("array '", found->name, "': expected at most ",
                     TANDEM_MAX_DIMENSIONS, " dimensions, found ",
                     found->array.dimensions,
                     "; this interface cannot describe more"));
  }
  WriteStruct(found->array, array);
  return status;
}

}  // namespace tandem
