#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/grace_period.h"
#include "base/os/machine.h"
#include "base/printable.h"
#include "schema/layout/attendant_slot.h"
#include "schema/layout/field.h"
#include "schema/layout/phase_word.h"
#include "schema/layout/service.h"
#include "schema/layout/worker_slot.h"
#include "transport/memory/field_plan.h"
#include "transport/memory/gpu_text.h"
#include "transport/memory/observed_file.h"
#include "transport/memory/region_plan.h"
#include "transport/monitoring/frame_ring_report.h"
#include "transport/monitoring/ring_fill.h"
#include "transport/report.h"
#include "transport/session/attendant_label.h"
#include "transport/session/own_run.h"

namespace tandem {
namespace {

// relaxed: words of a private copy, here and below.
template <typename T>
T WordOf(const SharedWord<T>& word) {
  return word.load(std::memory_order_relaxed);
}

bool ReadHeader(const ObservedFile& file, LrbcHeader* header) {
  std::array<std::byte, sizeof(LrbcHeader)> copy;
  if (!file.Read(0, copy.data(), copy.size())) return false;
  std::memcpy(static_cast<void*>(header), copy.data(), copy.size());
  return true;
}

// Copies a table of fields, or of arrays on a GPU; empty if it is too long, or
// the file has no room for it.
std::vector<FieldRecord> ReadTable(const ObservedFile& file, uint64_t offset,
                                   uint32_t count) {
  if (count > kMaxFields) return {};
  std::vector<FieldRecord> table(count);
  if (!file.Read(offset, table.data(), count * sizeof(FieldRecord))) return {};
  return table;
}

// Copies the first part of each worker's slot, without its error; empty if
// there are none, or the file has no room for them.
std::vector<WorkerSlot> ReadWorkerSlots(const ObservedFile& file,
                                        const LrbcHeader& header) {
  if (!HasWorkers(header) || header.num_workers > kMaxWorkers) return {};
  std::vector<WorkerSlot> slots(header.num_workers);
  for (size_t worker = 0; worker < slots.size(); ++worker) {
    std::array<std::byte, offsetof(WorkerSlot, error_env)> copy;
    if (!file.Read(WorkerSlotOffset(header, worker), copy.data(),
                   copy.size())) {
      return {};
    }
    std::memcpy(static_cast<void*>(&slots[worker]), copy.data(), copy.size());
  }
  return slots;
}

std::vector<WorkerRows> RowsOfAll(const std::vector<WorkerSlot>& slots) {
  std::vector<WorkerRows> rows;
  rows.reserve(slots.size());
  for (const WorkerSlot& slot : slots) rows.push_back(slot.rows);
  return rows;
}

ExchangeState ExchangeOf(const LrbcHeader& header) {
  switch (WordOf(header.action_seq) - WordOf(header.frame_seq)) {
    case 0:
      return ExchangeState::kIdle;
    case 1:
      return ExchangeState::kPending;
    default:
      return ExchangeState::kImpossible;
  }
}

PeerReport PeerOf(uint32_t pid, uint64_t phase_word, uint32_t bell_rings,
                  uint32_t sleepers, uint32_t core, int64_t now_ns) {
  const PhaseSince phase = UnpackPhase(phase_word);
  const int64_t age_ns = std::max<int64_t>(now_ns - phase.since_ns, 0);
  return {.pid = pid,
          .phase = phase.phase,
          .phase_secs = static_cast<double>(age_ns) / 1e9,
          .bell_rings = bell_rings,
          .sleepers = sleepers,
          .core = core == 0 ? std::nullopt : std::optional(core - 1)};
}

Life EngineLife(const ObservedFile& file, const LrbcHeader& header) {
  const std::optional<bool> locked = file.IsLocked(kEngineLockByte);
  if (locked.value_or(false)) return Life::kAlive;
  // Tandem's programs hold locks, with any header content.
  const bool locks =
      (header.feature_bits & kFeatureSession) != 0 || file.has_spare_link();
  return locked.has_value() && locks ? Life::kDead : Life::kUnknown;
}

Life ClientLife(const ObservedFile& file, const LrbcHeader& header,
                Phase phase) {
  const std::optional<bool> locked = file.IsLocked(kClientLockByte);
  if (!locked.has_value()) return Life::kUnknown;
  if (*locked) return Life::kAlive;
  if (phase == Phase::kStopped) return Life::kAbsent;
  if (phase != Phase::kAbsent) return Life::kDead;
  // A header-only client changes only the words that it knows.
  return WordOf(header.client_pid) != 0 ||
                 ExchangeOf(header) == ExchangeState::kPending
             ? Life::kUnknown
             : Life::kAbsent;
}

std::string TextOf(const char* text, size_t room) {
  return Printable(absl::string_view(text, strnlen(text, room)));
}

void FillCounts(const LrbcHeader& header, RegionReport* report) {
  report->version = header.version;
  // relaxed: a private copy.
  report->mode =
      static_cast<RegionMode>(header.mode.load(std::memory_order_relaxed));
  report->num_envs = header.num_envs;
  report->obs_size = header.obs_size;
  report->act_size = header.act_size;
  report->info_size = header.info_size;
  report->task = TaskOf(header);
  report->feature_bits = header.feature_bits;
  report->generation = header.generation;
  report->frame_seq = WordOf(header.frame_seq);
  report->action_seq = WordOf(header.action_seq);
  report->exchange = ExchangeOf(header);
  report->kind = static_cast<ExchangeKind>(WordOf(header.exchange_kind));
  report->autoreset = static_cast<AutoresetMode>(WordOf(header.autoreset_mode));
  report->status = static_cast<ErrorCode>(WordOf(header.exchange_status));
  report->error_text = TextOf(header.error_text, sizeof(header.error_text));
  report->step_times = SnapshotOf(header.engine_step_times);
  report->round_trips = SnapshotOf(header.client_round_trips);
  report->early_wakes = WordOf(header.early_wakes);
  report->early_hits = WordOf(header.early_hits);
}

// Two equal copies: no write came between their reads of own_seq, so the words
// of the first copy are whole.
std::optional<RunSnapshot> OwnRunOf(const ObservedFile& file,
                                    const LrbcHeader& header) {
  if ((header.feature_bits & kFeatureOwnRun) == 0) return std::nullopt;
  constexpr size_t kBegin = offsetof(LrbcHeader, own_seq);
  constexpr size_t kEnd = offsetof(LrbcHeader, reserved_2104);
  constexpr int kMostReads = 16;
  std::optional<RunSnapshot> run;
  for (int reads = 0; reads < kMostReads; ++reads) {
    std::array<std::byte, kEnd - kBegin> first, second;
    if (!file.Read(kBegin, first.data(), first.size()) ||
        !file.Read(kBegin, second.data(), second.size())) {
      return std::nullopt;
    }
    if (first != second) continue;
    LrbcHeader copy = header;
    std::memcpy(reinterpret_cast<std::byte*>(&copy) + kBegin, first.data(),
                first.size());
    if (LoadOwnRun(copy, &run)) break;
  }
  return run;
}

void FillPeers(const ObservedFile& file, const LrbcHeader& header,
               RegionReport* report) {
  report->engine =
      PeerOf(WordOf(header.server_pid), WordOf(header.engine_phase),
             WordOf(header.engine_doorbell), WordOf(header.engine_sleepers),
             WordOf(header.engine_core), report->read_ns);
  report->engine.life = EngineLife(file, header);
  report->client =
      PeerOf(WordOf(header.client_pid), WordOf(header.client_phase),
             WordOf(header.client_doorbell), WordOf(header.client_sleepers),
             WordOf(header.client_core), report->read_ns);
  report->client.life = ClientLife(file, header, report->client.phase);
}

std::vector<AttendantReport> AttendantsOf(const ObservedFile& file,
                                          const LrbcHeader& header) {
  std::vector<AttendantReport> attendants;
  if ((header.feature_bits & kFeatureAttendants) == 0) return attendants;
  for (uint32_t at = 0; at < kAttendantSlots; ++at) {
    std::array<std::byte, sizeof(AttendantSlot)> copy;
    if (!file.Read(AttendantSlotOffset(header, at), copy.data(), copy.size()) ||
        !file.IsLocked(AttendantLockByte(header, at)).value_or(false)) {
      continue;
    }
    AttendantSlot slot;
    std::memcpy(static_cast<void*>(&slot), copy.data(), copy.size());
    attendants.push_back({at, LabelOf(slot), WordOf(slot.pid)});
  }
  return attendants;
}

// `fields` are valid, or empty.
std::vector<FieldReport> FieldsOf(const LrbcHeader& header,
                                  const std::vector<FieldRecord>& fields) {
  std::vector<FieldReport> reports;
  for (const FieldRecord& field : fields) {
    FieldReport report = {.role = NameOf(field.role),
                          .path = Printable(PathOf(field)),
                          .dtype = NameOf(field.type),
                          .shape = {header.num_envs},
                          .offset = field.offset,
                          .bytes = FieldBytes(field, header.num_envs)};
    report.shape.insert(report.shape.end(), field.shape,
                        field.shape + field.dims);
    reports.push_back(std::move(report));
  }
  return reports;
}

std::optional<GpuReport> GpuOf(const LrbcHeader& header,
                               const std::vector<FieldRecord>& arrays) {
  if (!HasGpuArrays(header)) return std::nullopt;
  return GpuReport{.path = GpuPathText(header),
                   .device = GpuUuidText(header.gpu_device_uuid),
                   .bytes = header.gpu_alloc_size,
                   .fills_cpu = (header.gpu_flags & kGpuFillsCpu) != 0,
                   .arrays = FieldsOf(header, arrays)};
}

Life WorkerLife(const ObservedFile& file, int64_t lock_byte,
                const WorkerSlot& slot, Phase phase) {
  const std::optional<bool> locked = file.IsLocked(lock_byte);
  if (!locked.has_value()) return Life::kUnknown;
  if (*locked) return Life::kAlive;
  return WordOf(slot.pid) == 0 || phase == Phase::kStopped ? Life::kAbsent
                                                           : Life::kDead;
}

// Fills the workers, and the engine's phase, which the workers have in an
// exchange.
void FillWorkers(const ObservedFile& file, const LrbcHeader& header,
                 const std::vector<WorkerSlot>& slots, RegionReport* report) {
  for (size_t worker = 0; worker < slots.size(); ++worker) {
    const WorkerSlot& slot = slots[worker];
    const PeerReport peer =
        PeerOf(WordOf(slot.pid), WordOf(slot.phase), 0, 0, 0, report->read_ns);
    report->workers.push_back(
        {.life =
             WorkerLife(file, WorkerLockByte(header, worker), slot, peer.phase),
         .pid = peer.pid,
         .first_env = slot.rows.first_env,
         .num_envs = slot.rows.num_envs,
         .env = WordOf(slot.env),
         .phase = peer.phase,
         .phase_secs = peer.phase_secs,
         .done = WordOf(slot.done) == report->action_seq,
         .steps = WordOf(slot.steps),
         .busy_ns = WordOf(slot.busy_ns)});
  }
  if (report->engine.phase != Phase::kIdle) return;
  for (const WorkerReport& worker : report->workers) {
    const bool first = report->engine.phase == Phase::kIdle;
    if (!IsWork(worker.phase) || worker.life != Life::kAlive) continue;
    if (!first && worker.phase_secs <= report->engine.phase_secs) continue;
    report->engine.phase = worker.phase;
    report->engine.phase_secs = worker.phase_secs;
  }
}

// One function for each part of the region beyond header fields. A new part
// needs a member of RegionReport and a call here.
void FillParts(const ObservedFile& file, const LrbcHeader& header,
               RegionReport* report) {
  report->to_client =
      ReadRingFill(file, header.cmd_s2c_offset, header.cmd_ring_size);
  report->to_engine =
      ReadRingFill(file, header.cmd_c2s_offset, header.cmd_ring_size);
  if (header.flan_offset != 0) {
    report->frames = ReadFrameRing(file, header.flan_offset, header.flan_size);
  }
  if (header.image_offset != 0) {
    report->images = ImagesReport{.width = header.image_width,
                                  .height = header.image_height,
                                  .channels = header.image_channels,
                                  .step = WordOf(header.image_step)};
  }
  if ((header.feature_bits & kFeatureCommands) != 0) {
    const uint32_t services = WordOf(header.services);
    RpcReport commands = {.dropped_messages = WordOf(header.dropped_messages)};
    for (size_t i = 0; i < kServices; ++i) {
      const bool on = (services & BitOf(static_cast<Service>(i))) != 0;
      (on ? commands.on : commands.off).emplace_back(kServiceNames[i]);
    }
    report->commands = std::move(commands);
  }
  report->attendants = AttendantsOf(file, header);
  report->own_run = OwnRunOf(file, header);
}

// Returns whether every counter of `later` is at least that of `earlier`.
bool GrewFrom(const StepTimesSnapshot& earlier,
              const StepTimesSnapshot& later) {
  return std::equal(earlier.counts.begin(), earlier.counts.end(),
                    later.counts.begin(),
                    [](uint64_t a, uint64_t b) { return a <= b; });
}

// A new client clears its counters: then all counts are new.
StepTimesSnapshot NewIn(const StepTimesSnapshot& earlier,
                        const StepTimesSnapshot& later) {
  return GrewFrom(earlier, later) ? later.Since(earlier) : later;
}

}  // namespace

const char* NameOf(Life life) {
  constexpr std::array kNames = {"alive", "dead", "absent", "unknown"};
  return kNames.at(static_cast<size_t>(life));
}

absl::StatusOr<RegionReport> ReadRegionReport(absl::string_view name) {
  TANDEM_ASSIGN_OR_RETURN(const auto file, ObservedFile::Open(name));
  RegionReport report;
  report.name = Printable(name);
  report.name_gone = file.name_gone();
  report.file_bytes = file.bytes();
  report.device = file.id().device;
  report.inode = file.id().inode;
  report.read_ns = MonotonicNanos();
  LrbcHeader header;
  report.has_header = ReadHeader(file, &header);
  for (GracePeriod grace(kSequenceGraceNs);
       report.has_header && ExchangeOf(header) == ExchangeState::kImpossible &&
       !grace.Expired();
       YieldCore()) {
    // The words were torn by an interrupted copy, or by a write at this time.
    report.has_header = ReadHeader(file, &header);
    report.read_ns = MonotonicNanos();
  }
  if (!file.has_spare_link() &&
      (!report.has_header || header.magic != kLrbcMagic)) {
    return MakeError(ErrorCode::kLayoutMismatch,
                     absl::StrCat("'", report.name,
                                  "': expected a region, found another "
                                  "file, of ",
                                  file.bytes(), " bytes"));
  }
  if (!report.has_header) {
    report.header_problems.push_back(
        absl::StrCat("expected a header of ", kLrbcHeaderBytes,
                     " bytes, found a file of ", file.bytes()));
    return report;
  }
  const std::vector<WorkerSlot> workers = ReadWorkerSlots(file, header);
  const std::vector<WorkerRows> rows = RowsOfAll(workers);
  std::vector<FieldRecord> fields, gpu_arrays;
  if (HasFields(header)) {
    fields = ReadTable(file, header.fields_offset, header.field_count);
  }
  if (HasGpuArrays(header)) {
    gpu_arrays =
        ReadTable(file, header.gpu_arrays_offset, header.gpu_array_count);
  }
  HeaderFindings found =
      ExamineHeader(header, file.bytes(), {fields, rows, gpu_arrays});
  report.header_problems = std::move(found.problems);
  report.sections = std::move(found.sections);
  report.fields = FieldsOf(header, found.fields);
  report.gpu = GpuOf(header, found.gpu_arrays);
  FillCounts(header, &report);
  FillPeers(file, header, &report);
  FillParts(file, header, &report);
  FillWorkers(file, header, workers, &report);
  return report;
}

std::vector<std::string> FeatureNames(uint64_t feature_bits) {
  constexpr std::pair<uint64_t, const char*> kNames[] = {
      {kFeatureArrays, "arrays"},
      {kFeatureSession, "session"},
      {kFeatureStepTimes, "step times"},
      {kFeatureInfos, "infos"},
      {kFeatureFrames, "frames"},
      {kFeatureImages, "images"},
      {kFeatureCommands, "commands"},
      {kFeatureAttendants, "attendants"},
      {kFeatureImageSlots, "image slots"},
      {kFeatureFields, "fields"},
      {kFeatureWorkers, "workers"},
      {kFeatureSubsets, "subsets"},
      {kFeatureGpuArrays, "GPU arrays"},
      {kFeatureIdentity, "identity"},
      {kFeatureCoreSharing, "core sharing"},
      {kFeatureOwnRun, "own run"},
      {kFeatureFinalImages, "final images"}};
  std::vector<std::string> names;
  for (int bit = 0; bit < 64; ++bit) {
    const uint64_t mask = uint64_t{1} << bit;
    if ((feature_bits & mask) == 0) continue;
    const auto* const named =
        std::find_if(std::begin(kNames), std::end(kNames),
                     [&](const auto& item) { return item.first == mask; });
    names.push_back(named == std::end(kNames) ? absl::StrCat("bit ", bit)
                                              : named->second);
  }
  return names;
}

std::string NameOf(AutoresetMode mode) {
  constexpr std::array kNames = {"SAME_STEP", "NEXT_STEP", "DISABLED"};
  const auto index = static_cast<size_t>(mode);
  return index < kNames.size() ? kNames[index] : absl::StrCat(index);
}

std::optional<RegionRates> RatesBetween(const RegionReport& earlier,
                                        const RegionReport& later) {
  if (!earlier.has_header || !later.has_header ||
      earlier.device != later.device || earlier.inode != later.inode ||
      earlier.generation != later.generation ||
      earlier.read_ns >= later.read_ns || earlier.frame_seq > later.frame_seq ||
      !GrewFrom(earlier.step_times, later.step_times)) {
    return std::nullopt;
  }
  RegionRates rates;
  rates.secs = static_cast<double>(later.read_ns - earlier.read_ns) / 1e9;
  rates.exchanges_per_sec =
      static_cast<double>(later.frame_seq - earlier.frame_seq) / rates.secs;
  rates.step_times = later.step_times.Since(earlier.step_times);
  rates.round_trips = NewIn(earlier.round_trips, later.round_trips);
  // An exchange counts at its end.
  rates.busy_share = std::min(
      static_cast<double>(rates.step_times.total_ns) / 1e9 / rates.secs, 1.0);
  if (earlier.workers.size() == later.workers.size()) {
    for (size_t worker = 0; worker < later.workers.size(); ++worker) {
      // A phase counts at its end; a replacement continues the count.
      const uint64_t before = earlier.workers[worker].busy_ns;
      const uint64_t now = std::max(later.workers[worker].busy_ns, before);
      rates.worker_busy_shares.push_back(
          std::min(static_cast<double>(now - before) / 1e9 / rates.secs, 1.0));
    }
  }
  if (earlier.frames && later.frames &&
      later.frames->frames >= earlier.frames->frames) {
    rates.frames_per_sec =
        static_cast<double>(later.frames->frames - earlier.frames->frames) /
        rates.secs;
  }
  return rates;
}

}  // namespace tandem
