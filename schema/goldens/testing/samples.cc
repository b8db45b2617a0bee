// Length: one sample of each part, with every field set.
#include "schema/goldens/testing/samples.h"

#include <algorithm>
#include <cstring>
#include <initializer_list>
#include <iterator>
#include <numeric>
#include <span>

#include "schema/layout/attendant_slot.h"
#include "schema/layout/error_codes.h"
#include "schema/layout/field.h"
#include "schema/layout/flan.h"
#include "schema/layout/image_slot.h"
#include "schema/layout/layout_crc.h"
#include "schema/layout/ring_header.h"
#include "schema/layout/scene.h"
#include "schema/layout/worker_slot.h"

namespace tandem {
namespace {

// relaxed: the samples have one thread.
constexpr auto kRelaxed = std::memory_order_relaxed;

void Count(std::span<uint8_t> bytes, uint8_t first) {
  std::iota(bytes.begin(), bytes.end(), first);
}

template <size_t kSize>
void SetText(char (&field)[kSize], const char* text) {
  std::strncpy(field, text, kSize - 1);
}

void SetStepTimes(StepTimes& times, uint64_t total_ns, uint64_t first_count) {
  times.total_ns.store(total_ns, kRelaxed);
  for (uint32_t i = 0; i < StepTimes::kBuckets; ++i) {
    times.counts[i].store(first_count + i, kRelaxed);
  }
}

uint64_t PhaseWord(Phase phase, uint64_t since_ns) {
  return static_cast<uint64_t>(phase) << 60 | since_ns;
}

// Allocates sections of the region.
class Sections {
 public:
  explicit Sections(uint64_t begin = kLrbcHeaderBytes) : end_(begin) {}

  uint64_t Take(uint64_t bytes) {
    const uint64_t offset = end_;
    end_ +=
        (bytes + kSectionAlignment - 1) / kSectionAlignment * kSectionAlignment;
    return offset;
  }
  uint64_t end() const { return end_; }

 private:
  uint64_t end_;
};

template <typename Struct>
std::string BytesOf(const Struct& sample) {
  return {reinterpret_cast<const char*>(&sample), sizeof(sample)};
}

std::string TextOf(const std::vector<uint8_t>& bytes) {
  return {bytes.begin(), bytes.end()};
}

}  // namespace

LrbcHeader SampleHeader() {
  LrbcHeader header;
  std::memset(static_cast<void*>(&header), 0, sizeof(header));
  header.magic = kLrbcMagic;
  header.version = kLrbcVersion;
  header.server_pid.store(40'001, kRelaxed);
  header.client_pid.store(40'002, kRelaxed);
  header.mode.store(static_cast<uint8_t>(RegionMode::kInference), kRelaxed);
  header.num_envs = 33;
  header.obs_size = 17;
  header.act_size = 6;
  header.frame_seq.store(0x0102030405060707, kRelaxed);
  header.action_seq.store(0x0102030405060708, kRelaxed);

  header.cmd_ring_size = 65'536;
  header.image_width = 48;
  header.image_height = 36;
  header.image_channels = 3;
  header.info_size = 2;
  header.infos_size = 2 * 640 + 256;  // 33 * 2 float64 take 640 each
  header.flan_size = 14'000;
  const uint64_t envs = header.num_envs;
  const uint64_t ring_bytes = sizeof(RingHeader) + header.cmd_ring_size;
  Sections sections;
  header.obs_offset = sections.Take(envs * header.obs_size * sizeof(float));
  header.act_offset = sections.Take(envs * header.act_size * sizeof(float));
  header.rewards_offset = sections.Take(envs * sizeof(float));
  header.dones_offset = sections.Take(envs);
  header.resets_offset = sections.Take(envs);
  header.truncateds_offset = sections.Take(envs);
  header.terminateds_offset = sections.Take(envs);
  header.final_obs_offset =
      sections.Take(envs * header.obs_size * sizeof(float));
  header.reset_seeds_offset = sections.Take(envs * sizeof(uint64_t));
  header.infos_offset = sections.Take(header.infos_size);
  header.cmd_s2c_offset = sections.Take(ring_bytes);
  header.cmd_c2s_offset = sections.Take(ring_bytes);
  header.image_offset = sections.Take(
      envs * header.image_width * header.image_height * header.image_channels);
  header.flan_offset = sections.Take(header.flan_size);
  header.attendant_ring_size = 1024;
  header.attendants_offset = sections.Take(
      kAttendantSlots * AttendantSlotBytes(header.attendant_ring_size));
  header.attendants_crc32 = AttendantsCrc(header);
  header.image_slot_bytes = 3'968;
  header.image_slots_offset =
      sections.Take(kImageSlots * ImageSlotBytes(header.image_slot_bytes));
  header.image_slots_crc32 = ImageSlotsCrc(header);
  header.region_size = sections.end();

  header.gpu_available = 1;
  header.gpu_obs_mode = 2;
  Count(header.gpu_obs_handle, 1);
  header.gpu_device_id = 5;
  header.feature_bits = kFeaturesOfVersion1;
  header.generation = 1'700'000'000'123'456'789;
  header.header_size = kLrbcHeaderBytes;
  Count(header.gpu_device_uuid, 0x41);
  header.gpu_alloc_offset = 256;
  header.gpu_alloc_size = 1 << 20;
  Count(header.gpu_event_handle, 0x81);
  SetText(header.task, "HalfCheetah-v5");
  header.layout_crc32 = LayoutCrc(header);

  header.exchange_kind.store(static_cast<uint32_t>(ExchangeKind::kResetOnly),
                             kRelaxed);
  header.autoreset_mode.store(static_cast<uint32_t>(AutoresetMode::kDisabled),
                              kRelaxed);
  header.attach_request.store(1002, kRelaxed);
  header.frame_request.store(1004, kRelaxed);
  header.attendant_bell.store(1005, kRelaxed);
  header.attach_ack.store(1001, kRelaxed);
  header.exchange_status.store(static_cast<uint32_t>(ErrorCode::kEngineFailed),
                               kRelaxed);
  SetText(header.error_text, "environment 2: the state is not finite");
  header.frame_answer.store(1003, kRelaxed);

  header.engine_doorbell.store(70'001, kRelaxed);
  header.engine_sleepers.store(8, kRelaxed);
  header.client_doorbell.store(70'002, kRelaxed);
  header.client_sleepers.store(9, kRelaxed);
  header.engine_phase.store(PhaseWord(Phase::kStepping, 5'000'000'001),
                            kRelaxed);
  header.services.store(0x49, kRelaxed);
  header.dropped_messages.store(0x0908070605040302, kRelaxed);
  header.attendant_pause_ns.store(0x0908070605040303, kRelaxed);
  header.image_step.store(0x0102030405060706, kRelaxed);
  header.client_phase.store(PhaseWord(Phase::kWaiting, 5'000'000'002),
                            kRelaxed);
  SetStepTimes(header.engine_step_times, 123'456'789, 2001);
  SetStepTimes(header.client_round_trips, 223'456'789, 3001);
  return header;
}

namespace {

LrbcHeader WithFeature(uint64_t feature) {
  LrbcHeader header = SampleHeader();
  header.feature_bits |= feature;
  header.layout_crc32 = LayoutCrc(header);
  return header;
}

}  // namespace

LrbcHeader SampleImagesHeader() {
  LrbcHeader header = WithFeature(kFeatureImages);
  // layout_crc32 does not cover it.
  header.image_step.store(header.frame_seq.load(kRelaxed), kRelaxed);
  return header;
}

LrbcHeader SampleCommandsHeader() { return WithFeature(kFeatureCommands); }

LrbcHeader SampleAttendantsHeader() { return WithFeature(kFeatureAttendants); }

AttendantSlot SampleAttendantSlot() {
  AttendantSlot slot;
  std::memset(static_cast<void*>(&slot), 0, sizeof(slot));
  slot.pid.store(40'003, kRelaxed);
  slot.request.store(2002, kRelaxed);
  for (size_t i = 0; i < 5; ++i) {
    slot.label[i].store(static_cast<uint8_t>("panel"[i]), kRelaxed);
  }
  slot.ack.store(2001, kRelaxed);
  slot.doorbell.store(70'003, kRelaxed);
  slot.sleepers.store(10, kRelaxed);
  return slot;
}

LrbcHeader SampleImageSlotsHeader() { return WithFeature(kFeatureImageSlots); }

ImageSlot SampleImageSlot() {
  ImageSlot slot;
  std::memset(static_cast<void*>(&slot), 0, sizeof(slot));
  slot.seq.store(FlanSeqWriting(7), kRelaxed);
  slot.released.store(FlanSeqWhole(6), kRelaxed);
  return slot;
}

std::vector<FieldRecord> SampleFields() {
  const LrbcHeader rows = SampleHeader();
  const auto record = [](FieldRole role, FieldType type, uint64_t offset) {
    FieldRecord field = {};
    field.role = role;
    field.type = type;
    field.offset = offset;
    return field;
  };
  std::vector<FieldRecord> fields = {
      record(FieldRole::kObs, FieldType::kFloat32, rows.obs_offset),
      record(FieldRole::kFinalObs, FieldType::kFloat32, rows.final_obs_offset),
      record(FieldRole::kAction, FieldType::kFloat32, rows.act_offset),
      record(FieldRole::kReward, FieldType::kFloat64, 0),
      record(FieldRole::kStatus, FieldType::kUint8, 0),
      record(FieldRole::kEpisodeReturn, FieldType::kFloat64, 0),
      record(FieldRole::kEpisodeLength, FieldType::kInt64, 0)};
  for (FieldRecord& field : std::span(fields).first(3)) {
    field.dims = 1;
    field.shape[0] =
        field.role == FieldRole::kAction ? rows.act_size : rows.obs_size;
  }
  Sections sections(rows.region_size);
  sections.Take(fields.size() * sizeof(FieldRecord));
  for (FieldRecord& field : std::span(fields).subspan(3)) {
    field.offset = sections.Take(FieldBytes(field, rows.num_envs));
  }
  return fields;
}

LrbcHeader SampleFieldsHeader() {
  LrbcHeader header = SampleHeader();
  const std::vector<FieldRecord> fields = SampleFields();
  Sections sections(header.region_size);
  header.fields_offset = sections.Take(fields.size() * sizeof(FieldRecord));
  header.field_count = static_cast<uint32_t>(fields.size());
  header.fields_crc32 = FieldsCrc(header, fields);
  Sections after(fields.back().offset);
  after.Take(FieldBytes(fields.back(), header.num_envs));
  header.region_size = after.end();
  header.feature_bits |= kFeatureFields;
  header.layout_crc32 = LayoutCrc(header);
  return header;
}

FieldRecord SampleField() {
  FieldRecord field = {};
  field.offset = 1'000'064;
  field.role = FieldRole::kFinalObs;
  field.type = FieldType::kUint16;
  field.dims = 8;
  std::iota(std::begin(field.shape), std::end(field.shape), 2u);
  SetText(field.path, "/cameras/front~1left");
  return field;
}

std::vector<WorkerRows> SampleWorkers() {
  std::vector<WorkerRows> workers;
  for (uint32_t first = 0; first < SampleHeader().num_envs; first += 3) {
    workers.push_back({.first_env = first, .num_envs = 3});
  }
  return workers;
}

LrbcHeader SampleWorkersHeader() {
  LrbcHeader header = SampleFieldsHeader();
  const std::vector<WorkerRows> workers = SampleWorkers();
  header.num_workers = static_cast<uint32_t>(workers.size());
  Sections sections(header.region_size);
  header.workers_offset = sections.Take(WorkersBytes(header.num_workers));
  header.workers_crc32 = WorkersCrc(header, workers);
  header.region_size = sections.end();
  header.feature_bits |= kFeatureWorkers | kFeatureSubsets;
  header.layout_crc32 = LayoutCrc(header);
  return header;
}

std::vector<FieldRecord> SampleGpuArrays() {
  const LrbcHeader header = SampleHeader();
  const auto record = [](FieldRole role, FieldType type,
                         std::initializer_list<uint32_t> shape) {
    FieldRecord array = {};
    array.role = role;
    array.type = type;
    array.dims = static_cast<uint8_t>(shape.size());
    std::ranges::copy(shape, array.shape);
    return array;
  };
  std::vector<FieldRecord> arrays = {
      record(FieldRole::kObs, FieldType::kFloat32, {header.obs_size}),
      record(FieldRole::kFinalObs, FieldType::kFloat32, {header.obs_size}),
      record(FieldRole::kReward, FieldType::kFloat32, {}),
      record(FieldRole::kImages, FieldType::kUint8,
             {header.image_height, header.image_width, header.image_channels})};
  Sections sections(header.gpu_alloc_offset);
  for (FieldRecord& array : arrays) {
    array.offset = sections.Take(FieldBytes(array, header.num_envs));
  }
  return arrays;
}

namespace {

void AddGpuTable(const std::vector<FieldRecord>& arrays, LrbcHeader* to) {
  LrbcHeader& header = *to;
  header.gpu_flags = kGpuFillsCpu;
  Sections sections(header.region_size);
  header.gpu_arrays_offset = sections.Take(arrays.size() * sizeof(FieldRecord));
  header.gpu_array_count = static_cast<uint32_t>(arrays.size());
  header.gpu_arrays_crc32 = GpuArraysCrc(header, arrays);
  header.region_size = sections.end();
  header.feature_bits |= kFeatureGpuArrays;
  header.layout_crc32 = LayoutCrc(header);
}

}  // namespace

LrbcHeader SampleGpuHeader() {
  LrbcHeader header = SampleWorkersHeader();
  header.gpu_obs_mode = static_cast<uint8_t>(GpuMode::kCudaIpc);
  AddGpuTable(SampleGpuArrays(), &header);
  return header;
}

std::vector<FieldRecord> SampleGpuMemoryArrays() {
  FieldRecord images = SampleGpuArrays().back();
  images.shape[2] = 4;
  images.offset = 768;
  return {images};
}

LrbcHeader SampleGpuMemoryHeader() {
  LrbcHeader header = SampleWorkersHeader();
  const GpuFileHandle handle = {
      .fd = 41, .flags = kGpuDedicated, .reserved_8 = {}};
  std::memcpy(header.gpu_obs_handle, &handle, sizeof(handle));
  std::memset(header.gpu_event_handle, 0, sizeof(header.gpu_event_handle));
  header.gpu_device_id = 0;
  header.gpu_alloc_offset = 768;
  AddGpuTable(SampleGpuMemoryArrays(), &header);
  return header;
}

LrbcHeader SampleIdentityHeader() {
  LrbcHeader header = SampleGpuHeader();
  header.feature_bits |= kFeatureIdentity;
  Count(header.identity, 0xA1);
  header.layout_crc32 = LayoutCrc(header);
  return header;
}

LrbcHeader SampleCoresHeader() {
  LrbcHeader header = SampleIdentityHeader();
  header.feature_bits |= kFeatureCoreSharing;
  // relaxed: no other thread uses it.
  header.client_core.store(1006, std::memory_order_relaxed);
  header.engine_core.store(1007, std::memory_order_relaxed);
  header.early_wakes.store(1008, std::memory_order_relaxed);
  header.early_hits.store(1009, std::memory_order_relaxed);
  header.layout_crc32 = LayoutCrc(header);
  return header;
}

LrbcHeader SampleOwnRunHeader() {
  LrbcHeader header = SampleCoresHeader();
  header.feature_bits |= kFeatureOwnRun;
  header.own_seq.store(2010, kRelaxed);
  header.own_present.store(1, kRelaxed);
  header.own_episodes.store(2011, kRelaxed);
  header.own_last_reward.store(2.5, kRelaxed);
  header.own_rolling_return.store(-40.25, kRelaxed);
  header.own_episode_length.store(200.5, kRelaxed);
  header.layout_crc32 = LayoutCrc(header);
  return header;
}

WorkersHeader SampleWorkersHead() {
  WorkersHeader head;
  std::memset(static_cast<void*>(&head), 0, sizeof(head));
  head.order.store(3001, kRelaxed);
  head.order_kind.store(static_cast<uint32_t>(WorkerOrder::kSeededReset),
                        kRelaxed);
  head.order_value.store(3002, kRelaxed);
  head.publisher.store(PackPublisher(0x060504030201, 10), kRelaxed);
  head.end_code.store(static_cast<uint32_t>(ErrorCode::kEngineFailed),
                      kRelaxed);
  SetText(head.end_text, "worker 2 (pid 40005): killed by signal 9");
  return head;
}

WorkerSlot SampleWorkerSlot() {
  WorkerSlot slot;
  std::memset(static_cast<void*>(&slot), 0, sizeof(slot));
  slot.rows = {.first_env = 6, .num_envs = 3};
  slot.pid.store(40'005, kRelaxed);
  slot.ack.store(3000, kRelaxed);
  slot.done.store(0x0102030405060707, kRelaxed);
  slot.lane_done.store(0x0102030405060705, kRelaxed);
  slot.phase.store(PhaseWord(Phase::kStepping, 5'000'000'003), kRelaxed);
  slot.steps.store(0x0908070605040304, kRelaxed);
  slot.busy_ns.store(323'456'789, kRelaxed);
  slot.env.store(7, kRelaxed);
  slot.lane_go.store(0x0102030405060706, kRelaxed);
  slot.failed_exchange.store(0x0102030405060703, kRelaxed);
  slot.failed_lane.store(0x0102030405060704, kRelaxed);
  slot.error_env.store(8, kRelaxed);
  SetText(slot.error_text, "ValueError: joint 3 exploded");
  slot.error_bytes.store(28, kRelaxed);
  return slot;
}

std::vector<uint8_t> SampleRing() {
  std::vector<uint8_t> bytes(sizeof(RingHeader) + kSampleRingBytes);
  const auto set_word = [&bytes](size_t offset, uint32_t word) {
    std::memcpy(&bytes[offset], &word, sizeof(word));
  };
  const auto set_entry = [&](size_t at, uint32_t length, uint8_t first) {
    set_word(sizeof(RingHeader) + at, length);
    Count(std::span(bytes).subspan(sizeof(RingHeader) + at + 4, length), first);
  };
  set_word(offsetof(RingHeader, write_pos), kSampleWritePos);
  set_word(offsetof(RingHeader, read_pos), kSampleReadPos);
  set_entry(48, 27, 1);
  set_entry(80, 0, 0);
  set_word(sizeof(RingHeader) + 88, kRingSkip);
  set_entry(0, 44, 101);
  return bytes;
}

std::vector<uint8_t> SampleFlan() {
  FlanHeader header;
  std::memset(static_cast<void*>(&header), 0, sizeof(header));
  std::memcpy(header.magic, kFlanMagic, sizeof(kFlanMagic));
  header.version = kFlanVersion;
  header.capacity = kSampleFlanSlots;
  header.payload_size = kSampleFlanFrameBytes;
  header.slot_size = sizeof(FlanSlot) + kSampleFlanFrameBytes;
  header.width = 2;
  header.height = 2;
  header.channels = 3;
  header.format = kFlanRgb;
  header.head.store(3, kRelaxed);
  header.last_reward.store(1.5, kRelaxed);
  header.rolling_return.store(-20.25, kRelaxed);
  header.step_rate_hz.store(1000, kRelaxed);
  std::vector<uint8_t> bytes(sizeof(header) +
                             kSampleFlanSlots * header.slot_size);
  std::memcpy(bytes.data(), static_cast<const void*>(&header), sizeof(header));
  for (const uint32_t number : {1u, 2u, 3u}) {
    const size_t at =
        sizeof(header) + (number - 1) % kSampleFlanSlots * header.slot_size;
    const FlanSlot slot = {.seq = FlanSeqWhole(number),
                           .frame_len = kSampleFlanFrameBytes,
                           .metadata_len = 0};
    std::memcpy(&bytes[at], &slot, sizeof(slot));
    Count(std::span(bytes).subspan(at + sizeof(slot), kSampleFlanFrameBytes),
          static_cast<uint8_t>(16 * number));
  }
  return bytes;
}

std::vector<uint8_t> SampleScene() {
  constexpr uint32_t kRowBytes = SceneRowBytes(1);
  constexpr uint32_t kSnapshotBytes = sizeof(SnapshotHead) + kRowBytes;
  constexpr uint32_t kSlotBytes = sizeof(FlanSlot) + kSnapshotBytes;
  SceneHeader header = {};
  std::memcpy(header.magic, kSceneMagic, sizeof(kSceneMagic));
  header.version = kSceneVersion;
  header.header_bytes = sizeof(SceneHeader);
  header.generation = 3;
  header.num_envs = 1;
  header.nodes = 1;
  header.max_rows = 1;
  header.row_bytes = kRowBytes;
  header.glb_offset = sizeof(SceneHeader);
  header.glb_bytes = kSampleGlbBytes;
  header.flan_offset = header.glb_offset + kSceneAlignment;
  header.flan_bytes = sizeof(FlanHeader) + kSampleSceneSlots * kSlotBytes;
  std::vector<uint8_t> bytes(header.flan_offset);
  std::memcpy(bytes.data(), &header, sizeof(header));
  const uint32_t glb[] = {0x46546C67, 2, kSampleGlbBytes};  // "glTF"
  static_assert(sizeof(glb) == kSampleGlbBytes);
  std::memcpy(&bytes[header.glb_offset], glb, sizeof(glb));

  const auto append = [&bytes](const auto& part) {
    const auto* const first = reinterpret_cast<const uint8_t*>(&part);
    bytes.insert(bytes.end(), first, first + sizeof(part));
  };
  FlanHeader ring;
  std::memset(static_cast<void*>(&ring), 0, sizeof(ring));
  std::memcpy(ring.magic, kFlanMagic, sizeof(kFlanMagic));
  ring.version = kFlanVersion;
  ring.capacity = kSampleSceneSlots;
  ring.payload_size = kSnapshotBytes;
  ring.slot_size = kSlotBytes;
  ring.width = kSnapshotBytes;
  ring.height = 1;
  ring.channels = 1;
  ring.format = kFlanBytes;
  ring.head.store(1, kRelaxed);
  append(ring);
  append(FlanSlot{
      .seq = FlanSeqWhole(1), .frame_len = kSnapshotBytes, .metadata_len = 0});
  append(SnapshotHead{.exchange = 1001,
                      .monotonic_ns = 5'000'000'001,
                      .rows = 1,
                      .reserved_20 = {}});
  append(SceneRow{.env = 0,
                  .flags = kSceneUnknownTime,
                  .episode = 12,
                  .step = 345,
                  .sim_time = 0,
                  .episode_return = -20.25,
                  .reward = 1.5});
  const float pose[kPoseFloats] = {1, 2, 3, 0, 0, 0, 1};
  append(pose);
  bytes.resize(header.flan_offset + header.flan_bytes);
  return bytes;
}

std::vector<SampleFile> SampleFiles() {
  return {
      {"lrbc_v1.bin", BytesOf(SampleHeader())},
      {"lrbc_v1_images.bin", BytesOf(SampleImagesHeader())},
      {"lrbc_v1_commands.bin", BytesOf(SampleCommandsHeader())},
      {"lrbc_v1_identity.bin", BytesOf(SampleIdentityHeader())},
      {"lrbc_v1_cores.bin", BytesOf(SampleCoresHeader())},
      {"lrbc_v1_own_run.bin", BytesOf(SampleOwnRunHeader())},
      {"lrbc_v1_attendants.bin", BytesOf(SampleAttendantsHeader())},
      {"lrbc_v1_image_slots.bin", BytesOf(SampleImageSlotsHeader())},
      {"lrbc_v1_fields.bin", BytesOf(SampleFieldsHeader())},
      {"lrbc_v1_workers.bin", BytesOf(SampleWorkersHeader())},
      {"lrbc_v1_gpu.bin", BytesOf(SampleGpuHeader())},
      {"lrbc_v1_gpu_memory.bin", BytesOf(SampleGpuMemoryHeader())},
      {"attendant_slot_v1.bin", BytesOf(SampleAttendantSlot())},
      {"image_slot_v1.bin", BytesOf(SampleImageSlot())},
      {"field_v1.bin", BytesOf(SampleField())},
      {"workers_header_v1.bin", BytesOf(SampleWorkersHead())},
      {"worker_slot_v1.bin", BytesOf(SampleWorkerSlot())},
      {"ring_v1.bin", TextOf(SampleRing())},
      {"flan_v1.bin", TextOf(SampleFlan())},
      {"scene_v1.bin", TextOf(SampleScene())},
  };
}

}  // namespace tandem
