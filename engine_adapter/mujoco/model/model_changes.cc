#include "engine_adapter/mujoco/model/model_changes.h"

#include <mujoco/mjxmacro.h>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <span>
#include <type_traits>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "base/error.h"

namespace tandem {
namespace {

enum class ArrayKind : uint8_t {
  kNumbers,
  kFrames,  // mjtSameFrame
  kFixed,   // indices, sizes and flags: other values could crash MuJoCo
};

struct ModelArray {
  uint16_t place;
  absl::string_view name;
  ArrayKind kind;
  std::span<const char> original;
  char* own;  // of the other model
};

template <typename T>
constexpr ArrayKind KindOf(absl::string_view name) {
  if (std::is_same_v<T, mjtNum> || std::is_same_v<T, float>) {
    return ArrayKind::kNumbers;
  }
  return absl::EndsWith(name, "_sameframe") ? ArrayKind::kFrames
                                            : ArrayKind::kFixed;
}

// MJMODEL_POINTERS uses MJ_M for a number of columns that is a model size.
#undef MJ_M
#define MJ_M(size) original.size

// All arrays of `original`, and those of `model`.
std::vector<ModelArray> ArraysOf(const mjModel& original,
                                 const mjModel& model) {
  std::vector<ModelArray> arrays;
#define X(type, array, rows, columns)                                 \
  arrays.push_back(                                                   \
      {.place = static_cast<uint16_t>(arrays.size()),                 \
       .name = #array,                                                \
       .kind = KindOf<type>(#array),                                  \
       .original = {reinterpret_cast<const char*>(original.array),    \
                    static_cast<size_t>(original.rows) *              \
                        static_cast<size_t>(columns) * sizeof(type)}, \
       .own = reinterpret_cast<char*>(model.array)});
  MJMODEL_POINTERS
#undef X
  return arrays;
}

bool Differs(const ModelArray& array) {
  return !array.original.empty() &&
         std::memcmp(array.original.data(), array.own, array.original.size()) !=
             0;
}

template <typename Bytes, typename Changes>
void TransferNumbers(Bytes& bytes, Changes& changes) {
  bytes.Values(changes.friction, changes.solref, changes.meaninertia);
}

}  // namespace

absl::Status SaveModelChanges(const mjModel& original, const mjModel& model,
                              StateWriter* to) {
  ModelChanges changes;
  std::ranges::copy(model.opt.o_friction, changes.friction.begin());
  std::ranges::copy(model.opt.o_solref, changes.solref.begin());
  changes.meaninertia = model.stat.meaninertia;
  TransferNumbers(*to, changes);
  std::vector<ModelArray> arrays = ArraysOf(original, model);
  std::erase_if(arrays,
                [](const ModelArray& array) { return !Differs(array); });
  const auto fixed =
      std::ranges::find(arrays, ArrayKind::kFixed, &ModelArray::kind);
  if (fixed != arrays.end()) {
    return MakeError(ErrorCode::kUnsupported,
                     absl::StrCat("state: expected a model that differs from "
                                  "the compiled one by numbers, found another ",
                                  fixed->name));
  }
  to->Values(static_cast<uint16_t>(arrays.size()));
  for (const ModelArray& array : arrays) {
    to->Values(array.place);
    to->Row(std::span<const char>(array.own, array.original.size()));
  }
  return absl::OkStatus();
}

ModelChanges ReadModelChanges(const mjModel& original, StateReader* from) {
  ModelChanges changes;
  uint16_t count = 0;
  TransferNumbers(*from, changes);
  from->Values(count);
  const std::vector<ModelArray> known = ArraysOf(original, original);
  for (uint16_t i = 0; i < count; ++i) {
    uint16_t place = 0;
    from->Values(place);
    if (place >= known.size() || known[place].kind == ArrayKind::kFixed) {
      from->Refuse();
      return {};
    }
    std::string& bytes = changes.arrays[place];
    bytes.resize(known[place].original.size());
    from->Row(std::span(bytes));
    if (known[place].kind == ArrayKind::kNumbers) continue;
    for (const char frame : bytes) {
      if (frame < 0 || frame > mjSAMEFRAME_INERTIAROT) from->Refuse();
    }
  }
  return changes;
}

void ApplyModelChanges(const ModelChanges& changes, const mjModel& original,
                       mjModel* model) {
  for (const ModelArray& array : ArraysOf(original, *model)) {
    if (array.kind == ArrayKind::kFixed || array.original.empty()) continue;
    const auto changed = changes.arrays.find(array.place);
    std::memcpy(array.own,
                changed == changes.arrays.end() ? array.original.data()
                                                : changed->second.data(),
                array.original.size());
  }
  std::ranges::copy(changes.friction, model->opt.o_friction);
  std::ranges::copy(changes.solref, model->opt.o_solref);
  model->stat.meaninertia = changes.meaninertia;
}

// FNV-1a, of words.
uint64_t ModelHash(const mjModel& model) {
  uint64_t hash = 0xcbf29ce484222325;
  for (const ModelArray& array : ArraysOf(model, model)) {
    std::span<const char> rest = array.original;
    while (!rest.empty()) {
      uint64_t word = 0;
      const size_t size = std::min(rest.size(), sizeof(word));
      std::memcpy(&word, rest.data(), size);
      hash = (hash ^ word) * 0x100000001b3;
      rest = rest.subspan(size);
    }
  }
  return hash;
}

}  // namespace tandem
