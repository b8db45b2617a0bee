// Length: the engine's plan and the client's checks of one layout.
#include "transport/memory/region_plan.h"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <optional>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/error.h"
#include "base/printable.h"
#include "schema/layout/attendant_slot.h"
#include "schema/layout/field.h"
#include "schema/layout/flan.h"
#include "schema/layout/image_slot.h"
#include "schema/layout/layout_crc.h"
#include "schema/layout/worker_slot.h"
#include "transport/frame_geometry.h"
#include "transport/memory/field_plan.h"
#include "transport/memory/gpu_plan.h"
#include "transport/memory/mismatch.h"

namespace tandem {
namespace {

constexpr uint32_t kMaxImageSide = 16384;
// For an invalid region, which could have thousands of fields.
constexpr size_t kMostRegionProblems = 64;

struct Section {
  absl::string_view name;
  uint64_t LrbcHeader::*offset;
  uint64_t bytes;
};

// Every section of the region, in the order of the layout. The products fit:
// sizes are at most 2^24, so the largest is 2^50 bytes.
std::vector<Section> SectionsOf(const LrbcHeader& header) {
  const uint64_t envs = header.num_envs;
  const uint64_t obs_bytes = envs * header.obs_size * sizeof(float);
  const uint64_t ring_bytes = sizeof(RingHeader) + header.cmd_ring_size;
  return {
      {"obs", &LrbcHeader::obs_offset, obs_bytes},
      {"actions", &LrbcHeader::act_offset,
       envs * header.act_size * sizeof(float)},
      {"rewards", &LrbcHeader::rewards_offset, envs * sizeof(float)},
      {"dones", &LrbcHeader::dones_offset, envs},
      {"truncateds", &LrbcHeader::truncateds_offset, envs},
      {"terminateds", &LrbcHeader::terminateds_offset, envs},
      {"resets", &LrbcHeader::resets_offset, envs},
      {"final_obs", &LrbcHeader::final_obs_offset, obs_bytes},
      {"reset_seeds", &LrbcHeader::reset_seeds_offset, envs * sizeof(uint64_t)},
      {"cmd_s2c", &LrbcHeader::cmd_s2c_offset, ring_bytes},
      {"cmd_c2s", &LrbcHeader::cmd_c2s_offset, ring_bytes},
  };
}

uint64_t AlignUp(uint64_t value) {
  return (value + kSectionAlignment - 1) & ~(kSectionAlignment - 1);
}

// The size of infos, and of final_infos; padded, so that the next part is
// aligned.
uint64_t InfoArrayBytes(const LrbcHeader& header) {
  return AlignUp(uint64_t{header.num_envs} * header.info_size * sizeof(double));
}

using Problems = std::vector<std::string>;

// kInvalidArgument with the first problem of a plan; OK: there is none.
absl::Status VerdictOf(const Problems& problems) {
  if (problems.empty()) return absl::OkStatus();
  return MakeError(ErrorCode::kInvalidArgument,
                   absl::StrCat("region: ", problems.front()));
}

void CheckRange(absl::string_view field, uint64_t value, uint64_t least,
                uint64_t most, Problems* problems) {
  if (value >= least && value <= most) return;
  problems->push_back(Mismatch(field, absl::StrCat("in ", least, " .. ", most),
                               absl::StrCat(value)));
}

void CheckRing(absl::string_view field, uint32_t bytes, Problems* problems) {
  CheckRange(field, bytes, kMinRingBytes, kMaxRingBytes, problems);
  if ((bytes & (bytes - 1)) != 0) {
    problems->push_back(Mismatch(field, "a power of two", absl::StrCat(bytes)));
  }
}

void CheckCrc(absl::string_view field, uint32_t expected, uint32_t found,
              Problems* problems) {
  if (expected == found) return;
  problems->push_back(Mismatch(field, absl::StrFormat("0x%08x", expected),
                               absl::StrFormat("0x%08x", found)));
}

void CheckIdentity(const LrbcHeader& header, uint64_t file_bytes,
                   Problems* problems) {
  if (header.magic != kLrbcMagic) {
    problems->push_back(Mismatch("magic", absl::StrFormat("0x%08X", kLrbcMagic),
                                 absl::StrFormat("0x%08X", header.magic)));
  }
  if (header.version != kLrbcVersion) {
    problems->push_back(Mismatch("version", absl::StrCat(kLrbcVersion),
                                 absl::StrCat(header.version)));
  }
  if (header.header_size != kLrbcHeaderBytes) {
    problems->push_back(Mismatch("header_size", absl::StrCat(kLrbcHeaderBytes),
                                 absl::StrCat(header.header_size)));
  }
  if (header.region_size != file_bytes) {
    problems->push_back(Mismatch(
        "region_size", absl::StrCat("the file's ", file_bytes, " bytes"),
        absl::StrCat(header.region_size)));
  }
  if ((header.feature_bits & kFeaturesOfVersion1) != kFeaturesOfVersion1) {
    problems->push_back(Mismatch("feature_bits to include",
                                 absl::StrFormat("0x%x", kFeaturesOfVersion1),
                                 absl::StrFormat("0x%x", header.feature_bits)));
  }
  CheckCrc("layout_crc32", LayoutCrc(header), header.layout_crc32, problems);
}

void CheckSizes(const LrbcHeader& header, Problems* problems) {
  // CheckFieldRecords requires an observation and an action.
  const uint32_t least = HasFields(header) ? 0 : 1;
  CheckRange("num_envs", header.num_envs, 1, kMaxEnvs, problems);
  CheckRange("obs_size", header.obs_size, least, kMaxFloatsPerEnv, problems);
  CheckRange("act_size", header.act_size, least, kMaxFloatsPerEnv, problems);
  CheckRing("cmd_ring_size", header.cmd_ring_size, problems);
  CheckRange("info_size", header.info_size, 0, kMaxFloatsPerEnv, problems);
}

// Sets the offset of each record: the arrays follow the table, which begins at
// fields_offset. Float32 rows keep the header's offset. Arrays for which a
// region has no room are behind kMaxRegionBytes.
void PlaceFields(const LrbcHeader& header, std::span<FieldRecord> records) {
  uint64_t end = AlignUp(header.fields_offset + FieldTableBytes(header));
  for (FieldRecord& record : records) {
    const std::optional<uint64_t> rows = RowsOf(header, record.role);
    record.offset = rows.value_or(end);
    // The sum of all could overflow.
    if (rows || end > kMaxRegionBytes) continue;
    end = AlignUp(end + FieldBytes(record, header.num_envs));
  }
}

// Writes the header's members of the table of fields.
bool PlanTable(const RegionSpec& spec, LrbcHeader* header, Problems* problems) {
  if (spec.fields.empty()) return false;
  std::vector<FieldRecord> records =
      FieldRecordsOf(spec.fields, *header, problems);
  CheckRange("the number of fields", records.size(), 1, kMaxFields, problems);
  if (!problems->empty()) return true;
  header->field_count = static_cast<uint32_t>(records.size());
  PlaceFields(*header, records);
  CheckFieldRecords(*header, records, problems);
  header->fields_crc32 = FieldsCrc(*header, records);
  return true;
}

// Checks a copy of the table, and adds its arrays to the sections.
void ExamineFields(const LrbcHeader& header, const RegionTables& tables,
                   HeaderFindings* found) {
  const std::span<const FieldRecord> fields = tables.fields;
  if (fields.empty()) return;
  const size_t before = found->problems.size();
  CheckRange("the copied fields", fields.size(), header.field_count,
             header.field_count, &found->problems);
  CheckCrc("fields_crc32", FieldsCrc(header, fields), header.fields_crc32,
           &found->problems);
  if (found->problems.size() == before) {
    CheckFieldRecords(header, fields, &found->problems);
  }
  if (found->problems.size() != before) return;
  found->fields.assign(fields.begin(), fields.end());
  for (const FieldRecord& field : fields) {
    if (RowsOf(header, field.role)) continue;
    found->sections.push_back(
        {FieldText(field), field.offset, FieldBytes(field, header.num_envs)});
  }
}

// Checks a copy of the workers' rows: they are all environments, in order.
void ExamineWorkers(const LrbcHeader& header, const RegionTables& tables,
                    HeaderFindings* found) {
  const std::span<const WorkerRows> rows = tables.workers;
  if (rows.empty()) return;
  const size_t before = found->problems.size();
  CheckRange("the copied workers", rows.size(), header.num_workers,
             header.num_workers, &found->problems);
  CheckCrc("workers_crc32", WorkersCrc(header, rows), header.workers_crc32,
           &found->problems);
  uint64_t next = 0;  // the first environment of the next worker
  for (size_t worker = 0; worker < rows.size(); ++worker) {
    if (found->problems.size() != before) return;
    const WorkerRows& mine = rows[worker];
    CheckRange(absl::StrCat("first_env of worker ", worker), mine.first_env,
               next, next, &found->problems);
    CheckRange(absl::StrCat("num_envs of worker ", worker), mine.num_envs, 1,
               header.num_envs - next, &found->problems);
    next += mine.num_envs;
  }
  CheckRange("the environments of all workers", next, header.num_envs,
             header.num_envs, &found->problems);
  if (found->problems.size() != before) return;
  found->workers.assign(rows.begin(), rows.end());
}

// Checks a copy of the table of arrays on a GPU.
void ExamineGpuArrays(const LrbcHeader& header, const RegionTables& tables,
                      HeaderFindings* found) {
  const std::span<const FieldRecord> arrays = tables.gpu_arrays;
  if (arrays.empty()) return;
  const size_t before = found->problems.size();
  CheckRange("the copied GPU arrays", arrays.size(), header.gpu_array_count,
             header.gpu_array_count, &found->problems);
  CheckCrc("gpu_arrays_crc32", GpuArraysCrc(header, arrays),
           header.gpu_arrays_crc32, &found->problems);
  if (found->problems.size() == before) {
    CheckGpuArrays(header, arrays, &found->problems);
  }
  if (found->problems.size() != before) return;
  found->gpu_arrays.assign(arrays.begin(), arrays.end());
}

// Writes the header's members of a GPU allocation.
bool PlanGpuMembers(const RegionSpec& spec, LrbcHeader* header,
                    Problems* problems) {
  if (spec.gpu.mode == GpuMode::kCpu) return false;
  const GpuSpec& gpu = spec.gpu;
  header->gpu_available = 1;
  header->gpu_obs_mode = static_cast<uint8_t>(gpu.mode);
  header->gpu_device_id = gpu.device_id;
  std::ranges::copy(gpu.device_uuid, header->gpu_device_uuid);
  std::ranges::copy(gpu.memory_handle, header->gpu_obs_handle);
  std::ranges::copy(gpu.event_handle, header->gpu_event_handle);
  header->gpu_alloc_size = gpu.alloc_bytes;
  CheckRange("the number of GPU arrays", gpu.arrays.size(), 1, kMaxFields,
             problems);
  if (!problems->empty()) return true;
  header->gpu_array_count = static_cast<uint32_t>(gpu.arrays.size());
  header->gpu_flags = gpu.fills_cpu ? kGpuFillsCpu : 0;
  const auto first =
      std::ranges::find(gpu.arrays, MainGpuRole(gpu.mode), &FieldRecord::role);
  // Without one the check below fails.
  if (first != gpu.arrays.end()) header->gpu_alloc_offset = first->offset;
  header->gpu_arrays_crc32 = GpuArraysCrc(*header, gpu.arrays);
  CheckGpuArrays(*header, gpu.arrays, problems);
  return true;
}

// An optional section: how the engine plans it, and how both sides check it. A
// later version may use its members of the header if the section is absent.
struct OptionalSection {
  absl::string_view name;
  uint64_t feature;  // its bit of feature_bits
  uint64_t LrbcHeader::*offset;
  // Writes its members of a header that has its offset and its bit. False: the
  // spec has no such section.
  bool (*plan)(const RegionSpec& spec, LrbcHeader* header, Problems* problems);
  // Checks these members. Returns the section's bytes; any, if a check fails.
  uint64_t (*check)(const LrbcHeader& header, Problems* problems);
  // Checks a copy of its table, if it has one.
  void (*examine)(const LrbcHeader& header, const RegionTables& tables,
                  HeaderFindings* found) = nullptr;
};

// In the order of the layout. A new section takes three places: its struct in
// schema/layout, a row here, and its user.
constexpr OptionalSection kOptionalSections[] = {
    {"infos", kFeatureInfos, &LrbcHeader::infos_offset,
     [](const RegionSpec& spec, LrbcHeader* header, Problems*) {
       header->infos_size =
           2 * InfoArrayBytes(*header) + spec.description.size();
       return header->infos_size != 0;
     },
     [](const LrbcHeader& header, Problems* problems) {
       const uint64_t least = 2 * InfoArrayBytes(header);
       CheckRange("infos_size", header.infos_size, least,
                  least + kMaxDescriptionBytes, problems);
       return header.infos_size;
     }},
    {"flan", kFeatureFrames, &LrbcHeader::flan_offset,
     [](const RegionSpec& spec, LrbcHeader* header, Problems* problems) {
       if (spec.frames.capacity == 0) return false;
       const auto ring = PlanFrameRing(WithAlignedSlots(spec.frames));
       // At most 64 Ki slots of 1 GiB and some bytes: no overflow.
       if (ring.ok()) header->flan_size = FrameRingBytes(*ring);
       if (!ring.ok()) problems->emplace_back(ring.status().message());
       return true;
     },
     [](const LrbcHeader& header, Problems* problems) {
       CheckRange("flan_size", header.flan_size, sizeof(FlanHeader),
                  kMaxRegionBytes, problems);
       return header.flan_size;
     }},
    {"images", kFeatureImages, &LrbcHeader::image_offset,
     [](const RegionSpec& spec, LrbcHeader* header, Problems*) {
       if (spec.images.width == 0) return false;
       header->image_width = spec.images.width;
       header->image_height = spec.images.height;
       header->image_channels = ImageSize::kChannels;
       header->feature_bits |= kFeatureFinalImages;
       return true;
     },
     [](const LrbcHeader& header, Problems* problems) {
       CheckRange("image_width", header.image_width, 1, kMaxImageSide,
                  problems);
       CheckRange("image_height", header.image_height, 1, kMaxImageSide,
                  problems);
       CheckRange("image_channels", header.image_channels, 1, 4, problems);
       // At most 2^55 and some bytes.
       const ImagesPlan plan = ImagesOf(header);
       return plan.final_bytes == 0
                  ? plan.bytes
                  : plan.final_images + plan.final_bytes - plan.images;
     }},
    {"attendants", kFeatureAttendants, &LrbcHeader::attendants_offset,
     [](const RegionSpec& spec, LrbcHeader* header, Problems*) {
       header->attendant_ring_size = kAttendantRingBytes;
       header->attendants_crc32 = AttendantsCrc(*header);
       return spec.attendants;
     },
     [](const LrbcHeader& header, Problems* problems) {
       CheckRing("attendant_ring_size", header.attendant_ring_size, problems);
       CheckCrc("attendants_crc32", AttendantsCrc(header),
                header.attendants_crc32, problems);
       return kAttendantSlots * AttendantSlotBytes(header.attendant_ring_size);
     }},
    {"image slots", kFeatureImageSlots, &LrbcHeader::image_slots_offset,
     [](const RegionSpec& spec, LrbcHeader* header, Problems* problems) {
       if (spec.image_slot_bytes > kMaxImageSlotBytes) {
         CheckRange("image_slot_bytes", spec.image_slot_bytes, 0,
                    kMaxImageSlotBytes, problems);
         return true;
       }
       header->image_slot_bytes =
           static_cast<uint32_t>(AlignUp(spec.image_slot_bytes));
       header->image_slots_crc32 = ImageSlotsCrc(*header);
       return spec.image_slot_bytes != 0;
     },
     [](const LrbcHeader& header, Problems* problems) {
       CheckRange("image_slot_bytes", header.image_slot_bytes, 1,
                  kMaxImageSlotBytes, problems);
       if (header.image_slot_bytes % kPromisedAlignment != 0) {
         problems->push_back(
             Mismatch("image_slot_bytes",
                      absl::StrCat("a multiple of ", kPromisedAlignment),
                      absl::StrCat(header.image_slot_bytes)));
       }
       CheckCrc("image_slots_crc32", ImageSlotsCrc(header),
                header.image_slots_crc32, problems);
       return kImageSlots * ImageSlotBytes(header.image_slot_bytes);
     }},
    {"table of fields", kFeatureFields, &LrbcHeader::fields_offset, PlanTable,
     [](const LrbcHeader& header, Problems* problems) {
       CheckRange("field_count", header.field_count, 1, kMaxFields, problems);
       return FieldTableBytes(header);
     },
     ExamineFields},
    {"workers", kFeatureWorkers, &LrbcHeader::workers_offset,
     [](const RegionSpec& spec, LrbcHeader* header, Problems*) {
       header->num_workers = spec.workers;
       // `check` refuses other numbers: their rows have no place.
       if (spec.workers == 0 || spec.workers > kMaxWorkers) {
         return spec.workers != 0;
       }
       header->workers_crc32 = WorkersCrc(*header, PlanWorkers(*header));
       return spec.workers != 0;
     },
     [](const LrbcHeader& header, Problems* problems) {
       CheckRange("num_workers", header.num_workers, 1,
                  std::min(header.num_envs, kMaxWorkers), problems);
       return WorkersBytes(header.num_workers);
     },
     ExamineWorkers},
    {"table of GPU arrays", kFeatureGpuArrays, &LrbcHeader::gpu_arrays_offset,
     PlanGpuMembers,
     [](const LrbcHeader& header, Problems* problems) {
       CheckRange("gpu_array_count", header.gpu_array_count, 1, kMaxFields,
                  problems);
       return GpuTableBytes(header);
     },
     ExamineGpuArrays},
};

// The first three are older than the bits of absent sections.
bool IsPresent(const OptionalSection& section, const LrbcHeader& header) {
  constexpr uint64_t kToldByOffset =
      kFeatureInfos | kFeatureFrames | kFeatureImages;
  return (section.feature & kToldByOffset) != 0
             ? header.*section.offset != 0
             : (header.feature_bits & section.feature) != 0;
}

// Returns the problem of one section alone; "": none.
std::string PlaceProblem(const RegionSection& section, uint64_t file_bytes) {
  const bool inside = section.offset >= kLrbcHeaderBytes &&
                      section.offset <= file_bytes &&
                      section.bytes <= file_bytes - section.offset;
  if (inside && section.offset % kPromisedAlignment == 0) return "";
  return Mismatch(absl::StrCat(section.name, " (", section.bytes, " bytes)"),
                  absl::StrCat("at a multiple of ", kPromisedAlignment, " in ",
                               kLrbcHeaderBytes, " .. ", file_bytes),
                  absl::StrCat("offset ", section.offset));
}

}  // namespace

absl::StatusOr<LrbcHeader> PlanRegion(const RegionSpec& spec,
                                      uint64_t generation) {
  LrbcHeader header = {};
  header.magic = kLrbcMagic;
  header.version = kLrbcVersion;
  header.num_envs = spec.num_envs;
  header.obs_size = spec.obs_size;
  header.act_size = spec.act_size;
  header.cmd_ring_size = spec.ring_bytes;
  header.info_size = spec.info_size;
  header.header_size = kLrbcHeaderBytes;
  header.feature_bits = kFeaturesOfVersion1 | kFeatureIdentity |
                        kFeatureCoreSharing | kFeatureOwnRun;
  if (!spec.fields.empty()) header.feature_bits |= kFeatureFields;
  if (spec.subsets) header.feature_bits |= kFeatureSubsets;
  header.generation = generation;
  Problems problems;
  CheckSizes(header, &problems);
  TANDEM_RETURN_IF_ERROR(VerdictOf(problems));
  if (spec.task.size() >= sizeof(header.task)) {
    return MakeError(ErrorCode::kInvalidArgument,
                     absl::StrCat("task name: expected at most ",
                                  sizeof(header.task) - 1, " bytes, found ",
                                  spec.task.size(), " ('", spec.task, "')"));
  }
  spec.task.copy(header.task, sizeof(header.task) - 1);
  if (spec.description.size() > kMaxDescriptionBytes) {
    return MakeError(
        ErrorCode::kInvalidArgument,
        absl::StrCat("description: expected at most ", kMaxDescriptionBytes,
                     " bytes, found ", spec.description.size()));
  }

  uint64_t end = kLrbcHeaderBytes;
  for (const Section& section : SectionsOf(header)) {
    header.*section.offset = end;
    end = AlignUp(end + section.bytes);
  }
  if (spec.commands) header.feature_bits |= kFeatureCommands;
  for (const OptionalSection& section : kOptionalSections) {
    LrbcHeader next = header;
    next.*section.offset = end;
    next.feature_bits |= section.feature;
    if (!section.plan(spec, &next, &problems)) continue;
    header = next;
    const uint64_t bytes = section.check(header, &problems);
    TANDEM_RETURN_IF_ERROR(VerdictOf(problems));
    end = AlignUp(end + bytes);
    if (section.feature != kFeatureFields) continue;
    // Arrays of their own follow the table.
    for (const FieldRecord& field : PlanFields(spec, header)) {
      if (RowsOf(header, field.role)) continue;
      end = AlignUp(field.offset + FieldBytes(field, header.num_envs));
    }
  }
  header.region_size = end;
  if (end > kMaxRegionBytes) {
    return MakeError(
        ErrorCode::kInvalidArgument,
        absl::StrFormat("%d environments of %d + %d floats, %d infos, images "
                        "of %dx%d and %d fields: expected a region of at most "
                        "%d bytes, found %d or more; use fewer environments",
                        spec.num_envs, spec.obs_size, spec.act_size,
                        header.info_size, header.image_width,
                        header.image_height, header.field_count,
                        kMaxRegionBytes, end));
  }
  header.layout_crc32 = LayoutCrc(header);
  return header;
}

std::vector<FieldRecord> PlanFields(const RegionSpec& spec,
                                    const LrbcHeader& header) {
  if (!HasFields(header)) return {};
  Problems none;  // PlanRegion has checked them
  std::vector<FieldRecord> records = FieldRecordsOf(spec.fields, header, &none);
  PlaceFields(header, records);
  return records;
}

std::vector<WorkerRows> PlanWorkers(const LrbcHeader& header) {
  std::vector<WorkerRows> rows;
  if (!HasWorkers(header)) return rows;
  uint32_t next = 0;
  for (uint32_t worker = 0; worker < header.num_workers; ++worker) {
    const bool one_more = worker < header.num_envs % header.num_workers;
    const uint32_t envs =
        header.num_envs / header.num_workers + (one_more ? 1 : 0);
    rows.push_back({.first_env = next, .num_envs = envs});
    next += envs;
  }
  return rows;
}

HeaderFindings ExamineHeader(const LrbcHeader& header, uint64_t file_bytes,
                             const RegionTables& tables) {
  HeaderFindings found;
  CheckIdentity(header, file_bytes, &found.problems);
  Problems sizes;
  CheckSizes(header, &sizes);
  found.problems.insert(found.problems.end(), sizes.begin(), sizes.end());
  if (!sizes.empty()) return found;  // products could overflow

  for (const Section& section : SectionsOf(header)) {
    found.sections.push_back(
        {std::string(section.name), header.*section.offset, section.bytes});
  }
  if (header.infos_offset == 0 && header.info_size != 0) {
    found.problems.push_back(Mismatch("info_size without infos_offset", "0",
                                      absl::StrCat(header.info_size)));
  }
  for (const OptionalSection& section : kOptionalSections) {
    if (!IsPresent(section, header)) continue;
    const size_t before = found.problems.size();
    const uint64_t bytes = section.check(header, &found.problems);
    // The sizes of others may have overflowed.
    if (found.problems.size() != before) continue;
    found.sections.push_back(
        {std::string(section.name), header.*section.offset, bytes});
  }
  for (const OptionalSection& section : kOptionalSections) {
    if (section.examine == nullptr || !IsPresent(section, header)) continue;
    section.examine(header, tables, &found);
  }
  for (RegionSection& section : found.sections) {
    section.problem = PlaceProblem(section, file_bytes);
    if (!section.problem.empty()) found.problems.push_back(section.problem);
  }
  std::ranges::stable_sort(found.sections, {}, &RegionSection::offset);
  const RegionSection* before = nullptr;  // the last section inside the file
  for (RegionSection& section : found.sections) {
    if (!section.problem.empty()) continue;
    if (before != nullptr && before->offset + before->bytes > section.offset) {
      section.problem = Mismatch(
          section.name, absl::StrCat("behind the end of ", before->name),
          absl::StrCat("offset ", section.offset, " inside it"));
      found.problems.push_back(section.problem);
    }
    before = &section;
  }
  if (found.problems.size() > kMostRegionProblems) {
    found.problems.resize(kMostRegionProblems);
  }
  return found;
}

absl::Status CheckHeader(const LrbcHeader& header, uint64_t file_bytes,
                         const RegionTables& tables) {
  const HeaderFindings found = ExamineHeader(header, file_bytes, tables);
  if (found.problems.empty()) return absl::OkStatus();
  return MakeError(ErrorCode::kLayoutMismatch,
                   absl::StrCat("region header: ", found.problems.front(),
                                ". Engine and client must be of the same "
                                "Tandem version; rebuild or reinstall the "
                                "older one"));
}

absl::Status CheckSameSchema(const LrbcHeader& before,
                             const LrbcHeader& after) {
  const auto check = [](absl::string_view field, const auto& a, const auto& b) {
    if (a == b) return absl::OkStatus();
    return MakeError(ErrorCode::kLayoutMismatch,
                     absl::StrCat("the restarted engine differs: expected ",
                                  field, " ", a, " as before, found ", b,
                                  "; make a new client for the new engine"));
  };
  absl::Status status = check("task", absl::StrCat("'", TaskOf(before), "'"),
                              absl::StrCat("'", TaskOf(after), "'"));
  status.Update(check("num_envs", before.num_envs, after.num_envs));
  status.Update(check("obs_size", before.obs_size, after.obs_size));
  status.Update(check("act_size", before.act_size, after.act_size));
  status.Update(check("info_size", before.info_size, after.info_size));
  status.Update(check("infos_size", before.infos_size, after.infos_size));
  status.Update(check("infos_offset", before.infos_offset, after.infos_offset));
  status.Update(check("image_width", before.image_width, after.image_width));
  status.Update(check("image_height", before.image_height, after.image_height));
  status.Update(check("image_slot_bytes", before.image_slot_bytes,
                      after.image_slot_bytes));
  const auto workers = [](const LrbcHeader& header) {
    return HasWorkers(header) ? header.num_workers : 0;
  };
  status.Update(check("num_workers", workers(before), workers(after)));
  const auto fields = [](const LrbcHeader& header, uint32_t value) {
    return HasFields(header) ? value : 0;
  };
  status.Update(check("field_count", fields(before, before.field_count),
                      fields(after, after.field_count)));
  // It covers each field's offset, role, type, shape and path.
  status.Update(check("fields_crc32", fields(before, before.fields_crc32),
                      fields(after, after.fields_crc32)));
  status.Update(check("region_size", before.region_size, after.region_size));
  for (const Section& section : SectionsOf(before)) {
    status.Update(check(absl::StrCat(section.name, " at offset"),
                        before.*section.offset, after.*section.offset));
  }
  return status;
}

std::string TaskOf(const LrbcHeader& header) {
  return Printable(absl::string_view(
      header.task, strnlen(header.task, sizeof(header.task))));
}

InfosPlan InfosOf(const LrbcHeader& header) {
  if (header.infos_offset == 0) return {};
  const uint64_t bytes = InfoArrayBytes(header);
  return {.infos = header.infos_offset,
          .final_infos = header.infos_offset + bytes,
          .description = header.infos_offset + 2 * bytes,
          .description_bytes = header.infos_size - 2 * bytes};
}

ImagesPlan ImagesOf(const LrbcHeader& header) {
  if (header.image_offset == 0) return {};
  const uint64_t bytes = uint64_t{header.num_envs} * header.image_width *
                         header.image_height * header.image_channels;
  ImagesPlan plan = {.images = header.image_offset, .bytes = bytes};
  if ((header.feature_bits & kFeatureFinalImages) == 0) return plan;
  plan.final_images = header.image_offset + AlignUp(bytes);
  plan.final_bytes = bytes;
  return plan;
}

}  // namespace tandem
