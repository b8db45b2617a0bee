#include "transport/memory/gpu_plan.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "transport/memory/field_plan.h"
#include "transport/memory/mismatch.h"

namespace tandem {
namespace {

constexpr size_t kMostGpuProblems = 16;
constexpr uint32_t kRgb = 3;
constexpr uint32_t kRgba = 4;

uint64_t AlignGpu(uint64_t value) {
  return (value + kGpuAlignment - 1) & ~(kGpuAlignment - 1);
}

GpuMode ModeOf(const LrbcHeader& header) {
  return static_cast<GpuMode>(header.gpu_obs_mode);
}

bool IsOfGpu(FieldRole role) {
  return role == FieldRole::kObs || role == FieldRole::kFinalObs ||
         role == FieldRole::kReward || role == FieldRole::kImages;
}

std::string RoleProblem(const LrbcHeader& header, const FieldRecord& record,
                        absl::string_view name) {
  const bool has_path = record.path[0] != '\0';
  if (record.role == FieldRole::kReward) {
    if (record.type == FieldType::kFloat32 && record.dims == 0 && !has_path) {
      return "";
    }
    return Mismatch(std::string(name), "with float32[] and no path",
                    "other values");
  }
  if (record.role == FieldRole::kImages) {
    const bool rgba_too = ModeOf(header) == GpuMode::kVulkanExternal;
    if (record.type == FieldType::kUint8 && record.dims == 3 &&
        (record.shape[2] == kRgb || (rgba_too && record.shape[2] == kRgba)) &&
        !has_path) {
      return "";
    }
    return Mismatch(
        name, "with uint8[height, width, 3 (or 4 with mode 2)] and no path",
        "other values");
  }
  if (header.obs_size == 0) return "";
  if (record.type == FieldType::kFloat32 && record.dims == 1 &&
      record.shape[0] == header.obs_size && !has_path) {
    return "";
  }
  return Mismatch(
      std::string(name),
      absl::StrCat("with float32[", header.obs_size, "] and no path"),
      "other values");
}

std::string GpuProblemOf(const LrbcHeader& header, const FieldRecord& record,
                         size_t index) {
  if (!IsOfGpu(record.role)) {
    return Mismatch(absl::StrCat("the role of GPU array ", index),
                    "one of 1, 2, 4 and 8",
                    absl::StrCat(static_cast<uint32_t>(record.role)));
  }
  const std::string name = absl::StrCat("GPU ", FieldText(record));
  std::string problem = ValueProblem(record, name);
  if (problem.empty()) problem = RoleProblem(header, record, name);
  if (!problem.empty()) return problem;
  const uint64_t bytes = FieldBytes(record, header.num_envs);
  if (record.offset % kGpuAlignment == 0 &&
      record.offset <= header.gpu_alloc_size &&
      bytes <= header.gpu_alloc_size - record.offset) {
    return "";
  }
  return Mismatch(absl::StrCat(name, " (", bytes, " bytes)"),
                  absl::StrCat("at a multiple of ", kGpuAlignment,
                               " inside the allocation's ",
                               header.gpu_alloc_size, " bytes"),
                  absl::StrCat("offset ", record.offset));
}

// Of a region whose engine has exported the memory itself.
std::string MemoryProblem(const LrbcHeader& header,
                          std::span<const FieldRecord> arrays) {
  GpuFileHandle handle;
  std::memcpy(&handle, header.gpu_obs_handle, sizeof(handle));
  if (handle.fd > INT32_MAX || (handle.flags & ~kGpuDedicated) != 0) {
    return Mismatch(
        "gpu_obs_handle", "a descriptor's number, and flags 0 or 1",
        absl::StrCat(static_cast<int32_t>(handle.fd), " and ", handle.flags));
  }
  if (arrays.size() == 1 && arrays[0].role == FieldRole::kImages) return "";
  return Mismatch("GPU arrays with gpu_obs_mode 2", "images alone",
                  absl::StrCat(arrays.size(), " arrays"));
}

// Whether an array of this role has the record's path and values.
bool HasTwin(std::span<const FieldRecord> arrays, const FieldRecord& record,
             FieldRole role) {
  return std::ranges::any_of(arrays, [&](const FieldRecord& other) {
    return other.role == role && PathOf(other) == PathOf(record) &&
           other.type == record.type && other.dims == record.dims &&
           std::ranges::equal(other.shape, record.shape);
  });
}

}  // namespace

std::vector<FieldRecord> PlanGpuArrays(uint32_t num_envs, uint32_t obs_size,
                                       std::span<const FieldSpec> fields,
                                       uint32_t image_width,
                                       uint32_t image_height) {
  LrbcHeader sizes = {};
  sizes.obs_size = obs_size;
  std::vector<std::string> problems;  // PlanRegion reports those of fields
  std::vector<FieldRecord> arrays = FieldRecordsOf(fields, sizes, &problems);
  std::erase_if(arrays, [](const FieldRecord& record) {
    return record.role != FieldRole::kObs &&
           record.role != FieldRole::kFinalObs;
  });
  const auto add = [&](FieldRole role, FieldType type,
                       std::vector<uint32_t> shape) {
    FieldRecord record = {};
    record.role = role;
    record.type = type;
    record.dims = static_cast<uint8_t>(shape.size());
    std::ranges::copy(shape, record.shape);
    arrays.push_back(record);
  };
  add(FieldRole::kReward, FieldType::kFloat32, {});
  if (image_width != 0) {
    add(FieldRole::kImages, FieldType::kUint8,
        {image_height, image_width, kRgb});
  }
  uint64_t end = 0;
  for (FieldRecord& array : arrays) {
    array.offset = end;
    end = AlignGpu(end + FieldBytes(array, num_envs));
  }
  return arrays;
}

uint64_t GpuBytes(std::span<const FieldRecord> arrays, uint32_t num_envs) {
  uint64_t end = 0;
  for (const FieldRecord& array : arrays) {
    end = std::max(end, AlignGpu(array.offset + FieldBytes(array, num_envs)));
  }
  return end;
}

GpuSpec GpuSpecOf(const GpuMemory& memory, uint32_t image_width,
                  uint32_t image_height) {
  FieldRecord images = {};
  images.offset = memory.offset;
  images.role = FieldRole::kImages;
  images.type = FieldType::kUint8;
  images.dims = 3;
  std::ranges::copy(std::array{image_height, image_width, memory.channels},
                    images.shape);
  GpuSpec spec = {.mode = GpuMode::kVulkanExternal,
                  .device_uuid = memory.device_uuid,
                  .alloc_bytes = memory.bytes,
                  .arrays = {images}};
  const GpuFileHandle handle = {.fd = static_cast<uint32_t>(memory.fd),
                                .flags = memory.dedicated ? kGpuDedicated : 0,
                                .reserved_8 = {}};
  std::memcpy(spec.memory_handle.data(), &handle, sizeof(handle));
  return spec;
}

void CheckGpuArrays(const LrbcHeader& header,
                    std::span<const FieldRecord> arrays,
                    std::vector<std::string>* problems) {
  const size_t most = problems->size() + kMostGpuProblems;
  const auto add = [&](std::string problem) {
    if (!problem.empty() && problems->size() < most) {
      problems->push_back(std::move(problem));
    }
  };
  const size_t before = problems->size();
  const GpuMode mode = ModeOf(header);
  if (header.gpu_available != 1 ||
      (mode != GpuMode::kCudaIpc && mode != GpuMode::kVulkanExternal)) {
    add(Mismatch("gpu_obs_mode with GPU arrays", "1 or 2, and gpu_available 1",
                 absl::StrCat(uint32_t{header.gpu_obs_mode}, " and ",
                              uint32_t{header.gpu_available})));
  }
  if (mode == GpuMode::kVulkanExternal) add(MemoryProblem(header, arrays));
  for (size_t i = 0; i < arrays.size(); ++i) {
    add(GpuProblemOf(header, arrays[i], i));
  }
  if (problems->size() != before) return;
  std::vector<const FieldRecord*> sorted;
  for (const FieldRecord& array : arrays) {
    sorted.push_back(&array);
    const bool is_obs = array.role == FieldRole::kObs;
    if (!is_obs && array.role != FieldRole::kFinalObs) continue;
    const FieldRole other = is_obs ? FieldRole::kFinalObs : FieldRole::kObs;
    if (HasTwin(arrays, array, other)) continue;
    add(Mismatch(
        absl::StrCat("GPU ", FieldText(array)),
        absl::StrCat("to have an array ", NameOf(other), " of the same values"),
        "none"));
  }
  std::ranges::sort(sorted, {}, &FieldRecord::offset);
  for (size_t i = 1; i < sorted.size(); ++i) {
    const FieldRecord& last = *sorted[i - 1];
    if (last.offset + FieldBytes(last, header.num_envs) <= sorted[i]->offset) {
      continue;
    }
    add(Mismatch(absl::StrCat("GPU ", FieldText(*sorted[i])),
                 absl::StrCat("behind the end of ", FieldText(last)),
                 absl::StrCat("offset ", sorted[i]->offset, " inside it")));
  }
  const auto first =
      std::ranges::find(arrays, MainGpuRole(mode), &FieldRecord::role);
  if (first == arrays.end() || first->offset != header.gpu_alloc_offset) {
    add(Mismatch("gpu_alloc_offset",
                 absl::StrCat("the offset of the first array ",
                              NameOf(MainGpuRole(mode))),
                 absl::StrCat(header.gpu_alloc_offset)));
  }
}

}  // namespace tandem
